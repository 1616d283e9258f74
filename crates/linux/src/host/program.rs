//! Settings of the program itself: variables that allocators and runtimes read, and limits.

use crate::proc::ProcRoot;
use crate::pseudo_file;
use pagewise_model::secrets;
use std::collections::BTreeMap;

/// Variables that allocators, loaders and runtimes read; `*` stands for any ending. Others are left
/// out: they show little, and may contain secrets.
const VARIABLES: [&str; 37] = [
    // glibc (mallopt(3), ld.so(8)).
    "GLIBC_TUNABLES",
    "MALLOC_*",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_BIND_NOW",
    // Other allocators.
    "_RJEM_MALLOC_CONF",
    "JE_MALLOC_CONF",
    "MIMALLOC_*",
    "TCMALLOC_*",
    "HUGETLB_*",
    "HEAPPROFILE",
    // Runtimes.
    "GODEBUG",
    "GOGC",
    "GOMEMLIMIT",
    "GOMAXPROCS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JAVA_OPTS",
    "NODE_OPTIONS",
    "UV_THREADPOOL_SIZE",
    "PYTHONMALLOC",
    "PYTHONHASHSEED",
    "PYTHONDEVMODE",
    "RUBY_GC_*",
    "RUBYOPT",
    "R_GC_*",
    "R_MAX_VSIZE",
    "DOTNET_GC*",
    "COMPlus_GC*",
    // Threads.
    "OMP_*",
    "GOMP_*",
    "KMP_*",
    "MKL_*",
    "OPENBLAS_*",
    "NUMEXPR_*",
    "RAYON_NUM_THREADS",
];

/// Limits of proc_pid_limits(5) that affect memory management, and their names in a snapshot.
const LIMITS: [(&str, &str); 4] = [
    ("Max address space", "limit.address_space"),
    ("Max data size", "limit.data"),
    ("Max stack size", "limit.stack"),
    ("Max locked memory", "limit.locked_memory"),
];

/// The settings of process `pid`, by dotted name: `environment.GLIBC_TUNABLES`, `limit.stack`…
/// Empty for a process that is gone or that we may not read.
#[must_use]
pub fn settings(proc: &ProcRoot, pid: i32) -> BTreeMap<String, String> {
    let variables = proc.environ(pid).ok().flatten().unwrap_or_default();
    let whole = with_whole_tunables(variables).into_iter();
    let telling = whole.filter(|(name, _)| is_telling(name));
    let named = telling.map(|(name, value)| {
        let value = secrets::masked_variable(&name, &value);
        (format!("environment.{name}"), value)
    });
    let limits = pseudo_file::bytes(&proc.process_path(pid, "limits"));
    let limits = limits.ok().flatten().unwrap_or_default();
    let limits = String::from_utf8_lossy(&limits).into_owned();
    named.chain(soft_limits(&limits)).collect()
}

/// glibc's loader terminates each tunable in place with a zero byte (elf/dl-tunables.c,
/// parse_tunables; glibc 2.36), so that those after the first look like separate variables.
fn with_whole_tunables(variables: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut whole: Vec<(String, String)> = Vec::new();
    for (name, value) in variables {
        match whole.last_mut() {
            Some((before, tunables))
                if before == "GLIBC_TUNABLES" && name.starts_with("glibc.") =>
            {
                tunables.push_str(&format!(":{name}={value}"));
            }
            _ => whole.push((name, value)),
        }
    }
    whole
}

fn is_telling(name: &str) -> bool {
    VARIABLES.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    })
}

/// Soft limits as the kernel writes them (fs/proc/base.c, proc_pid_limits): a name of 26 columns,
/// then the soft limit.
fn soft_limits(text: &str) -> impl Iterator<Item = (String, String)> {
    LIMITS.iter().filter_map(|(kernel, name)| {
        let line = text.lines().find(|line| line.starts_with(kernel))?;
        let soft = line[kernel.len()..].split_whitespace().next()?;
        Some(((*name).to_owned(), soft.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_allocators_read_is_told_and_secrets_are_not() {
        for name in ["GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS"] {
            assert!(is_telling(name), "{name}");
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "PATH", "GLIBC_TUNABLES_X"] {
            assert!(!is_telling(name), "{name}");
        }
    }

    #[test]
    fn tunables_that_the_loader_took_apart_are_whole() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let seen = [
            pair("GLIBC_TUNABLES", "glibc.malloc.arena_max=1"),
            pair("glibc.malloc.trim_threshold", "4096"),
            pair("HOME", "/"),
        ];
        let whole = with_whole_tunables(seen.into());
        let tunables = "glibc.malloc.arena_max=1:glibc.malloc.trim_threshold=4096";
        assert_eq!(whole, [pair("GLIBC_TUNABLES", tunables), pair("HOME", "/")]);
    }

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max stack size            8388608              unlimited            bytes     \n\
            Max locked memory         unlimited            unlimited            bytes     \n";
        let found: Vec<(String, String)> = soft_limits(text).collect();
        let expected = [
            ("limit.stack", "8388608"),
            ("limit.locked_memory", "unlimited"),
        ];
        assert_eq!(found, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
    }

    #[test]
    fn our_own_are_found() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let found = settings(&ProcRoot::default(), pid);
        assert!(found.contains_key("limit.stack"), "{found:?}");
    }
}
