//! Selection of the processes to balance.

use anyhow::{Context, Result, bail};
use pagewise_linux::proc::ProcRoot;
use std::path::{Path, PathBuf};

/// The processes to balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// These processes.
    Processes(Vec<i32>),
    /// This process and all processes that it starts.
    Tree(i32),
    /// All processes of a cgroup and its subgroups.
    Cgroup(PathBuf),
}

impl Selection {
    /// The processes that belong to it now.
    ///
    /// # Errors
    /// If the cgroup cannot be read.
    pub fn processes(&self, proc: &ProcRoot) -> Result<Vec<i32>> {
        match self {
            Self::Processes(pids) => Ok(pids.clone()),
            Self::Tree(root) => {
                let mut found = vec![*root];
                let mut at = 0;
                while let Some(&pid) = found.get(at) {
                    found.extend(proc.children(pid).unwrap_or_default());
                    at += 1;
                }
                Ok(found)
            }
            Self::Cgroup(folder) => processes_of(folder),
        }
    }
}

fn processes_of(folder: &Path) -> Result<Vec<i32>> {
    let file = folder.join("cgroup.procs");
    let text = std::fs::read_to_string(&file)
        .with_context(|| format!("cannot read {}: name a cgroup's folder", file.display()))?;
    let mut found = Vec::new();
    for word in text.split_whitespace() {
        match word.parse() {
            Ok(pid) => found.push(pid),
            Err(_) => bail!("{} has '{word}' instead of a process id", file.display()),
        }
    }
    let children = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for child in children.filter(|entry| entry.path().is_dir()) {
        found.extend(processes_of(&child.path())?);
    }
    Ok(found)
}
