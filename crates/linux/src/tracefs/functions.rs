//! Selects the kernel functions to trace: the table `functions.toml`, matched to the kernel's list.

use super::Error;
use super::control::Control;
use pagewise_formats::function_graph::{base_name, is_interrupt};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;

const TABLE: &str = include_str!("functions.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    root: Vec<RootRow>,
    group: Vec<GroupRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RootRow {
    of: Kind,
    names: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupRow {
    about: String,
    #[serde(default)]
    rare: bool,
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Fault,
    Lock,
    #[serde(rename = "plain lock")]
    PlainLock,
    #[serde(rename = "unknown fault")]
    UnknownFault,
}

/// A function that the kernel can trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name, suffixes included.
    pub name: String,
    /// Its line in `available_filter_functions`, from 1. Kernels since 5.1 accept it in place of
    /// the name, which saves them a search of all functions.
    pub line: u32,
    /// Whether it stays in the second phase although it was not called in the first.
    pub rare: bool,
}

/// The functions of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// Functions at the top of traced call trees, faults first.
    pub roots: Vec<String>,
    /// The roots, and the functions to trace inside them.
    pub candidates: Vec<Function>,
    /// How many functions the kernel can trace.
    pub available: usize,
    /// A root that is in no table, found by the form of its name.
    pub guessed_root: Option<String>,
}

impl Functions {
    /// Looks up the table's names, and the user's own, in `available_filter_functions`.
    ///
    /// # Errors
    /// If the list can't be read, has no root of faults, or lacks a function that the user named.
    pub fn new(control: &Control, more: &[String]) -> Result<Self, Error> {
        let text = control.read("available_filter_functions")?;
        Self::among(&text, more)
    }

    /// The same for a list as text.
    ///
    /// # Errors
    /// As [`Functions::new`].
    pub fn among(text: &str, more: &[String]) -> Result<Self, Error> {
        let table: Table = toml::from_str(TABLE)
            .map_err(|error| Error::Unable(format!("functions.toml: {error}")))?;
        let available = Available::new(text);
        let (mut roots, guessed_root) = roots(&table, &available)?;
        for name in more {
            if !available.bases.contains(base_name(name)) {
                return Err(Error::Unable(format!(
                    "this kernel cannot trace a function {name}: it is not in available_filter_functions (inlined, notrace, or misspelt)"
                )));
            }
        }
        roots.extend(more.iter().cloned());
        let patterns = Patterns::new(&table);
        let own: FxHashSet<&str> = roots.iter().map(|name| base_name(name)).collect();
        let mut candidates = Vec::new();
        for (line, name) in &available.all {
            let base = base_name(name);
            let rare = match patterns.find(base) {
                _ if own.contains(base) => true,
                // Without their outer frames, interrupts would look like parts of faults.
                _ if is_interrupt(base) => true,
                Some(rare) => rare,
                None => continue,
            };
            candidates.push(Function {
                name: (*name).to_owned(),
                line: *line,
                rare,
            });
        }
        Ok(Self {
            roots: roots_with_suffixes(&roots, &candidates),
            candidates,
            available: available.all.len(),
            guessed_root,
        })
    }

    /// The candidates whose names are roots.
    #[must_use]
    pub fn root_functions(&self) -> Vec<Function> {
        let is_root = |function: &&Function| self.roots.contains(&function.name);
        self.candidates.iter().filter(is_root).cloned().collect()
    }
}

/// `available_filter_functions`: names, some followed by a module in brackets.
struct Available<'a> {
    all: Vec<(u32, &'a str)>,
    bases: FxHashSet<&'a str>,
}

impl<'a> Available<'a> {
    fn new(text: &'a str) -> Self {
        let names = text
            .lines()
            .map(|line| line.split_whitespace().next().unwrap_or_default());
        let all: Vec<(u32, &str)> = (1..)
            .zip(names)
            .filter(|(_, name)| !name.is_empty())
            .collect();
        let bases = all.iter().map(|(_, name)| base_name(name)).collect();
        Self { all, bases }
    }
}

fn roots(table: &Table, available: &Available<'_>) -> Result<(Vec<String>, Option<String>), Error> {
    let known = |kind: Kind| -> Vec<String> {
        let rows = table.root.iter().filter(|row| row.of == kind);
        let names = rows.flat_map(|row| &row.names);
        names
            .filter(|name| available.bases.contains(name.as_str()))
            .cloned()
            .collect()
    };
    let mut found = known(Kind::Fault);
    let mut guessed = None;
    if found.is_empty() {
        let rows = table.root.iter().filter(|row| row.of == Kind::UnknownFault);
        let mut patterns = rows.flat_map(|row| &row.names);
        guessed = patterns.find_map(|pattern| {
            let mut names = available.all.iter().map(|(_, name)| base_name(name));
            names.find(|name| matches(pattern, name)).map(str::to_owned)
        });
        found.extend(guessed.clone());
    }
    if found.is_empty() {
        return Err(Error::Unable(format!(
            "none of the kernel's {} traceable functions handles page faults",
            available.all.len()
        )));
    }
    let locks = known(Kind::Lock);
    let is_entry_known = found.iter().any(|name| name != "handle_mm_fault");
    found.extend(match locks.is_empty() && !is_entry_known {
        true => known(Kind::PlainLock),
        false => locks,
    });
    Ok((found, guessed))
}

/// The roots as this kernel spells them: `f.isra.0` for `f`.
fn roots_with_suffixes(roots: &[String], candidates: &[Function]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for root in roots {
        let same = candidates
            .iter()
            .filter(|one| base_name(&one.name) == base_name(root));
        for function in same {
            if !found.contains(&function.name) {
                found.push(function.name.clone());
            }
        }
    }
    found
}

/// The groups' names, with patterns (`*`) kept separately.
struct Patterns<'a> {
    exact: FxHashMap<&'a str, bool>,
    wild: Vec<(&'a str, bool)>,
}

impl<'a> Patterns<'a> {
    fn new(table: &'a Table) -> Self {
        let mut exact = FxHashMap::default();
        let mut wild = Vec::new();
        for group in &table.group {
            debug_assert!(!group.about.is_empty(), "a group says what it is about");
            for name in &group.names {
                match name.contains('*') {
                    true => wild.push((name.as_str(), group.rare)),
                    false => {
                        let rare: &mut bool = exact.entry(name.as_str()).or_default();
                        *rare |= group.rare;
                    }
                }
            }
        }
        Self { exact, wild }
    }

    /// Whether the function is in the table, and if so, whether in a group of rare ones.
    fn find(&self, base: &str) -> Option<bool> {
        let wild = self
            .wild
            .iter()
            .filter(|(pattern, _)| matches(pattern, base));
        let exact = self.exact.get(base).copied();
        wild.map(|(_, rare)| *rare)
            .chain(exact)
            .reduce(|a, b| a || b)
    }
}

/// Whether `name` matches `pattern`, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    // The leftmost match is as good as any, since anything may follow.
    for part in middle.split('*') {
        let Some(at) = name.find(part) else {
            return false;
        };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL_6_1: &str = "\
do_one_initcall
xfs_filemap_fault [xfs]
lock_mm_and_find_vma
handle_mm_fault
__handle_mm_fault
down_read
_raw_spin_lock
folio_add_lru_vma
wp_page_copy.isra.0
__sysvec_apic_timer_interrupt
ext4_sync_file
";

    fn names(functions: &Functions) -> Vec<&str> {
        let candidates = functions.candidates.iter();
        candidates.map(|function| function.name.as_str()).collect()
    }

    #[test]
    fn the_table_is_read_against_what_the_kernel_has() {
        let found = Functions::among(KERNEL_6_1, &[]).unwrap();
        assert_eq!(found.roots, ["handle_mm_fault", "lock_mm_and_find_vma"]);
        assert_eq!(found.available, 11);
        let expected = [
            "xfs_filemap_fault",
            "lock_mm_and_find_vma",
            "handle_mm_fault",
            "__handle_mm_fault",
            "down_read",
            "folio_add_lru_vma",
            "wp_page_copy.isra.0",
            "__sysvec_apic_timer_interrupt",
        ];
        assert_eq!(names(&found), expected);
        assert_eq!(found.candidates[0].line, 2);
        let lines: Vec<u32> = found
            .root_functions()
            .iter()
            .map(|root| root.line)
            .collect();
        assert_eq!(lines, [3, 4]);
    }

    #[test]
    fn old_kernels_are_traced_from_the_fault_s_entry() {
        let text = "__do_page_fault\nhandle_mm_fault\ndown_read_trylock\ndown_read\n";
        let found = Functions::among(text, &[]).unwrap();
        assert_eq!(found.roots, ["__do_page_fault", "handle_mm_fault"]);
    }

    #[test]
    fn without_an_entry_the_locks_are_roots_themselves() {
        let text = "handle_mm_fault\ndown_read_trylock\ndown_read\n";
        let found = Functions::among(text, &[]).unwrap();
        assert_eq!(
            found.roots,
            ["handle_mm_fault", "down_read_trylock", "down_read"]
        );
    }

    #[test]
    fn an_unknown_entry_is_found_by_its_look() {
        let found = Functions::among("vm_handle_mm_fault.isra.3\nother\n", &[]).unwrap();
        assert_eq!(found.guessed_root.as_deref(), Some("vm_handle_mm_fault"));
        assert_eq!(found.roots, ["vm_handle_mm_fault.isra.3"]);
        let error = Functions::among("other\n", &[]).unwrap_err().to_string();
        assert!(error.contains("none of the kernel's 1"), "{error}");
    }

    #[test]
    fn the_user_s_roots_are_added_or_refused() {
        let more = |name: &str| Functions::among(KERNEL_6_1, &[name.to_owned()]);
        assert!(
            more("ext4_sync_file")
                .unwrap()
                .roots
                .contains(&"ext4_sync_file".to_owned())
        );
        let error = more("exc_page_fault").unwrap_err().to_string();
        assert!(error.contains("exc_page_fault"), "{error}");
    }

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, expected) in [
            ("do_huge_pmd_*", "do_huge_pmd_wp_page", true),
            ("*_filemap_fault", "xfs_filemap_fault", true),
            ("*_filemap_fault", "filemap_fault", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("a*b*c*", "abXc", true),
            ("ab*ba", "aba", false),
            ("find_vma", "find_vma_prev", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
