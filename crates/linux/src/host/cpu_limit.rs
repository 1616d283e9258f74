//! How much CPU time the cgroup of this process may use (Linux:
//! Documentation/scheduler/sched-bwc.rst, Documentation/admin-guide/cgroup-v2.rst, `cpu.max`).

use super::{Machine, Settings};
use crate::pseudo_file::setting;
use std::path::{Path, PathBuf};

/// Notes the tightest limit of the group and its ancestors, as `30000 of 100000 us`.
pub(super) fn cpu_limit(machine: &Machine, settings: &mut Settings) {
    let mount = machine.sys.join("fs/cgroup");
    let Some(groups) = crate::pseudo_file::text(&machine.proc.path("self/cgroup"))
        .ok()
        .flatten()
    else {
        return;
    };
    // In version 1 the controller's own line counts, otherwise the unified one.
    let lines = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let mut of_cpu: Vec<(&str, &str)> = lines
        .filter(|(controllers, _)| {
            controllers.is_empty() || controllers.split(',').any(|name| name == "cpu")
        })
        .collect();
    of_cpu.sort_by_key(|(controllers, _)| controllers.is_empty());
    let Some(&(controllers, path)) = of_cpu.first() else {
        return;
    };
    let limit = match controllers {
        "" => tightest(&mount, path, unified),
        controllers => {
            let named = [controllers, "cpu"].map(|name| mount.join(name));
            let mount = named.into_iter().find(|folder| folder.is_dir());
            mount.and_then(|mount| tightest(&mount, path, version_1))
        }
    };
    let words = limit.map_or("none".to_owned(), |(quota, period)| {
        format!("{quota} of {period} us")
    });
    settings.note("cgroup.cpu.limit", Some(words));
}

/// The quota and period with the smallest share, of the group and its ancestors.
fn tightest(
    mount: &Path,
    path: &str,
    read: impl Fn(&Path) -> Option<(u64, u64)>,
) -> Option<(u64, u64)> {
    let group: PathBuf = mount.join(path.trim_start_matches('/'));
    let upwards = group.ancestors().take_while(|at| at.starts_with(mount));
    let share = |&(quota, period): &(u64, u64)| quota as f64 / period.max(1) as f64;
    upwards
        .filter_map(read)
        .min_by(|a, b| share(a).total_cmp(&share(b)))
}

/// `cpu.max`: `max 100000` or `30000 100000`.
fn unified(group: &Path) -> Option<(u64, u64)> {
    let line = setting(&group.join("cpu.max"))?;
    let (quota, period) = line.split_once(' ')?;
    Some((quota.parse().ok()?, period.trim().parse().ok()?))
}

/// `cpu.cfs_quota_us` is -1 without a limit, which does not parse as an unsigned number.
fn version_1(group: &Path) -> Option<(u64, u64)> {
    let number = |name: &str| setting(&group.join(name))?.parse().ok();
    Some((number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?))
}

#[cfg(test)]
mod tests {
    use super::super::snapshot_at;

    #[test]
    fn the_tightest_limit_above_a_group_is_told() {
        let limit = |files: &[(&str, &str)]| {
            let folder = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = folder.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            let found = snapshot_at(folder.path());
            found.settings.get("cgroup.cpu.limit").cloned()
        };
        let unified = [
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/cpu.max", "30000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ];
        assert_eq!(limit(&unified).as_deref(), Some("30000 of 100000 us"));
        let first = [
            ("proc/self/cgroup", "3:memory:/x\n2:cpu:/a\n0::/\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"),
        ];
        assert_eq!(limit(&first).as_deref(), Some("none"));
        assert_eq!(limit(&[("proc/cmdline", "x\n")]), None);
    }
}
