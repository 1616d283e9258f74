use super::*;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A running program that has printed a line, so that its libraries are mapped.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Option<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let output = child.stdout.take()?;
        BufReader::new(output).read_line(&mut line).ok()?;
        (line == "ready\n").then_some(Self(child))
    }

    fn found(&self) -> Vec<Allocator> {
        allocators(i32::try_from(self.0.id()).unwrap())
    }

    fn kinds(&self) -> Vec<AllocatorKind> {
        self.found().iter().map(|found| found.kind).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready; read line"]);
    command.env_remove("LD_PRELOAD");
    command
}

/// A static or dynamic C program built by `compiler`; `None` if there is no such compiler.
fn built_by(compiler: &str, options: &[&str]) -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("program.c");
    let text = "#include <stdio.h>\n#include <stdlib.h>\n\
                #ifdef SETS\n#include <malloc.h>\n#endif\n\
                int main(void) {\n\
                #ifdef SETS\nmallopt(M_TRIM_THRESHOLD, 65536);\n#endif\n\
                volatile char *p = malloc(9); p[0] = 1; free((void *)p);\n\
                perror(\"\"); puts(\"ready\"); fflush(stdout); return getchar(); }\n";
    std::fs::write(&source, text).unwrap();
    let program = folder.path().join("program");
    let mut command = Command::new(compiler);
    command.args(options).arg(&source).arg("-o").arg(&program);
    match command.status() {
        Ok(status) if status.success() => Some((folder, program)),
        _ => {
            skipped!("{compiler} {options:?} builds no program here");
            None
        }
    }
}

#[test]
fn a_glibc_program_tells_its_version_and_tunables() {
    let tunables = "glibc.malloc.arena_max=1";
    let running = Running::start(shell().env("GLIBC_TUNABLES", tunables)).unwrap();
    let found = running.found();
    assert_eq!(found.len(), 1, "{found:?}");
    if found[0].kind == AllocatorKind::Glibc {
        let version = found[0].version.as_deref().unwrap();
        assert!(version.starts_with("2.") && !found[0].is_static);
        assert_eq!(found[0].settings["glibc.malloc.arena_max"], "1");
    }
}

#[test]
fn static_programs_carry_their_c_library() {
    let cases = [
        ("cc", ["-static", "-g"], AllocatorKind::Glibc),
        ("cc", ["-static", "-s"], AllocatorKind::Glibc),
        ("musl-gcc", ["-static", "-g"], AllocatorKind::Musl),
        ("musl-gcc", ["-static", "-s"], AllocatorKind::Musl),
    ];
    for (compiler, options, kind) in cases {
        if let Some((_folder, program)) = built_by(compiler, &options) {
            let mut command = Command::new(program);
            let running = Running::start(command.stderr(Stdio::null())).unwrap();
            let found = running.found();
            assert_eq!(running.kinds(), [kind], "{compiler} {options:?} {found:?}");
            assert!(found[0].is_static);
        }
    }
}

#[test]
fn a_program_that_calls_mallopt_has_that_among_its_settings() {
    for (options, sets) in [(&["-DSETS"][..], true), (&[], false)] {
        let Some((_folder, program)) = built_by("cc", options) else {
            continue;
        };
        let mut command = Command::new(program);
        command.stderr(Stdio::null()).env_remove("LD_PRELOAD");
        let running = Running::start(&mut command).unwrap();
        let found = running.found();
        let glibc = found.iter().find(|one| one.kind == AllocatorKind::Glibc);
        let Some(glibc) = glibc else {
            skipped!("cc does not link with glibc here");
            return;
        };
        assert_eq!(glibc.settings.contains_key("mallopt()"), sets);
    }
}

#[test]
fn a_dynamic_musl_program_is_not_static() {
    if let Some((_folder, program)) = built_by("musl-gcc", &["-g"]) {
        let mut command = Command::new(program);
        if let Some(running) = Running::start(command.stderr(Stdio::null())) {
            assert_eq!(running.kinds(), [AllocatorKind::Musl]);
            assert!(!running.found()[0].is_static);
        }
    }
}

#[test]
fn a_preloaded_allocator_replaces_the_c_library() {
    let folder = "/usr/lib/x86_64-linux-gnu";
    let cases = [
        ("libjemalloc.so.2", AllocatorKind::Jemalloc),
        ("libmimalloc.so.2", AllocatorKind::Mimalloc),
        ("libtcmalloc_minimal.so.4", AllocatorKind::Tcmalloc),
    ];
    for (name, kind) in cases {
        let library = format!("{folder}/{name}");
        if !Path::new(&library).exists() {
            skipped!("there is no {library}");
            continue;
        }
        let mut command = shell();
        command.env("LD_PRELOAD", &library);
        command.env("MALLOC_CONF", "narenas:1");
        let running = Running::start(&mut command).unwrap();
        assert_eq!(running.kinds(), [kind]);
        let found = &running.found()[0];
        assert!(found.evidence.contains("is preloaded"), "{found:?}");
        let is_jemalloc = kind == AllocatorKind::Jemalloc;
        assert_eq!(found.settings.contains_key("MALLOC_CONF"), is_jemalloc);
        assert!(found.version.is_some(), "{found:?}");
    }
}

#[test]
fn python_stands_on_the_c_library() {
    let mut command = Command::new("python3");
    command.args(["-c", "print('ready', flush=True); input()"]);
    let Some(running) = Running::start(command.env("PYTHONMALLOC", "pymalloc")) else {
        skipped!("there is no python3");
        return;
    };
    let found = running.found();
    let kinds = running.kinds();
    assert_eq!(kinds.last(), Some(&AllocatorKind::Cpython), "{found:?}");
    assert_eq!(kinds.len(), 2);
    assert_eq!(found[1].settings["PYTHONMALLOC"], "pymalloc");
    let version = found[1].version.as_deref().unwrap();
    assert!(version.starts_with("3."), "{version}");
}

#[test]
fn a_stripped_program_with_a_jemalloc_inside_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("a.c"), folder.path().join("program"));
    let text = "#include <stdio.h>\nconst char *const texts[] = {\"x\", \"<jemalloc>: \", \"_RJEM_MALLOC_CONF\"};\n\
                int main(void) { puts(\"ready\"); fflush(stdout); return getchar(); }\n";
    std::fs::write(&source, text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-s", "-o"]).arg(&program).arg(&source);
    assert!(compiler.status().expect("a C compiler").success());
    let running =
        Running::start(Command::new(program).env("_RJEM_MALLOC_CONF", "narenas:1")).unwrap();
    let found = running.found();
    assert_eq!(found[0].kind, AllocatorKind::Jemalloc, "{found:?}");
    assert_eq!(found[0].inside.as_deref(), Some("program"));
    assert_eq!(found[0].variable.as_deref(), Some("_RJEM_MALLOC_CONF"));
    assert_eq!(found[0].settings["_RJEM_MALLOC_CONF"], "narenas:1");
}

#[test]
fn names_tell_versions() {
    let stems = [
        ("libpython3.11.so.1.0", Some("3.11")),
        ("python3.12d", Some("3.12")),
        ("python3", None),
        ("libruby-3.1.so.3.1.7", Some("3.1")),
        ("libphp8.2.so", Some("8.2")),
        ("libR.so", None),
    ];
    for (name, version) in stems {
        assert_eq!(version_in_stem(name).as_deref(), version, "{name}");
    }
    assert_eq!(
        version_in_name("/lib/libc-2.31.so").as_deref(),
        Some("2.31")
    );
    assert!(is_glibc("libc.so.6") && is_glibc("libc-2.31.so") && !is_glibc("libcrypt-2.31.so"));
    assert!(same_library("/usr/lib/libjemalloc.so.2", "libjemalloc.so"));
    assert!(!same_library("/usr/lib/libjemalloc.so.2", "libmimalloc.so"));
}

#[test]
fn a_process_that_is_gone_has_none() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    child.wait().unwrap();
    assert!(allocators(pid).is_empty());
}

#[test]
fn files_tell_runtimes() {
    let process = |file: &str| Process {
        program: Program::read(
            PathBuf::from("/usr/bin/program"),
            Path::new("/no/such/program"),
        ),
        files: BTreeSet::from([file.to_owned()]),
        environ: Vec::new(),
        arguments: Vec::new(),
        root: PathBuf::from("/"),
    };
    let cases = [
        ("/usr/lib/libruby-3.1.so.3.1.7", Some(AllocatorKind::Ruby)),
        ("/usr/lib/R/lib/libR.so", Some(AllocatorKind::R)),
        (
            "/usr/share/dotnet/libcoreclr.so",
            Some(AllocatorKind::Dotnet),
        ),
        (
            "/usr/lib/apache2/modules/libphp8.2.so",
            Some(AllocatorKind::Php),
        ),
        ("/usr/lib/php/opcache.so", None),
        (
            "/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
            Some(AllocatorKind::Erlang),
        ),
        (
            "/usr/lib/x86_64-linux-gnu/libguile-3.0.so.1.6.0",
            Some(AllocatorKind::Guile),
        ),
        ("/usr/bin/python3.13", Some(AllocatorKind::Cpython)),
        ("/usr/bin/node", Some(AllocatorKind::V8)),
        ("/usr/bin/nodeenv.so", None),
    ];
    for (file, kind) in cases {
        let found = process(file).runtimes();
        assert_eq!(found.first().map(|one| one.kind), kind, "{file}");
    }
}

#[test]
fn the_ruby_library_does_not_replace_malloc() {
    assert_eq!(library("/usr/lib/libruby-3.1.so.3.1.7"), None);
    let jemalloc = library("/usr/lib/libjemalloc.so.2");
    assert_eq!(jemalloc, Some(AllocatorKind::Jemalloc));
}

#[test]
fn a_program_that_exports_phps_allocator_is_php() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("php.c"), folder.path().join("php"));
    let text = "#include <stdio.h>\nvoid *_emalloc(long n) { return 0; }\n\
                int main(void) { puts(\"ready\"); fflush(stdout); return getchar(); }\n";
    std::fs::write(&source, text).unwrap();
    let compiler = Command::new("cc")
        .arg("-rdynamic")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .status();
    assert!(
        compiler
            .expect("a C compiler, as CONTRIBUTING.md asks")
            .success()
    );
    let running = Running::start(&mut Command::new(program)).unwrap();
    assert_eq!(running.kinds().last(), Some(&AllocatorKind::Php));
}
