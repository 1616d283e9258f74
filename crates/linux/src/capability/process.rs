//! Our own confinement: PID namespace, seccomp, capabilities.

use super::trial::Machine;
use super::{available, limited, with_remedy};
use crate::pseudo_file;
use pagewise_model::capability::Capability;
use std::path::Path;

/// Inode of the first PID namespace (`PROC_PID_INIT_INO` of include/linux/proc_ns.h).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

pub(super) fn capabilities(machine: &Machine) -> Vec<Capability> {
    vec![pid_namespace(machine), sandbox(machine)]
}

pub(super) fn pid_namespace(machine: &Machine) -> Capability {
    let name = "pid_namespace";
    let found = pseudo_file::link(&machine.proc.path("self/ns/pid"));
    match found.as_ref().map(|link| link.as_deref()) {
        Ok(Some(link)) if link == Path::new(FIRST_NAMESPACE) => available(
            name,
            "the machine's own",
            "Every process of the machine can be named by its PID.",
        ),
        Ok(Some(_)) => with_remedy(
            limited(
                name,
                "a container's",
                "Only processes of this container can be watched.",
            ),
            "run on the host, or start the container with --pid=host",
        ),
        Ok(None) => limited(
            name,
            "unknown: there is no /proc/self/ns/pid",
            "Perhaps only some processes can be watched.",
        ),
        Err(error) => limited(
            name,
            error.to_string(),
            "Perhaps only some processes can be watched.",
        ),
    }
}

/// `CAP_SYS_PTRACE` and `CAP_PERFMON` of include/uapi/linux/capability.h.
const CAP_SYS_PTRACE: u32 = 19;
const CAP_PERFMON: u32 = 38;

pub(super) fn sandbox(machine: &Machine) -> Capability {
    let name = "sandbox";
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let status = match machine.proc.status(own) {
        Ok(Some(status)) => status,
        Ok(None) => {
            let finding = "our own status is not in /proc";
            return limited(
                name,
                finding,
                "Restrictions show only when something is tried.",
            );
        }
        Err(error) => {
            let consequence = "Restrictions show only when something is tried.";
            return limited(name, error.to_string(), consequence);
        }
    };
    let capability = |number, word| match status.has_capability(number) {
        true => format!("with {word}"),
        false => format!("without {word}"),
    };
    let rights = format!(
        "{}, {}",
        capability(CAP_PERFMON, "CAP_PERFMON"),
        capability(CAP_SYS_PTRACE, "CAP_SYS_PTRACE")
    );
    match (status.seccomp, status.no_new_privileges) {
        (0, false) => available(
            name,
            format!("no seccomp filter; {rights}"),
            "Only permissions limit what can be tried.",
        ),
        (0, true) => limited(
            name,
            format!("no_new_privs is set; {rights}"),
            "Set-user-id programs run without their privileges.",
        ),
        _ => with_remedy(
            limited(
                name,
                format!("a seccomp filter is active; {rights}"),
                "Calls such as perf_event_open and userfaultfd may be refused; see above.",
            ),
            "docker run --security-opt seccomp=unconfined …, or run on the host",
        ),
    }
}
