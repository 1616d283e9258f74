//! How long each task of a program waited, as the kernel counted it (taskstats over generic
//! netlink).
//!
//! The kernel reports each task that ends on the machine, and the tasks of the program are added
//! up, so a child that lives for a millisecond counts as well. This needs CAP_NET_ADMIN and Linux
//! 5.17. Processes that are already running are queried ([`DelayQuery`]).

mod message;
mod query;
pub(crate) mod switch;

pub use query::DelayQuery;

use crate::left_behind;
use crate::sys::netlink::Netlink;
use crate::sys::perf_event::monotonic_now;
use pagewise_model::tasks::CountedTask;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use switch::Switch;

/// CPUs whose ending tasks are reported.
const CPUS: &str = "/sys/devices/system/cpu/possible";
/// Receive buffer for unread messages: some 450 bytes for each task.
const ROOM: i32 = 8 << 20;
/// Most tasks that are kept, at 300 bytes each. If more end, nothing is reported of the program.
const MOST_TASKS: usize = 200_000;
/// How long messages may gather before they are read. A task that ends wakes the reader only if it
/// already waits for one, and waking it takes the task longer than all else that is added to its end.
const GATHERING: Duration = Duration::from_millis(2);
/// How long the kernel may take to answer.
const PATIENCE: Duration = Duration::from_millis(100);
const PACKET: usize = 16 << 10;

/// Counts waits from now on.
#[derive(Debug)]
pub struct DelayWatch {
    _switch: Switch,
    ended: Arc<AtomicBool>,
    /// Closing it wakes the reader.
    waker: PipeWriter,
    reader: JoinHandle<Option<Vec<CountedTask>>>,
}

impl DelayWatch {
    /// Call this before the program's first process is created. `None` without the privileges.
    #[must_use]
    pub fn begin() -> Option<Self> {
        // Every observer passes here; a switch left on would be taken for the machine's own
        // setting.
        let _ = left_behind::restore();
        let socket = registered()?;
        let switch = Switch::on()?;
        let ended = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ended);
        let (awakened, waker) = io::pipe().ok()?;
        let reader = std::thread::Builder::new().name("pagewise-delays".to_owned());
        let reader = reader.spawn(move || read(&socket, &is_over, &awakened));
        Some(Self {
            _switch: switch,
            ended,
            waker,
            reader: reader.ok()?,
        })
    }

    /// The threads of `root` and its descendants that have ended; `None` if none of them was
    /// counted, or not all.
    #[must_use]
    pub fn stop(self, root: i32) -> Option<Vec<CountedTask>> {
        self.ended.store(true, Ordering::Release);
        drop(self.waker);
        let mut tasks = self.reader.join().ok()??;
        let own = descendants(&tasks, root);
        tasks.retain(|task| own.contains(&task.pid));
        (!tasks.is_empty()).then_some(tasks)
    }
}

/// A socket, and the number of the family that reports tasks.
fn open_family() -> Option<(Netlink, u16)> {
    let socket = Netlink::generic().ok()?;
    socket.reserve(ROOM);
    socket.send(&message::ask_family()).ok()?;
    let mut buffer = vec![0; PACKET];
    let mut family = None;
    loop {
        let length = socket.receive(&mut buffer, PATIENCE).ok()??;
        match message::acknowledgement(&buffer[..length]) {
            Some(answer) => break answer.ok()?,
            None => family = family.or(message::family(&buffer[..length])),
        }
    }
    Some((socket, family?))
}

/// A socket to which the kernel reports each task that ends.
fn registered() -> Option<Netlink> {
    let cpus = fs::read_to_string(CPUS).ok()?;
    let (socket, family) = open_family()?;
    socket.send(&message::register(family, cpus.trim())).ok()?;
    let mut buffer = vec![0; PACKET];
    loop {
        let length = socket.receive(&mut buffer, PATIENCE).ok()??;
        if let Some(answer) = message::acknowledgement(&buffer[..length]) {
            answer.ok()?;
            return Some(socket);
        }
    }
}

/// All tasks that end until `is_over`, whose change wakes a wait by `awakened`; `None` if some were
/// lost.
fn read(socket: &Netlink, is_over: &AtomicBool, awakened: &PipeReader) -> Option<Vec<CountedTask>> {
    let mut buffer = vec![0; PACKET];
    let mut tasks = Vec::new();
    let mut has_waited = false;
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        let may_wait = !was_over && !has_waited;
        let patience = if may_wait { PATIENCE } else { Duration::ZERO };
        match socket.receive_until(Some(awakened), &mut buffer, patience) {
            Ok(Some(length)) => {
                tasks.extend(message::ended(&buffer[..length], monotonic_now()));
                if may_wait {
                    std::thread::sleep(GATHERING);
                    has_waited = true;
                }
            }
            Ok(None) if was_over => return Some(tasks),
            Ok(None) => has_waited = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
        if tasks.len() > MOST_TASKS {
            return None;
        }
    }
}

/// `root` and the processes below it, in whatever order they ended. A process whose parent ended
/// first has been reparented by then and is not included.
fn descendants(tasks: &[CountedTask], root: i32) -> BTreeSet<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for task in tasks {
        children.entry(task.parent).or_default().push(task.pid);
    }
    let (mut known, mut new) = (BTreeSet::from([root]), vec![root]);
    while let Some(parent) = new.pop() {
        let below = children.remove(&parent).unwrap_or_default();
        new.extend(below.into_iter().filter(|child| known.insert(*child)));
    }
    known
}

#[cfg(test)]
mod tests;
