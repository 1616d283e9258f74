//! Text in lines of a given width, broken between words and never inside a figure.

/// Breaks at spaces so that no line is longer than `room`; a longer word is broken after a slash,
/// or anywhere if necessary.
pub fn wrap(text: &str, room: usize) -> Vec<&str> {
    let room = room.max(1);
    let mut lines = Vec::new();
    let mut rest = text.trim();
    while columns(rest) > room {
        let hard = rest
            .char_indices()
            .nth(room)
            .map_or(rest.len(), |(at, _)| at);
        let reach = hard + rest[hard..].chars().next().map_or(0, char::len_utf8);
        let slash = || {
            let at = rest[..hard].rfind('/').map(|at| at + 1);
            at.filter(|at| 2 * at > hard)
        };
        let at = last_break(rest, reach).or_else(slash).unwrap_or(hard);
        let (line, remainder) = rest.split_at(at);
        lines.push(line.trim_end());
        rest = remainder.trim_start();
    }
    lines.push(rest);
    lines
}

/// The units that follow a figure.
const UNITS: [&str; 11] = [
    "%", "ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "TiB", "±",
];

/// The last space of `text` before `reach` to break at: neither between a figure and its unit nor
/// inside an interval.
fn last_break(text: &str, reach: usize) -> Option<usize> {
    let mut spaces = text[..reach].rmatch_indices(' ').map(|(at, _)| at);
    spaces.find(|&at| at > 0 && !is_inside_figure(&text[..at], &text[at + 1..]))
}

fn is_inside_figure(before: &str, after: &str) -> bool {
    let word = after.split([' ', ',', '.', ';', ':', ')', ']']).next();
    let ends_in_digit = before.ends_with(|c: char| c.is_ascii_digit() || c == '–');
    let is_unit = word.is_some_and(|word| UNITS.contains(&word));
    let in_interval = before.ends_with(',')
        && before
            .rsplit(' ')
            .next()
            .is_some_and(|word| word.starts_with('['))
        && after.contains(']');
    is_unit && ends_in_digit || in_interval || before.ends_with('±')
}

/// Columns that `text` takes, one per character: names in scripts with wide characters only shift a
/// table's right edge.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_keeps_words_and_width() {
        assert_eq!(wrap("the quick brown fox", 9), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("größe µm", 5), ["größe", "µm"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("/sys/kernel/tracing", 14), ["/sys/kernel/", "tracing"]);
    }

    #[test]
    fn figures_keep_their_units_and_intervals() {
        assert_eq!(wrap("now 99 % of it", 7), ["now", "99 % of", "it"]);
        assert_eq!(wrap("at 12 µs.", 6), ["at", "12 µs."]);
        assert_eq!(wrap("67 % [62, 72] it", 10), ["67 %", "[62, 72]", "it"]);
        assert_eq!(wrap("about 3 ± 1 of", 9), ["about", "3 ± 1 of"]);
    }
}
