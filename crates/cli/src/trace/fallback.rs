//! Fallback for kernels without function_graph: each fault's latency by pairs of software events,
//! with waits for locks, in a perf.data file. Only the path is missing.

use super::TraceArgs;
use crate::terminal;
use anyhow::bail;
use pagewise_linux::perf::{Mode, Options};
use pagewise_operate::capture::Subject;
use pagewise_operate::observe::{self, ObserveOptions};
use std::process::ExitCode;
use std::time::Duration;

/// Records what is available, after reporting the reason.
///
/// # Errors
/// As [`observe::observe`].
pub fn record(reason: &str, args: &TraceArgs) -> anyhow::Result<ExitCode> {
    let output = args.output("trace.perf.data");
    let say = terminal::progress(args.quiet);
    say(reason);
    say(&format!(
        "recording into {} instead: when each fault started and ended and what caused it, with call stacks and waits for locks. The path inside the kernel is missing.",
        output.display()
    ));
    if !args.function.is_empty() || args.depth > 0 {
        say("--function and --depth have no effect on that");
    }
    let subject = match args.subject() {
        Subject::Command(launch) => observe::Subject::Command(launch),
        Subject::System(None) => observe::Subject::System,
        Subject::System(Some(launch)) => observe::Subject::SystemDuring(launch),
        Subject::Processes(pids, None) => observe::Subject::Processes(pids),
        Subject::Processes(..) => bail!(
            "-p with a command needs function_graph; use -p with --duration, or -a with the command"
        ),
    };
    let options = ObserveOptions {
        subject,
        recorder: Options {
            mode: Mode::Full,
            faults: true,
            latency: true,
            locks: true,
            calls: false,
            cpu: None,
            ..Options::default()
        },
        output,
        interval: Duration::from_millis(100),
        duration: args.duration,
        counters: false,
        pages: false,
        delays: false,
        hide: None,
    };
    crate::recorded::record(&options, args.quiet)
}
