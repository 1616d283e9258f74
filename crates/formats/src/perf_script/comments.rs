//! What a text contains about the machine: the comments at the start of `perf script --header`.

use crate::profile_text::plain;
use pagewise_model::host::HostSnapshot;

/// Takes in a comment (`perf_header__fprintf_info`, tools/perf/util/header.c).
pub(super) fn take(line: &[u8], host: &mut HostSnapshot, command: &mut Vec<String>) {
    let text = plain(line.strip_prefix(b"#").unwrap_or(line));
    let Some((name, value)) = text.split_once(" : ") else {
        return;
    };
    let value = value.trim();
    match name.trim() {
        "hostname" => value.clone_into(&mut host.hostname),
        "os release" => value.clone_into(&mut host.kernel),
        "arch" => value.clone_into(&mut host.architecture),
        "cpudesc" => value.clone_into(&mut host.cpu),
        "nrcpus online" => host.cpus = value.parse().unwrap_or(host.cpus),
        "total memory" => {
            let kib = value
                .strip_suffix(" kB")
                .and_then(|kib| kib.parse::<u64>().ok());
            host.memory_bytes = kib.map_or(host.memory_bytes, |kib| kib.saturating_mul(1024));
        }
        // The program's own command line follows the dashes.
        "cmdline" => {
            let words = value.split_whitespace().skip_while(|word| *word != "--");
            *command = words.skip(1).map(str::to_owned).collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_and_the_command_are_told() {
        let (mut host, mut command) = (HostSnapshot::default(), Vec::new());
        for line in [
            "# ========",
            "# hostname : vm",
            "# os release : 6.1.0",
            "# arch : x86_64",
            "# nrcpus online : 4",
            "# nrcpus avail : 8",
            "# cpudesc : AMD EPYC : 7",
            "# total memory : 1024 kB",
            "# cmdline : /usr/bin/perf record -g -- ./work --fast ",
        ] {
            take(line.as_bytes(), &mut host, &mut command);
        }
        assert_eq!(
            (&*host.hostname, &*host.kernel, host.cpus),
            ("vm", "6.1.0", 4)
        );
        assert_eq!(
            (&*host.architecture, &*host.cpu),
            ("x86_64", "AMD EPYC : 7")
        );
        assert_eq!(host.memory_bytes, 1 << 20);
        assert_eq!(command, ["./work", "--fast"]);
    }
}
