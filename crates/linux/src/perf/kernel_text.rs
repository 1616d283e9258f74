//! Address range of the kernel's code, so that readers can name kernel addresses.

use crate::pseudo_file;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Start and end of the kernel's code; `None` if addresses are hidden
/// (`kernel.kptr_restrict`) or absent.
///
/// The start is `_text`, among the first lines of `kallsyms`. The length is that of `Kernel code`
/// in `iomem`: the kernel generates kallsyms line by line, and reading on to `_etext` takes 40 ms.
pub(super) fn range(proc: &Path) -> Option<(u64, u64)> {
    let text = text_start(&proc.join("kallsyms"))?;
    let length = code_length(&proc.join("iomem"))?;
    (text > 0 && length > 0).then(|| (text, text.saturating_add(length)))
}

fn text_start(kallsyms: &Path) -> Option<u64> {
    let reader = BufReader::new(File::open(kallsyms).ok()?);
    let line = reader
        .lines()
        .map_while(Result::ok)
        .find(|line| line.split(' ').nth(2) == Some("_text"))?;
    u64::from_str_radix(line.split(' ').next()?, 16).ok()
}

/// `  01000000-01ffffff : Kernel code`, both ends inclusive.
fn code_length(iomem: &Path) -> Option<u64> {
    let text = pseudo_file::text(iomem).ok()??;
    let line = text.lines().find(|line| line.ends_with(": Kernel code"))?;
    let (first, last) = line.split(" : ").next()?.trim().split_once('-')?;
    let address = |hex| u64::from_str_radix(hex, 16).ok();
    let length = address(last)?.checked_sub(address(first)?)?;
    (length > 0).then(|| length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(kallsyms: &str, iomem: &str) -> Option<(u64, u64)> {
        let proc = tempfile::tempdir().unwrap();
        std::fs::write(proc.path().join("kallsyms"), kallsyms).unwrap();
        std::fs::write(proc.path().join("iomem"), iomem).unwrap();
        range(proc.path())
    }

    const IOMEM: &str = "00100000-bfffffff : System RAM\n  01000000-01ffffff : Kernel code\n";

    #[test]
    fn the_code_begins_at_text_and_is_as_long_as_in_memory() {
        let kallsyms = "0000000000000000 A fixed\nffffffff81000000 T _text\n";
        assert_eq!(
            range_of(kallsyms, IOMEM),
            Some((0xffff_ffff_8100_0000, 0xffff_ffff_8200_0000))
        );
    }

    #[test]
    fn hidden_addresses_are_none() {
        let hidden = "00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n";
        let kallsyms = "0000000000000000 T _text\n";
        assert_eq!(range_of(kallsyms, IOMEM), None);
        assert_eq!(range_of("ffffffff81000000 T _text\n", hidden), None);
    }
}
