//! Flame graphs as SVG: of one profile, or of two, with growth in red and shrinking in blue.
//!
//! The picture is complete without its script: each box has a title with name and share. The script
//! adds zoom by click and a search. Names are text nodes and attributes, escaped; no data of a
//! profile is put into the script.

use super::stacks::{NodeNumber, Stacks};
use crate::visible::is_active;
use pagewise_model::profile::FrameKind;
use pagewise_model::quantity::{count, percent, points};
use std::io::{self, Write};

/// The properties of a picture besides its stacks.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// Its title.
    pub title: &'a str,
    /// What the weights count, such as `cpu-clock, ns`.
    pub unit: &'a str,
    /// Whether the stacks are of two profiles.
    pub is_diff: bool,
}

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 58.0;
/// Boxes narrower than this, in pixels, are left out together with all boxes above them.
const NARROWEST: f64 = 0.1;
/// Width of a letter of the font, in pixels.
const LETTER: f64 = 7.0;
/// More rows than this are left out: no screen shows them.
const DEEPEST: usize = 2000;

struct Drawn {
    node: NodeNumber,
    row: usize,
    /// Left edge and width as shares of the whole.
    left: f64,
    width: f64,
}

/// Writes a picture.
///
/// # Errors
/// When `out` can't be written.
pub fn write(stacks: &Stacks, picture: Picture<'_>, out: &mut impl Write) -> io::Result<()> {
    let totals = stacks.totals();
    let whole = totals.first().copied().unwrap_or([0; 2]);
    let shares: Vec<[f64; 2]> = totals.iter().map(|&total| shares(total, whole)).collect();
    let (boxes, left_out) = layout(stacks, &shares, picture.is_diff);
    let rows = boxes.iter().map(|drawn| drawn.row + 1).max().unwrap_or(1);
    let height = HEAD + ROW * number(rows) + MARGIN + ROW;
    head(picture, height, out)?;
    let deepest = boxes.iter().map(|drawn| drawn.row).max().unwrap_or(0);
    writeln!(out, "<g id=\"boxes\">")?;
    for drawn in &boxes {
        let row = deepest - drawn.row;
        draw(
            stacks,
            drawn,
            HEAD + ROW * number(row),
            picture,
            &totals,
            &shares,
            out,
        )?;
    }
    writeln!(out, "</g>")?;
    let rest = match left_out {
        0 => String::new(),
        count => format!(" {count} boxes too narrow or too high to see are left out."),
    };
    let y = height - MARGIN;
    let total = totals_in_words(whole, picture);
    writeln!(
        out,
        "<text id=\"told\" x=\"{MARGIN}\" y=\"{y}\">{}{rest}</text>\n</svg>",
        escaped(&total)
    )
}

fn shares(total: [u64; 2], whole: [u64; 2]) -> [f64; 2] {
    let share = |at: usize| match whole[at] {
        0 => 0.0,
        whole => real(total[at]) / real(whole),
    };
    [share(0), share(1)]
}

/// The position of each box, and the number of boxes left out. In a difference, a box is as wide as
/// the mean of its two shares, so that functions that vanished remain visible.
fn layout(stacks: &Stacks, shares: &[[f64; 2]], is_diff: bool) -> (Vec<Drawn>, usize) {
    let width = |node: NodeNumber| match is_diff {
        true => f64::midpoint(shares[node][0], shares[node][1]),
        false => shares[node][0],
    };
    let children = stacks.children();
    let mut boxes: Vec<Drawn> = Vec::new();
    let mut open = Vec::new();
    if !stacks.is_empty() {
        open.push((0, 0, 0.0));
    }
    while let Some((node, row, left)) = open.pop() {
        let of_box = width(node);
        if of_box * WIDTH < NARROWEST || row >= DEEPEST {
            continue;
        }
        boxes.push(Drawn {
            node,
            row,
            left,
            width: of_box,
        });
        let mut next = left;
        for &child in &children[node] {
            open.push((child, row + 1, next));
            next += width(child);
        }
    }
    boxes.sort_unstable_by_key(|drawn| (drawn.row, drawn.node));
    let left_out = stacks.len() - boxes.len();
    (boxes, left_out)
}

fn head(picture: Picture<'_>, height: f64, out: &mut impl Write) -> io::Result<()> {
    let title = escaped(picture.title);
    writeln!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n\
         <text class=\"title\" x=\"{}\" y=\"24\">{title}</text>\n\
         <text class=\"button\" id=\"search\" x=\"{}\" y=\"24\">Search</text>\n\
         <text class=\"button\" id=\"reset\" x=\"{MARGIN}\" y=\"24\" visibility=\"hidden\">Reset zoom</text>\n\
         <text class=\"unit\" x=\"{}\" y=\"44\">{}</text>",
        WIDTH / 2.0,
        WIDTH - MARGIN,
        WIDTH / 2.0,
        escaped(picture.unit),
    )?;
    writeln!(out, "<script><![CDATA[{SCRIPT}]]></script>")
}

fn draw(
    stacks: &Stacks,
    drawn: &Drawn,
    y: f64,
    picture: Picture<'_>,
    totals: &[[u64; 2]],
    shares: &[[f64; 2]],
    out: &mut impl Write,
) -> io::Result<()> {
    let place = stacks.place(drawn.node);
    let name = place.map_or("all", |place| place.name);
    let kind = place.map_or(FrameKind::Task, |place| place.kind);
    let share = shares[drawn.node];
    let fill = match picture.is_diff {
        true => change_colour(share),
        false => colour(name, kind),
    };
    let room = WIDTH - 2.0 * MARGIN;
    let (x, width) = (MARGIN + drawn.left * room, drawn.width * room);
    let about = match picture.is_diff {
        true => {
            let change = format!("{} of all", points(share[1] - share[0]));
            format!(
                "{} before, {} after, {change}",
                percent(share[0]),
                percent(share[1])
            )
        }
        false => format!("{}, {}", count(totals[drawn.node][0]), percent(share[0])),
    };
    let name = escaped(name);
    write!(
        out,
        "<g><title>{name} ({})</title><rect x=\"{x:.1}\" y=\"{y:.0}\" width=\"{width:.1}\" \
         height=\"{}\" fill=\"{fill}\"/>",
        escaped(&about),
        ROW - 1.0,
    )?;
    let shown = fitting(&name_text(stacks, drawn.node), width);
    writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.0}\">{}</text></g>",
        x + 3.0,
        y + 12.0,
        escaped(&shown)
    )
}

fn name_text(stacks: &Stacks, node: NodeNumber) -> String {
    stacks
        .place(node)
        .map_or("all", |place| place.name)
        .to_owned()
}

/// The part of a name that fits into a box of this width.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a box is never wider than the picture"
)]
fn fitting(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    let letters = name.chars().count();
    if room < 3 {
        return String::new();
    }
    match letters <= room {
        true => name.to_owned(),
        false => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

fn totals_in_words(whole: [u64; 2], picture: Picture<'_>) -> String {
    match picture.is_diff {
        true => format!(
            "All: {} before, {} after.",
            count(whole[0]),
            count(whole[1])
        ),
        false => format!("All: {}.", count(whole[0])),
    }
}

/// Warm colours for the program, others for the kernel, JIT-compiled code and threads; a name has
/// the same colour in every picture.
fn colour(name: &str, kind: FrameKind) -> String {
    let mut mixed = 0x811c_9dc5_u32;
    for byte in name.bytes() {
        mixed = (mixed ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    let (hue, light) = (mixed >> 8 & 15, mixed >> 16 & 15);
    let (base, saturation) = match kind {
        FrameKind::Kernel => (22, 85),
        FrameKind::User => (40, 85),
        FrameKind::Inlined => (175, 45),
        FrameKind::Jit => (110, 50),
        FrameKind::Task => (215, 20),
    };
    format!("hsl({},{saturation}%,{}%)", base + hue, 66 + light)
}

/// Red for growth, blue for shrinking, white for no change; saturated at a doubling or a halving.
fn change_colour(share: [f64; 2]) -> String {
    let sum = share[0] + share[1];
    let change = if sum > 0.0 {
        (share[1] - share[0]) / sum * 3.0
    } else {
        0.0
    };
    let pale = 100.0 - 38.0 * change.abs().min(1.0);
    let hue = if change > 0.0 { 4 } else { 215 };
    format!("hsl({hue},80%,{pale:.0}%)")
}

/// Text for XML, which excludes most control characters.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if is_active(c) => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

fn real(weight: u64) -> f64 {
    weight as f64
}

fn number(rows: usize) -> f64 {
    u32::try_from(rows).map_or(f64::MAX, f64::from)
}

const STYLE: &str = "\
text{font:12px ui-monospace,monospace;fill:#111}.title{font:bold 17px sans-serif;text-anchor:middle}\
.unit{text-anchor:middle;fill:#555}.paper{fill:#fff}.button{fill:#246;cursor:pointer}\
#search{text-anchor:end}#boxes text{pointer-events:none}#boxes g:hover rect{stroke:#000;stroke-width:.7}\
#boxes g{cursor:pointer}#boxes .found rect{fill:#d4f}#boxes .outer rect{opacity:.5}";

const SCRIPT: &str = include_str!("svg.js");

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_formats::folded;

    fn picture(before: &str, after: Option<&str>) -> String {
        let read = |text: &str| folded::read(text.as_bytes()).expect("memory is readable");
        let before = read(before);
        let stacks = match after {
            None => Stacks::new(&before, 0),
            Some(after) => Stacks::of_both((&before, 0), (&read(after), 0)),
        };
        let about = Picture {
            title: "a & b",
            unit: "samples",
            is_diff: after.is_some(),
        };
        let mut out = Vec::new();
        write(&stacks, about, &mut out).expect("memory is writable");
        String::from_utf8(out).expect("names are UTF-8")
    }

    #[test]
    fn boxes_are_as_wide_as_their_share_and_names_stay_inert() {
        let svg = picture("main;a 3\nmain;</title><script>alert(1)</script> 1\n", None);
        assert!(
            svg.contains("<title>a (3, 75 %)</title><rect x=\"305.0\""),
            "{svg}"
        );
        assert!(svg.contains("width=\"885.0\""), "{svg}");
        assert_eq!(svg.matches("<script>").count(), 1);
        assert!(svg.contains("&lt;/title&gt;&lt;script&gt;alert"));
    }

    #[test]
    fn a_difference_keeps_what_vanished_and_its_size() {
        let svg = picture(
            "main;old 50\nmain;same 50\n",
            Some("main;new 10\nmain;same 10\n"),
        );
        for title in [
            "old (50 % before, 0 % after, −50.00 % of all)",
            "new (0 % before, 50 % after, +50.00 % of all)",
            "same (50 % before, 50 % after, 0.00 % of all)",
        ] {
            assert!(svg.contains(title), "{title}: {svg}");
        }
        assert!(svg.contains("All: 100 before, 20 after."));
    }

    #[test]
    fn nothing_and_very_deep_stacks_have_a_picture() {
        assert!(picture("# empty\n", None).contains("All: 0."));
        let deep = vec!["f"; 10_000].join(";") + " 1\n";
        assert!(picture(&deep, None).contains("8001 boxes too narrow or too high"));
    }
}
