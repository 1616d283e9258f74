//! perf events: faults, call chains, hardware counters, and the setting that restricts them.

use super::trial::{Event, Machine, open, words};
use super::{available, limited, missing, with_remedy};
use crate::pseudo_file::setting;
use pagewise_model::capability::Capability;
use std::io;

/// Settings that restrict perf events.
pub(super) struct Guards {
    /// `kernel.perf_event_paranoid`; absent if the kernel has no perf events.
    pub paranoid: Option<i64>,
    /// `kernel.kptr_restrict`.
    pub hidden_addresses: Option<i64>,
}

pub(super) fn capabilities(machine: &Machine) -> Vec<Capability> {
    let number = |name: &str| {
        let text = setting(&machine.proc.path(&format!("sys/kernel/{name}")))?;
        text.parse().ok()
    };
    let guards = Guards {
        paranoid: number("perf_event_paranoid"),
        hidden_addresses: number("kptr_restrict"),
    };
    let faults = |kernel, callchain| open(&Event::Faults { kernel, callchain });
    vec![
        user_faults(&faults(false, false), &guards),
        kernel_faults(&faults(true, false), &guards),
        callchains(&faults(false, true), &guards),
        hardware(&open(&Event::Cycles)),
        kernel_symbols(&guards),
    ]
}

/// The remedy that allows user-mode events after the kernel refused them with `error`.
fn allow_user(error: &io::Error, guards: &Guards) -> &'static str {
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    let allowed = guards.paranoid.is_some_and(|level| level <= 2);
    if denied && allowed {
        ALLOW_SANDBOX
    } else {
        ALLOW_USER
    }
}

fn paranoid(guards: &Guards) -> String {
    match guards.paranoid {
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None => "the kernel has no perf events".to_string(),
    }
}

const ALLOW_USER: &str = "sudo sysctl kernel.perf_event_paranoid=2; in a container: --cap-add PERFMON, or a seccomp \
     profile that lets perf_event_open pass";
const ALLOW_SANDBOX: &str = "this setting allows it, so a seccomp filter forbids it: in a container, --cap-add PERFMON or a \
     seccomp profile that lets perf_event_open pass";
const ALLOW_KERNEL: &str = "sudo sysctl kernel.perf_event_paranoid=1, or run as root";

pub(super) fn user_faults(tried: &io::Result<()>, guards: &Guards) -> Capability {
    let name = "perf.software";
    match tried {
        Ok(()) => available(
            name,
            format!("page-fault events open; {}", paranoid(guards)),
            "Faults are sampled with address, thread and time, and their latency is measured.",
        ),
        Err(error) => with_remedy(
            missing(
                name,
                format!("perf_event_open: {}; {}", words(error), paranoid(guards)),
                "Only counts and the timeline remain; doctor can still prove a fix by A/B runs.",
            ),
            allow_user(error, guards),
        ),
    }
}

pub(super) fn kernel_faults(tried: &io::Result<()>, guards: &Guards) -> Capability {
    let name = "perf.software_kernel";
    match tried {
        Ok(()) => available(
            name,
            "events inside the kernel open",
            "Faults that system calls take on the program's behalf are sampled too.",
        ),
        Err(error) => with_remedy(
            limited(
                name,
                format!("{}; {}", words(error), paranoid(guards)),
                "Faults inside system calls, such as read() into fresh memory, are counted but \
                 not attributed.",
            ),
            ALLOW_KERNEL,
        ),
    }
}

pub(super) fn callchains(tried: &io::Result<()>, guards: &Guards) -> Capability {
    let name = "perf.callchain";
    match tried {
        Ok(()) => available(
            name,
            "events with call chains open",
            "Faults are attributed to call stacks.",
        ),
        Err(error) => with_remedy(
            missing(
                name,
                format!("{}; {}", words(error), paranoid(guards)),
                "Faults are attributed to memory regions only, not to code.",
            ),
            allow_user(error, guards),
        ),
    }
}

pub(super) fn hardware(tried: &io::Result<()>) -> Capability {
    let name = "perf.hardware";
    match tried {
        Ok(()) => available(
            name,
            "CPU cycle counters open",
            "CPU profiles use cycles, and TLB misses can be counted.",
        ),
        Err(error) => limited(
            name,
            format!("cycles: {}; virtual machines often have none", words(error)),
            "CPU profiles use the CPU clock; TLB misses cannot be counted.",
        ),
    }
}

pub(super) fn kernel_symbols(guards: &Guards) -> Capability {
    let name = "kernel.symbols";
    match guards.hidden_addresses {
        Some(0) => available(
            name,
            "kernel.kptr_restrict is 0",
            "Kernel functions in call stacks have names.",
        ),
        level => with_remedy(
            limited(
                name,
                match level {
                    Some(level) => format!("kernel.kptr_restrict is {level}"),
                    None => "kernel.kptr_restrict is unreadable".to_string(),
                },
                "Kernel functions in call stacks have names for root only, or for nobody.",
            ),
            "sudo sysctl kernel.kptr_restrict=0",
        ),
    }
}
