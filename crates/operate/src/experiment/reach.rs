//! Whether settings reach a program: what its processes have of them while they run. A run that costs
//! the same with a setting as without shows nothing: the setting may be in force and change nothing.

use pagewise_linux::proc::{ProcRoot, allocators, family};
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::units::Nanos;
use std::path::Path;
use std::time::Duration;

/// Evidence on whether settings are in force in the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Its processes were not seen, or show nothing of such settings.
    #[default]
    Unseen,
    /// They have the variables, and the libraries are mapped.
    Reached,
    /// They lack something, for this reason.
    Not(&'static str),
}

/// A library that is not mapped: the program is static, set-user-ID, or cleans its environment.
const NOT_LOADED: &str = "the library is not mapped into its busiest process";
const NOT_IN_ENVIRONMENT: &str = "its busiest process does not have the variable";
const STILL_IN_ENVIRONMENT: &str = "its busiest process sets the variable again";
const OTHER_ALLOCATOR: &str = "its busiest process does not use the C library's malloc";

/// First looks after the start: many programs run for some hundredths of a second. Then one in each
/// [`LATER`].
const LOOKS: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(40),
    Duration::from_millis(150),
    Duration::from_millis(500),
];
const LATER: Duration = Duration::from_secs(2);

/// Looks at a program's processes while it runs.
#[derive(Debug)]
pub(super) struct Observer<'a> {
    settings: &'a Settings,
    pid: i32,
    looks: usize,
    /// CPU time of the busiest process that was seen, and what it showed.
    busiest: Option<(Nanos, Reach)>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(settings: &'a Settings, pid: i32) -> Self {
        Self {
            settings,
            pid,
            looks: 0,
            busiest: None,
        }
    }

    /// Time from the start of the program to the next look.
    pub(super) fn next(&self) -> Duration {
        match LOOKS.get(self.looks) {
            Some(at) => *at,
            None => {
                let more = u32::try_from(self.looks - LOOKS.len() + 1).unwrap_or(u32::MAX);
                LATER.saturating_mul(more)
            }
        }
    }

    /// Looks at all processes.
    pub(super) fn look(&mut self) {
        self.looks += 1;
        let proc = ProcRoot::default();
        for pid in family(&proc, self.pid) {
            let Some(stat) = proc.stat(pid).ok().flatten() else {
                continue;
            };
            let time = stat.user + stat.system;
            if self.busiest.is_some_and(|(most, _)| time < most) {
                continue;
            }
            if let Some(reach) = of_process(&proc, pid, self.settings) {
                self.busiest = Some((time, reach));
            }
        }
    }

    /// What was seen.
    pub(super) fn reach(&self) -> Reach {
        self.busiest.map_or(Reach::Unseen, |(_, reach)| reach)
    }
}

/// `None` for a process that ends, or shows nothing of these settings.
fn of_process(proc: &ProcRoot, pid: i32, settings: &Settings) -> Option<Reach> {
    let maps = proc.maps(pid).ok()??;
    let environ = proc.environ(pid).ok()??;
    if maps.is_empty() || environ.is_empty() {
        return None;
    }
    let files: Vec<&str> = maps.iter().filter_map(|entry| entry.file()).collect();
    let kinds = || allocators(pid).into_iter().map(|one| one.kind);
    judge(settings, &files, &environ, || {
        kinds().any(|kind| kind == AllocatorKind::Glibc)
    })
}

/// What a process with these mapped files and variables shows.
fn judge(
    settings: &Settings,
    files: &[&str],
    environ: &[(String, String)],
    has_glibc: impl Fn() -> bool,
) -> Option<Reach> {
    let value = |name: &str| {
        let mut variables = environ.iter();
        variables
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    };
    let mut shown = None;
    for setting in &settings.0 {
        let lacks = match setting {
            Setting::Preload { path } => (!is_mapped(files, path)).then_some(NOT_LOADED),
            Setting::Env { name, value: ours } => {
                (value(name) != Some(ours)).then_some(NOT_IN_ENVIRONMENT)
            }
            Setting::Unset { name } => value(name).map(|_| STILL_IN_ENVIRONMENT),
            Setting::GlibcTunable { name, value: ours } => {
                let one = format!("{name}={ours}");
                let list = value("GLIBC_TUNABLES").unwrap_or_default();
                // glibc up to 2.38 ends each tunable with NUL where the list is (elf/dl-tunables.c,
                // parse_tunables): those after the first look like variables.
                let is_there = list.split(':').any(|part| part == one) || value(name) == Some(ours);
                match is_there {
                    false => Some(NOT_IN_ENVIRONMENT),
                    true => (!has_glibc()).then_some(OTHER_ALLOCATOR),
                }
            }
            Setting::Thp { .. } | Setting::Numa { .. } => continue,
        };
        match lacks {
            Some(why) => return Some(Reach::Not(why)),
            None => shown = Some(Reach::Reached),
        }
    }
    shown
}

/// Whether a library is among the mapped files, which the kernel shows without symbolic links.
fn is_mapped(files: &[&str], library: &str) -> bool {
    let real = std::fs::canonicalize(library).ok();
    files
        .iter()
        .any(|file| *file == library || real.as_deref() == Some(Path::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(settings: Vec<Setting>, environ: &[(&str, &str)], has_glibc: bool) -> Option<Reach> {
        let environ: Vec<(String, String)> = environ
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        judge(&Settings(settings), &["/no/lib/x.so"], &environ, || {
            has_glibc
        })
    }

    fn tunable() -> Setting {
        Setting::GlibcTunable {
            name: "glibc.malloc.top_pad".into(),
            value: "1".into(),
        }
    }

    fn preload(path: &str) -> Setting {
        Setting::Preload { path: path.into() }
    }

    #[test]
    fn reach_is_judged_from_mappings_and_variables() {
        let own = [(
            "GLIBC_TUNABLES",
            "glibc.malloc.perturb=1:glibc.malloc.top_pad=1",
        )];
        assert_eq!(shown(vec![tunable()], &own, true), Some(Reach::Reached));
        let cut = [
            ("GLIBC_TUNABLES", "glibc.malloc.perturb=1"),
            ("glibc.malloc.top_pad", "1"),
        ];
        assert_eq!(shown(vec![tunable()], &cut, true), Some(Reach::Reached));
        let other = Some(Reach::Not(OTHER_ALLOCATOR));
        assert_eq!(shown(vec![tunable()], &own, false), other);
        let cleaned = Some(Reach::Not(NOT_IN_ENVIRONMENT));
        assert_eq!(shown(vec![tunable()], &[("A", "b")], true), cleaned);
        assert_eq!(
            shown(vec![preload("/no/lib/x.so")], &own, true),
            Some(Reach::Reached)
        );
        let absent = Some(Reach::Not(NOT_LOADED));
        assert_eq!(shown(vec![preload("/no/lib/y.so")], &own, true), absent);
        let unset = Setting::Unset { name: "A".into() };
        let again = Some(Reach::Not(STILL_IN_ENVIRONMENT));
        assert_eq!(shown(vec![unset.clone()], &[("A", "")], true), again);
        assert_eq!(shown(vec![unset], &own, true), Some(Reach::Reached));
    }

    #[test]
    fn huge_pages_and_nodes_leave_no_trace_in_a_process() {
        let thp = Setting::Thp {
            mode: "never".into(),
        };
        assert_eq!(shown(vec![thp], &[("A", "b")], true), None);
    }
}
