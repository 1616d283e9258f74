//! Which threads are observed, and on which CPUs.

use crate::pseudo_file;
use std::path::Path;

/// CPUs that are online, from `devices/system/cpu/online` below `sys`. CPU 0 when unreadable.
pub(super) fn online_cpus(sys: &Path) -> Vec<i32> {
    pseudo_file::setting(&sys.join("devices/system/cpu/online"))
        .and_then(|list| parse_cpu_list(&list))
        .unwrap_or_else(|| vec![0])
}

/// `0-3,8,10-11`, the kernel's cpulist format (lib/bitmap.c).
fn parse_cpu_list(list: &str) -> Option<Vec<i32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?);
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_and_numbers() {
        assert_eq!(parse_cpu_list("0-2,5,7-8\n"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse_cpu_list("0"), Some(vec![0]));
        assert_eq!(parse_cpu_list("x"), None);
    }

    #[test]
    fn a_machine_that_says_nothing_has_one_cpu() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(online_cpus(empty.path()), [0]);
    }
}
