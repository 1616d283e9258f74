use super::*;
use pagewise_linux::perf::CpuClock;

#[test]
fn unwaited_children_between_readings_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("forking");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/experiment/server/forking.c"
    );
    let built = std::process::Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(source)
        .status()
        .expect("the C compiler that Rust links with");
    assert!(built.success());
    let own = i32::try_from(std::process::id()).unwrap();
    if CpuClock::for_process(own).is_none() {
        skipped!("perf events are not allowed here");
        return;
    }
    let launch = Launch {
        output: Output::Null,
        input: Input::Null,
        ..Launch::from_command(&[program.clone().into(), "serve".into()]).unwrap()
    };
    let of = |times: u32| {
        let mut command = program.clone().into_os_string();
        command.push(format!(" ask {times}"));
        let load = Load {
            command,
            ready: Ready::Listens,
            within: Duration::from_secs(20),
        };
        let finished = once(&launch, &load, None, Duration::from_secs(60));
        finished.unwrap().expect("it was in time").cost
    };
    // 20 ms of CPU time each, plus fork(2), exit(2) and the connection: these take a fiftieth, and
    // would have to take as much again for the test to fail.
    let cost = of(10);
    let cpu = cost.cpu().as_secs_f64();
    assert!((0.19..0.4).contains(&cpu), "{cost:?}");
    assert!(cost.wall.as_secs_f64() > 0.19, "{cost:?}");
}

#[test]
fn cpu_time_is_split_as_what_was_seen() {
    let seen = RunCost {
        user: Nanos(30_000_000),
        system: Nanos(10_000_000),
        minor_faults: 7,
        ..RunCost::default()
    };
    let whole = with_cpu_time(seen, Nanos(400_000_000));
    assert_eq!(
        (whole.user, whole.system),
        (Nanos(300_000_000), Nanos(100_000_000))
    );
    assert_eq!(whole.minor_faults, 7);
    let unseen = with_cpu_time(RunCost::default(), Nanos(5_000_000));
    assert_eq!((unseen.user, unseen.system), (Nanos(5_000_000), Nanos(0)));
}
