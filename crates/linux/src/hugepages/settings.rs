//! Settings of huge pages and their pools below `/sys/kernel/mm`
//! (Documentation/admin-guide/mm/transhuge.rst and hugetlbpage.rst).

use crate::pseudo_file;
use pagewise_model::units::Bytes;
use std::path::{Path, PathBuf};

/// Transparent huge pages of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transparent {
    /// `always`, `madvise` or `never`.
    pub enabled: String,
    /// How hard a fault tries: `always`, `defer`, `defer+madvise`, `madvise`, `never`.
    pub defrag: Option<String>,
    /// Policy for shared memory.
    pub shmem_enabled: Option<String>,
    /// Whether a read of fresh memory gets the huge zero page.
    pub use_zero_page: Option<bool>,
    /// Size of a huge page at PMD level.
    pub pmd_size: Option<Bytes>,
    /// Sizes between a base page and a PMD (Linux 6.8 and later), smallest first.
    pub sizes: Vec<Size>,
}

/// One size of transparent huge page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes in a page.
    pub size: Bytes,
    /// `always`, `inherit`, `madvise` or `never`.
    pub enabled: String,
    /// Policy for shared memory (Linux 6.11 and later).
    pub shmem_enabled: Option<String>,
}

/// One pool of hugetlb pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Bytes in a page.
    pub size: Bytes,
    /// Pages in the pool.
    pub total: u64,
    /// Pages that are free.
    pub free: u64,
    /// Pages reserved but not yet faulted in.
    pub reserved: u64,
    /// How many more the kernel may add on demand.
    pub overcommit: u64,
}

/// Transparent huge pages as set below `sys` (`/sys`); `None` if the kernel has no support.
#[must_use]
pub fn transparent(sys: &Path) -> Option<Transparent> {
    let folder = sys.join("kernel/mm/transparent_hugepage");
    let enabled = choice(&folder.join("enabled"))?;
    Some(Transparent {
        enabled,
        defrag: choice(&folder.join("defrag")),
        shmem_enabled: choice(&folder.join("shmem_enabled")),
        use_zero_page: pseudo_file::setting(&folder.join("use_zero_page")).map(|word| word == "1"),
        pmd_size: number(&folder.join("hpage_pmd_size")).map(Bytes),
        sizes: sized_folders(&folder)
            .filter_map(|(size, folder)| page_size(size, &folder))
            .collect(),
    })
}

/// Pools of hugetlb pages, smallest pages first.
#[must_use]
pub fn pools(sys: &Path) -> Vec<Pool> {
    sized_folders(&sys.join("kernel/mm/hugepages"))
        .filter_map(|(size, folder)| {
            Some(Pool {
                size,
                total: number(&folder.join("nr_hugepages"))?,
                free: number(&folder.join("free_hugepages"))?,
                reserved: number(&folder.join("resv_hugepages")).unwrap_or(0),
                overcommit: number(&folder.join("nr_overcommit_hugepages")).unwrap_or(0),
            })
        })
        .collect()
}

fn page_size(size: Bytes, folder: &Path) -> Option<Size> {
    Some(Size {
        size,
        enabled: choice(&folder.join("enabled"))?,
        shmem_enabled: choice(&folder.join("shmem_enabled")),
    })
}

/// Folders `hugepages-64kB` in `folder`, by size.
fn sized_folders(folder: &Path) -> impl Iterator<Item = (Bytes, PathBuf)> + use<> {
    let mut found: Vec<(Bytes, PathBuf)> = pseudo_file::names(folder)
        .into_iter()
        .filter_map(|name| {
            let kibibytes = name.strip_prefix("hugepages-")?.strip_suffix("kB")?;
            let size = kibibytes.parse::<u64>().ok()?.checked_mul(1024)?;
            Some((Bytes(size), folder.join(name)))
        })
        .collect();
    found.sort();
    found.into_iter()
}

fn choice(path: &Path) -> Option<String> {
    let line = pseudo_file::setting(path)?;
    Some(pseudo_file::bracketed(&line).unwrap_or(&line).to_string())
}

fn number(path: &Path) -> Option<u64> {
    pseudo_file::number(path).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn sizes_come_in_order_of_size_not_of_name() {
        let folder = tempfile::tempdir().unwrap();
        let sys = folder.path();
        assert_eq!(transparent(sys), None);
        let thp = "kernel/mm/transparent_hugepage";
        write(sys, &format!("{thp}/enabled"), "always [madvise] never\n");
        write(sys, &format!("{thp}/hpage_pmd_size"), "2097152\n");
        let always = "[always] inherit madvise never\n";
        write(sys, &format!("{thp}/hugepages-1024kB/enabled"), always);
        write(sys, &format!("{thp}/hugepages-64kB/enabled"), always);
        let found = transparent(sys).unwrap();
        assert_eq!((found.enabled.as_str(), found.defrag), ("madvise", None));
        assert_eq!(found.pmd_size, Some(Bytes(2 << 20)));
        let sizes: Vec<_> = found.sizes.iter().map(|size| size.size.0 >> 10).collect();
        assert_eq!(sizes, [64, 1024]);
    }

    #[test]
    fn reads_hugetlb_pools() {
        let folder = tempfile::tempdir().unwrap();
        let pool = "kernel/mm/hugepages/hugepages-2048kB";
        write(folder.path(), &format!("{pool}/nr_hugepages"), "8\n");
        write(folder.path(), &format!("{pool}/free_hugepages"), "3\n");
        let found = pools(folder.path());
        assert_eq!((found[0].total, found[0].free), (8, 3));
        assert_eq!(found[0].size, Bytes(2 << 20));
    }
}
