//! What `perf record` was started to observe, from its command line (perf-record(1)).

use pagewise_model::profile::Observed;

/// Options whose value, unless joined with `=`, is the next word.
const LONG_WITH_VALUE: [&str; 17] = [
    "aux-sample",
    "call-graph",
    "cgroup",
    "clockid",
    "count",
    "cpu",
    "delay",
    "event",
    "filter",
    "freq",
    "mmap-pages",
    "output",
    "pid",
    "proc-map-timeout",
    "tid",
    "timestamp-filename",
    "uid",
];
/// Letters of short options that take a value: the rest of the word, or the next word.
const SHORT_WITH_VALUE: &str = "eFcoptCumGjDIkX";

/// What was observed; unknown if this is not a command line of `perf record`.
#[must_use]
pub fn observed(words: &[String]) -> Observed {
    let mut words = words.iter().map(String::as_str);
    if !words.any(|word| word == "record") {
        return Observed::Unknown;
    }
    let mut found = Observed::Unknown;
    while let Some(word) = words.next() {
        let (named, takes_next) = match (word.strip_prefix("--"), word.strip_prefix('-')) {
            // What follows is the command.
            (Some(""), _) | (None, None) => return or_run(found),
            (Some(long), _) => long_option(long),
            (None, Some(short)) => short_options(short),
        };
        found = named.unwrap_or(found);
        if takes_next {
            words.next();
        }
    }
    found
}

/// With `-a` or `-p`, a command only determines how long to record.
fn or_run(found: Observed) -> Observed {
    match found {
        Observed::Unknown => Observed::Run(None),
        found => found,
    }
}

fn long_option(option: &str) -> (Option<Observed>, bool) {
    let (name, value) = option
        .split_once('=')
        .map_or((option, None), |(name, value)| (name, Some(value)));
    let named = match name {
        "all-cpus" | "cpu" => Some(Observed::Machine),
        "pid" | "tid" | "uid" | "cgroup" => Some(Observed::Processes),
        _ => None,
    };
    (named, value.is_none() && LONG_WITH_VALUE.contains(&name))
}

fn short_options(letters: &str) -> (Option<Observed>, bool) {
    let mut named = None;
    for (at, letter) in letters.char_indices() {
        match letter {
            'a' | 'C' => named = Some(Observed::Machine),
            'p' | 't' | 'u' | 'G' => named = Some(Observed::Processes),
            _ => {}
        }
        if SHORT_WITH_VALUE.contains(letter) {
            return (named, at + letter.len_utf8() == letters.len());
        }
    }
    (named, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_run_unless_others_were_asked_for() {
        for (line, expected) in [
            ("perf record -F 99 -g ls -a", Observed::Run(None)),
            ("perf record -F99 -g -- ls -p 3", Observed::Run(None)),
            (
                "perf record --call-graph dwarf -e cpu-clock -o a -- x",
                Observed::Run(None),
            ),
            ("perf record -ag -F 99 sleep 5", Observed::Machine),
            ("perf record -F 99 --all-cpus -- sleep 5", Observed::Machine),
            ("perf record --pid=7 -g -- sleep 5", Observed::Processes),
            ("perf record -gp 7", Observed::Processes),
            ("perf script", Observed::Unknown),
            ("", Observed::Unknown),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(observed(&words), expected, "{line}");
        }
    }
}
