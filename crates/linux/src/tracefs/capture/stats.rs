//! `per_cpu/cpuN/stats`: content and losses of a buffer.

/// The counters of one CPU's buffer (`ring_buffer_*` of kernel/trace/ring_buffer.c).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events in the buffer.
    pub entries: u64,
    /// Events that were overwritten before they were read.
    pub overrun: u64,
    /// Events lost because an interrupt came while the buffer was full.
    pub commit_overrun: u64,
    /// Events not written because the buffer was full and may not be overwritten.
    pub dropped: u64,
    /// Bytes in the buffer.
    pub bytes: u64,
    /// The current time by the trace's clock, in microseconds.
    pub now_us: Option<u64>,
}

impl Stats {
    /// Parses the file's text; missing values are 0.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut stats = Self::default();
        for line in text.lines() {
            let Some((name, value)) = line.split_once(':') else {
                continue;
            };
            if name == "now ts" {
                stats.now_us = micros(value.trim());
            }
            let value = value.trim().parse().unwrap_or(0);
            match name {
                "entries" => stats.entries = value,
                "overrun" => stats.overrun = value,
                "commit overrun" => stats.commit_overrun = value,
                "dropped events" => stats.dropped = value,
                "bytes" => stats.bytes = value,
                _ => {}
            }
        }
        stats
    }

    /// Events lost for any reason.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.overrun + self.commit_overrun + self.dropped
    }
}

/// `2800.000245`: seconds with six decimals, as in the trace's text.
fn micros(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.')?;
    let seconds: u64 = seconds.parse().ok()?;
    (micros.len() == 6).then(|| Some(seconds * 1_000_000 + micros.parse::<u64>().ok()?))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_prints() {
        let text = "entries: 12\noverrun: 3\ncommit overrun: 1\nbytes: 4096\n\
                    oldest event ts:  2723.000001\nnow ts:  2800.000245\ndropped events: 2\nread events: 7\n";
        let stats = Stats::parse(text);
        assert_eq!(stats.now_us, Some(2_800_000_245));
        assert_eq!((stats.entries, stats.bytes, stats.lost()), (12, 4096, 6));
    }
}
