//! Assigns text to stretches: the text arrives late, so its own times decide.

use super::schedule::Stretch;
use memchr::memchr;
use std::collections::VecDeque;

/// Splits text where stretches start.
#[derive(Debug, Default)]
pub struct Cutter {
    /// Starts that the text has not reached yet, by time in microseconds.
    ahead: VecDeque<(u64, Stretch)>,
    /// The last line, as far as it has been read.
    partial: Vec<u8>,
}

/// Text of one stretch, or the start of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Whole lines.
    Text(&'a [u8]),
    /// From here on the text belongs to another stretch.
    Begin(Stretch),
}

impl Cutter {
    /// Notes that a stretch starts at this time.
    pub fn begin(&mut self, at_us: u64, stretch: Stretch) {
        self.ahead.push_back((at_us, stretch));
    }

    /// Takes text, cut at any place.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn feed<E>(
        &mut self,
        text: &[u8],
        mut visit: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.partial.extend_from_slice(text);
        let Some(end) = memchr::memrchr(b'\n', &self.partial) else {
            return Ok(());
        };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        let mut from = 0;
        let mut at = 0;
        while at < whole.len() && !self.ahead.is_empty() {
            let time = time_us(&whole[at..]);
            while let Some(&(begin, stretch)) = self.ahead.front()
                && time.is_some_and(|time| time >= begin)
            {
                self.ahead.pop_front();
                if from < at {
                    visit(Piece::Text(&whole[from..at]))?;
                    from = at;
                }
                visit(Piece::Begin(stretch))?;
            }
            at += memchr(b'\n', &whole[at..]).map_or(whole.len() - at, |len| len + 1);
        }
        match from < whole.len() {
            true => visit(Piece::Text(&whole[from..])),
            false => Ok(()),
        }
    }

    /// Ends the text: stretches that it did not reach were empty.
    ///
    /// # Errors
    /// Those of `visit`.
    pub fn finish<E>(
        &mut self,
        mut visit: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            visit(Piece::Text(&last))?;
        }
        self.ahead
            .drain(..)
            .try_for_each(|(_, stretch)| visit(Piece::Begin(stretch)))
    }
}

/// The time at the start of a line: `  115.270814 |`.
fn time_us(line: &[u8]) -> Option<u64> {
    let start = line.iter().position(|&byte| byte != b' ')?;
    let mut micros = 0_u64;
    let mut decimals = None;
    for &byte in &line[start..] {
        match byte {
            b'0'..=b'9' => {
                micros = micros
                    .checked_mul(10)?
                    .checked_add(u64::from(byte - b'0'))?;
                decimals = decimals.map(|count| count + 1);
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            b' ' => break,
            _ => return None,
        }
    }
    (decimals == Some(6)).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stretch::{Paths, RootOnly};

    /// Pieces with adjacent text joined, since cuts within a stretch do not matter.
    fn pieces(chunks: &[&str], begins: &[(u64, Stretch)]) -> Vec<String> {
        let mut cutter = Cutter::default();
        begins
            .iter()
            .for_each(|&(at, stretch)| cutter.begin(at, stretch));
        let mut found: Vec<String> = Vec::new();
        let mut visit = |piece: Piece<'_>| {
            match piece {
                Piece::Text(text) => {
                    let text = String::from_utf8_lossy(text);
                    match found.last_mut().filter(|last| !last.starts_with('<')) {
                        Some(last) => last.push_str(&text),
                        None => found.push(text.into_owned()),
                    }
                }
                Piece::Begin(stretch) => found.push(format!("<{stretch:?}>")),
            }
            Ok::<(), ()>(())
        };
        for chunk in chunks {
            cutter.feed(chunk.as_bytes(), &mut visit).unwrap();
        }
        cutter.finish(&mut visit).unwrap();
        found
    }

    const A: &str = "  1.000001 |  0)  a();\n ----\n";
    const B: &str = "  1.000005 |  0)  b();\n";
    const C: &str = " 12.000000 |  0)  c();\n";

    #[test]
    fn text_is_cut_at_the_first_line_of_a_stretch() {
        let text = format!("{A}{B}{C}");
        let begins = [(0, Paths), (1_000_003, RootOnly), (2_000_000, Paths)];
        let expected = ["<Paths>", A, "<RootOnly>", B, "<Paths>", C];
        assert_eq!(pieces(&[&text], &begins), expected);
        for at in 0..text.len() {
            let (head, tail) = text.split_at(at);
            assert_eq!(pieces(&[head, tail], &begins), expected, "cut at {at}");
        }
    }

    #[test]
    fn stretches_without_text_are_told_all_the_same() {
        let begins = [(0, Paths), (2_000_000, RootOnly), (20_000_000, Paths)];
        let expected = ["<Paths>", &format!("{A}{B}"), "<RootOnly>", C, "<Paths>"];
        assert_eq!(pieces(&[A, B, C], &begins), expected);
    }
}
