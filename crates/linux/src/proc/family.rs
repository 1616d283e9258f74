//! A process and all its descendants, at one moment.

use super::ProcRoot;

/// Most processes visited, so that the walk of a growing tree ends.
const MOST: usize = 4_096;

/// Living processes of the tree below `pid`, itself first, parents before their children. If the
/// kernel lists no children (`CONFIG_PROC_CHILDREN`), only the process itself.
#[must_use]
pub fn family(proc: &ProcRoot, pid: i32) -> Vec<i32> {
    let mut found = vec![pid];
    let mut at = 0;
    while at < found.len() && found.len() < MOST {
        let children = proc.children(found[at]).unwrap_or_default();
        let new: Vec<i32> = children
            .into_iter()
            .filter(|c| !found.contains(c))
            .collect();
        found.extend(new);
        at += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_of_children_belong_to_it() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & echo started; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The shell prints a line once its child lives.
        let mut said = [0_u8; 8];
        std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut said).unwrap();
        let us = i32::try_from(std::process::id()).unwrap();
        let shell_pid = i32::try_from(shell.id()).unwrap();
        let found = family(&ProcRoot::default(), us);
        let children = ProcRoot::default().children(shell_pid).unwrap();
        for &child in &children {
            let kill = format!("kill {child}");
            assert!(
                Command::new("sh")
                    .args(["-c", &kill])
                    .status()
                    .unwrap()
                    .success()
            );
        }
        shell.wait().unwrap();
        assert_eq!(found[0], us);
        assert!(found.contains(&shell_pid), "{found:?}");
        assert_eq!(children.len(), 1);
        assert!(found.contains(&children[0]), "{found:?}");
    }
}
