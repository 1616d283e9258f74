//! The purpose of the kernel's functions: data, `crates/faults/rules/kernel.toml`.

use pagewise_rules::{RuleFile, rule_file};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The contents of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelTable {
    entry: Vec<Entry>,
    call: Vec<CallFamily>,
    work: Vec<Work>,
    content: Vec<Content>,
    wait: Vec<Wait>,
}

/// A reason for entering the kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    label: String,
    /// Whether it counts at any position in a stack.
    #[serde(default)]
    anywhere: bool,
    functions: Vec<String>,
    /// Functions further in that do the work of a call, with the call's name.
    #[serde(default)]
    bodies: BTreeMap<String, String>,
    /// What the program asks for by the system calls in which it happens.
    #[serde(default)]
    requests: BTreeMap<String, String>,
}

/// System calls of one purpose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallFamily {
    id: String,
    label: String,
    /// Whether they change the address space.
    #[serde(default)]
    memory: bool,
    /// Whether they work on files, sockets or pipes.
    #[serde(default)]
    files: bool,
    calls: Vec<String>,
    /// Functions in which a call on files belongs to this family.
    #[serde(default)]
    through: Vec<String>,
    /// Functions that stand in place of a call's own function, with the call's name.
    #[serde(default)]
    bodies: BTreeMap<String, String>,
}

/// A kind of work in the kernel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Work {
    id: String,
    /// The entries in which it counts; none means all.
    #[serde(default)]
    within: Vec<String>,
    functions: Vec<String>,
}

/// What is done to the content of a page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    id: String,
    label: String,
    functions: Vec<String>,
}

/// What a thread is sleeping for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wait {
    pub(super) id: String,
    pub(super) label: String,
    functions: Vec<String>,
    /// Which part of the same program it waits for.
    #[serde(default, rename = "for")]
    pub(super) waits_for: Option<WaitsFor>,
    /// A hint on how to find out more.
    pub(super) next: Option<String>,
}

/// The part of the same program that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WaitsFor {
    /// Processes that it started.
    Children,
    /// Other threads of its process.
    Threads,
    /// Any process of the program.
    Tree,
}

/// Why the kernel was entered.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Reason {
    pub(super) id: String,
    pub(super) label: String,
    /// The system call, if it was one.
    pub(super) call: Option<String>,
}

const SHIPPED: RuleFile = rule_file!("kernel.toml");

impl pagewise_rules::Content for KernelTable {}

/// Prefixes of system-call functions: `SYSCALL_DEFINE` of x86-64, AArch64, and the compat calls of
/// 32-bit programs (arch/*/include/asm/syscall_wrapper.h).
const CALL_PREFIXES: [&str; 9] = [
    "__x64_sys_",
    "__arm64_sys_",
    "__ia32_sys_",
    "__ia32_compat_sys_",
    "__arm64_compat_sys_",
    "__se_sys_",
    "__do_sys_",
    "__sys_",
    "ksys_",
];

/// Prefixes of functions that do the work of the call whose name follows (fs/read_write.c, kernel/futex/syscalls.c).
const BODY_PREFIXES: [&str; 4] = ["do_sys_", "do_", "vfs_", "kernel_"];

impl KernelTable {
    /// The built-in table.
    #[must_use]
    pub fn shipped() -> &'static Self {
        static TABLE: LazyLock<KernelTable> = LazyLock::new(|| SHIPPED.shipped());
        &TABLE
    }

    /// Why the kernel was entered, from these functions, outermost first; `None` if unknown.
    pub(super) fn reason(&self, functions: &[&str]) -> Option<Reason> {
        let mut anywhere = self.entry.iter().filter(|entry| entry.anywhere);
        let is_in = |entry: &&Entry| functions.iter().any(|name| matches(&entry.functions, name));
        if let Some(found) = anywhere.find(is_in) {
            return Some(self.requested(found, functions));
        }
        let mut gate = None;
        for name in functions {
            if let Some(call) = call_of(name) {
                return Some(self.call(call, functions));
            }
            let mut others = self.entry.iter().filter(|entry| !entry.anywhere);
            match others.find(|entry| matches(&entry.functions, name)) {
                // Each system call comes through it: the functions that follow are more specific.
                Some(found) if found.id == "gate" => gate = Some(found),
                Some(found) => return Some(self.within(found, functions)),
                None if gate.is_some() => {
                    if let Some(call) = self.with_body(name) {
                        return Some(self.call(call, functions));
                    }
                }
                None => {}
            }
        }
        gate.map(Reason::new)
    }

    /// An entry with what the program asked for by the system call in which it happened.
    fn requested(&self, entry: &Entry, functions: &[&str]) -> Reason {
        let mut calls = functions
            .iter()
            .filter_map(|name| call_of(name).or_else(|| self.with_body(name)));
        Reason {
            call: calls.find_map(|call| entry.requests.get(call).cloned()),
            ..Reason::new(entry)
        }
    }

    /// An entry, or the call whose work it does.
    fn within(&self, entry: &Entry, functions: &[&str]) -> Reason {
        let mut bodies = functions.iter().filter_map(|name| entry.bodies.get(*name));
        bodies
            .next()
            .map_or_else(|| Reason::new(entry), |call| self.call(call, functions))
    }

    /// The system call that ends by jumping to this function: one that is named after it, or a body.
    fn with_body(&self, function: &str) -> Option<&str> {
        let plain = function.split('.').next().unwrap_or(function);
        let mut bodies = self.call.iter().map(|family| &family.bodies);
        let known = bodies.find_map(|bodies| bodies.get(plain));
        let named_after = || {
            let mut prefixes = BODY_PREFIXES.iter();
            let name = prefixes.find_map(|prefix| plain.strip_prefix(prefix))?;
            let mut calls = self.call.iter().flat_map(|family| &family.calls);
            calls.find(|call| *call == name)
        };
        known.or_else(named_after).map(String::as_str)
    }

    fn call(&self, call: &str, functions: &[&str]) -> Reason {
        let mut families = self.call.iter();
        let family = families
            .find(|family| family.calls.iter().any(|name| name == call))
            .map(|family| self.behind(family, functions));
        Reason {
            id: family.map_or_else(|| format!("call.{call}"), |family| family.id.clone()),
            label: family.map_or_else(|| "the system call".to_owned(), |f| f.label.clone()),
            call: Some(call.to_owned()),
        }
    }

    /// The family of what a call on files turned out to be for.
    fn behind<'a>(&'a self, family: &'a CallFamily, functions: &[&str]) -> &'a CallFamily {
        let goes_through = |one: &&CallFamily| {
            let mut names = functions.iter();
            names.any(|name| matches(&one.through, name))
        };
        let mut others = self.call.iter().filter(|_| family.files);
        others.find(goes_through).unwrap_or(family)
    }

    /// The work of these functions after this entry into the kernel: the id of the first kind of
    /// work that matches one of them.
    pub(super) fn work(&self, functions: &[&str], entry: &str) -> Option<&str> {
        let does = |work: &&Work| {
            (work.within.is_empty() || work.within.iter().any(|one| one == entry))
                && functions.iter().any(|name| matches(&work.functions, name))
        };
        self.work.iter().find(does).map(|work| work.id.as_str())
    }

    /// What these functions do to the content of a page: id and label.
    pub(super) fn content(&self, functions: &[&str]) -> Option<(&str, &str)> {
        let does = |content: &&Content| {
            let mut names = functions.iter();
            names.any(|name| matches(&content.functions, name))
        };
        let found = self.content.iter().find(does)?;
        Some((&found.id, &found.label))
    }

    /// What a thread that sleeps in this function is waiting for.
    pub(super) fn wait(&self, function: &str) -> Option<&Wait> {
        self.wait
            .iter()
            .find(|wait| matches(&wait.functions, function))
    }

    /// How well it explains that nothing ran: lower is better.
    pub(super) fn rank(&self, wait: &Wait) -> usize {
        let place = self.wait.iter().position(|one| one.id == wait.id);
        place.unwrap_or(usize::MAX)
    }

    /// Whether an entry works on files, sockets or pipes.
    #[must_use]
    pub fn is_file_call(&self, id: &str) -> bool {
        let mut families = self.call.iter();
        families.any(|family| family.files && family.id == id)
    }

    /// The label of an entry or of a family of system calls.
    #[must_use]
    pub fn label(&self, id: &str) -> &str {
        let entries = self.entry.iter().map(|one| (&one.id, &one.label));
        let calls = self.call.iter().map(|one| (&one.id, &one.label));
        let mut named = entries.chain(calls);
        let found = named.find(|(one, _)| *one == id);
        found.map_or("other work", |(_, label)| label)
    }

    /// Whether an entry changes the address space.
    #[must_use]
    pub fn is_memory_call(&self, id: &str) -> bool {
        let mut families = self.call.iter();
        families.any(|family| family.memory && family.id == id)
    }
}

impl Reason {
    fn new(entry: &Entry) -> Self {
        Self {
            id: entry.id.clone(),
            label: entry.label.clone(),
            call: None,
        }
    }
}

/// The system call that this function implements.
fn call_of(function: &str) -> Option<&str> {
    let call = CALL_PREFIXES
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))?;
    // The compiler's numbered copies belong to the same call.
    call.split('.').next()
}

/// Whether a name matches one of these, or starts with one that ends in `*`. The compiler's
/// numbered copies (`.isra.0`) count as the function.
pub(super) fn matches(functions: &[String], name: &str) -> bool {
    let plain = name.split('.').next().unwrap_or(name);
    functions
        .iter()
        .any(|wanted| match wanted.strip_suffix('*') {
            Some(beginning) => plain.starts_with(beginning),
            None => plain == wanted,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(functions: &[&str]) -> Option<String> {
        let table = KernelTable::shipped();
        table.reason(functions).map(|reason| reason.id)
    }

    #[test]
    fn a_fault_inside_a_system_call_is_a_fault() {
        let stack = [
            "entry_SYSCALL_64_after_hwframe",
            "do_syscall_64",
            "__x64_sys_read",
            "copy_page_to_iter",
            "asm_exc_page_fault",
            "exc_page_fault",
        ];
        assert_eq!(reason(&stack).as_deref(), Some("fault"));
        assert_eq!(reason(&stack[..4]).as_deref(), Some("call.read"));
        assert_eq!(reason(&stack[..2]).as_deref(), Some("gate"));
    }

    #[test]
    fn a_function_named_after_a_call_stands_in_its_place() {
        let behind_the_gate = |function| reason(&["do_syscall_64", function, "vfs_readv"]);
        for function in ["do_preadv", "do_readv", "vfs_read", "ksys_read"] {
            assert_eq!(
                behind_the_gate(function).as_deref(),
                Some("call.read"),
                "{function}"
            );
        }
        assert_eq!(
            reason(&["do_syscall_64", "do_sys_poll"]).as_deref(),
            Some("call.wait")
        );
        assert_eq!(
            reason(&["do_syscall_64", "do_work"]).as_deref(),
            Some("gate")
        );
    }

    #[test]
    fn reads_and_writes_of_sockets_and_pipes_are_no_work_on_files() {
        let table = KernelTable::shipped();
        let reason = |call, body| {
            let stack = ["do_syscall_64", call, "ksys_write", body, "copy_from_iter"];
            let found = table.reason(&stack).expect("a reason");
            (found.id, found.call.unwrap_or_default())
        };
        let expected = |id: &str, call: &str| (id.to_owned(), call.to_owned());
        let redis = reason("__x64_sys_write", "sock_write_iter");
        assert_eq!(redis, expected("call.socket", "write"));
        let shell = reason("__x64_sys_read", "anon_pipe_read");
        assert_eq!(shell, expected("call.pipe", "read"));
        let copy = reason("__x64_sys_write", "ext4_file_write_iter");
        assert_eq!(copy, expected("call.write", "write"));
        // A call of another family stays what it is.
        let wait = reason("__x64_sys_epoll_wait", "sock_sendmsg");
        assert_eq!(wait, expected("call.wait", "epoll_wait"));
    }

    #[test]
    fn a_call_is_known_by_its_body_where_its_own_frame_is_gone() {
        let table = KernelTable::shipped();
        let reason = |body| {
            let stack = ["entry_SYSCALL_64_after_hwframe", "do_syscall_64", body];
            let found = table.reason(&stack).expect("a reason");
            (found.id, found.call.unwrap_or_default())
        };
        let expected = |id: &str, call: &str| (id.to_owned(), call.to_owned());
        assert_eq!(reason("__vm_munmap"), expected("call.map", "munmap"));
        assert_eq!(reason("do_futex.isra.0"), expected("call.futex", "futex"));
        assert_eq!(reason("__sys_sendto"), expected("call.socket", "sendto"));
        // A fork's child takes this way without a call.
        assert_eq!(table.reason(&["kernel_clone"]), None);
        for family in &table.call {
            let named = family.bodies.values();
            for call in named {
                assert!(family.calls.contains(call), "{call} is of no family");
            }
        }
    }

    #[test]
    fn memory_that_a_call_populates_takes_no_page_faults() {
        let stack = [
            "__x64_sys_mmap",
            "__mm_populate",
            "__get_user_pages",
            "handle_mm_fault",
        ];
        assert_eq!(reason(&stack).as_deref(), Some("populate"));
        let requested = |call| {
            let stack = ["do_syscall_64", call, "__mm_populate", "__get_user_pages"];
            let found = KernelTable::shipped().reason(&stack);
            found.and_then(|found| found.call).unwrap_or_default()
        };
        let of_mmap = "mmap with MAP_POPULATE or after mlockall";
        assert_eq!(requested("__x64_sys_mmap"), of_mmap);
        assert_eq!(requested("ksys_mmap_pgoff"), of_mmap);
        // Linux 6.18: the call's own frame is gone.
        assert_eq!(requested("vm_mmap_pgoff"), of_mmap);
        assert_eq!(requested("__arm64_sys_mlock2"), "mlock");
        assert_eq!(requested("populate_vma_page_range"), "");
        assert_eq!(reason(&stack[3..]).as_deref(), Some("fault"));
        let traced = [
            "asm_exc_page_fault",
            "exc_page_fault",
            "perf_trace_x86_exceptions",
        ];
        assert_eq!(reason(&traced).as_deref(), Some("observer"));
    }

    #[test]
    fn faults_on_aarch64_and_interrupts_are_told_apart() {
        assert_eq!(
            reason(&["el0t_64_sync", "el0_da", "do_mem_abort", "do_page_fault"]).as_deref(),
            Some("fault")
        );
        assert_eq!(
            reason(&["asm_sysvec_apic_timer_interrupt", "handle_softirqs"]).as_deref(),
            Some("interrupt")
        );
        assert_eq!(reason(&["kernel_function_of_tomorrow"]), None);
    }

    #[test]
    fn what_recording_adds_to_a_call_is_not_the_call() {
        let clone = ["do_syscall_64", "__x64_sys_clone3", "copy_process"];
        let inherits = [&clone[..], &["perf_event_init_task", "perf_trace_init"]].concat();
        assert_eq!(reason(&inherits).as_deref(), Some("observer"));
        assert_eq!(reason(&clone).as_deref(), Some("call.process"));
        let switches = ["__x64_sys_read", "schedule", "__perf_event_task_sched_out"];
        assert_eq!(reason(&switches).as_deref(), Some("observer"));
    }

    #[test]
    fn a_thread_that_ends_by_a_signal_ends() {
        let kill = ["arch_do_signal_or_restart", "get_signal"];
        assert_eq!(reason(&kill).as_deref(), Some("signal"));
        let ends = [&kill[..], &["do_group_exit", "do_exit", "mmput"]].concat();
        let found = KernelTable::shipped().reason(&ends).expect("a reason");
        assert_eq!(found.id, "call.process");
        assert_eq!(found.call.as_deref(), Some("exit_group"));
    }

    #[test]
    fn a_call_without_a_family_is_named_by_itself() {
        assert_eq!(reason(&["__x64_sys_bpf"]).as_deref(), Some("call.bpf"));
    }

    #[test]
    fn a_fault_that_reclaims_memory_reclaims() {
        let table = KernelTable::shipped();
        let fault = ["handle_mm_fault", "do_anonymous_page"];
        assert_eq!(table.work(&fault, "fault"), Some("anonymous"));
        let reclaims = ["handle_mm_fault", "do_anonymous_page", "try_to_free_pages"];
        assert_eq!(table.work(&reclaims, "fault"), Some("reclaim"));
    }

    #[test]
    fn a_call_that_sleeps_for_the_address_space_waits_for_its_lock() {
        let table = KernelTable::shipped();
        for call in ["__do_sys_brk", "__vm_munmap", "__do_sys_mremap", "dup_mmap"] {
            let wait = table.wait(call).map(|wait| &*wait.id);
            assert_eq!(wait, Some("mapping"), "{call}");
        }
    }

    #[test]
    fn waits_on_file_systems_have_reasons() {
        let table = KernelTable::shipped();
        let waits = [
            ("__ext4_get_inode_loc", "disk"),
            ("ext4_read_bh", "disk"),
            ("__sync_dirty_buffer", "writeback"),
            ("locks_lock_inode_wait", "between"),
        ];
        for (function, id) in waits {
            let wait = table.wait(function).map(|wait| &*wait.id);
            assert_eq!(wait, Some(id), "{function}");
        }
    }

    #[test]
    fn locks_and_interrupts_count_where_they_are_the_address_spaces() {
        let table = KernelTable::shipped();
        let spins = ["rwsem_down_write_slowpath", "osq_lock"];
        assert_eq!(table.work(&spins, "call.map"), Some("lock"));
        assert_eq!(table.work(&spins, "call.read"), None, "an inode's lock");
        let interrupts = ["tlb_finish_mmu", "smp_call_function_many_cond"];
        assert_eq!(table.work(&interrupts, "call.map"), Some("flush"));
        assert_eq!(table.work(&interrupts, "call.barrier"), None, "no TLB's");
    }
}
