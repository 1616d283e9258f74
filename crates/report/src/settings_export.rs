//! Settings in the form that each launcher needs: shell, one command, systemd, Dockerfile,
//! Kubernetes, numactl. Each has its own quoting rules; every value arrives unchanged.

use pagewise_model::advice::{Setting, Settings};
use std::fmt::Write;

/// Settings ready to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Where to put it: `Shell`, `One command`, `systemd`, `Dockerfile`, `Kubernetes`.
    pub label: &'static str,
    /// The text, without a line break at the end.
    pub text: String,
}

/// Each form of `settings`, the shell first; empty when there is nothing to set.
#[must_use]
pub fn exports(settings: &Settings) -> Vec<Export> {
    let variables = joined_variables(settings);
    let mut exports = Vec::new();
    if !variables.is_empty() {
        let forms: [(&str, Form); 5] = [
            ("Shell", shell),
            ("One command", |variables| one_command(variables, "COMMAND")),
            ("systemd", systemd),
            ("Dockerfile", dockerfile),
            ("Kubernetes", kubernetes),
        ];
        exports.extend(forms.map(|(label, form)| Export {
            label,
            text: form(&variables),
        }));
    }
    if let Some(options) = numa_options(settings) {
        exports.push(Export {
            label: "numactl",
            text: format!("numactl {options} COMMAND"),
        });
        exports.push(Export {
            label: "systemd, NUMA nodes",
            text: numa_in_systemd(options),
        });
    }
    if settings
        .0
        .iter()
        .any(|setting| matches!(setting, Setting::Thp { .. }))
    {
        exports.push(Export {
            label: "Huge pages",
            text: NO_HUGE_PAGES.to_owned(),
        });
    }
    exports
}

/// `env NAME=value … program argument…`, ready to be pasted into a shell. Empty settings give only
/// the command.
#[must_use]
pub fn command_line(settings: &Settings, command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
    let line = match joined_variables(settings).as_slice() {
        [] => words.join(" "),
        variables => one_command(variables, &words.join(" ")),
    };
    match numa_options(settings) {
        Some(options) => format!("numactl {options} {line}"),
        None => line,
    }
}

/// Options of numactl(8); the last setting counts.
fn numa_options(settings: &Settings) -> Option<&str> {
    settings.0.iter().rev().find_map(|setting| match setting {
        Setting::Numa { options } => Some(options.as_str()),
        _ => None,
    })
}

/// systemd.exec(5): `CPUAffinity=numa` takes the CPUs of the nodes in `NUMAMask=`.
fn numa_in_systemd(options: &str) -> String {
    let mut text = "[Service]".to_owned();
    for option in options.split_whitespace() {
        match option.split_once('=').unwrap_or((option, "")) {
            ("--membind", nodes) => {
                push(
                    &mut text,
                    format_args!("\nNUMAPolicy=bind\nNUMAMask={nodes}"),
                );
            }
            ("--interleave", nodes) => {
                push(
                    &mut text,
                    format_args!("\nNUMAPolicy=interleave\nNUMAMask={nodes}"),
                );
            }
            ("--localalloc", _) => text.push_str("\nNUMAPolicy=local"),
            ("--cpunodebind", _) => text.push_str("\nCPUAffinity=numa"),
            _ => push(&mut text, format_args!("\n# numactl {option}")),
        }
    }
    text
}

/// No variable disables huge pages, so the program must call the kernel.
const NO_HUGE_PAGES: &str = "No environment variable does this. Call \
prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) at the start of the program or in its launcher; it is \
inherited by children and kept over execve.";

/// Formats variables.
type Form = fn(&[Variable]) -> String;

struct Variable {
    name: String,
    /// `None` takes it away.
    value: Option<String>,
}

fn joined_variables(settings: &Settings) -> Vec<Variable> {
    let taken = settings.unset().map(|name| Variable {
        name: name.to_owned(),
        value: None,
    });
    let joined = settings.variables().into_iter();
    let given = joined.map(|(name, value)| Variable {
        name,
        value: Some(value),
    });
    taken.chain(given).collect()
}

fn shell(variables: &[Variable]) -> String {
    let line = |Variable { name, value }: &Variable| match value {
        _ if !is_shell_name(name) => format!(
            "# No shell can export the name {}; use the form with env.",
            visible(name)
        ),
        Some(value) => format!("export {name}={}", shell_word(value)),
        None => format!("unset {name}"),
    };
    variables.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn one_command(variables: &[Variable], command: &str) -> String {
    let mut line = "env".to_owned();
    for Variable { name, value } in variables {
        line.push(' ');
        let Some(value) = value else {
            line.push_str("-u ");
            line.push_str(&shell_word(name));
            continue;
        };
        if is_shell_name(name) {
            line.push_str(name);
            line.push('=');
            line.push_str(&shell_word(value));
        } else {
            line.push_str(&shell_word(&format!("{name}={value}")));
        }
    }
    line + " " + command
}

/// systemd.exec(5) `Environment=`: double quotes with C escapes; `%` begins a specifier
/// (systemd.unit(5)), `$` is literal.
fn systemd(variables: &[Variable]) -> String {
    let mut text = "[Service]".to_owned();
    for Variable { name, value } in variables {
        let Some(value) = value else {
            push(&mut text, format_args!("\nUnsetEnvironment={name}"));
            continue;
        };
        let mut quoted = String::new();
        for character in format!("{name}={value}").chars() {
            match character {
                '"' | '\\' => quoted.extend(['\\', character]),
                '%' => quoted.push_str("%%"),
                '\n' => quoted.push_str("\\n"),
                '\t' => quoted.push_str("\\t"),
                _ if character.is_ascii_control() => {
                    push(&mut quoted, format_args!("\\x{:02x}", u32::from(character)));
                }
                _ => quoted.push(character),
            }
        }
        push(&mut text, format_args!("\nEnvironment=\"{quoted}\""));
    }
    text
}

/// `ENV NAME="value"`: backslash escapes itself, `"` and `$`. A line break cannot be written.
fn dockerfile(variables: &[Variable]) -> String {
    let line = |Variable { name, value }: &Variable| {
        let Some(value) = value else {
            return format!("# Remove ENV {}", visible(name));
        };
        if value.contains(['\n', '\r']) || !is_shell_name(name) {
            return format!(
                "# ENV cannot carry the name or the value of {}",
                visible(name)
            );
        }
        let mut quoted = String::new();
        for character in value.chars() {
            if matches!(character, '"' | '\\' | '$') {
                quoted.push('\\');
            }
            quoted.push(character);
        }
        format!("ENV {name}=\"{quoted}\"")
    };
    variables.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A container's `env:` list. Kubernetes expands `$(NAME)` in values and takes `$$` for `$`.
fn kubernetes(variables: &[Variable]) -> String {
    let mut text = "env:".to_owned();
    for Variable { name, value } in variables {
        let Some(value) = value else {
            push(&mut text, format_args!("\n  # Remove {}", visible(name)));
            continue;
        };
        let (name, value) = (yaml(name), yaml(&value.replace('$', "$$")));
        push(
            &mut text,
            format_args!("\n  - name: {name}\n    value: {value}"),
        );
    }
    text
}

/// A double-quoted YAML scalar.
fn yaml(value: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in value.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            _ if character.is_control()
                || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                push(&mut quoted, format_args!("\\u{:04x}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

/// One word of a POSIX shell.
fn shell_word(value: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:=,@%+-".contains(&byte);
    if !value.is_empty() && value.bytes().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

fn is_shell_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// For a comment: one line, whatever the text contains.
fn visible(text: &str) -> String {
    format!("'{}'", text.escape_debug())
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const HOSTILE: &str = "a b'c\"d\\e$HOME$(id)`id`%n;&|<>*?~#!\t\u{e9}";

    fn env(name: &str, value: &str) -> Setting {
        Setting::Env {
            name: name.into(),
            value: value.into(),
        }
    }

    fn tunable(name: &str, value: &str) -> Setting {
        Setting::GlibcTunable {
            name: name.into(),
            value: value.into(),
        }
    }

    fn text(settings: Vec<Setting>, label: &str) -> String {
        let exports = exports(&Settings(settings));
        exports
            .into_iter()
            .find(|export| export.label == label)
            .unwrap()
            .text
    }

    fn sh(script: &str) -> String {
        let output = Command::new("sh").args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "{script}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn tunables_and_libraries_are_joined_and_plain_values_stay_bare() {
        let settings = vec![
            tunable("glibc.malloc.trim_threshold", "67108864"),
            Setting::Preload {
                path: "/usr/lib/a.so".into(),
            },
            tunable("glibc.malloc.mmap_threshold", "67108864"),
            Setting::Preload {
                path: "/usr/lib/b.so".into(),
            },
        ];
        assert_eq!(
            text(settings, "Shell"),
            "export GLIBC_TUNABLES=glibc.malloc.trim_threshold=67108864:\
             glibc.malloc.mmap_threshold=67108864\n\
             export LD_PRELOAD=/usr/lib/a.so:/usr/lib/b.so"
        );
    }

    #[test]
    fn a_shell_gives_hostile_values_back_unchanged() {
        for value in [HOSTILE, "", "two\nlines", "-n", "''", "\\"] {
            let exported = text(vec![env("VALUE", value)], "Shell");
            assert_eq!(sh(&format!("{exported}\nprintf %s \"$VALUE\"")), value);
            let settings = Settings(vec![env("VALUE", value)]);
            let command = ["sh", "-c", "printf %s \"$VALUE\""].map(str::to_owned);
            assert_eq!(sh(&command_line(&settings, &command)), value);
        }
    }

    #[test]
    fn names_that_no_shell_takes_go_through_env() {
        let settings = vec![env("odd-name;id", "x")];
        assert!(text(settings.clone(), "Shell").starts_with("# No shell can export"));
        let line = command_line(&Settings(settings), &["env".into()]);
        assert!(sh(&line).contains("odd-name;id=x\n"));
    }

    #[test]
    fn a_variable_that_is_taken_away_is_unset_in_each_form() {
        let name = "MALLOC_TOP_PAD_".to_owned();
        let settings = vec![env("A", "1"), Setting::Unset { name }];
        let forms = [
            ("Shell", "unset MALLOC_TOP_PAD_\nexport A=1"),
            ("One command", "env -u MALLOC_TOP_PAD_ A=1 COMMAND"),
            (
                "systemd",
                "[Service]\nUnsetEnvironment=MALLOC_TOP_PAD_\nEnvironment=\"A=1\"",
            ),
            ("Dockerfile", "# Remove ENV 'MALLOC_TOP_PAD_'\nENV A=\"1\""),
        ];
        for (label, form) in forms {
            assert_eq!(text(settings.clone(), label), form);
        }
    }

    #[test]
    fn systemd_gets_c_escapes_and_doubled_percent_signs() {
        assert_eq!(
            text(vec![env("A", "5% \"x\\y\" $HOME\nb")], "systemd"),
            "[Service]\nEnvironment=\"A=5%% \\\"x\\\\y\\\" $HOME\\nb\""
        );
    }

    #[test]
    fn dockerfiles_get_escaped_dollars_and_refuse_line_breaks() {
        assert_eq!(
            text(vec![env("A", "$HOME \"x\\y\"")], "Dockerfile"),
            "ENV A=\"\\$HOME \\\"x\\\\y\\\"\""
        );
        let refused = text(vec![env("A", "x\nRUN evil")], "Dockerfile");
        assert_eq!(refused, "# ENV cannot carry the name or the value of 'A'");
    }

    #[test]
    fn kubernetes_gets_quoted_yaml_and_doubled_dollars() {
        assert_eq!(
            text(
                vec![env("A", "$(B) \"x\\y\"\n\u{2028}"), tunable("t", "1")],
                "Kubernetes"
            ),
            "env:\n  - name: \"A\"\n    value: \"$$(B) \\\"x\\\\y\\\"\\n\\u2028\"\n  \
             - name: \"GLIBC_TUNABLES\"\n    value: \"t=1\""
        );
    }

    #[test]
    fn memory_nodes_are_set_by_numactl_and_systemd() {
        let nodes = |options: &str| Setting::Numa {
            options: options.into(),
        };
        let bound = Settings(vec![nodes("--cpunodebind=1 --membind=1"), env("A", "b c")]);
        let command = ["it", "-x"].map(str::to_owned);
        assert_eq!(
            command_line(&bound, &command),
            "numactl --cpunodebind=1 --membind=1 env A='b c' it -x"
        );
        let exported = exports(&Settings(vec![nodes("--cpunodebind=1 --membind=1")]));
        let texts: Vec<&str> = exported.iter().map(|one| &*one.text).collect();
        assert_eq!(
            texts,
            [
                "numactl --cpunodebind=1 --membind=1 COMMAND",
                "[Service]\nCPUAffinity=numa\nNUMAPolicy=bind\nNUMAMask=1"
            ]
        );
        let spread = text(vec![nodes("--interleave=all")], "systemd, NUMA nodes");
        assert_eq!(spread, "[Service]\nNUMAPolicy=interleave\nNUMAMask=all");
    }

    #[test]
    fn no_setting_exports_nothing() {
        assert_eq!(exports(&Settings::default()), []);
        let only_thp = exports(&Settings(vec![Setting::Thp {
            mode: "never".into(),
        }]));
        assert_eq!(only_thp.len(), 1);
        assert!(only_thp[0].text.contains("PR_SET_THP_DISABLE"));
        assert_eq!(command_line(&Settings::default(), &["a b".into()]), "'a b'");
    }
}
