//! Closes events beside what follows a recording.
//!
//! The last event of a tracepoint is closed only after each CPU has left what it was doing
//! (`perf_trace_event_unreg`, kernel/trace/trace_event_perf.c), and one tracepoint after the other: a
//! third of a second for those of a recording. They are off by then, so only measurements wait.

use crate::sys::successor::Successor;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

static CLOSING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Closes events that are off, on a thread of its own.
pub(super) fn close(events: impl Send + 'static) {
    let thread = thread::Builder::new().name("closing".to_owned());
    // Where there can be no thread, they are closed by now.
    let Ok(thread) = thread.spawn(move || drop(events)) else {
        return;
    };
    if let Ok(mut closing) = CLOSING.lock() {
        closing.retain(|thread| !thread.is_finished());
        closing.push(thread);
    }
}

/// Waits until the events of recordings that have ended are closed. Call this before a program is
/// started whose time counts: what is left of a tracepoint costs each of its hits.
pub fn wait_until_closed() {
    let closing = CLOSING
        .lock()
        .map(|mut closing| std::mem::take(&mut *closing));
    for thread in closing.unwrap_or_default() {
        let _ = thread.join();
    }
}

/// Leaves what is not closed yet to a child, which outlives this process by as long as that takes.
/// Call this when everything else is done.
pub fn leave_to_successor() {
    let is_closing = CLOSING
        .lock()
        .is_ok_and(|closing| closing.iter().any(|thread| !thread.is_finished()));
    // Where there can be no child, the end of this process takes longer.
    if is_closing && let Ok(successor) = Successor::start() {
        successor.until_the_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{self, Receiver};

    /// Is closed once it is allowed to.
    struct Slow(Receiver<()>);

    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[test]
    fn nothing_waits_for_events_that_close_slowly_but_who_asks() {
        let (allow, allowed) = mpsc::channel();
        close(Slow(allowed));
        let waiting = thread::spawn(wait_until_closed);
        allow.send(()).expect("it is not closed yet");
        waiting.join().expect("closing ends");
        assert!(allow.send(()).is_err(), "it is closed");
    }
}
