//! Which processes are faulting now, and how to analyse the first one.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, Page, shorten};
use crate::visible::visible;
use pagewise_model::busiest::Busy;
use pagewise_model::quantity::count;

/// Width of the command, in columns.
const COMMAND: usize = 40;

/// The results of one second, as text of at most `width` columns, clamped to 60–200.
#[must_use]
pub fn render(processes: &[Busy], width: usize, style: Style) -> String {
    let mut page = Page::new(width, style);
    let Some(first) = processes.first() else {
        page.indented(
            0,
            Ink::Plain,
            "No process that can be seen had a page fault during the last second.",
        );
        return page.finish();
    };
    let heads = [
        words("command"),
        figures("PID"),
        figures("minor"),
        figures("major"),
        figures("system"),
        figures("user"),
    ];
    let cpu = |share: f64| format!("{:.0} %", share * 100.0);
    let rows = processes.iter().map(|one| {
        Row::new([
            shorten(&visible(&one.command), COMMAND),
            one.pid.to_string(),
            count(one.minor),
            count(one.major),
            cpu(one.system),
            cpu(one.user),
        ])
    });
    page.table("Most page faults during the last second", &heads, rows);
    page.gap();
    let next = format!(
        "system, user: CPU time, in % of one CPU. To see why: pagewise doctor -p {} --duration 10s",
        first.pid
    );
    page.indented(0, Ink::Plain, &next);
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_faults_most_is_the_one_to_ask_about() {
        let busy = |pid, minor, command: &str| Busy {
            pid,
            minor,
            major: 0,
            system: 0.25,
            user: 0.5,
            command: command.to_owned(),
        };
        let all = [busy(11, 3_000, "sort\u{1b}[2J a"), busy(7, 2, "[kswapd0]")];
        let text = render(&all, 80, Style::PLAIN);
        let expected = "\
Most page faults during the last second
  command          PID  minor  major  system  user
  sort\\u{1b}[2J a   11  3,000      0    25 %  50 %
  [kswapd0]          7      2      0    25 %  50 %

system, user: CPU time, in % of one CPU. To see why: pagewise doctor -p 11
--duration 10s
";
        assert_eq!(text, expected);
        assert!(render(&[], 80, Style::PLAIN).starts_with("No process"));
    }
}
