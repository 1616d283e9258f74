//! Where the kernel's code lies, so that readers can name kernel addresses.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Addresses of `_text` and `_etext` in `kallsyms`; `None` when they are hidden
/// (`kernel.kptr_restrict`) or absent.
pub(super) fn range(kallsyms: &Path) -> Option<(u64, u64)> {
    let reader = BufReader::new(File::open(kallsyms).ok()?);
    let (mut text, mut end) = (None, None);
    for line in reader.lines() {
        let line = line.ok()?;
        let mut words = line.split(' ');
        let address = words.next();
        let Some(name) = words.nth(1) else { continue };
        if name == "_text" || name == "_etext" {
            let address = u64::from_str_radix(address?, 16).ok()?;
            *(if name == "_text" { &mut text } else { &mut end }) = Some(address);
        }
        if let (Some(text), Some(end)) = (text, end) {
            return (text > 0 && end > text).then_some((text, end));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range_of(text: &str) -> Option<(u64, u64)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        range(file.path())
    }

    #[test]
    fn text_lies_between_its_two_symbols() {
        let text = "0000000000000000 A fixed\nffffffff81000000 T _text\n\
                    ffffffff81000100 T do_x\nffffffff82000000 T _etext\n";
        assert_eq!(
            range_of(text),
            Some((0xffff_ffff_8100_0000, 0xffff_ffff_8200_0000))
        );
    }

    #[test]
    fn hidden_addresses_are_none() {
        let text = "0000000000000000 T _text\n0000000000000000 T _etext\n";
        assert_eq!(range_of(text), None);
    }
}
