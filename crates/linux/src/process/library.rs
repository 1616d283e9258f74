//! Finding a shared library where the dynamic linker would.

use pagewise_families::families;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::recording::Surroundings;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders that the linker searches by default (`ld.so(8)`), and the usual local one.
const FOLDERS: [&str; 5] = ["lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib"];

/// Libraries on this machine that remedies can use.
#[must_use]
pub fn surroundings() -> Surroundings {
    let found = families().iter().filter_map(|family| {
        let path = installed(Path::new("/"), family.kind)?;
        Some((family.kind, path.to_string_lossy().into_owned()))
    });
    Surroundings {
        libraries: found.collect(),
        ..Surroundings::default()
    }
}

/// The library of an allocator that can be preloaded, the newest that is installed under `root`.
#[must_use]
pub fn installed(root: &Path, kind: AllocatorKind) -> Option<PathBuf> {
    let names = &pagewise_families::family(kind)?.preload;
    names.iter().find_map(|name| find(root, name))
}

/// The library of this file name (such as `libjemalloc.so.2`) in the folders of `etc/ld.so.conf`
/// and the linker's own, under `root`.
#[must_use]
pub fn find(root: &Path, name: &str) -> Option<PathBuf> {
    let mut folders = Vec::new();
    let mut seen = BTreeSet::new();
    read_configuration(root, &root.join("etc/ld.so.conf"), &mut folders, &mut seen);
    let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
    for folder in FOLDERS {
        folders.push(root.join(folder).join(&multiarch));
        folders.push(root.join(folder));
    }
    folders
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Folders named by a configuration file and by the files that it includes. Unreadable files add
/// none, as with `ldconfig(8)`.
fn read_configuration(
    root: &Path,
    file: &Path,
    folders: &mut Vec<PathBuf>,
    seen: &mut BTreeSet<PathBuf>,
) {
    if !seen.insert(file.to_owned()) {
        return;
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    for line in text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
    {
        match line.strip_prefix("include") {
            Some(pattern) => {
                for included in matching(root, pattern.trim()) {
                    read_configuration(root, &included, folders, seen);
                }
            }
            None if line.starts_with('/') => folders.push(root.join(line.trim_start_matches('/'))),
            None => {}
        }
    }
}

/// Files that match `folder/*.ending`, in order of name. Other patterns name one file.
fn matching(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let relative = pattern.trim_start_matches('/');
    let path = root.join(if pattern.starts_with('/') {
        relative.to_owned()
    } else {
        format!("etc/{relative}")
    });
    let Some((folder, ending)) = path.to_str().and_then(|path| path.split_once("/*")) else {
        return vec![path];
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|file| file.to_str().is_some_and(|file| file.ends_with(ending)))
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    #[test]
    fn configured_folders_come_before_the_usual_ones() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "usr/lib/liba.so.1", "");
        assert_eq!(
            find(root, "liba.so.1"),
            Some(root.join("usr/lib/liba.so.1"))
        );
        write(root, "opt/x/liba.so.1", "");
        write(root, "etc/ld.so.conf.d/x.conf", "# ours\n/opt/x\n");
        write(
            root,
            "etc/ld.so.conf",
            "include /etc/ld.so.conf.d/*.conf\ninclude ld.so.conf\n",
        );
        assert_eq!(find(root, "liba.so.1"), Some(root.join("opt/x/liba.so.1")));
        assert_eq!(find(root, "libb.so.1"), None);
    }

    #[test]
    fn the_newest_mimalloc_is_found_under_its_new_name() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let found = || installed(root, AllocatorKind::Mimalloc);
        assert_eq!(found(), None);
        for name in ["libmimalloc.so.2", "libmimalloc.so.3"] {
            write(root, &format!("usr/lib/{name}"), "");
            assert_eq!(found(), Some(root.join("usr/lib").join(name)));
        }
    }
}
