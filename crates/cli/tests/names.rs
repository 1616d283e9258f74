//! Names of code outside plain files of this system: generated at run time, in a container, without
//! frame pointers. If a machine lacks something for a test, a message says so and the test is
//! skipped.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

#[path = "support/command.rs"]
mod command;

use command::pagewise;

/// Builds a C program; `None` if that is not possible.
fn build(folder: &Path, source: &str, options: &[&str]) -> Option<PathBuf> {
    let program = folder.join("program");
    let file = folder.join("program.c");
    std::fs::write(&file, source).expect("temporary file");
    let status = Command::new("cc")
        .args(options)
        .arg("-o")
        .args([&program, &file])
        .status();
    if !status.is_ok_and(|status| status.success()) {
        skipped!("cc {} does not build it", options.join(" "));
        return None;
    }
    Some(program)
}

/// The report on the first event.
fn report(file: &str) -> Value {
    let output = pagewise(&["report", file, "--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A function's own share of the first event's weight.
fn share(found: &Value, name: &str) -> f64 {
    let event = &found["evidence"]["profile"]["events"][0];
    let functions = event["functions"].as_array().expect("functions");
    let own: f64 = functions
        .iter()
        .filter(|function| function["name"] == name)
        .map(|function| function["own"].as_f64().expect("a number"))
        .sum();
    own / event["weight"].as_f64().expect("a number")
}

/// Whether the recording could be made.
fn recorded(output: &Output) -> bool {
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}");
    let can = !messages.contains("could not be sampled");
    if !can {
        skipped!("{messages}");
    }
    can
}

/// Ends a long-running program when a test is over, however it ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_made_at_run_time_is_named_by_its_map() {
    // mov rcx, 3e9; dec rcx; jnz; ret
    let source = r#"
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(void) {
            unsigned char code[] = {0x48,0xb9,0,0x5e,0xd0,0xb2,0,0,0,0, 0x48,0xff,0xc9, 0x75,0xfb, 0xc3};
            void *at = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (at == MAP_FAILED) return 77;
            memcpy(at, code, sizeof code);
            char name[64];
            snprintf(name, sizeof name, "/tmp/perf-%d.map", getpid());
            FILE *map = fopen(name, "w");
            fprintf(map, "%lx %zx Lhot;::spin made up\n", (unsigned long)at, sizeof code);
            fclose(map);
            printf("%d\n", getpid());
            fflush(stdout);
            ((void (*)(void))at)();
            return 0;
        }"#;
    let folder = tempfile::tempdir().expect("temporary directory");
    let Some(program) = build(folder.path(), source, &["-O1"]) else {
        return;
    };
    let data = folder.path().join("jit.data");
    let (program, data) = (program.to_str().unwrap(), data.to_str().unwrap());
    let output = pagewise(&[
        "record", "-e", "cpu", "-F", "497", "-o", data, "--", program,
    ]);
    let pid = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let map = format!("/tmp/perf-{pid}.map");
    if recorded(&output) {
        let found = report(data);
        assert!(
            share(&found, "Lhot;::spin made up") > 0.8,
            "{}",
            found["evidence"]["profile"]["events"]
        );
        let kinds = found["evidence"]["profile"]["events"][0]["functions"].to_string();
        assert!(kinds.contains(r#""kind":"jit""#), "{kinds}");
        // Without its map the same code has a reason and a remedy.
        std::fs::remove_file(&map).expect("the program wrote it");
        let found = report(data);
        let causes = found["evidence"]["profile"]["unknown"]
            .as_array()
            .unwrap()
            .iter();
        let cause = causes.clone().find(|cause| cause["reason"] == "jit");
        let cause = cause.unwrap_or_else(|| panic!("{}", found["evidence"]["profile"]["unknown"]));
        assert!(cause["own"].as_f64().unwrap() > 0.8, "{cause}");
    }
    let _ = std::fs::remove_file(map);
}

#[test]
fn code_in_a_container_is_named_through_its_own_files() {
    let source = "#include <stdio.h>\n\
                  __attribute__((noipa)) unsigned inside(unsigned long n) {\n\
                  unsigned x = 1; for (unsigned long i = 0; i < n; i++) x = x * 1664525u + 1013904223u;\n\
                  return x; }\n\
                  int main(void) { puts(\"ready\"); fflush(stdout);\n\
                  for (;;) if (inside(1 << 24) == 7) puts(\"7\"); }\n";
    let folder = tempfile::tempdir().expect("temporary directory");
    let options = ["-O1", "-fno-omit-frame-pointer", "-static"];
    let Some(program) = build(folder.path(), source, &options) else {
        return;
    };
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("only-in-here")).unwrap();
    std::fs::rename(program, root.join("only-in-here/program")).unwrap();
    let container = Command::new("unshare")
        .args([
            "--mount",
            "chroot",
            root.to_str().unwrap(),
            "/only-in-here/program",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(child) = container else {
        skipped!("there is no unshare");
        return;
    };
    let mut child = Running(child);
    let mut line = String::new();
    let stdout = child.0.stdout.take().expect("a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).unwrap();
    if line != "ready\n" {
        skipped!("a mount namespace of its own needs root");
        return;
    }
    let data = folder.path().join("container.data");
    let data = data.to_str().unwrap();
    // Both unshare and chroot become the program.
    let pid = child.0.id().to_string();
    let output = pagewise(&[
        "record",
        "-p",
        &pid,
        "-e",
        "cpu",
        "-F",
        "497",
        "--duration",
        "1s",
        "-o",
        data,
    ]);
    if !recorded(&output) {
        return;
    }
    let found = report(data);
    assert!(
        share(&found, "inside") > 0.8,
        "{}",
        found["evidence"]["profile"]["events"][0]["functions"]
    );
    // When the container is gone, its files are gone too.
    drop(child);
    std::fs::remove_dir_all(root).unwrap();
    let found = report(data);
    let causes = found["evidence"]["profile"]["unknown"]
        .as_array()
        .unwrap()
        .iter();
    let cause = causes.clone().find(|cause| cause["reason"] == "no_file");
    let cause = cause.unwrap_or_else(|| panic!("{}", found["evidence"]["profile"]["unknown"]));
    assert!(
        cause["remedy"].as_str().unwrap().contains("container"),
        "{cause}"
    );
}

#[test]
fn unwind_tables_give_whole_stacks_all_through_a_long_run() {
    let source = "#include <stdio.h>\n#include <time.h>\n\
                  #define STEP __attribute__((noinline, noclone)) unsigned\n\
                  STEP leaf(unsigned n) { unsigned x = n; for (int i = 0; i < 1000000; i++) x = x * 1664525u + i; return x; }\n\
                  STEP middle(unsigned n) { return leaf(n) + 1; }\n\
                  STEP deep(unsigned n, int more) { return more ? deep(n, more - 1) + 3 : middle(n) + 2; }\n\
                  int main(void) { unsigned x = 0; while (clock() < 4 * CLOCKS_PER_SEC) x += deep(x, 20);\n\
                  fprintf(stdout, \"%.3f %u\\n\", (double)clock() / CLOCKS_PER_SEC, x); }\n";
    let folder = tempfile::tempdir().expect("temporary directory");
    let options = ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    let Some(program) = build(folder.path(), source, &options) else {
        return;
    };
    let data = folder.path().join("dwarf.data");
    let (program, data) = (program.to_str().unwrap(), data.to_str().unwrap());
    let output = pagewise(&[
        "record",
        "-e",
        "cpu",
        "-F",
        "497",
        "--call-graph",
        "dwarf",
        "-o",
        data,
        "--",
        program,
    ]);
    if !recorded(&output) {
        return;
    }
    let used = String::from_utf8_lossy(&output.stdout);
    let used: f64 = used.split(' ').next().unwrap().parse().unwrap();
    let found = report(data);
    let event = &found["evidence"]["profile"]["events"][0];
    let total = |name: &str| {
        let functions = event["functions"].as_array().unwrap().iter();
        let of = functions.filter(|function| function["name"] == name);
        of.map(|function| function["total"].as_f64().unwrap())
            .sum::<f64>()
    };
    let weight = event["weight"].as_f64().unwrap();
    assert!(total("main") / weight > 0.97, "{}", event["functions"]);
    assert!(
        total("deep") / total("main") > 0.95,
        "{}",
        event["functions"]
    );
    assert!(share(&found, "leaf") > 0.9, "{}", event["functions"]);
    // Clock samples add up to the time used, unless some were lost, which is reported.
    let lost = !found["losses"].is_null();
    assert!(
        weight / 1e9 > 0.9 * used || lost,
        "{weight} ns of {used} s, {}",
        found["losses"]
    );
}

#[test]
fn a_recording_of_perf_tells_control_groups_where_it_has_them() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let data = folder.path().join("perf.data");
    let data = data.to_str().unwrap();
    let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let perf = Command::new("perf")
        .args([
            "record",
            "--all-cgroups",
            "-e",
            "cpu-clock",
            "-F",
            "997",
            "-g",
            "-o",
            data,
        ])
        .args(["--", "sh", "-c", count])
        .output();
    match perf {
        Ok(output) if output.status.success() => {}
        other => {
            skipped!("perf record --all-cgroups does not work here: {other:?}");
            return;
        }
    }
    let found = report(data);
    let groups = found["evidence"]["profile"]["events"][0]["cgroups"]
        .as_array()
        .unwrap();
    assert_eq!(groups.len(), 1, "{groups:?}");
    let path = groups[0]["path"].as_str().unwrap();
    assert!(path.starts_with('/'), "{path}");
    let of_group = pagewise(&["report", data, "--cgroup", path, "--json"]);
    let of_group: Value = serde_json::from_slice(&of_group.stdout).unwrap();
    assert_eq!(
        of_group["evidence"]["profile"]["events"][0]["samples"],
        found["evidence"]["profile"]["events"][0]["samples"]
    );
    let none = pagewise(&["report", data, "--cgroup", "/no/such/group"]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no sample ran in /no/such/group"));
}
