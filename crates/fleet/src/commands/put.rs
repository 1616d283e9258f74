//! Sends tables to a bucket.

use crate::data::Store;
use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::BTreeMap;
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
    let store = Store::open(&options.to, runtime.handle().clone())?;
    if let Store::Folder(folder) = &store {
        bail!(
            "--to takes a bucket; to send tables to {}, copy them",
            folder.display()
        );
    }
    let here = Store::Folder(options.folder.clone());
    let recordings = complete(here.files()?);
    for (folders, names) in &recordings {
        for name in names {
            let path = here.path(folders, name);
            let content = here.read(&path);
            let content = content.with_context(|| format!("cannot read {path}"))?;
            store.write(&store.path(folders, name), content)?;
        }
        remove(&options.folder, folders, names)?;
    }
    let number = recordings.len();
    writeln!(
        io::stderr(),
        "pagewise fleet: recordings sent to {}: {number}",
        options.to
    )?;
    Ok(())
}

/// The tables of all complete recordings, [`LAST`] last, by the folders that they are in. Names that
/// begin with a dot are not for others.
fn complete(files: Vec<(Vec<String>, String)>) -> BTreeMap<Vec<String>, Vec<String>> {
    let mut recordings: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for (folders, name) in files {
        let is_hidden = folders.iter().any(|folder| folder.starts_with('.'));
        if !is_hidden && name.ends_with(".parquet") {
            recordings.entry(folders).or_default().push(name);
        }
    }
    recordings.retain(|_, names| names.iter().any(|name| name == LAST));
    for names in recordings.values_mut() {
        names.sort_by_key(|name| name == LAST);
    }
    recordings
}

/// Removes the tables of a recording, [`LAST`] first, and the folders that are empty then.
fn remove(root: &Path, folders: &[String], names: &[String]) -> Result<()> {
    let mut folder = root.to_owned();
    folder.extend(folders);
    for name in names.iter().rev() {
        let path = folder.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let below = folder.ancestors().take(folders.len());
    for empty in below {
        if fs::remove_dir(empty).is_err() {
            break;
        }
    }
    Ok(())
}
