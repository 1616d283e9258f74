//! The kind of a fault's call tree, recognised by its functions.
//!
//! The functions listed here are signs, never conditions: inlining hides different ones on each
//! build (`do_anonymous_page` before 6.12, `__handle_mm_fault` on 5.10), so a class follows from
//! any of its signs that is present. Names are without suffixes of clones and of allocation
//! profiling. Source: `mm/memory.c`, `mm/filemap.c`, `mm/huge_memory.c`, `mm/swap_state.c` and
//! `arch/x86/mm/fault.c` of 4.18, 5.10, 6.1 and 6.12, checked against real traces of each.

pub use pagewise_model::fault_paths::Class;

/// A set of signs; see the constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signs(pub u64);

macro_rules! signs {
    ($($(#[$doc:meta])* $name:ident = $bit:expr;)*) => {
        impl Signs {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
        }
    };
}

signs! {
    /// A fault begins here.
    ENTRY = 0;
    /// Swap entries are read.
    SWAP = 1;
    /// A huge page is tried.
    HUGE = 2;
    /// A huge page is write-protected.
    HUGE_WP = 3;
    /// A hugetlbfs page.
    HUGETLB = 4;
    /// Handed to user space.
    USERFAULT = 5;
    /// A NUMA hint.
    NUMA = 6;
    /// Write to a protected page.
    WP = 7;
    /// A page is copied for a write.
    WP_COPY = 8;
    /// Memory is allocated.
    ALLOC = 9;
    /// A page's content is copied.
    COPY = 10;
    /// A page's mapping is removed.
    RMAP_REMOVE = 11;
    /// A new anonymous page is mapped.
    NEW_ANON = 12;
    /// Access bits of a present entry are changed.
    SET_ACCESS = 13;
    /// A file's page becomes writable.
    MKWRITE = 14;
    /// A file's page is fetched.
    FILE = 15;
    /// Pages around the fault are mapped.
    MAP_AROUND = 16;
    /// Pages are read from a device.
    READ_AHEAD = 17;
    /// Waits for a page or a device.
    IO_WAIT = 18;
    /// The handler of anonymous faults.
    ANON = 19;
    /// The stack grows.
    STACK = 20;
    /// The fault can't be served.
    ERROR = 21;
    /// Below the fault's outer frames: the tree is deep enough to show its kind.
    INSIDE = 23;
    /// One of the outer frames, which do not depend on the kind.
    FRAME = 24;
    /// The task gives up the CPU.
    SCHEDULE = 25;
    /// A whole huge page is cleared.
    CLEAR_HUGE = 26;
}

impl Signs {
    /// Whether all signs of `other` are present.
    #[must_use]
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These without others.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Both together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Signs by function, sorted by name.
const FUNCTIONS: &[(&str, Signs)] = &[
    ("__bad_area", Signs::ERROR),
    ("__bad_area_nosemaphore", Signs::ERROR),
    ("__do_fault", Signs::FILE),
    ("__do_huge_pmd_anonymous_page", Signs::HUGE),
    ("__do_page_fault", Signs::ENTRY),
    ("__folio_lock", Signs::IO_WAIT),
    ("__handle_mm_fault", Signs::FRAME),
    ("__lock_page", Signs::IO_WAIT),
    ("__schedule", Signs::SCHEDULE),
    ("__wait_on_page_locked_async", Signs::IO_WAIT),
    ("__wp_page_copy_user", Signs::COPY),
    ("acct_stack_growth", Signs::STACK),
    ("alloc_pages_vma", Signs::ALLOC),
    ("bad_area", Signs::ERROR),
    ("bad_area_access_error", Signs::ERROR),
    ("bad_area_nosemaphore", Signs::ERROR),
    ("clear_huge_page", Signs::CLEAR_HUGE),
    ("copy_mc_enhanced_fast_string", Signs::COPY),
    ("copy_mc_fragile", Signs::COPY),
    ("copy_mc_to_kernel", Signs::COPY),
    ("copy_page", Signs::COPY),
    ("copy_page_regs", Signs::COPY),
    ("copy_user_highpage", Signs::COPY),
    ("do_anonymous_page", Signs::ANON),
    ("do_huge_pmd_anonymous_page", Signs::HUGE),
    ("do_huge_pmd_numa_page", Signs::NUMA),
    ("do_huge_pmd_wp_page", Signs::HUGE_WP),
    ("do_numa_page", Signs::NUMA),
    ("do_page_fault", Signs::ENTRY),
    ("do_page_mkwrite", Signs::MKWRITE),
    ("do_sigbus", Signs::ERROR),
    ("do_swap_page", Signs::SWAP),
    ("do_sync_mmap_readahead", Signs::READ_AHEAD),
    ("do_user_addr_fault", Signs::ENTRY),
    ("do_wp_page", Signs::WP),
    ("exc_page_fault", Signs::ENTRY),
    ("expand_downwards", Signs::STACK),
    ("expand_stack", Signs::STACK),
    ("expand_stack_locked", Signs::STACK),
    ("expand_upwards", Signs::STACK),
    ("fault_dirty_shared_page", Signs::MKWRITE),
    ("filemap_fault", Signs::FILE),
    ("filemap_map_pages", Signs::MAP_AROUND),
    ("folio_add_new_anon_rmap", Signs::NEW_ANON),
    ("folio_copy", Signs::COPY),
    ("folio_remove_rmap_pte", Signs::RMAP_REMOVE),
    ("folio_wait_bit_common", Signs::IO_WAIT),
    ("force_page_cache_ra", Signs::READ_AHEAD),
    ("force_sig_fault", Signs::ERROR),
    ("handle_mm_fault", Signs::ENTRY),
    ("handle_pte_fault", Signs::FRAME),
    ("handle_userfault", Signs::USERFAULT),
    ("hugetlb_fault", Signs::HUGETLB),
    ("hugetlb_no_page", Signs::HUGETLB),
    ("io_schedule", Signs::IO_WAIT.with(Signs::SCHEDULE)),
    ("io_schedule_timeout", Signs::IO_WAIT.with(Signs::SCHEDULE)),
    ("kernelmode_fixup_or_oops", Signs::ERROR),
    ("memcpy_mcsafe", Signs::COPY),
    ("migrate_misplaced_folio", Signs::NUMA),
    ("migrate_misplaced_page", Signs::NUMA),
    ("mm_fault_error", Signs::ERROR),
    ("no_context", Signs::ERROR),
    ("numa_migrate_check", Signs::NUMA),
    ("numa_migrate_prep", Signs::NUMA),
    ("ondemand_readahead", Signs::READ_AHEAD),
    ("page_add_new_anon_rmap", Signs::NEW_ANON),
    ("page_cache_async_ra", Signs::READ_AHEAD),
    ("page_cache_async_readahead", Signs::READ_AHEAD),
    ("page_cache_ra_order", Signs::READ_AHEAD),
    ("page_cache_ra_unbounded", Signs::READ_AHEAD),
    ("page_cache_sync_ra", Signs::READ_AHEAD),
    ("page_cache_sync_readahead", Signs::READ_AHEAD),
    ("page_remove_rmap", Signs::RMAP_REMOVE),
    ("pagefault_out_of_memory", Signs::ERROR),
    ("preempt_schedule", Signs::SCHEDULE),
    ("preempt_schedule_common", Signs::SCHEDULE),
    ("preempt_schedule_irq", Signs::SCHEDULE),
    ("preempt_schedule_notrace", Signs::SCHEDULE),
    ("ptep_set_access_flags", Signs::SET_ACCESS),
    ("schedule", Signs::SCHEDULE),
    ("schedule_preempt_disabled", Signs::SCHEDULE),
    ("schedule_timeout", Signs::SCHEDULE),
    ("shmem_fault", Signs::FILE),
    ("swap_read_folio", Signs::SWAP),
    ("swap_readpage", Signs::SWAP),
    ("swapin_readahead", Signs::SWAP),
    ("vma_alloc_anon_folio_pmd", Signs::HUGE),
    ("vma_alloc_folio", Signs::ALLOC),
    ("wp_huge_pmd", Signs::HUGE_WP),
    ("wp_page_copy", Signs::WP_COPY),
    ("wp_page_reuse", Signs::WP),
];

/// The signs of a function, by its name without suffixes.
#[must_use]
pub fn signs_of(base: &str) -> Signs {
    let found = FUNCTIONS.binary_search_by(|(name, _)| name.cmp(&base));
    let outer = Signs::ENTRY.with(Signs::FRAME).0;
    let signs = found.map_or(Signs::default(), |at| FUNCTIONS[at].1);
    if signs.0 & outer == 0 && !is_bookkeeping(base) {
        return signs.with(Signs::INSIDE);
    }
    signs
}

/// Accounting at the start of `handle_mm_fault`, which every fault does.
fn is_bookkeeping(base: &str) -> bool {
    const NAMES: &[&str] = &[
        "__cgroup_rstat_updated",
        "__count_memcg_events",
        "__rcu_read_lock",
        "__rcu_read_unlock",
        "count_memcg_event_mm",
        "mem_cgroup_from_task",
        "rcu_read_unlock_strict",
        "sync_mm_rss",
    ];
    NAMES.contains(&base)
}

/// The kind of a fault with these signs in its tree.
#[must_use]
pub fn classify(signs: Signs) -> Class {
    let any = |set: Signs| signs.0 & set.0 != 0;
    let certain = [
        (Signs::ERROR, Class::Error),
        (Signs::USERFAULT, Class::Userfault),
        (Signs::HUGETLB, Class::Hugetlb),
        (Signs::SWAP, Class::SwapIn),
        (Signs::NUMA, Class::NumaHint),
        (Signs::HUGE_WP, Class::WriteHuge),
        (Signs::STACK, Class::StackGrowth),
    ];
    if let Some((_, class)) = certain.into_iter().find(|(sign, _)| any(*sign)) {
        return class;
    }
    if any(Signs::HUGE) && (any(Signs::CLEAR_HUGE) || !any(Signs::ANON)) {
        return Class::AnonymousHuge;
    }
    if any(Signs::MKWRITE) {
        return Class::FileShared;
    }
    if any(Signs::WP.with(Signs::WP_COPY)) {
        return write_to_protected(signs);
    }
    if any(Signs::FILE) {
        return file(signs);
    }
    match signs {
        _ if any(Signs::MAP_AROUND) => Class::MapAround,
        _ if any(Signs::NEW_ANON) => Class::Anonymous,
        _ if any(Signs::SET_ACCESS) => Class::Spurious,
        _ if any(Signs::INSIDE) => Class::ZeroPage,
        _ => Class::Unclassified,
    }
}

/// `VM_FAULT_ERROR` of `include/linux/mm_types.h`: no memory, SIGBUS, SIGSEGV, poisoned pages.
const RETURNED_ERROR: i64 = 0x1 | 0x2 | 0x10 | 0x20 | 0x40;
/// `VM_FAULT_RETRY`: the lock was released to wait, and the fault is retried.
const RETURNED_RETRY: i64 = 0x400;

/// The kind of a fault whose handler returned this, if the value alone determines it.
pub(super) fn class_returned(value: i64) -> Option<Class> {
    match value {
        _ if value & RETURNED_ERROR != 0 => Some(Class::Error),
        _ if value & RETURNED_RETRY != 0 => Some(Class::Retry),
        _ => None,
    }
}

/// A copy of the zero page copies nothing and removes no mapping.
fn write_to_protected(signs: Signs) -> Class {
    let allocates = signs.has(Signs::ALLOC) || signs.has(Signs::NEW_ANON);
    let copies = signs.has(Signs::COPY) || signs.has(Signs::RMAP_REMOVE);
    match (allocates || signs.has(Signs::WP_COPY), copies) {
        (true, true) => Class::WriteCopy,
        (true, false) => Class::WriteZeroPage,
        (false, _) => Class::WriteReuse,
    }
}

fn file(signs: Signs) -> Class {
    if signs.has(Signs::NEW_ANON) || signs.has(Signs::COPY) {
        return Class::FileCow;
    }
    if signs.has(Signs::READ_AHEAD) || signs.has(Signs::IO_WAIT) {
        return Class::FileReadMajor;
    }
    Class::FileRead
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values as 6.5 and 6.13 print them; 0x100 and 0x200 are no page and a locked one.
    #[test]
    fn a_returned_value_tells_errors_and_retries() {
        let fault = |value: &str| {
            let text = format!(
                " 0)  a-1   |               |  handle_mm_fault() {{\n \
                  0)  a-1   |   1.000 us    |    __handle_mm_fault(); /* = 0x1 */\n \
                  0)  a-1   |   2.000 us    |  }} /* handle_mm_fault {value} */\n"
            );
            let mut collector = crate::fault_paths::Collector::default();
            pagewise_formats::function_graph::read_bytes(text.as_bytes(), &mut collector);
            let [shape] = &collector.shapes.all[..] else {
                panic!("one fault in {text}");
            };
            shape.class
        };
        for (value, class) in [
            ("= 0x400", Class::Retry),
            ("ret=0x404", Class::Retry),
            ("ret=0x2", Class::Error),
            ("= 0x40", Class::Error),
            ("= 0x0", Class::Unclassified),
            ("ret=0x300", Class::Unclassified),
        ] {
            assert_eq!(fault(value), class, "{value}");
        }
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(FUNCTIONS.is_sorted_by(|a, b| a.0 < b.0));
    }

    fn class_of(functions: &[&str]) -> Class {
        let signs = functions.iter().map(|name| signs_of(name));
        classify(signs.fold(Signs::default(), Signs::with))
    }

    #[test]
    fn classes_follow_from_whichever_sign_is_there() {
        for (functions, class) in [
            (&["handle_mm_fault"][..], Class::Unclassified),
            (
                &[
                    "handle_mm_fault",
                    "__count_memcg_events",
                    "__handle_mm_fault",
                ],
                Class::Unclassified,
            ),
            (&["__handle_mm_fault", "_raw_spin_lock"], Class::ZeroPage),
            (
                &["vma_alloc_folio", "page_add_new_anon_rmap"],
                Class::Anonymous,
            ),
            (
                &[
                    "do_huge_pmd_anonymous_page",
                    "clear_huge_page",
                    "page_add_new_anon_rmap",
                ],
                Class::AnonymousHuge,
            ),
            (&["do_wp_page", "ptep_set_access_flags"], Class::WriteReuse),
            (
                &[
                    "do_wp_page",
                    "wp_page_copy",
                    "vma_alloc_folio",
                    "copy_mc_to_kernel",
                    "page_remove_rmap",
                ],
                Class::WriteCopy,
            ),
            (
                &["do_wp_page", "vma_alloc_folio", "folio_add_new_anon_rmap"],
                Class::WriteZeroPage,
            ),
            (&["do_fault", "filemap_map_pages"], Class::MapAround),
            (
                &["filemap_map_pages", "__do_fault", "filemap_fault"],
                Class::FileRead,
            ),
            (
                &[
                    "__do_fault",
                    "filemap_fault",
                    "page_cache_sync_ra",
                    "io_schedule",
                ],
                Class::FileReadMajor,
            ),
            (
                &["vma_alloc_folio", "__do_fault", "page_add_new_anon_rmap"],
                Class::FileCow,
            ),
            (&["__do_fault", "do_page_mkwrite"], Class::FileShared),
            (&["do_swap_page", "vma_alloc_folio"], Class::SwapIn),
            (&["ptep_set_access_flags"], Class::Spurious),
            (&["handle_userfault", "schedule"], Class::Userfault),
        ] {
            assert_eq!(class_of(functions), class, "{functions:?}");
        }
    }
}
