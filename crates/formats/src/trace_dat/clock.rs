//! The length of one tick of the records' times.

use super::error::ReadError;

/// The trace clock. Offsets (of the date, of a guest's host) are left out: they shift all times
/// equally.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    name: Box<str>,
    /// Nanoseconds are `(ticks * .0) >> .1`.
    scale: Option<(u32, u32)>,
}

impl Clock {
    /// `local`, or the file `trace_clock` of tracefs, where brackets mark the one in use.
    pub fn name(&mut self, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        let marked = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        let name = marked.map_or(&*text, |(name, _)| name);
        self.name = name.trim_matches(['\0', ' ', '\n']).into();
    }

    /// Multiplier and shift of the time stamp counter, as the kernel uses them.
    pub fn scale(&mut self, value: &[u8]) {
        let word = |at: usize| {
            let bytes = value.get(at..at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        self.scale = word(0)
            .zip(word(4))
            .filter(|(mult, shift)| *mult > 0 && *shift < 64);
    }

    /// Refuses clocks that do not measure time.
    pub fn check(&self) -> Result<(), ReadError> {
        let counts_ticks = matches!(&*self.name, "counter" | "x86-tsc" | "ppc-tb");
        match counts_ticks && self.scale.is_none() {
            false => Ok(()),
            true => Err(ReadError::Unsupported {
                what: format!(
                    "a trace by the clock {}, whose ticks are no times,",
                    self.name
                ),
                advice: "record with trace-cmd record -C mono",
            }),
        }
    }

    /// The length of its ticks.
    pub fn ticks(&self) -> Ticks {
        let is_scaled = matches!(&*self.name, "x86-tsc" | "tsc2nsec");
        Ticks(self.scale.filter(|_| is_scaled))
    }
}

/// The length of ticks: nanoseconds unless scaled, as in [`Clock::scale`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticks(Option<(u32, u32)>);

impl Ticks {
    /// A number of ticks in nanoseconds.
    #[inline]
    pub fn ns(self, ticks: u64) -> u64 {
        match self.0 {
            Some((mult, shift)) => {
                let ns = (u128::from(ticks) * u128::from(mult)) >> shift;
                u64::try_from(ns).unwrap_or(u64::MAX)
            }
            None => ticks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_scaled_or_refused() {
        let mut clock = Clock::default();
        clock.name(b"local global [mono] x86-tsc\n\0");
        assert_eq!((clock.check(), clock.ticks().ns(7)), (Ok(()), 7));
        clock.name(b"x86-tsc\0");
        assert!(clock.check().is_err());
        clock.scale(&[0, 0, 0, 1, 25, 0, 0, 0]);
        assert_eq!((clock.check(), clock.ticks().ns(4)), (Ok(()), 2));
        clock.scale(&[1, 0]);
        assert!(clock.check().is_err());
    }
}
