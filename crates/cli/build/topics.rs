//! Embeds the guides and schemas in the program, because an installation is one file without
//! `docs`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of `docs` whose files are topics. `docs/notes` and `docs/examples` explain how results
/// were obtained; no message refers to them.
const FOLDERS: [&str; 3] = ["guide", ".", "schema"];

/// Writes `topics.rs`: name, title and packed text of each topic.
pub fn write(docs: &Path, out: &Path) {
    let mut table = "[\n".to_owned();
    let mut names = Vec::new();
    for file in FOLDERS.iter().flat_map(|folder| files(&docs.join(folder))) {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = name(&file);
        assert!(!names.contains(&name), "two documents are called {name}");
        let text = fs::read_to_string(&file).expect("documents are text");
        let title = title(&text).unwrap_or_else(|| panic!("{} has no title", file.display()));
        let packed = format!("{name}.gz");
        fs::write(out.join(&packed), crate::pack(text.as_bytes())).expect("OUT_DIR is writable");
        writeln!(
            table,
            "Topic {{ name: {name:?}, title: {title:?}, packed: include_bytes!({packed:?}) }},"
        )
        .expect("a string takes it");
        names.push(name);
    }
    assert!(!names.is_empty(), "no documents in {}", docs.display());
    fs::write(out.join("topics.rs"), table + "]\n").expect("OUT_DIR is writable");
}

/// Markdown and JSON of one folder, in order of name.
fn files(folder: &Path) -> Vec<PathBuf> {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).expect("documents lie beside the sources");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|file| {
            file.extension()
                .is_some_and(|kind| kind == "md" || kind == "json")
        })
        .collect();
    files.sort();
    files
}

/// `slow` for `guide/slow.md`, `guide` for its README, `run.json` for a schema: `run` is a command.
fn name(file: &Path) -> String {
    let part = |part: Option<&std::ffi::OsStr>| {
        let part = part.expect("a named file");
        part.to_str().expect("ASCII names").to_lowercase()
    };
    match file.extension().is_some_and(|kind| kind == "json") {
        true => part(file.file_name()),
        false if file.ends_with("README.md") => part(file.parent().and_then(Path::file_name)),
        false => part(file.file_stem()),
    }
}

/// The first heading, or the `title` of a schema.
fn title(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        line.strip_prefix("# ").or_else(|| {
            let value = line.trim().strip_prefix("\"title\": \"")?;
            value.trim_end_matches(',').strip_suffix('"')
        })
    })
}
