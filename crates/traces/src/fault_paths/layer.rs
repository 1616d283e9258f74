//! Layers of a fault that have the same meaning on every kernel, whatever was inlined.
//!
//! A layer's time in a fault is the time of its outermost calls. A layer whose functions were
//! inlined on the traced kernel is absent, which the report mentions. Only [`Layer::Handler`] is
//! always present: it is the innermost frame around the work that is still a separate function.

pub use pagewise_model::fault_paths::Layer;

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

/// The layer of a function, by its name without suffixes.
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
