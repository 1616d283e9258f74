use super::kernel::Tried;
use super::perf::Guards;
use super::*;
use pagewise_model::capability::Availability::{Available, Limited, Missing};
use std::io;
use std::path::Path;

fn refusal(code: i32) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(code))
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A machine on which nothing can be read.
fn bare() -> (tempfile::TempDir, Machine) {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::at(folder.path());
    (folder, machine)
}

const PARANOID: Guards = Guards {
    paranoid: Some(3),
    hidden_addresses: Some(1),
};

#[test]
fn a_refused_event_tells_the_switch_and_how_to_turn_it() {
    let found = perf::user_faults(&refusal(libc::EACCES), &PARANOID);
    assert_eq!(found.state, Missing);
    assert_eq!(
        found.finding,
        "perf_event_open: Permission denied; kernel.perf_event_paranoid is 3"
    );
    let remedy = found.remedy.unwrap();
    assert!(remedy.starts_with("sudo sysctl kernel.perf_event_paranoid=2"));
    let open = perf::user_faults(&Ok(()), &PARANOID);
    assert_eq!((open.state, open.remedy), (Available, None));
}

#[test]
fn without_privileges_faults_inside_the_kernel_are_only_counted() {
    let guards = Guards {
        paranoid: Some(2),
        hidden_addresses: Some(0),
    };
    let found = perf::kernel_faults(&refusal(libc::EACCES), &guards);
    assert_eq!(found.state, Limited);
    assert!(found.remedy.unwrap().contains("perf_event_paranoid=1"));
    assert_eq!(perf::kernel_symbols(&guards).state, Available);
    assert_eq!(perf::kernel_symbols(&PARANOID).state, Limited);
    assert_eq!(
        perf::callchains(&refusal(libc::EPERM), &guards).state,
        Missing
    );
    assert_eq!(perf::hardware(&refusal(libc::ENOENT)).state, Limited);
}

#[test]
fn what_the_setting_allows_already_is_no_remedy() {
    let guards = Guards {
        paranoid: Some(2),
        hidden_addresses: Some(0),
    };
    let refused = refusal(libc::EPERM);
    for found in [
        perf::user_faults(&refused, &guards),
        perf::callchains(&refused, &guards),
    ] {
        let remedy = found.remedy.unwrap();
        assert!(remedy.contains("seccomp"), "{remedy}");
        assert!(!remedy.contains("sysctl"), "{remedy}");
    }
}

#[test]
fn a_tracepoint_is_open_unknown_or_refused() {
    let point = (
        "tracepoints.x",
        "syscalls",
        "sys_enter_brk",
        "with",
        "without",
    );
    assert_eq!(
        kernel::tracepoint(point, Some(Tried::Opens)).state,
        Available
    );
    let unknown = kernel::tracepoint(point, Some(Tried::Unknown));
    assert_eq!((unknown.state, unknown.remedy), (Missing, None));
    let denied = io::Error::from_raw_os_error(libc::EACCES);
    let refused = kernel::tracepoint(point, Some(Tried::Refused(denied)));
    assert_eq!(refused.finding, "syscalls:sys_enter_brk: Permission denied");
    assert!(refused.remedy.unwrap().contains("setcap"));
    assert_eq!(kernel::tracepoint(point, None).state, Missing);
}

#[test]
fn tracefs_is_mounted_privately_mountable_closed_or_absent() {
    use crate::tracefs::{Error, Tracefs};
    let found = |publicly| kernel::mounted(&Ok(Tracefs::at("/nowhere")), publicly);
    assert_eq!(
        (found(true).state, found(false).state),
        (Available, Available)
    );
    assert_ne!(found(true).finding, found(false).finding);
    let cause = io::Error::from_raw_os_error(libc::EPERM);
    let absent = kernel::mounted(&Err(Error::NotMounted { cause }), false);
    assert_eq!(absent.state, Missing);
    assert!(absent.remedy.unwrap().contains("mount -t tracefs"));
    let path = "/sys/kernel/tracing".into();
    let closed = kernel::mounted(&Err(Error::NoAccess { path }), true);
    assert!(closed.remedy.unwrap().contains("run as root"));
}

#[test]
fn tracers_are_found_in_a_private_mount() {
    use crate::tracefs::Tracefs;
    let (folder, machine) = bare();
    write(folder.path(), "own/available_tracers", "blk nop\n");
    let public = machine.sys.join("kernel/tracing");
    let own = Ok(Tracefs::at(folder.path().join("own")));
    let tracing = kernel::tracing_folder(public.clone(), &own);
    let found = kernel::function_graph(&tracing);
    assert_eq!(found.finding, "this kernel has only: blk nop");
    std::fs::create_dir_all(public.join("events")).unwrap();
    assert_eq!(kernel::tracing_folder(public.clone(), &own), public);
}

#[test]
fn an_unmounted_tracefs_is_mounted_by_the_remedy() {
    let (folder, machine) = bare();
    let tracing = machine.sys.join("kernel/tracing");
    let found = kernel::function_graph(&tracing);
    assert_eq!(found.state, Missing);
    assert!(found.remedy.unwrap().contains("mount -t tracefs"));
    write(
        folder.path(),
        "sys/kernel/tracing/available_tracers",
        "blk nop\n",
    );
    let found = kernel::function_graph(&tracing);
    assert_eq!(found.finding, "this kernel has only: blk nop");
    let all = "hwlat function_graph nop\n";
    write(folder.path(), "sys/kernel/tracing/available_tracers", all);
    write(folder.path(), "sys/kernel/tracing/current_tracer", "nop\n");
    assert_eq!(kernel::function_graph(&tracing).state, Available);
    write(
        folder.path(),
        "sys/kernel/tracing/current_tracer",
        "hwlat\n",
    );
    let found = kernel::function_graph(&tracing);
    assert_eq!(found.state, Limited);
    assert!(found.finding.ends_with("current_tracer reads \"hwlat\""));
    assert_eq!(kernel::kprobes(&tracing).state, Limited);
    write(folder.path(), "sys/kernel/tracing/kprobe_events", "");
    assert_eq!(kernel::kprobes(&tracing).state, Available);
}

#[test]
fn a_kernel_without_anything_is_described_not_failed() {
    let (_folder, machine) = bare();
    for found in [
        memory::pressure(&machine),
        memory::smaps_rollup(&machine),
        memory::memory_cgroup(&machine),
        memory::huge_pages(&machine),
    ] {
        assert_eq!(found.state, Missing, "{found:?}");
    }
    assert_eq!(memory::locked_memory(&machine).state, Limited);
    assert_eq!(process::pid_namespace(&machine).state, Limited);
    assert_eq!(process::sandbox(&machine).state, Limited);
}

#[test]
fn memory_limits_and_modes_are_judged() {
    let (folder, machine) = bare();
    let thp = "sys/kernel/mm/transparent_hugepage/enabled";
    write(folder.path(), thp, "always madvise [never]\n");
    let found = memory::huge_pages(&machine);
    assert_eq!(found.state, Missing);
    assert!(found.remedy.unwrap().starts_with("echo madvise"));
    write(folder.path(), thp, "always [madvise] never\n");
    assert_eq!(memory::huge_pages(&machine).state, Available);
    let limits = "Limit  Soft Limit Hard Limit Units\nMax locked memory  65536  65536  bytes\n";
    write(folder.path(), "proc/self/limits", limits);
    let found = memory::locked_memory(&machine);
    assert_eq!((found.state, found.finding.as_str()), (Limited, "64.0 KiB"));
    write(
        folder.path(),
        "proc/self/limits",
        &limits.replace("65536", "unlimited"),
    );
    assert_eq!(memory::locked_memory(&machine).state, Available);
}

#[test]
fn userfaultfd_for_user_mode_only_is_limited() {
    let found = memory::userfaultfd(&refusal(libc::EPERM), &Ok(()));
    assert_eq!(found.state, Limited);
    assert!(
        found
            .remedy
            .unwrap()
            .contains("vm.unprivileged_userfaultfd=1")
    );
    assert_eq!(memory::userfaultfd(&Ok(()), &Ok(())).state, Available);
    let none = memory::userfaultfd(&refusal(libc::ENOSYS), &refusal(libc::ENOSYS));
    assert_eq!(none.state, Missing);
    let old = memory::userfaultfd_features(&Ok(1));
    let states: Vec<_> = old.iter().map(|one| one.state).collect();
    assert_eq!(states, [Available, Limited, Limited, Limited]);
    assert!(old[2].finding.contains("6.8") && old[2].consequence.contains("io_uring"));
    assert!(memory::userfaultfd_features(&refusal(libc::ENOSYS).map(|()| 0)).is_empty());
    assert_eq!(memory::pagemap_scan(&refusal(libc::ENOTTY)).state, Limited);
}

#[test]
fn a_container_is_recognised() {
    let (folder, machine) = bare();
    let namespaces = folder.path().join("proc/self/ns");
    std::fs::create_dir_all(&namespaces).unwrap();
    std::os::unix::fs::symlink("pid:[4026532500]", namespaces.join("pid")).unwrap();
    let found = process::pid_namespace(&machine);
    assert_eq!(
        (found.state, found.finding.as_str()),
        (Limited, "a container's")
    );
    let status = format!("proc/{}/status", std::process::id());
    let text = "Pid:\t1\nCapEff:\t0000004000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n";
    write(folder.path(), &status, text);
    let found = process::sandbox(&machine);
    assert_eq!(found.state, Limited);
    assert!(
        found
            .finding
            .contains("seccomp filter is active; with CAP_PERFMON, without CAP_SYS")
    );
}

#[test]
fn each_capability_of_this_machine_has_a_name_of_its_own() {
    let found = capabilities();
    let mut names: Vec<_> = found.iter().map(|capability| &capability.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), found.len());
    assert!(found.len() >= 20);
    for capability in &found {
        assert!(!capability.finding.is_empty() && capability.consequence.ends_with('.'));
        assert!(capability.state != Available || capability.remedy.is_none());
    }
}
