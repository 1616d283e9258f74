//! Real children: what they receive, what they cost, how they fail.

use super::*;
use pagewise_model::run::Ending;
use std::time::Duration;

fn launch(words: &[&str]) -> Launch {
    let command: Vec<OsString> = words.iter().map(OsString::from).collect();
    Launch {
        input: Input::Null,
        ..Launch::from_command(&command).unwrap()
    }
}

fn output_of(mut launch: Launch) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out");
    launch.output = Output::Capture(file.clone());
    let finished = launch.spawn().unwrap().wait().unwrap();
    assert_eq!(finished.ending, Ending::Exited(0));
    std::fs::read_to_string(file).unwrap()
}

#[test]
fn a_gated_child_executes_only_when_released() {
    let gated = launch(&["true"]).spawn_gated().unwrap();
    let image = || std::fs::read_link(format!("/proc/{}/exe", gated.pid())).unwrap();
    assert_eq!(image(), std::env::current_exe().unwrap());
    let pid = gated.pid();
    let running = gated.release().unwrap();
    assert_eq!(running.pid(), pid);
    assert_eq!(running.wait().unwrap().ending, Ending::Exited(0));
}

#[test]
fn a_dropped_gate_leaves_no_process() {
    let gated = launch(&["touch", "/nonexistent/never"])
        .spawn_gated()
        .unwrap();
    let pid = gated.pid();
    drop(gated);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn settings_reach_the_program() {
    let mut env = launch(&["sh", "-c", "echo $GLIBC_TUNABLES $COLOUR"]);
    env.settings = Settings(vec![
        Setting::GlibcTunable {
            name: "glibc.malloc.top_pad".into(),
            value: "65536".into(),
        },
        Setting::Env {
            name: "COLOUR".into(),
            value: "green tea".into(),
        },
    ]);
    assert_eq!(output_of(env), "glibc.malloc.top_pad=65536 green tea\n");
}

#[test]
fn no_huge_pages_survives_exec() {
    let field = |launch| {
        let status = output_of(launch);
        status
            .lines()
            .find(|line| line.starts_with("THP_enabled"))
            .map(str::to_owned)
    };
    let mut without = launch(&["cat", "/proc/self/status"]);
    without.settings = Settings(vec![Setting::Thp {
        mode: "never".into(),
    }]);
    assert_eq!(field(without).as_deref(), Some("THP_enabled:\t0"));
}

#[test]
fn a_policy_of_memory_nodes_survives_exec() {
    if !crate::sys::numa::policy_can_be_set() {
        skipped!("this kernel or container lets nobody set policies of NUMA nodes");
        return;
    }
    let mut bound = launch(&["cat", "/proc/self/numa_maps"]);
    bound.settings = Settings(vec![Setting::Numa {
        options: "--cpunodebind=0 --membind=0".into(),
    }]);
    let maps = output_of(bound);
    assert!(
        maps.contains(" bind:0 heap") || maps.contains(" bind:0 anon"),
        "{maps}"
    );
    let mut elsewhere = launch(&["true"]);
    elsewhere.settings = Settings(vec![Setting::Numa {
        options: "--membind=1023".into(),
    }]);
    let error = elsewhere.spawn_gated().unwrap_err().to_string();
    assert!(
        error.contains("'numactl --membind=1023': this machine has no such"),
        "{error}"
    );
}

#[test]
fn cost_counts_the_program_and_its_children() {
    let script = "sh -c 'head -c 30000000 /dev/zero | tail -c 29000000 >/dev/null'; exit 3";
    let finished = launch(&["sh", "-c", script])
        .spawn()
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(finished.ending, Ending::Exited(3));
    // tail keeps 29 MB: over 7,000 pages that only a waited-for grandchild touched.
    assert!(finished.cost.minor_faults > 7_000, "{:?}", finished.cost);
    assert!(finished.cost.max_rss.0 > 28_000_000);
    assert!(finished.cost.wall.0 > 0 && finished.cost.cpu().0 > 0);
}

#[test]
fn the_peak_of_a_program_does_not_include_its_parents_memory() {
    const OURS: usize = 64 << 20;
    let ours = vec![1_u8; OURS];
    let finished = launch(&["true"]).spawn().unwrap().wait().unwrap();
    assert!(std::hint::black_box(&ours).iter().all(|&byte| byte == 1));
    let peak = finished.cost.max_rss;
    assert!((1..OURS as u64 / 4).contains(&peak.0), "{peak}");
}

#[test]
fn arguments_and_environment_outlast_the_release_of_the_heap() {
    let many: Vec<String> = (0..2000)
        .map(|at| format!("{at}-{}", "x".repeat(50)))
        .collect();
    let words: Vec<&str> = ["echo"]
        .into_iter()
        .chain(many.iter().map(String::as_str))
        .collect();
    assert_eq!(output_of(launch(&words)).trim_end(), many.join(" "));
}

#[test]
fn a_kill_is_told_from_an_exit() {
    let running = launch(&["sleep", "60"]).spawn().unwrap();
    running.signal(libc::SIGKILL).unwrap();
    assert_eq!(
        running.wait().unwrap().ending,
        Ending::Killed(libc::SIGKILL)
    );
}

#[test]
fn stop_kills_what_ignores_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let script = format!(
        "trap '' TERM; : > {}; while :; do sleep 0.01; done",
        ready.display()
    );
    let running = launch(&["sh", "-c", &script]).spawn().unwrap();
    while !ready.exists() {
        std::thread::yield_now();
    }
    let finished = running.stop(Duration::from_millis(50)).unwrap();
    assert_eq!(finished.ending, Ending::Killed(libc::SIGKILL));
}

#[test]
fn waiting_with_a_limit_returns_at_the_limit_and_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let end = folder.path().join("end");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done", end.display());
    let start = || launch(&["sh", "-c", &script]).spawn().unwrap();
    let (mut waited, mut looked) = (start(), start());
    assert_eq!(waited.wait_for(Duration::ZERO).unwrap(), None);
    assert_eq!(waited.wait_for(Duration::from_millis(1)).unwrap(), None);
    assert_eq!(looked.wait_by_looking(Duration::ZERO).unwrap(), None);
    std::fs::write(end, "").unwrap();
    let hour = Duration::from_secs(3600);
    for finished in [waited.wait_for(hour), looked.wait_by_looking(hour)] {
        assert_eq!(finished.unwrap().unwrap().ending, Ending::Exited(0));
    }
}

#[test]
fn failures_to_execute_are_reported_with_the_shells_status() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = launch(&[script.to_str().unwrap()]).spawn().unwrap_err();
    assert!(matches!(error, Error::Exec { .. }), "{error}");
    assert_eq!(error.shell_status(), 127);
    let error = launch(&["no-such-program-anywhere"]).spawn().unwrap_err();
    assert_eq!(error.shell_status(), 127);
    assert!(error.to_string().contains("no-such-program-anywhere"));
}

#[test]
fn a_script_without_interpreter_line_runs_in_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "echo one $1\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(
        output_of(launch(&[script.to_str().unwrap(), "two"])),
        "one two\n"
    );
}

#[test]
fn the_child_does_not_inherit_the_ignored_sigpipe_of_rust() {
    let status = output_of(launch(&["cat", "/proc/self/status"]));
    let ignored = status
        .lines()
        .find(|line| line.starts_with("SigIgn"))
        .unwrap();
    let mask = u64::from_str_radix(ignored.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_eq!(mask & (1 << (libc::SIGPIPE - 1)), 0, "{ignored}");
}

#[test]
fn input_from_a_file_starts_afresh_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in");
    std::fs::write(&file, "same\n").unwrap();
    for _ in 0..2 {
        let cat = Launch {
            input: Input::File(file.clone()),
            ..launch(&["cat"])
        };
        assert_eq!(output_of(cat), "same\n");
    }
}

#[test]
fn output_can_go_where_our_errors_go() {
    let ours = std::fs::read_link("/proc/self/fd/2").unwrap();
    let inside = format!("test \"$(readlink /proc/$$/fd/1)\" = '{}'", ours.display());
    let mut program = launch(&["sh", "-c", &inside]);
    program.output = Output::Stderr;
    assert_eq!(
        program.spawn().unwrap().wait().unwrap().ending,
        Ending::Exited(0)
    );
}
