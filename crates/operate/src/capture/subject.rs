//! The processes whose faults are captured, and for how long.

use anyhow::{Context, bail};
use pagewise_linux::proc::{ProcRoot, Tree};
use pagewise_linux::process::{Gated, Launch};
use pagewise_linux::tracefs::capture::Target;
use std::ffi::OsString;

/// The subject requested on the command line.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program that we start.
    Command(Launch),
    /// Running processes; while a program runs, if one is given.
    Processes(Vec<i32>, Option<Launch>),
    /// All processes; while a program runs, if one is given.
    System(Option<Launch>),
}

impl Subject {
    /// The subject given by the options.
    pub fn new(pids: &[i32], all: bool, command: &[OsString]) -> Self {
        let launch = Launch::from_command(command);
        match launch {
            launch if all => Self::System(launch),
            launch if !pids.is_empty() => Self::Processes(pids.to_vec(), launch),
            Some(launch) => Self::Command(launch),
            // clap requires one of the three; an empty word instead of a program is refused below.
            None => Self::Command(Launch::default()),
        }
    }

    /// The program to start.
    pub fn launch(&self) -> Option<&Launch> {
        match self {
            Self::Command(launch) => Some(launch),
            Self::Processes(_, launch) | Self::System(launch) => launch.as_ref(),
        }
    }

    /// The tasks to record, once the program waits at its gate.
    ///
    /// # Errors
    /// If a process is gone.
    pub fn target(&self, gated: Option<&Gated>) -> anyhow::Result<Target> {
        match self {
            Self::Command(_) => {
                let gated = gated.context("the program was not started")?;
                Ok(Target::Tasks(vec![gated.pid()]))
            }
            Self::Processes(pids, _) => tasks_of(pids).map(Target::Tasks),
            Self::System(_) => Ok(Target::System),
        }
    }

    /// Processes that must be alive for the trace to continue.
    pub fn watched(&self) -> &[i32] {
        match self {
            Self::Processes(pids, None) => pids,
            _ => &[],
        }
    }

    /// Text for the first message.
    pub fn words(&self) -> String {
        let program = |launch: &Launch| launch.program.display().to_string();
        let while_ = |launch: &Option<Launch>| match launch {
            Some(launch) => format!(" while {} runs", program(launch)),
            None => String::new(),
        };
        match self {
            Self::Command(launch) => format!("{} and its children", program(launch)),
            Self::Processes(pids, launch) => {
                let names: Vec<String> = pids.iter().map(ToString::to_string).collect();
                let (noun, whose) = match pids.as_slice() {
                    [_] => ("process", "its"),
                    _ => ("processes", "their"),
                };
                let names = names.join(", ");
                format!("{noun} {names} and {whose} children{}", while_(launch))
            }
            Self::System(launch) => format!("every process{}", while_(launch)),
        }
    }

    /// The program with its arguments, as text.
    pub fn command(&self) -> Vec<String> {
        let Some(launch) = self.launch() else {
            return Vec::new();
        };
        launch.words()
    }
}

/// All threads of these processes and of their descendants.
fn tasks_of(pids: &[i32]) -> anyhow::Result<Vec<i32>> {
    let proc = ProcRoot::default();
    let mut tasks = Vec::new();
    for &pid in pids {
        let tree = Tree::new(proc.clone(), pid).ok().flatten();
        let Some(mut tree) = tree else {
            bail!("there is no process {pid}");
        };
        tree.read();
        let members: Vec<i32> = tree.living().collect();
        tasks.extend(members.iter().flat_map(|&member| proc.tasks(member)));
    }
    tasks.sort_unstable();
    tasks.dedup();
    match tasks.is_empty() {
        true => bail!("the processes have ended"),
        false => Ok(tasks),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_beside_processes_only_sets_the_time() {
        let command = ["sleep".into(), "1".into()];
        let subject = Subject::new(&[1], false, &command);
        assert!(matches!(subject, Subject::Processes(_, Some(_))));
        assert!(subject.watched().is_empty());
        assert_eq!(
            subject.words(),
            "process 1 and its children while sleep runs"
        );
        assert_eq!(subject.command(), ["sleep", "1"]);
        let alone = Subject::new(&[1], false, &[]);
        assert_eq!(alone.watched(), [1]);
        assert!(matches!(
            Subject::new(&[], true, &[]),
            Subject::System(None)
        ));
        assert!(matches!(
            Subject::new(&[], false, &command),
            Subject::Command(_)
        ));
    }

    #[test]
    fn a_process_has_its_threads() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(tasks_of(&[own]).unwrap().contains(&own));
        assert!(tasks_of(&[i32::MAX]).is_err());
    }
}
