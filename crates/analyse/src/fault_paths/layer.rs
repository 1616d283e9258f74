//! Layers of a fault with the same meaning on every kernel, whatever was inlined.
//!
//! A layer's time in a fault is the time of its outermost calls. A layer whose functions the
//! kernel at hand has inlined is absent, which a report says; [`Layer::Handler`] alone always
//! stands for something: the innermost frame around the work that is still a function.

use serde::{Deserialize, Serialize};

/// A part of the work of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The whole fault.
    Fault,
    /// `handle_mm_fault`.
    MmFault,
    /// The handler of the kind: `do_anonymous_page`, `do_wp_page`, `do_fault`, …
    Handler,
    /// Getting the mmap lock or the lock of the area.
    Lock,
    /// Allocating the page.
    Allocation,
    /// Clearing it.
    Zeroing,
    /// Copying it.
    Copying,
    /// Charging it to the memory cgroup.
    Charge,
    /// Putting it on the list of pages for reclaim.
    Lru,
    /// Noting the mapping.
    Rmap,
    /// Mapping pages around it.
    MapAround,
    /// Fetching it from its file.
    FileFetch,
    /// Reading it from swap.
    SwapIn,
    /// Telling other processors.
    TlbFlush,
    /// Allocating page tables.
    PageTable,
    /// Waiting.
    Wait,
}

impl Layer {
    /// All layers in the order of reports.
    pub const ALL: [Self; 16] = [
        Self::Fault,
        Self::MmFault,
        Self::Handler,
        Self::Lock,
        Self::Allocation,
        Self::Zeroing,
        Self::Copying,
        Self::Charge,
        Self::Lru,
        Self::Rmap,
        Self::MapAround,
        Self::FileFetch,
        Self::SwapIn,
        Self::TlbFlush,
        Self::PageTable,
        Self::Wait,
    ];

    /// Plain words for a person.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Fault => "whole fault",
            Self::MmFault => "handle_mm_fault",
            Self::Handler => "handler",
            Self::Lock => "mmap or VMA lock",
            Self::Allocation => "allocation",
            Self::Zeroing => "zeroing",
            Self::Copying => "copying",
            Self::Charge => "memcg charge",
            Self::Lru => "LRU lists",
            Self::Rmap => "reverse mapping",
            Self::MapAround => "map-around",
            Self::FileFetch => "file fetch",
            Self::SwapIn => "swap-in",
            Self::TlbFlush => "TLB flush",
            Self::PageTable => "page tables",
            Self::Wait => "wait",
        }
    }
}

/// Layers by function, sorted by name.
const FUNCTIONS: &[(&str, Layer)] = &[
    ("__alloc_frozen_pages", Layer::Allocation),
    ("__alloc_pages", Layer::Allocation),
    ("__alloc_pages_nodemask", Layer::Allocation),
    ("__do_fault", Layer::FileFetch),
    ("__folio_lock_or_retry", Layer::Wait),
    ("__lru_cache_add", Layer::Lru),
    ("__mem_cgroup_charge", Layer::Charge),
    ("__page_set_anon_rmap", Layer::Rmap),
    ("__pte_alloc", Layer::PageTable),
    ("alloc_anon_folio", Layer::Allocation),
    ("alloc_pages_mpol", Layer::Allocation),
    ("alloc_pages_vma", Layer::Allocation),
    ("clear_huge_page", Layer::Zeroing),
    ("clear_page_erms", Layer::Zeroing),
    ("clear_page_orig", Layer::Zeroing),
    ("clear_page_rep", Layer::Zeroing),
    ("copy_mc_to_kernel", Layer::Copying),
    ("copy_page", Layer::Copying),
    ("copy_user_highpage", Layer::Copying),
    ("do_anonymous_page", Layer::Handler),
    ("do_fault", Layer::Handler),
    ("do_huge_pmd_anonymous_page", Layer::Handler),
    ("do_huge_pmd_numa_page", Layer::Handler),
    ("do_huge_pmd_wp_page", Layer::Handler),
    ("do_numa_page", Layer::Handler),
    ("do_swap_page", Layer::Handler),
    ("do_wp_page", Layer::Handler),
    ("down_read", Layer::Lock),
    ("down_read_killable", Layer::Lock),
    ("down_read_trylock", Layer::Lock),
    ("filemap_map_pages", Layer::MapAround),
    ("flush_tlb_mm_range", Layer::TlbFlush),
    ("folio_add_lru", Layer::Lru),
    ("folio_add_lru_vma", Layer::Lru),
    ("folio_add_new_anon_rmap", Layer::Rmap),
    ("folio_remove_rmap_pte", Layer::Rmap),
    ("folio_wait_bit_common", Layer::Wait),
    ("folio_zero_user", Layer::Zeroing),
    ("handle_mm_fault", Layer::MmFault),
    ("handle_userfault", Layer::Wait),
    ("hugetlb_fault", Layer::Handler),
    ("io_schedule", Layer::Wait),
    ("lock_mm_and_find_vma", Layer::Lock),
    ("lock_vma_under_rcu", Layer::Lock),
    ("lru_cache_add", Layer::Lru),
    ("lru_cache_add_active_or_unevictable", Layer::Lru),
    ("lru_cache_add_inactive_or_unevictable", Layer::Lru),
    ("mem_cgroup_charge", Layer::Charge),
    ("mem_cgroup_swapin_charge_folio", Layer::Charge),
    ("mem_cgroup_try_charge", Layer::Charge),
    ("mem_cgroup_try_charge_delay", Layer::Charge),
    ("page_add_new_anon_rmap", Layer::Rmap),
    ("page_remove_rmap", Layer::Rmap),
    ("pte_alloc_one", Layer::PageTable),
    ("ptep_clear_flush", Layer::TlbFlush),
    ("rwsem_down_read_slowpath", Layer::Lock),
    ("schedule", Layer::Wait),
    ("swapin_readahead", Layer::SwapIn),
    ("vma_alloc_anon_folio_pmd", Layer::Allocation),
    ("vma_alloc_folio", Layer::Allocation),
    ("vma_start_read", Layer::Lock),
];

/// The layer that a function is, by its name without suffixes.
#[must_use]
pub fn layer_of(base: &str) -> Option<Layer> {
    let found = FUNCTIONS.binary_search_by(|(name, _)| name.cmp(&base));
    found.ok().map(|at| FUNCTIONS[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(FUNCTIONS.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn layers_stand_in_their_order() {
        for (place, layer) in Layer::ALL.into_iter().enumerate() {
            assert_eq!(layer as usize, place);
        }
    }
}
