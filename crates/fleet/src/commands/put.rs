//! Sends tables to a bucket.

use crate::data::Store;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tokio::runtime::Runtime;

/// The table that every recording has. It is sent last: without it, the others do not count.
const LAST: &str = "runs.parquet";

/// Options of `put`.
#[derive(Args, Debug)]
pub struct Options {
    /// Where to send them: s3://BUCKET/PREFIX or gs://BUCKET/PREFIX
    ///
    /// Access is what the environment says, as for --data.
    #[arg(long, value_name = "URL")]
    to: String,

    /// The folder with tables, at any depth; the folders between stay the same
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Sends each recording, in the order of the folders' names, and removes what has been sent.
pub fn run(options: &Options) -> Result<()> {
    let runtime = Runtime::new().context("no threads for requests")?;
    let store = Store::of(&options.to, runtime.handle().clone())?;
    if let Store::Folder(folder) = &store {
        bail!(
            "--to takes a bucket; to send tables to {}, copy them",
            folder.display()
        );
    }
    let mut recordings = Vec::new();
    find(&options.folder, &mut Vec::new(), &mut recordings)
        .with_context(|| format!("cannot read {}", options.folder.display()))?;
    recordings.sort();
    for folders in &recordings {
        let folder: PathBuf = options
            .folder
            .iter()
            .chain(folders.iter().map(AsRef::as_ref))
            .collect();
        send(&store, folders, &folder)?;
        remove(&options.folder, &folder)?;
    }
    let number = recordings.len();
    writeln!(
        io::stderr(),
        "pagewise fleet: recordings sent to {}: {number}",
        options.to
    )?;
    Ok(())
}

/// The folders of all complete recordings. Names that begin with a dot are not for others.
fn find(path: &Path, folders: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> io::Result<()> {
    if path.join(LAST).is_file() {
        found.push(folders.clone());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if entry.file_type()?.is_dir() {
            folders.push(name.to_owned());
            find(&entry.path(), folders, found)?;
            folders.pop();
        }
    }
    Ok(())
}

fn send(store: &Store, folders: &[String], folder: &Path) -> Result<()> {
    let mut names = tables(folder)?;
    names.sort_by_key(|name| name == LAST);
    for name in names {
        let path = folder.join(&name);
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        store.write(&store.path(folders, &name), content)?;
    }
    Ok(())
}

fn tables(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        found.extend(
            name.to_str()
                .filter(|name| name.ends_with(".parquet"))
                .map(str::to_owned),
        );
    }
    Ok(found)
}

/// Removes the tables of a recording, `runs` first, and the folders that are empty then.
fn remove(root: &Path, folder: &Path) -> Result<()> {
    let mut names = tables(folder)?;
    names.sort_by_key(|name| name != LAST);
    for name in names {
        let path = folder.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let below = folder.ancestors().take_while(|ancestor| *ancestor != root);
    for empty in below {
        if fs::remove_dir(empty).is_err() {
            break;
        }
    }
    Ok(())
}
