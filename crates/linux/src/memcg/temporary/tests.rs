//! Cgroups made of files and, if root may create them, real ones.

use super::*;
use crate::proc::ProcRoot;
use std::process::{Child, Command, Stdio};

fn group(top: &Path, place: &str, limit: &str) -> MemoryCgroup {
    let folder = top.join(place);
    fs::create_dir_all(&folder).unwrap();
    for at in folder.ancestors().take_while(|at| at.starts_with(top)) {
        fs::write(at.join("memory.max"), "max\n").unwrap();
    }
    fs::write(folder.join("memory.max"), limit).unwrap();
    MemoryCgroup {
        version: Version::V2,
        folder,
        top: top.to_path_buf(),
    }
}

#[test]
fn a_limit_that_is_none_or_stands_above_is_told_so() {
    let top = tempfile::tempdir().unwrap();
    let refused = |group: MemoryCgroup| group.beside_limit().unwrap_err();
    let free = group(top.path(), "free", "max\n");
    assert!(matches!(refused(free), Error::Unlimited));
    // The cgroup of a container is the top of the visible hierarchy.
    let container = MemoryCgroup {
        folder: top.path().to_path_buf(),
        ..group(top.path(), "", "4096\n")
    };
    assert!(matches!(refused(container), Error::OutOfReach));
    group(top.path(), "job", "4096\n");
    let child = top.path().join("job/child");
    fs::create_dir(&child).unwrap();
    let child = MemoryCgroup {
        version: Version::V2,
        folder: child,
        top: top.path().to_path_buf(),
    };
    assert!(matches!(refused(child), Error::OutOfReach));
}

#[test]
fn at_the_top_groups_are_made_inside_where_they_have_limits() {
    let top = tempfile::tempdir().unwrap();
    let all = MemoryCgroup {
        folder: top.path().to_path_buf(),
        ..group(top.path(), "", "max\n")
    };
    let on = top.path().join("cgroup.subtree_control");
    fs::write(&on, "cpu pids\n").unwrap();
    assert!(matches!(
        all.beside(Bytes(8192)).unwrap_err(),
        Error::OutOfReach
    ));
    fs::write(&on, "cpu memory pids\n").unwrap();
    let place = all.beside(Bytes(8192)).unwrap();
    assert_eq!(place.parent, top.path());
    assert_eq!((place.limit, place.most), (Bytes(8192), None));
    // A leaf has its groups next to it.
    let leaf = group(top.path(), "user/session", "4096\n");
    let place = leaf.beside(Bytes(8192)).unwrap();
    assert_eq!(place.parent, top.path().join("user"));
    assert_eq!((place.limit, place.most), (Bytes(4096), Some(Bytes(4096))));
}

#[test]
fn what_cannot_be_made_is_told_and_leaves_nothing() {
    let place = Place {
        version: Version::V1,
        parent: "/sys/fs/cgroup/there-is-none".into(),
        home: "/sys/fs/cgroup".into(),
        limit: Bytes(4096),
        most: None,
    };
    let error = place.make("a test", Bytes(8192)).unwrap_err();
    assert!(error.to_string().starts_with("that takes root"), "{error}");
}

#[test]
fn only_groups_of_ours_are_taken_away() {
    let sys = tempfile::tempdir().unwrap();
    let home = sys.path().join("home");
    let taken = |folder: PathBuf| {
        fs::create_dir_all(&folder).unwrap();
        let group = MadeGroup {
            folder: folder.clone(),
            home: home.clone(),
        };
        (
            take_away(&group, Cache::Evict, sys.path()).ok(),
            folder.exists(),
        )
    };
    assert_eq!(taken(sys.path().join("pagewise-7-0")), (Some(true), false));
    assert_eq!(taken(sys.path().join("system.slice")), (None, true));
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(taken(elsewhere.path().join("pagewise-7-0")), (None, true));
    let gone = MadeGroup {
        folder: sys.path().join("pagewise-7-1"),
        home,
    };
    assert!(!take_away(&gone, Cache::Leave, sys.path()).unwrap());
}

/// A real cgroup with a limit, below our own.
struct Limited(MemoryCgroup);

impl Limited {
    fn new() -> Result<Self, String> {
        let own = i32::try_from(std::process::id()).unwrap();
        let mount = Path::new("/sys/fs/cgroup");
        let cgroup = MemoryCgroup::of_process(&ProcRoot::default(), mount, own);
        let cgroup = cgroup.map_err(|error| error.to_string())?;
        let cgroup = cgroup.ok_or("no memory control group is mounted")?;
        let folder = cgroup.folder.join(format!("test-{own}"));
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir(&folder).map_err(failed)?;
        let limited = Self(MemoryCgroup {
            folder: folder.clone(),
            ..cgroup
        });
        let file = folder.join(limited.0.version.limit());
        fs::write(file, "67108864").map_err(failed)?;
        Ok(limited)
    }

    fn child(&self) -> Child {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        fs::write(self.0.folder.join(PROCESSES), child.id().to_string()).unwrap();
        child
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0.folder);
    }
}

fn holds(folder: &Path, child: &Child) -> bool {
    let processes = fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
    processes.lines().any(|line| line == child.id().to_string())
}

#[test]
fn a_process_runs_within_a_larger_limit_and_goes_back() {
    let limited = match Limited::new() {
        Ok(limited) => limited,
        Err(why) => return skipped!("no control group can be made here: {why}"),
    };
    let mut child = limited.child();
    let place = limited.0.beside_limit().unwrap();
    assert_eq!(place.limit, Bytes(64 << 20));
    let larger = place.make("a test", Bytes(128 << 20)).unwrap();
    let folder = larger.group.folder.clone();
    larger.take(i32::try_from(child.id()).unwrap()).unwrap();
    assert!(holds(&folder, &child) && !holds(&limited.0.folder, &child));
    let inside = MemoryCgroup {
        folder: folder.clone(),
        ..limited.0.clone()
    };
    assert_eq!(inside.limit().unwrap(), Some(Bytes(128 << 20)));
    // As after a kill: the journal exists, and no process has it.
    let (group, journal) = (
        larger.group.clone(),
        larger.journal.as_ref().unwrap().path(),
    );
    let noted = journal::read(journal).unwrap().unwrap();
    assert_eq!(noted.groups, std::slice::from_ref(&group));
    let journal = journal.to_path_buf();
    drop(larger);
    assert!(!folder.exists() && !journal.exists());
    assert!(holds(&limited.0.folder, &child));
    drop(child.stdin.take());
    child.wait().unwrap();
}
