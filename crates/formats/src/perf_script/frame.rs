//! One line of a call chain: `ffffffff81234567 symbol+0x7 (object)`.

use crate::profile_text::plain;
use memchr::{memchr, memmem};
use pagewise_model::profile::{Frame, FrameKind};
use pagewise_model::symbol::Unnamed;

const UNKNOWN: &str = "[unknown]";
/// Spelling of a frame that has neither name nor file but a kernel address.
pub(super) const HIDDEN: &[u8] = b"\0kernel";

/// The part of a line that describes its frame: the text after the address, which is not kept.
#[inline]
pub(super) fn text(line: &[u8]) -> &[u8] {
    // perf's own layout: a tab, the address in sixteen columns, a blank.
    if let Some((b"\t", rest)) = line.split_first_chunk::<1>()
        && let Some((address, [b' ', text @ ..])) = rest.split_first_chunk::<16>()
        && is_padded_address(address)
        && let (Some(b'!'..), Some(b'!'..)) = (text.first(), text.last())
    {
        return named_or_hidden(address, text);
    }
    text_anywhere(line)
}

/// The text of a frame, split around the offset in its function if there is one: frames that differ
/// only in the offset are the same.
#[inline]
pub(super) fn around_offset(text: &[u8]) -> (&[u8], &[u8]) {
    // Two parentheses end a deleted file, whose name is where the offset is expected.
    let open = match text {
        [.., b')', b')'] => None,
        [.., b')'] => memchr::memrchr(b'(', text),
        _ => None,
    };
    let function = open.and_then(|open| text[..open].strip_suffix(b" "));
    let Some(function) = function else {
        return (text, b"");
    };
    let digits = function.iter().rev().take(16);
    let digits = digits.take_while(|&&b| IS_HEX[b as usize]).count();
    match function[..function.len() - digits].strip_suffix(b"+0x") {
        Some(name) if digits > 0 => (name, &text[function.len()..]),
        _ => (text, b""),
    }
}

/// The same for any position of the columns.
fn text_anywhere(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    let Some(blank) = memchr(b' ', line) else {
        return if is_address(line) { b"" } else { line };
    };
    let (address, rest) = line.split_at(blank);
    if !is_address(address) {
        return line;
    }
    named_or_hidden(address, rest.trim_ascii_start())
}

#[inline]
fn named_or_hidden<'t>(address: &[u8], text: &'t [u8]) -> &'t [u8] {
    // -1 ends a copied stack that could not be followed further.
    let is_kernel =
        address.len() == 16 && address.starts_with(b"ffff") && address != b"ffffffffffffffff";
    match is_kernel && text.starts_with(b"[unknown]") {
        true => HIDDEN,
        false => text,
    }
}

/// Whether blanks and then hexadecimal digits, as perf writes them, fill all columns.
#[inline]
fn is_padded_address(columns: &[u8; 16]) -> bool {
    const fn each(byte: u8) -> u128 {
        u128::from_le_bytes([byte; 16])
    }
    let columns = u128::from_le_bytes(*columns);
    let blanks = (columns ^ each(b' ')).trailing_zeros() / u8::BITS * u8::BITS;
    if blanks == u128::BITS {
        return false;
    }
    // Blanks before the digits become zeros.
    let digits = columns ^ (each(b' ' ^ b'0') & ((1 << blanks) - 1));
    // The highest bit of each byte that is at least as great; no ASCII byte carries into the next.
    let from = |byte: u8| digits.wrapping_add(each(0x80 - byte));
    let is_digit = (from(b'0') & !from(b'9' + 1)) | (from(b'a') & !from(b'f' + 1));
    (!digits & is_digit & each(0x80)) == each(0x80)
}

/// Which bytes are hexadecimal digits.
const IS_HEX: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        table[byte as usize] = byte.is_ascii_hexdigit();
        byte += 1;
    }
    table
};

#[inline]
pub(super) fn is_address(word: &[u8]) -> bool {
    !word.is_empty() && word.len() <= 16 && word.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a line without a tab belongs to a call chain: an address, followed by a function, a
/// file, or both. Command names may consist of such digits, too, but an id follows them.
pub(super) fn is_frame(line: &[u8]) -> bool {
    let is_indented = line.first() == Some(&b' ');
    let line = line.trim_ascii();
    let end = memchr(b' ', line).unwrap_or(line.len());
    let (address, text) = (&line[..end], line[end..].trim_ascii_start());
    is_address(address) && (is_indented || address.len() >= 6) && !text.is_empty()
}

/// The function on a sample's first line: address, name and file. With an address column (`-F
/// +addr`) it comes after the address of the data, which has a name and a file, too, where it lies
/// in a mapping; instruction bytes and registers may follow.
pub(super) fn on_first_line(text: &[u8]) -> Option<&[u8]> {
    if text.is_empty() {
        return None;
    }
    let ends = [&b" insn:"[..], b" ABI:"].map(|mark| memmem::find(text, mark));
    let end = ends.into_iter().flatten().min().unwrap_or(text.len());
    let text = text[..end].trim_ascii_end();
    if !text.ends_with(b")") {
        return None;
    }
    let (address, rest) = text.split_at(memchr(b' ', text)?);
    if !is_address(address) {
        return None;
    }
    let code = behind_address(rest).or_else(|| {
        let files = memchr::memchr_iter(b')', rest).map(|at| &rest[at + 1..]);
        files.filter_map(behind_address).next()
    });
    code.or((address.len() >= 6).then_some(text))
}

/// The text after a blank if it starts with an address in a column of its own, of sixteen
/// characters.
fn behind_address(text: &[u8]) -> Option<&[u8]> {
    const COLUMN: usize = 16;
    let code = text.trim_ascii_start();
    let end = memchr(b' ', code)?;
    let is_column = text.first() == Some(&b' ') && text.len() - code.len() + end > COLUMN;
    (is_column && is_address(&code[..end])).then_some(code)
}

/// Whether a line between frames or after them says more about them: their place in the source
/// (`-F +srcline`), the instruction (`+insn`) or registers (`+uregs`, `+iregs`).
pub(super) fn is_about_frame(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    text.starts_with(b"insn:") || text.starts_with(b"ABI:") || is_source_line(line)
}

/// What perf 7.2 writes behind the source location of a call that was inlined, and no longer behind its name.
const INLINED: &[u8] = b" (inlined)";

/// Whether a line about a frame says that its call was inlined.
pub(super) fn says_inlined(line: &[u8]) -> bool {
    line.trim_ascii().ends_with(INLINED)
}

/// Whether a line gives the source location of the frame before it (`-F +srcline`): `file:12`, with
/// its discriminator, or `file[1f]` if no line is known.
fn is_source_line(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let text = text.strip_suffix(INLINED).unwrap_or(text);
    let text = match memmem::find(text, b" (discriminator ") {
        Some(end) if text.ends_with(b")") => &text[..end],
        _ => text,
    };
    let is_place = |mark: u8, is_digit: fn(&u8) -> bool, text: &[u8]| {
        let digits = memchr::memrchr(mark, text).map(|at| &text[at + 1..]);
        digits.is_some_and(|digits| !digits.is_empty() && digits.iter().all(is_digit))
    };
    let in_file = text.strip_suffix(b"]");
    line.first() == Some(&b' ')
        && (is_place(b':', u8::is_ascii_digit, text)
            || in_file.is_some_and(|text| is_place(b'[', u8::is_ascii_hexdigit, text)))
}

/// Reads `symbol+0x7 (object)`; symbols may contain blanks and parentheses.
pub(super) fn read(text: &[u8]) -> Frame {
    if text == HIDDEN {
        return Frame {
            name: UNKNOWN.into(),
            module: "[kernel]".into(),
            kind: FrameKind::Kernel,
            unnamed: Some(Unnamed::KernelHidden),
        };
    }
    let text = match text.strip_suffix(b" (deleted))") {
        Some(whole) => &[whole, b")"].concat(),
        None => text,
    };
    let (symbol, object) = match memmem::rfind(text, b"(").filter(|_| text.ends_with(b")")) {
        Some(open) if open == 0 || text[open - 1] == b' ' => (
            text[..open].trim_ascii_end(),
            &text[open + 1..text.len() - 1],
        ),
        _ => (text, &b""[..]),
    };
    let symbol = match memmem::rfind(symbol, b"+0x") {
        Some(plus) if is_address(&symbol[plus + 3..]) => &symbol[..plus],
        _ => symbol,
    };
    let kind = kind(object);
    let is_unnamed = symbol.is_empty() || symbol == UNKNOWN.as_bytes();
    let in_a_file = !object.is_empty() && object != UNKNOWN.as_bytes();
    Frame {
        name: if is_unnamed {
            UNKNOWN.into()
        } else {
            plain(symbol)
        },
        module: module(object, kind),
        kind,
        unnamed: is_unnamed.then_some(match (in_a_file, kind) {
            (false, _) => Unnamed::NoMapping,
            (true, FrameKind::Jit) => Unnamed::Jit,
            (true, _) => Unnamed::NoSymbol,
        }),
    }
}

fn kind(object: &[u8]) -> FrameKind {
    let user = [
        &b"[unknown]"[..],
        b"[vdso]",
        b"[vsyscall]",
        b"[heap]",
        b"[stack]",
        b"[anon]",
    ];
    let is_module = object.ends_with(b".ko") || memmem::find(object, b".ko.").is_some();
    if object == b"inlined" {
        FrameKind::Inlined
    } else if is_module || object.starts_with(b"[") && !user.contains(&object) {
        FrameKind::Kernel
    } else if object.starts_with(b"/tmp/perf-") || object.starts_with(b"//anon") {
        FrameKind::Jit
    } else {
        FrameKind::User
    }
}

fn module(object: &[u8], kind: FrameKind) -> Box<str> {
    if kind == FrameKind::Inlined || object == UNKNOWN.as_bytes() {
        return "".into();
    }
    if object.starts_with(b"[kernel") || object.starts_with(b"[guest.kernel") {
        return "[kernel]".into();
    }
    let base = object.rsplit(|&b| b == b'/').next().unwrap_or(object);
    plain(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_of_perf_is_read_like_any_other() {
        let addresses = ["ffffffff81000000", "    7f0000001234", "               0"];
        let odd = ["7f00 00 00123456", "                ", "xfffffff81000000"];
        let texts = [
            "f+0x1 (x)",
            " f",
            "f ",
            "",
            " ",
            "[unknown] (y)",
            "\tf",
            "\u{7f}",
            "\u{1}",
        ];
        for address in addresses.into_iter().chain(odd) {
            for text in texts {
                let line = format!("\t{address} {text}");
                let line = line.as_bytes();
                assert_eq!(super::text(line), text_anywhere(line), "{address} {text}");
            }
        }
    }

    #[test]
    fn frames_that_differ_in_their_offset_alone_are_one() {
        for (text, function, object) in [
            ("f+0x1f ([k])", "f", " ([k])"),
            ("f(int)+0xffffffffffffffff (/b)", "f(int)", " (/b)"),
            ("f+0x (/b)", "f+0x (/b)", ""),
            (
                "f+0x10000000000000000 (/b)",
                "f+0x10000000000000000 (/b)",
                "",
            ),
            ("f (/b)", "f (/b)", ""),
            ("f+0x1", "f+0x1", ""),
            ("f+0x1 (/b+0x2 (deleted))", "f+0x1 (/b+0x2 (deleted))", ""),
            ("+0x1 (/b)", "", " (/b)"),
            ("(/b)", "(/b)", ""),
        ] {
            let parts = around_offset(text.as_bytes());
            assert_eq!(parts, (function.as_bytes(), object.as_bytes()), "{text}");
            assert_eq!(
                read(text.as_bytes()),
                read(&[parts.0, parts.1].concat()),
                "{text}"
            );
        }
    }

    #[test]
    fn frames_of_every_kind() {
        let of = |line: &str| {
            let frame = read(text(line.as_bytes()));
            (frame.name.to_string(), frame.module.to_string(), frame.kind)
        };
        let row = |name: &str, module: &str, kind| (name.to_owned(), module.to_owned(), kind);
        for (line, expected) in [
            (
                "\tffffffff81000000 do_fault+0x1f ([kernel.kallsyms])",
                row("do_fault", "[kernel]", FrameKind::Kernel),
            ),
            (
                "\tffffffffc0000000 ext4_read ([ext4])",
                row("ext4_read", "[ext4]", FrameKind::Kernel),
            ),
            (
                "\t    7f0000001234 std::map<int, (anonymous namespace)::T>::at(int)+0x3 (/usr/bin/x)",
                row(
                    "std::map<int, (anonymous namespace)::T>::at(int)",
                    "x",
                    FrameKind::User,
                ),
            ),
            (
                "\t    7f0000001234 f+0x3 (/usr/bin/x (deleted))",
                row("f", "x", FrameKind::User),
            ),
            (
                "\t    7f0000001234 f (inlined)",
                row("f", "", FrameKind::Inlined),
            ),
            (
                "\t    7f0000001234 Lx;.y (/tmp/perf-12.map)",
                row("Lx;.y", "perf-12.map", FrameKind::Jit),
            ),
            (
                "\t    7f0000001234 [unknown] (/lib/libc.so.6)",
                row("[unknown]", "libc.so.6", FrameKind::User),
            ),
            (
                "\t               1 [unknown] ([unknown])",
                row("[unknown]", "", FrameKind::User),
            ),
            (
                "\tffffffff81000000 [unknown] ([unknown])",
                row("[unknown]", "[kernel]", FrameKind::Kernel),
            ),
            ("\tmain (/usr/bin/x)", row("main", "x", FrameKind::User)),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }
}
