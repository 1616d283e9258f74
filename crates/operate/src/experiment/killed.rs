//! Which memory limit killed a run: the kernel says how often it killed in a control group.

use super::server::Failure;
use pagewise_linux::memcg::MemoryCgroup;
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::process::Finished;
use pagewise_model::run::Ending;
use std::path::Path;

const SIGKILL: i32 = 9;

/// The control group of our runs, and how many processes the kernel has killed in it.
pub(super) struct Kills {
    group: MemoryCgroup,
    before: u64,
}

impl Kills {
    /// Those before a run; nothing where no control group counts them.
    pub fn so_far() -> Option<Self> {
        let own = i32::try_from(std::process::id()).ok()?;
        let group =
            MemoryCgroup::of_process(&ProcRoot::default(), Path::new("/sys/fs/cgroup"), own);
        let group = group.ok().flatten()?;
        Some(Self {
            before: group.read().ok()?.oom_kills?,
            group,
        })
    }

    /// What is said of a run that was killed for its memory.
    pub fn failure_of(&self, finished: &Finished) -> Option<Failure> {
        if finished.ending != Ending::Killed(SIGKILL) {
            return None;
        }
        let now = self.group.read().ok()?.oom_kills?;
        let limit = self.group.limit().ok().flatten();
        (now > self.before).then(|| Failure {
            who: "command",
            how: match limit {
                Some(limit) => format!(
                    "was killed by the kernel, as it took more than its memory limit of {limit} ({})",
                    self.group.folder.display()
                ),
                None => "was killed by the kernel, which was out of memory".to_owned(),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_kill_by_the_limit_names_it_and_others_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let kills = |number: u32| {
            write("cg/a/memory.events", &format!("max 9\noom_kill {number}\n"));
        };
        write("proc/7/cgroup", "0::/a\n");
        write("cg/cgroup.controllers", "memory\n");
        write("cg/a/memory.max", "209715200\n");
        write("cg/a/memory.current", "1\n");
        write("cg/a/memory.stat", "anon 1\n");
        kills(2);
        let proc = ProcRoot::at(folder.path().join("proc"));
        let group = MemoryCgroup::of_process(&proc, &folder.path().join("cg"), 7);
        let group = group.unwrap().unwrap();
        let before = group.read().unwrap().oom_kills.unwrap();
        let found = Kills { group, before };
        let ended = |ending| Finished {
            ending,
            cost: pagewise_model::run::RunCost::default(),
        };
        let killed = ended(Ending::Killed(SIGKILL));
        assert!(
            found.failure_of(&killed).is_none(),
            "somebody else's SIGKILL"
        );
        kills(3);
        assert!(found.failure_of(&ended(Ending::Exited(0))).is_none());
        let message = found.failure_of(&killed).unwrap().to_string();
        assert!(
            message.starts_with("the command was killed by the kernel, as it took more than its memory limit of 200 MiB"),
            "{message}"
        );
    }
}
