//! The text of `valgrind --tool=lackey --trace-mem=yes` (valgrind 3.19, `lackey/lk_main.c`):
//! `I  addr,size` for an instruction, ` L`, ` S` and ` M` for a load, a store and both.

use super::Line;

pub fn parse(text: &[u8]) -> Line {
    if text.starts_with(b"==") || text.is_empty() {
        return Line::Nothing;
    }
    let (kind, rest) = match text {
        [b'I', b' ', b' ', rest @ ..] => (b'I', rest),
        [b' ', kind @ (b'L' | b'S' | b'M'), b' ', rest @ ..] => (*kind, rest),
        _ => return Line::Unknown,
    };
    let Some(comma) = rest.iter().position(|&byte| byte == b',') else {
        return Line::Unknown;
    };
    let Some(address) = super::perf_script::hexadecimal(&rest[..comma]) else {
        return Line::Unknown;
    };
    match kind {
        b'I' => Line::Instruction,
        b'M' => Line::Modify { address },
        kind => Line::Access {
            address,
            is_write: kind == b'S',
        },
    }
}
