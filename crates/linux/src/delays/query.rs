//! Delays of processes that are already running: queried at the start and at the end.
//!
//! The kernel counts delays only for tasks that were created while its switch was on. For others it
//! reports only how long they were ready to run, and not which tasks those are, so a process that
//! never waited for anything is treated as one of them.

use super::{DelayWatch, PACKET, PATIENCE, message, open_family};
use crate::proc::{ProcRoot, family};
use crate::sys::netlink::Netlink;
use crate::sys::perf_event::monotonic_now;
use pagewise_model::delays::{Delay, Delays};
use pagewise_model::tasks::CountedTask;
use pagewise_model::units::Nanos;
use std::collections::BTreeMap;

/// Counts, from now on, the delays of a running process and its descendants.
#[derive(Debug)]
pub struct DelayQuery {
    root: i32,
    began: Nanos,
    socket: Netlink,
    number: u16,
    before: BTreeMap<i32, Delays>,
    /// Threads that end meanwhile.
    watch: Option<DelayWatch>,
}

impl DelayQuery {
    /// `None` without the privileges.
    #[must_use]
    pub fn begin(root: i32) -> Option<Self> {
        let watch = DelayWatch::begin();
        let (socket, number) = open_family()?;
        let mut query = Self {
            root,
            began: monotonic_now(),
            socket,
            number,
            before: BTreeMap::new(),
            watch,
        };
        query.before = query.ask();
        (!query.before.is_empty()).then_some(query)
    }

    /// The delays of all of them since the start, and the threads that were created and ended
    /// meanwhile.
    #[must_use]
    pub fn stop(mut self) -> (Option<Delays>, Vec<CountedTask>) {
        let after = self.ask();
        let ended = self.watch.take().and_then(|watch| watch.stop(self.root));
        let mut ended = ended.unwrap_or_default();
        ended.retain(|task| task.ended - task.lifetime >= self.began);
        // A process's figures include its threads that have ended.
        let of_processes_that_ended = ended.iter().filter(|task| !after.contains_key(&task.pid));
        let new = of_processes_that_ended.map(|task| task.delays);
        let living = after.iter().map(|(pid, after)| match self.before.get(pid) {
            Some(before) => since(after, before),
            None => *after,
        });
        (living.chain(new).reduce(Delays::and), ended)
    }

    fn ask(&self) -> BTreeMap<i32, Delays> {
        let members = family(&ProcRoot::default(), self.root);
        let asked = members
            .into_iter()
            .map(|pid| Some((pid, self.ask_of(pid)?)));
        asked.flatten().collect()
    }

    fn ask_of(&self, pid: i32) -> Option<Delays> {
        let request = message::ask_process(self.number, pid);
        self.socket.send(&request).ok()?;
        let mut buffer = vec![0; PACKET];
        let mut text = None;
        loop {
            let length = self.socket.receive(&mut buffer, PATIENCE).ok()??;
            match message::acknowledgement(&buffer[..length]) {
                Some(answer) => {
                    answer.ok()?;
                    return text;
                }
                None => text = text.or(message::of_process(&buffer[..length])),
            }
        }
    }
}

fn since(after: &Delays, before: &Delays) -> Delays {
    let less = |after: Option<Delay>, before: Option<Delay>| {
        let (after, before) = (after?, before.unwrap_or_default());
        Some(Delay {
            count: after.count.saturating_sub(before.count),
            time: after.time - before.time,
        })
    };
    Delays {
        tasks: after.tasks,
        ready: less(after.ready, before.ready),
        disk: less(after.disk, before.disk),
        swap: less(after.swap, before.swap),
        reclaim: less(after.reclaim, before.reclaim),
        thrashing: less(after.thrashing, before.thrashing),
        compaction: less(after.compaction, before.compaction),
        copying: less(after.copying, before.copying),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn delay(count: u64, nanos: u64) -> Option<Delay> {
        Some(Delay {
            count,
            time: Nanos(nanos),
        })
    }

    #[test]
    fn what_was_waited_before_does_not_count() {
        let before = Delays {
            ready: delay(3, 300),
            ..Delays::default()
        };
        let after = Delays {
            tasks: 1,
            ready: delay(5, 700),
            disk: delay(2, 900),
            ..Delays::default()
        };
        let found = since(&after, &before);
        assert_eq!(found.ready, delay(2, 400));
        assert_eq!((found.disk, found.swap), (delay(2, 900), None));
    }

    #[test]
    fn a_process_that_runs_already_tells_how_long_it_was_ready() {
        let mut shell = Command::new("sh")
            .args([
                "-c",
                "read line; for i in 1 2 3; do true; /bin/true; done; read line",
            ])
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let pid = i32::try_from(shell.id()).expect("a process id");
        let query = DelayQuery::begin(pid);
        let text = query.map(|query| {
            let mut input = shell.stdin.take().expect("a pipe");
            std::io::Write::write_all(&mut input, b"go\n").expect("it reads");
            while ProcRoot::default()
                .stat(pid)
                .is_ok_and(|stat| stat.is_some_and(|stat| stat.children_minor_faults < 50))
            {
                std::thread::yield_now();
            }
            query.stop()
        });
        shell.kill().expect("killed");
        shell.wait().expect("waited for");
        let Some((delays, _)) = text else {
            skipped!("delay accounting takes CAP_NET_ADMIN and Linux 5.17");
            return;
        };
        let ready = delays.and_then(|delays| delays.ready);
        assert!(ready.is_some_and(|ready| ready.count > 0), "{delays:?}");
    }
}
