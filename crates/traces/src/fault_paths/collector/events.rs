//! Events beside the calls of a trace, counted by name.

use pagewise_model::quantity::{count, counted};
use rustc_hash::FxHashMap;

/// Most names that are counted; a kernel has some two thousand events, and texts may be anything.
const MOST: usize = 4096;
/// Names shown.
const SHOWN: usize = 6;

/// How often each event occurred.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Events {
    of_name: FxHashMap<Box<[u8]>, u64>,
    all: u64,
}

impl Events {
    /// Takes an event's text, `name: fields`.
    pub fn take(&mut self, text: &[u8]) {
        self.all += 1;
        let end = text.iter().position(|&b| b == b':').unwrap_or(text.len());
        let name = &text[..end];
        if let Some(known) = self.of_name.get_mut(name) {
            *known += 1;
        } else if self.of_name.len() < MOST {
            self.of_name.insert(name.into(), 1);
        }
    }

    /// What the trace holds, if it is nothing but events.
    pub fn alone(&self, calls: u64) -> Option<String> {
        if calls > 0 || self.all == 0 {
            return None;
        }
        let mut names: Vec<(&[u8], u64)> = self
            .of_name
            .iter()
            .map(|(name, &count)| (&**name, count))
            .collect();
        names.sort_by_key(|&(name, count)| (u64::MAX - count, name));
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let shown: Vec<String> = names
            .iter()
            .take(SHOWN)
            .map(|(name, times)| {
                let name = String::from_utf8_lossy(name).replace(char::is_control, "\u{fffd}");
                format!("{name} ({})", count(*times))
            })
            .collect();
        Some(format!(
            "This trace holds {} and no calls: {}{more}. Pagewise reads calls of the function_graph tracer; pagewise trace records them.",
            counted(self.all, "event"),
            shown.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_of_events_alone_says_which() {
        let mut events = Events::default();
        assert_eq!(events.alone(0), None);
        for text in [
            &b"sched_switch: a ==> b"[..],
            b"sched_switch: b ==> a",
            b"cpu_idle: state=1",
        ] {
            events.take(text);
        }
        assert_eq!(events.alone(1), None, "with calls they are not the matter");
        let text = events.alone(0).expect("only events");
        assert!(
            text.contains("3 events and no calls: sched_switch (2), cpu_idle (1)."),
            "{text}"
        );
    }
}
