use super::*;

/// A common entry, an entry of a function at `FUNCTION`, and the header with its table, as GNU's linker
/// lays them out.
const AT: u64 = 0x1000;
const FUNCTION: u64 = 0x40_0000;

fn entry(content: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    content.resize(content.len().next_multiple_of(4), 0);
    let length = u32::try_from(content.len()).expect("short");
    [&length.to_le_bytes()[..], &content].concat()
}

fn relative(from: u64, to: u64) -> [u8; 4] {
    i32::try_from(to.cast_signed() - from.cast_signed())
        .expect("near")
        .to_le_bytes()
}

/// The tables of one function of 100 bytes with these instructions.
fn tables(code: &[u8]) -> (Vec<u8>, u64) {
    // Version 1, "zR", code alignment 1, data alignment -8, return address 16, pointers relative;
    // def_cfa rsp 8, offset 16 1.
    let common = entry(b"\0\0\0\0\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01");
    let function_at = common.len() as u64;
    let back = u32::try_from(function_at + 4).expect("short").to_le_bytes();
    let start = relative(AT + function_at + 8, FUNCTION);
    let head = [&back[..], &start, &100_u32.to_le_bytes(), &[0]].concat();
    let mut bytes = [common, entry(&[&head[..], code].concat()), vec![0; 4]].concat();
    let header = AT + bytes.len() as u64;
    bytes.extend([1, 0x1b, 3, 0x3b]);
    bytes.extend(relative(header + 4, AT));
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(relative(header, FUNCTION));
    bytes.extend(relative(header, AT + function_at));
    (bytes, header)
}

fn rule(code: &[u8], offset: u64) -> Option<Rule> {
    let (bytes, header) = tables(code);
    let tables = Tables {
        bytes: &bytes,
        address: AT,
        header,
    };
    tables.rule(FUNCTION.wrapping_add(offset))
}

fn by(base: Base, offset: i32, frame: Option<i32>) -> Option<Rule> {
    Some(Rule {
        base,
        offset,
        frame,
    })
}

#[test]
fn a_frame_pointer_is_pushed_and_used() {
    // push rbp; mov rbp, rsp; …; pop rbp; ret
    let code = b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x02\x20\x0a\x0c\x07\x08\xc6\x41\x0b";
    assert_eq!(rule(code, 0), by(Base::Stack, 8, None));
    assert_eq!(rule(code, 1), by(Base::Stack, 16, Some(-16)));
    assert_eq!(rule(code, 35), by(Base::Frame, 16, Some(-16)));
    assert_eq!(rule(code, 36), by(Base::Stack, 8, None));
    assert_eq!(rule(code, 37), by(Base::Frame, 16, Some(-16)));
    assert_eq!((rule(code, 100), rule(code, u64::MAX)), (None, None));
}

#[test]
fn a_realigned_stack_is_found_by_the_frame_pointer() {
    // def_cfa_expression breg6 -16, deref; expression rbp breg6 0.
    let code = b"\x44\x0f\x03\x76\x70\x06\x10\x06\x02\x76\x00";
    assert_eq!(rule(code, 9), by(Base::AtFrame, -16, None));
}

#[test]
fn the_outermost_function_and_unknown_forms_end_the_stack() {
    assert_eq!(rule(b"\x07\x10", 0), Some(Rule::END));
    // The frame by rbx; the frame pointer by an expression.
    assert_eq!(rule(b"\x0d\x03", 0), Some(Rule::END));
    assert_eq!(rule(b"\x10\x06\x02\x77\x00", 0), Some(Rule::END));
    // No instruction.
    assert_eq!(rule(b"\x3f", 0), None);
}

#[test]
fn damaged_tables_are_no_rule_and_no_crash() {
    let code = b"\x41\x0e\x10\x86\x02\x43\x0d\x06\x02\x20\x0a\x0c\x07\x08\xc6\x41\x0b";
    let (bytes, header) = tables(code);
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let tables = Tables {
                bytes: &damaged,
                address: AT,
                header,
            };
            for offset in [0, 36, 99] {
                // Any answer: that there is one is the test.
                let _ = tables.rule(FUNCTION + offset);
            }
        }
        let tables = Tables {
            bytes: &bytes[..at],
            address: AT,
            header,
        };
        assert_eq!(tables.rule(FUNCTION + 36), None);
    }
}
