//! tracefs: tracepoints, function_graph, kprobes.

use super::trial::{Event, Machine, open, words};
use super::{available, limited, missing, with_remedy};
use crate::pseudo_file;
use crate::tracefs::control::Control;
use crate::tracefs::{self, Tracefs, guard};
use pagewise_model::capability::Capability;
use std::io;
use std::path::{Path, PathBuf};

const PLACE: &str = "kernel/tracing";

/// Tracepoints that Pagewise uses: capability name, system, event, purpose, consequence if missing.
const TRACEPOINTS: [(&str, &str, &str, &str, &str); 4] = [
    (
        "tracepoints.syscalls",
        "syscalls",
        "sys_enter_munmap",
        "Calls that allocate and release memory are recorded with their stacks.",
        "Release and growth of memory are inferred from mappings and the size of the heap.",
    ),
    (
        "tracepoints.exceptions",
        "exceptions",
        "page_fault_user",
        "The moment and the kind of access of each fault can be recorded.",
        "The page-fault event is used instead.",
    ),
    (
        "tracepoints.mmap_lock",
        "mmap_lock",
        "mmap_lock_start_locking",
        "Threads' waits for the lock of the address space are measured.",
        "Waits for the address space's lock are only part of the faults' latency.",
    ),
    (
        "tracepoints.contention",
        "lock",
        "contention_begin",
        "Waits for kernel locks are measured.",
        "Waits for kernel locks are not measured separately.",
    ),
];

pub(super) fn capabilities(machine: &Machine) -> Vec<Capability> {
    let tracefs = Tracefs::find();
    let folder = machine.sys.join(PLACE);
    let mut found = vec![mounted(&tracefs, folder.join("events").is_dir())];
    for point in TRACEPOINTS {
        let tried = tracefs
            .as_ref()
            .ok()
            .map(|tracefs| try_tracepoint(tracefs, point.1, point.2));
        found.push(tracepoint(point, tried));
    }
    let tracing = tracing_folder(folder, &tracefs);
    found.push(function_graph(&tracing));
    found.push(kprobes(&tracing));
    found
}

/// The folder that lists the kernel's tracers: the public tracefs, or our own mount of it if there
/// is no public one. Without our mount, a kernel that lacks a tracer would be reported as lacking a
/// mount.
pub(super) fn tracing_folder(public: PathBuf, found: &Result<Tracefs, tracefs::Error>) -> PathBuf {
    match found {
        Ok(tracefs) if !public.join("events").is_dir() => tracefs.control().path("."),
        _ => public,
    }
}

pub(super) fn mounted(found: &Result<Tracefs, tracefs::Error>, publicly: bool) -> Capability {
    let name = "tracefs";
    let with = "Tracepoints can be found.";
    let without = "No tracepoints: system calls on memory and waiting for locks are not recorded.";
    match found {
        Ok(_) if publicly => available(name, "mounted and readable", with),
        Ok(_) => available(
            name,
            "not mounted at /sys/kernel/tracing; Pagewise mounts it privately",
            with,
        ),
        Err(error @ tracefs::Error::NotMounted { .. }) => with_remedy(
            missing(name, error.to_string(), without),
            "sudo mount -t tracefs tracefs /sys/kernel/tracing",
        ),
        Err(error) => with_remedy(
            missing(name, error.to_string(), without),
            "run as root, or: sudo mount -o remount,mode=755 /sys/kernel/tracing",
        ),
    }
}

/// Result of trying a tracepoint.
pub(super) enum Tried {
    /// It opens.
    Opens,
    /// The kernel has no tracepoint of that name.
    Unknown,
    /// The kernel refuses.
    Refused(io::Error),
}

fn try_tracepoint(tracefs: &Tracefs, system: &str, event: &str) -> Tried {
    match tracefs.tracepoint(system, event) {
        Ok(Some(point)) => match open(&Event::Tracepoint(point.id)) {
            Ok(()) => Tried::Opens,
            Err(error) => Tried::Refused(error),
        },
        Ok(None) => Tried::Unknown,
        Err(error) => Tried::Refused(io::Error::other(error)),
    }
}

pub(super) fn tracepoint(
    point: (&str, &str, &str, &str, &str),
    tried: Option<Tried>,
) -> Capability {
    let (name, system, event, with, without) = point;
    match tried {
        Some(Tried::Opens) => available(name, format!("{system}:{event} opens"), with),
        Some(Tried::Unknown) => missing(
            name,
            format!("this kernel has no {system}:{event}"),
            without,
        ),
        Some(Tried::Refused(error)) => with_remedy(
            missing(
                name,
                format!("{system}:{event}: {}", words(&error)),
                without,
            ),
            "run as root, or: sudo setcap cap_perfmon,cap_dac_read_search+ep \"$(command -v pagewise)\"",
        ),
        None => with_remedy(missing(name, "there is no tracefs", without), "see tracefs"),
    }
}

pub(super) fn function_graph(tracing: &Path) -> Capability {
    let name = "ftrace.function_graph";
    let without =
        "pagewise trace records each fault's latency, but not its path through the kernel.";
    match pseudo_file::text(&tracing.join("available_tracers")) {
        Ok(Some(list)) if list.split_whitespace().any(|word| word == "function_graph") => {
            graph_in_use(name, tracing)
        }
        Ok(Some(list)) => with_remedy(
            missing(
                name,
                format!("this kernel has only: {}", list.trim()),
                without,
            ),
            "use a kernel with CONFIG_FUNCTION_GRAPH_TRACER, as distributions build it, or \
             tests/qemu/guest of Pagewise's sources, which runs a program under one by emulation",
        ),
        Ok(None) => with_remedy(
            missing(name, "tracefs is not mounted", without),
            "sudo mount -t tracefs tracefs /sys/kernel/tracing",
        ),
        Err(error) => with_remedy(missing(name, error.to_string(), without), "run as root"),
    }
}

/// The tracer exists; reports whether it is in use.
fn graph_in_use(name: &str, tracing: &Path) -> Capability {
    let with = "pagewise trace follows the kernel's path through each fault, call by call.";
    match guard::conflicts(&Control::at(tracing)) {
        Ok(conflicts) => match conflicts.first() {
            None => available(name, "listed in available_tracers, and free", with),
            Some(first) => with_remedy(
                limited(
                    name,
                    format!("in use: {} reads {:?}", first.file.display(), first.content),
                    "pagewise trace does not interfere with another tracer.",
                ),
                first.remedy.clone(),
            ),
        },
        Err(error) => with_remedy(
            limited(
                name,
                format!("listed in available_tracers; {error}"),
                "pagewise trace records each fault's latency, but not its path.",
            ),
            "run as root; impossible if the kernel is locked down",
        ),
    }
}

pub(super) fn kprobes(tracing: &Path) -> Capability {
    let name = "ftrace.kprobes";
    match tracing.join("kprobe_events").exists() {
        true => available(
            name,
            "kprobe_events is there",
            "Probes can be placed on kernel functions; nothing depends on it.",
        ),
        false => limited(
            name,
            "there is no kprobe_events (CONFIG_KPROBE_EVENTS, or tracefs is not mounted)",
            "Nothing depends on it: latencies come from pairs of software events.",
        ),
    }
}
