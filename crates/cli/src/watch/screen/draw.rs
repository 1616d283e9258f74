//! Draws a header of numbers, plots, the table, and a line of keys.

use super::table::Line as ProcessLine;
use super::{Churning, Screen, as_f64};
use pagewise_linux::sys::machine::page_size;
use pagewise_model::quantity::count as grouped;
use pagewise_model::timeline::TimelinePoint;
use pagewise_model::units::{Bytes, Nanos};
use pagewise_operate::watch::{Dot, Window};
use pagewise_report::visible::visible;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Borders, Chart, Clear, Dataset, GraphType, Paragraph, Row, Table,
};

/// From this height on, both faults per second and total faults are shown.
const TALL: u16 = 30;

/// Draws everything.
pub fn screen(frame: &mut Frame<'_>, screen: &Screen<'_>) {
    let [head, body, foot] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(screen, head.width)), head);
    match screen.shows_table {
        true => {
            let table_height = u16::try_from(screen.processes.lines().len() + 2).unwrap_or(20);
            let table_height = table_height.clamp(4, (body.height / 2).max(4));
            let [plots_area, table_area] =
                Layout::vertical([Constraint::Min(3), Constraint::Length(table_height)])
                    .areas(body);
            plots(frame, screen, plots_area);
            frame.render_widget(process_table(screen), table_area);
        }
        false => plots(frame, screen, body),
    }
    frame.render_widget(Paragraph::new(keys(screen)), foot);
    if screen.shows_help {
        help(frame);
    }
}

impl Screen<'_> {
    fn colour(&self, colour: Color) -> Style {
        match self.colours {
            true => Style::new().fg(colour),
            false => Style::new(),
        }
    }

    fn strong(&self, colour: Color) -> Style {
        self.colour(colour).add_modifier(Modifier::BOLD)
    }

    fn faint(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }
}

fn head_lines<'a>(screen: &Screen<'a>, width: u16) -> Vec<Line<'a>> {
    let Some(last) = screen.history.last() else {
        return vec![Line::from("no reading yet")];
    };
    vec![
        title(screen, last, usize::from(width)),
        numbers(screen, last),
        hint(screen),
    ]
}

fn title<'a>(screen: &Screen<'a>, last: &TimelinePoint, width: usize) -> Line<'a> {
    let tree = match (screen.ended, last.processes, last.threads) {
        (true, _, _) => "ended".to_string(),
        (false, 1, 1) => format!("pid {}", screen.pid),
        (false, processes, threads) => format!(
            "pid {}, {}, {}",
            screen.pid,
            plural(processes, "process", "processes"),
            plural(threads, "thread", "threads")
        ),
    };
    let tail = format!("  {tree}  {}", clock(last.time));
    let room = width.saturating_sub(tail.chars().count() + 16);
    let name = shortened(&visible(screen.name), room);
    Line::from(vec![
        Span::styled("pagewise watch  ", screen.faint()),
        Span::styled(name, Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(tail),
    ])
}

fn plural(count: u32, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn shortened(text: &str, room: usize) -> String {
    match text.chars().count() <= room {
        true => text.to_string(),
        false => {
            let kept: String = text.chars().take(room.saturating_sub(1)).collect();
            format!("{kept}…")
        }
    }
}

/// `1:02:03` or `2:03`.
fn clock(time: Nanos) -> String {
    let seconds = time.0 / Nanos::SECOND.0;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

fn numbers<'a>(screen: &Screen<'a>, last: &TimelinePoint) -> Line<'a> {
    let cpu = last.user + last.system;
    let share = last.system.0.saturating_mul(100).checked_div(cpu.0);
    let mut spans = vec![
        Span::raw("faults "),
        Span::styled(grouped(last.minor_faults), screen.strong(Color::Cyan)),
        Span::raw(" minor "),
        Span::styled(grouped(last.major_faults), screen.strong(Color::Red)),
        Span::raw(" major   RSS "),
        Span::styled(last.rss.to_string(), screen.strong(Color::Green)),
        Span::raw("   CPU "),
        Span::styled(cpu.to_string(), Style::new().add_modifier(Modifier::BOLD)),
    ];
    if let Some(share) = share {
        let text = format!(", {share} % in the kernel");
        spans.push(Span::styled(text, screen.colour(Color::Yellow)));
    }
    Line::from(spans)
}

fn hint<'a>(screen: &Screen<'a>) -> Line<'a> {
    if screen.ended {
        return Line::styled(
            "The program has ended: q quits.",
            screen.strong(Color::Yellow),
        );
    }
    match screen.churns(page_size()) {
        Some(Churning { bytes_per_s }) => Line::styled(
            format!(
                "{} per second is newly touched and not kept: doctor says why.",
                Bytes(bytes_per_s)
            ),
            screen.strong(Color::Yellow),
        ),
        None => Line::default(),
    }
}

fn keys<'a>(screen: &Screen<'a>) -> Line<'a> {
    let pause = match screen.view.is_paused() {
        true => Span::styled(" PAUSED ", Style::new().add_modifier(Modifier::REVERSED)),
        false => Span::raw(""),
    };
    Line::from(vec![
        pause,
        Span::styled(
            " q quit  space pause  +/- zoom  ←/→ scroll  f faults  t table  ? help",
            screen.faint(),
        ),
    ])
}

fn plots(frame: &mut Frame<'_>, screen: &Screen<'_>, area: Rect) {
    let window = screen.view.window(screen.now());
    let dots = usize::from(area.width.saturating_sub(10)) * 2;
    let mut shown = Vec::new();
    if area.height >= TALL || screen.shows_total {
        shown.push(faults_so_far(screen, window, dots));
    }
    if area.height >= TALL || !screen.shows_total {
        shown.push(faults_per_second(screen, window, dots));
    }
    shown.push(memory(screen, window, dots));
    if area.height >= 12 {
        shown.push(cpu(screen, window, dots));
    }
    let heights = vec![Constraint::Fill(1); shown.len()];
    let areas = Layout::vertical(heights).split(area);
    let lowest = shown.len() - 1;
    for (at, (plot, area)) in shown.iter().zip(areas.iter()).enumerate() {
        plot.draw(frame, *area, window, (at == lowest, screen));
    }
}

/// One plot.
struct Plot {
    title: &'static str,
    curves: Vec<Curve>,
    label: fn(f64) -> String,
    /// The axis extends at least this far, so that noise does not fill the plot.
    least_top: f64,
}

struct Curve {
    name: &'static str,
    colour: Color,
    dots: Vec<Dot>,
}

fn faults_so_far(screen: &Screen<'_>, window: Window, dots: usize) -> Plot {
    let level = |of| screen.history.level(window, dots, of);
    Plot {
        title: "faults in total",
        curves: vec![
            curve("minor", Color::Cyan, level(|p| as_f64(p.minor_faults))),
            curve("major", Color::Red, level(|p| as_f64(p.major_faults))),
        ],
        label: short_count,
        least_top: 1000.0,
    }
}

fn faults_per_second(screen: &Screen<'_>, window: Window, dots: usize) -> Plot {
    let rate = |of| screen.history.rate(window, dots, of);
    Plot {
        title: "faults per second",
        curves: vec![
            curve("minor", Color::Cyan, rate(|p| as_f64(p.minor_faults))),
            curve("major", Color::Red, rate(|p| as_f64(p.major_faults))),
        ],
        label: short_count,
        least_top: 100.0,
    }
}

fn memory(screen: &Screen<'_>, window: Window, dots: usize) -> Plot {
    let level = |of| screen.history.level(window, dots, of);
    let mut curves = vec![
        curve("virtual size", Color::Blue, level(|p| as_f64(p.vsize.0))),
        curve("RSS", Color::Green, level(|p| as_f64(p.rss.0))),
    ];
    if screen.history.last().is_some_and(|point| point.swap.0 > 0) {
        curves.push(curve("swap", Color::Red, level(|p| as_f64(p.swap.0))));
    }
    Plot {
        title: "memory",
        curves,
        label: short_bytes,
        least_top: as_f64(Bytes::MIB.0),
    }
}

fn cpu(screen: &Screen<'_>, window: Window, dots: usize) -> Plot {
    let rate = |of| screen.history.cpu(window, dots, of);
    Plot {
        title: "CPU, % of one",
        curves: vec![
            curve("user", Color::Green, rate(|p| p.user.as_secs_f64() * 100.0)),
            curve(
                "system",
                Color::Yellow,
                rate(|p| p.system.as_secs_f64() * 100.0),
            ),
        ],
        label: |percent| format!("{percent:.0}%"),
        least_top: 100.0,
    }
}

fn curve(name: &'static str, colour: Color, dots: Vec<Dot>) -> Curve {
    Curve { name, colour, dots }
}

impl Plot {
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, window: Window, how: (bool, &Screen<'_>)) {
        let (is_lowest, screen) = how;
        let top = self.top();
        let datasets = self.curves.iter().map(|curve| {
            Dataset::default()
                .marker(Marker::Braille)
                .graph_type(GraphType::Line)
                .style(screen.colour(curve.colour))
                .data(&curve.dots)
        });
        let bounds = [window.from.as_secs_f64(), window.to.as_secs_f64()];
        let mut time = Axis::default().bounds(bounds).style(screen.faint());
        if is_lowest {
            let middle = Nanos(window.from.0.midpoint(window.to.0));
            time = time.labels([clock(window.from), clock(middle), clock(window.to)]);
        }
        let labels = [0.0, top].map(|value| format!("{:>7}", (self.label)(value)));
        let values = Axis::default()
            .bounds([0.0, top])
            .labels(labels)
            .labels_alignment(Alignment::Right)
            .style(screen.faint());
        let block = Block::new()
            .borders(Borders::TOP)
            .border_style(screen.faint());
        let chart = Chart::new(datasets.collect())
            .block(block.title(self.heading(screen)))
            .x_axis(time)
            .y_axis(values)
            .legend_position(None);
        frame.render_widget(chart, area);
    }

    /// The plot's name, and each curve's with its newest value: the legend.
    fn heading(&self, screen: &Screen<'_>) -> Line<'static> {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut spans = vec![Span::styled(format!(" {} ", self.title), bold)];
        for curve in &self.curves {
            let value = curve.dots.last().map_or(0.0, |(_, value)| *value);
            let text = format!(" ━ {} {} ", curve.name, (self.label)(value));
            spans.push(Span::styled(text, screen.colour(curve.colour)));
        }
        Line::from(spans)
    }

    /// A round number above all values: 1, 2 or 5 times a power of ten (of two for bytes).
    fn top(&self) -> f64 {
        let values = self.curves.iter().flat_map(|curve| &curve.dots);
        let largest = values
            .map(|(_, value)| *value)
            .fold(self.least_top, f64::max);
        let unit: f64 = match self.title {
            "memory" => 1024.0_f64.powf((largest.ln() / 1024.0_f64.ln()).floor()),
            _ => 1.0,
        };
        unit * round_up(largest / unit)
    }
}

/// The next of 1, 2, 5, 10, 20, 50…
fn round_up(value: f64) -> f64 {
    let power = 10.0_f64.powf(value.max(1e-9).log10().floor());
    let steps = [1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= value)
        .unwrap_or(value)
}

/// `950`, `12.3k`, `1.20M`
fn short_count(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2}G", v / 1e9),
        v if v >= 1e6 => format!("{:.2}M", v / 1e6),
        v if v >= 1e4 => format!("{:.1}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// `64M`, `1.5G`
fn short_bytes(value: f64) -> String {
    if value <= 0.0 {
        return "0".to_string();
    }
    let units = [
        (1024.0_f64.powi(4), "T"),
        (1024.0_f64.powi(3), "G"),
        (1024.0_f64.powi(2), "M"),
    ];
    let unit = units.into_iter().find(|(size, _)| value >= *size);
    let (size, name) = unit.unwrap_or((1024.0, "K"));
    let quotient = value / size;
    match quotient {
        q if q >= 100.0 || q.fract() == 0.0 => format!("{q:.0}{name}"),
        q => format!("{q:.1}{name}"),
    }
}

fn process_table<'a>(screen: &Screen<'_>) -> Table<'a> {
    let columns = [
        "pid", "name", "faults/s", "faults", "RSS", "size", "CPU", "kernel", "thr",
    ];
    let widths = [8, 16, 9, 13, 10, 10, 6, 6, 4].map(Constraint::Length);
    let rows = screen.processes.lines().iter().map(table_row);
    Table::new(rows, widths)
        .header(Row::new(columns).style(Style::new().add_modifier(Modifier::BOLD)))
        .block(
            Block::new()
                .borders(Borders::TOP)
                .border_style(screen.faint())
                .title(" processes "),
        )
}

fn table_row<'a>(line: &ProcessLine) -> Row<'a> {
    let process = &line.process;
    let name = match process.state {
        'Z' => format!("{} (ended)", visible(&process.comm)),
        _ => visible(&process.comm).into_owned(),
    };
    Row::new([
        process.pid.to_string(),
        name,
        short_count(line.faults_per_s),
        grouped(process.minor_faults + process.major_faults),
        process.rss.to_string(),
        process.vsize.to_string(),
        format!("{:.0}%", line.cpu_percent),
        format!("{:.0}%", line.system_percent),
        process.threads.to_string(),
    ])
}

const HELP: [&str; 14] = [
    "Minor faults that keep rising while RSS stays flat mean that memory",
    "is returned to the kernel and requested again. `pagewise doctor` finds",
    "out where and how to stop it. Major faults mean waiting for a disk.",
    "",
    "q, Ctrl-C   quit; a command that was started here is terminated",
    "space, p    pause the view (readings continue)",
    "+  -        a shorter or longer period",
    "←  →        scroll back and forward",
    "End, 0      back to now",
    "f           faults per second, or in total",
    "t           table of processes",
    "?           this help",
    "",
    "Sizes and counters are sums over the process and its descendants.",
];

fn help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let [area] = Layout::horizontal([Constraint::Length(74)])
        .flex(ratatui::layout::Flex::Center)
        .areas(area);
    let [area] = Layout::vertical([Constraint::Length(16)])
        .flex(ratatui::layout::Flex::Center)
        .areas(area);
    let lines: Vec<Line<'_>> = HELP
        .iter()
        .map(|line| Line::from(format!(" {line}")))
        .collect();
    frame.render_widget(Clear, area);
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" help ")),
        area,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, top) in [
            (0.9, 1.0),
            (1.2, 1.5),
            (4100.0, 5000.0),
            (51.0, 75.0),
            (100.0, 100.0),
        ] {
            assert!(
                (round_up(value) - top).abs() < 1e-9,
                "{value}: {}",
                round_up(value)
            );
        }
    }

    #[test]
    fn labels_are_short() {
        assert_eq!(short_count(950.4), "950");
        assert_eq!(short_count(12_345.0), "12.3k");
        assert_eq!(short_count(1_204_000.0), "1.20M");
        assert_eq!(short_bytes(64.0 * 1048576.0), "64M");
        assert_eq!(short_bytes(1.5 * 1073741824.0), "1.5G");
        assert_eq!(short_bytes(0.0), "0");
    }

    #[test]
    fn time_is_a_clock() {
        assert_eq!(clock(Nanos(62 * Nanos::SECOND.0)), "1:02");
        assert_eq!(clock(Nanos(3723 * Nanos::SECOND.0)), "1:02:03");
    }

    #[test]
    fn long_commands_are_cut() {
        assert_eq!(shortened("python3 x.py", 20), "python3 x.py");
        assert_eq!(shortened("python3 x.py", 8), "python3…");
    }
}
