//! Names of the kernel's vdso: code mapped into each process that is not a file. The running kernel
//! maps the same image into all, so our own copy serves for every process.

use object::{Object, ObjectSymbol, SymbolKind};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// No vdso is larger; on x86-64 it has two pages.
const LARGEST: u64 = 1 << 20;

/// The functions of the vdso, by offset in it.
pub(super) struct Vdso {
    /// Start, end, name; sorted.
    functions: Vec<(u64, u64, String)>,
}

impl Vdso {
    /// Reads the vdso mapped into this process; `None` if there is none.
    pub fn read(root: &Path) -> Option<Self> {
        let own = root.join("proc/self");
        let maps = fs::read_to_string(own.join("maps")).ok()?;
        let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
        let (start, end) = line.split_whitespace().next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let length = end.checked_sub(start).filter(|&length| length <= LARGEST)?;
        let mut image = vec![0; usize::try_from(length).ok()?];
        let memory = File::open(own.join("mem")).ok()?;
        memory.read_exact_at(&mut image, start).ok()?;
        Self::parse(&image)
    }

    fn parse(image: &[u8]) -> Option<Self> {
        let elf = object::File::parse(image).ok()?;
        let mut functions: Vec<(u64, u64, String)> = elf
            .dynamic_symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| {
                let end = symbol.address().checked_add(symbol.size())?;
                Some((symbol.address(), end, symbol.name().ok()?.to_owned()))
            })
            .collect();
        // `clock_gettime` is another name of `__vdso_clock_gettime`; the longer one is clearer.
        functions.sort_by(|a, b| (a.0, b.2.len(), &a.2).cmp(&(b.0, a.2.len(), &b.2)));
        functions.dedup_by_key(|&mut (start, _, _)| start);
        (!functions.is_empty()).then_some(Self { functions })
    }

    /// The function that contains the byte at this offset.
    pub fn name(&self, offset: u64) -> Option<&str> {
        let after = self
            .functions
            .partition_point(|&(start, _, _)| start <= offset);
        let (_, end, name) = &self.functions[after.checked_sub(1)?];
        (offset < *end).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_vdso_tells_the_time() {
        let Some(vdso) = Vdso::read(Path::new("/")) else {
            skipped!("this process has no vdso");
            return;
        };
        let clock = vdso
            .functions
            .iter()
            .find(|(_, _, name)| name.contains("clock_gettime"));
        let (start, end, name) = clock.expect("each architecture's vdso has it");
        assert!(name.starts_with("__"), "{name}");
        assert_eq!(vdso.name(*start), Some(name.as_str()));
        assert_eq!(vdso.name(end - 1), Some(name.as_str()));
        assert_eq!(vdso.name(LARGEST), None);
    }
}
