//! The event `sched_switch`, which shows when a task left its CPU and which one came.

use super::number;
use memchr::memmem;

/// One switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SchedSwitch {
    pub prev_pid: u32,
    pub next_pid: u32,
    /// The task that left could have gone on.
    pub runnable: bool,
}

/// Reads the event's text: `sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=R ==>
/// next_comm=b next_pid=2 next_prio=120`, or `sched_switch: a:1 [120] R ==> b:2 [120]` as trace-cmd
/// prints it. Command names may contain anything, so fields are searched from the end.
pub(super) fn parse(text: &[u8]) -> Option<SchedSwitch> {
    let text = text.strip_prefix(b"sched_switch:")?.trim_ascii();
    memmem::find_iter(text, b" ==> ").find_map(|at| {
        let (prev, next) = (&text[..at], &text[at + 5..]);
        named_fields(prev, next).or_else(|| trace_cmd(prev, next))
    })
}

/// The task that left its CPU.
pub(super) fn left(text: &[u8]) -> Option<u32> {
    parse(text).map(|switch| switch.prev_pid)
}

fn named_fields(prev: &[u8], next: &[u8]) -> Option<SchedSwitch> {
    let state = field(prev, b" prev_state=")?;
    Some(SchedSwitch {
        prev_pid: pid(field(prev, b" prev_pid=")?)?,
        next_pid: pid(field(next, b" next_pid=")?)?,
        runnable: state.starts_with(b"R"),
    })
}

fn field<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let at = memmem::rfind(text, key)?;
    text.get(at + key.len()..)
}

fn pid(text: &[u8]) -> Option<u32> {
    u32::try_from(number::digits(text)?.0).ok()
}

/// `comm:pid [prio] state` and `comm:pid [prio]`.
fn trace_cmd(prev: &[u8], next: &[u8]) -> Option<SchedSwitch> {
    let state = &prev[memchr::memrchr(b']', prev)? + 1..];
    Some(SchedSwitch {
        prev_pid: pid_before_priority(prev)?,
        next_pid: pid_before_priority(next)?,
        runnable: state.trim_ascii().starts_with(b"R"),
    })
}

fn pid_before_priority(text: &[u8]) -> Option<u32> {
    let head = &text[..memmem::rfind(text, b" [")?];
    pid(&head[memchr::memrchr(b':', head)? + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_and_odd_names() {
        let expected = |runnable| {
            Some(SchedSwitch {
                prev_pid: 12,
                next_pid: 7,
                runnable,
            })
        };
        for (text, runnable) in [
            (
                "sched_switch: prev_comm=a prev_pid=12 prev_prio=120 prev_state=R+ ==> next_comm=b next_pid=7 next_prio=120",
                true,
            ),
            (
                "sched_switch: prev_comm=x prev_pid=3 ==> y prev_pid=12 prev_prio=120 prev_state=D ==> next_comm=b next_pid=7 next_prio=120",
                false,
            ),
            (
                "sched_switch:         bash:12 [120] S ==> kworker/0:1:7 [120]",
                false,
            ),
        ] {
            assert_eq!(parse(text.as_bytes()), expected(runnable), "{text}");
        }
        assert_eq!(parse(b"sched_wakeup: comm=a pid=1"), None);
    }
}
