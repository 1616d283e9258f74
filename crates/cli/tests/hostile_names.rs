//! Names of programs, threads, functions, files and arguments that would control a terminal, break
//! lines or reverse text: they go through every command and every text export, and the output is
//! checked byte by byte.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Sets a title, colours by C1, reverses the following text, breaks a line and rings the bell.
const EVIL: &str = "e\u{1b}]0;t\u{7}\u{9b}31m\u{202e}\n\u{2066}\u{61c}\u{200f}\u{7f}\r;v";

/// A program whose function and thread have such names.
const SOURCE: &str = r#"
    #include <string.h>
    #include <stdlib.h>
    #include <sys/prctl.h>
    #include <time.h>
    __attribute__((noinline)) void evil_function(void) {
        for (int i = 0; i < 200; i++) { char *p = malloc(1 << 20); memset(p, i, 1 << 20); free(p); }
    }
    int main(void) {
        prctl(PR_SET_NAME, "e\x1b[31m\nv\xc2\x9b" "1m", 0, 0, 0);
        for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;) evil_function();
        return 0;
    }
"#;

/// A trace with a function of such a name. The reader does not accept a line with ASCII control
/// characters as part of a trace; other control characters are treated like letters.
fn trace() -> String {
    let name = EVIL.replace(|c: char| c.is_ascii() && !c.is_alphanumeric(), "");
    let fault = |at: u32| {
        format!(
            " {at}.000001 |   0)     bash-1     |               |  handle_mm_fault() {{\n \
              {at}.000002 |   0)     bash-1     |   3.000 us    |    {name}();\n \
              {at}.000003 |   0)     bash-1     |   1.000 us    |    vma_alloc_folio();\n \
              {at}.000010 |   0)     bash-1     |   9.000 us    |  }} /* handle_mm_fault */\n"
        )
    };
    let faults: String = (100..150).map(fault).collect();
    format!("# tracer: function_graph\n{faults}")
}

struct Scene {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("evil.c");
        std::fs::write(&source, SOURCE).expect("written");
        let plain = folder.path().join("plain");
        run(Command::new("cc")
            .args(["-O1", "-o"])
            .args([&plain, &source]));
        let program = folder.path().join(EVIL);
        let rename = format!("evil_function={EVIL}");
        run(Command::new("objcopy")
            .args(["--redefine-sym", &rename])
            .args([&plain, &program]));
        std::fs::write(folder.path().join("trace.txt"), trace()).expect("written");
        let item = EVIL.replace(char::is_whitespace, "");
        let sequences = format!("{item} b\n{item} c\n");
        std::fs::write(folder.path().join("sequences.txt"), sequences).expect("written");
        Self { folder, program }
    }

    fn pagewise<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .current_dir(self.folder.path())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .expect("pagewise runs")
    }

    /// Runs a command, and checks everything that it prints and the file that it writes.
    fn check(&self, arguments: &[&str], program: bool) {
        let mut words: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        if program {
            words.extend([OsStr::new("--"), self.program.as_os_str(), OsStr::new(EVIL)]);
        }
        let output = self.pagewise(&words);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert_safe(&output.stdout, arguments);
        assert_safe(&output.stderr, arguments);
        if arguments.contains(&"--json") {
            let mut read = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
            assert!(
                read.all(|one: Result<serde_json::Value, _>| one.is_ok()),
                "{arguments:?}"
            );
        }
        let named = arguments.iter().position(|word| *word == "-o");
        if let Some(file) = named.and_then(|at| arguments.get(at + 1)) {
            let path = self.folder.path().join(file);
            assert_safe(&std::fs::read(&path).expect("written"), arguments);
            std::fs::remove_file(path).expect("removed");
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("binutils and a C compiler");
    assert!(output.status.success(), "{output:?}");
}

/// No character that a terminal or a browser acts on, but ends of lines and tabs.
fn assert_safe(bytes: &[u8], what: &[&str]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|error| panic!("{what:?}: {error}"));
    let text = text.replace("\r\n", "\n");
    let acts = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if let Some(at) = text.find(acts) {
        let from = text[..at]
            .char_indices()
            .rev()
            .nth(60)
            .map_or(0, |(at, _)| at);
        let to = text[at..]
            .char_indices()
            .nth(40)
            .map_or(text.len(), |(more, _)| at + more);
        panic!("{what:?}: {:?}", &text[from..to]);
    }
}

#[test]
fn a_recording_full_of_such_names_is_safe_in_every_format() {
    let scene = Scene::new();
    let mut words: Vec<&OsStr> = ["record", "-o", "rec.data", "--"].map(OsStr::new).to_vec();
    words.extend([scene.program.as_os_str(), OsStr::new(EVIL)]);
    let output = scene.pagewise(&words);
    assert!(output.status.success(), "{output:?}");
    scene.check(&["report", "rec.data"], false);
    scene.check(&["report", "--json", "rec.data"], false);
    scene.check(&["report", "-o", "page.html", "rec.data"], false);
    scene.check(&["diff", "rec.data", "rec.data"], false);
    scene.check(&["diff", "--json", "rec.data", "rec.data"], false);
    scene.check(&["diff", "-o", "page.html", "rec.data", "rec.data"], false);
    for format in ["folded", "csv", "svg", "speedscope", "firefox"] {
        scene.check(&["report", "--export", format, "rec.data"], false);
        scene.check(
            &["report", "--export", format, "-o", "out", "rec.data"],
            false,
        );
    }
    // Lines of folded stacks and rows are whole.
    let folded = scene
        .pagewise(["report", "--export", "folded", "rec.data"])
        .stdout;
    let folded = String::from_utf8(folded).expect("UTF-8");
    let has_weight = |line: &str| {
        let weight = line
            .rsplit_once(' ')
            .map(|(_, weight)| weight.parse::<u64>());
        matches!(weight, Some(Ok(_)))
    };
    assert!(folded.lines().all(has_weight), "{folded}");
    assert!(folded.contains("\\u{1b}"), "the names are met: {folded}");
}

#[test]
fn programs_with_such_names_are_safe_to_observe() {
    let scene = Scene::new();
    scene.check(&["doctor", "-o", "page.html"], true);
    scene.check(&["doctor", "--json", "--no-report"], true);
    scene.check(&["watch"], true);
    scene.check(
        &["watch", "--json", "--interval", "1s", "--duration", "500ms"],
        true,
    );
    let missing = scene.pagewise(["report", EVIL.trim_end_matches('v')]);
    assert!(!missing.status.success());
    assert_safe(&missing.stderr, &["report", "of a file that is not there"]);
}

#[test]
fn a_trace_full_of_such_names_is_safe_in_every_format() {
    let scene = Scene::new();
    scene.check(&["report", "trace.txt"], false);
    scene.check(&["report", "--json", "trace.txt"], false);
    scene.check(&["report", "-o", "page.html", "trace.txt"], false);
    scene.check(&["report", "--export", "folded", "trace.txt"], false);
    scene.check(
        &["report", "--export", "folded", "-o", "out", "trace.txt"],
        false,
    );
    scene.check(&["mine", "trace.txt"], false);
    scene.check(&["mine", "--json", "trace.txt"], false);
    scene.check(&["mine", "sequences.txt"], false);
    scene.check(&["mine", "--json", "sequences.txt"], false);
    scene.check(&["diff", "trace.txt", "trace.txt"], false);
    scene.check(&["diff", "--json", "trace.txt", "trace.txt"], false);
    let folded = scene
        .pagewise(["report", "--export", "folded", "trace.txt"])
        .stdout;
    assert!(
        String::from_utf8_lossy(&folded).contains("\\u{9b}"),
        "the names are met"
    );
}
