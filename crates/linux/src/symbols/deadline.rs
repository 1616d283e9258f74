//! A bound on the time that reading one file takes: tables made to be slow to read must not keep a
//! report from ending, nor may a file system that does not answer.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time for a file without regard to its size: a hundred times what a usual library takes.
const LEAST: Duration = Duration::from_secs(6);
/// Bytes that get one second more, a tenth of the usual speed.
const BYTES_PER_SECOND: u64 = 32 << 20;
/// As of the main thread: functions are nested in debug information.
const STACK: usize = 8 << 20;

/// Time for a file that takes this many bytes on the disk.
pub(super) fn for_bytes(allocated: u64) -> Duration {
    LEAST + Duration::from_secs(allocated / BYTES_PER_SECOND)
}

/// The result of `work`; `None` if it is not there after `limit`, or will never be. What goes on
/// longer is left to itself: it ends with the process at the latest.
pub(super) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = thread::Builder::new()
        .name("symbols".to_owned())
        .stack_size(STACK)
        // Nobody waits for a result that comes too late.
        .spawn(move || drop(sender.send(work())));
    thread.ok()?;
    receiver.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_does_not_end_is_not_waited_for() {
        let (_open, never) = mpsc::channel::<()>();
        let ended = within(Duration::from_millis(10), move || never.recv().is_ok());
        assert_eq!(ended, None);
        let hour = Duration::from_secs(3600);
        assert_eq!(within(hour, || 7), Some(7));
        assert!(for_bytes(1 << 30) > for_bytes(1 << 20));
    }
}
