//! The offsets of an event's fields, from the `format` files of tracefs contained in the file.
//!
//! `funcgraph_entry` and `funcgraph_exit` differ by kernel: `depth` is at byte 40 of the exit in
//! 4.18 and 5.10 and at 16 in 6.1; since 6.13 that of the entry has eight bytes, the returned value
//! follows `func`, and arguments may follow the entry (`kernel/trace/trace_entries.h`).

use std::fmt::Write;

/// A field of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub name: Box<str>,
    pub is_text: bool,
    /// `__data_loc`: the field has the position and length of its text.
    pub is_elsewhere: bool,
    pub offset: usize,
    pub size: usize,
    pub signed: bool,
}

impl Field {
    /// `field:unsigned long func; offset:8; size:8; signed:0;`, with tabs between.
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.trim().split(';').map(str::trim);
        let declared = parts.next()?.strip_prefix("field:")?;
        let mut field = Self::default();
        for part in parts {
            let Some((key, value)) = part.split_once(':') else {
                continue;
            };
            match key {
                "offset" => field.offset = value.parse().ok()?,
                "size" => field.size = value.parse().ok()?,
                "signed" => field.signed = value == "1",
                _ => {}
            }
        }
        let plain = declared.split('[').next()?.trim_end();
        let word = |text: &str| {
            let mut words = text.rsplit(|c: char| !(c.is_alphanumeric() || c == '_'));
            words.next().map(Box::from)
        };
        field.is_elsewhere = declared.starts_with("__data_loc");
        field.is_text = declared.contains("char") && declared.contains('[');
        field.name = word(if field.is_elsewhere { declared } else { plain })?;
        Some(field)
    }

    /// The field's bytes in a record.
    fn bytes<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The field's value in a record, sign-extended.
    #[inline]
    pub fn number(&self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        Some(match (bytes.len(), self.signed) {
            (8, _) => u64::from_le_bytes(bytes.try_into().ok()?),
            (4, false) => u64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            (4, true) => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)).cast_unsigned(),
            (2, false) => u64::from(u16::from_le_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_le_bytes(bytes.try_into().ok()?)).cast_unsigned(),
            (1, false) => u64::from(bytes[0]),
            (1, true) => i64::from(bytes[0].cast_signed()).cast_unsigned(),
            _ => return None,
        })
    }

    /// The field's text in a record, up to a zero byte.
    pub fn text<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let bytes = match self.is_elsewhere {
            true => {
                let place = u32::from_le_bytes(self.bytes(record)?.try_into().ok()?);
                let (start, len) = ((place & 0xffff) as usize, (place >> 16) as usize);
                record.get(start..start + len)?
            }
            false => self.bytes(record)?,
        };
        let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
        Some(&bytes[..end])
    }

    fn print(&self, record: &[u8], out: &mut String) {
        let printed = match (self.is_text, self.number(record)) {
            (true, _) => self
                .text(record)
                .map(|text| String::from_utf8_lossy(text).into_owned()),
            (false, Some(number)) if self.signed => Some(number.cast_signed().to_string()),
            (false, Some(number)) if self.size == 8 => Some(format!("{number:#x}")),
            (false, Some(number)) => Some(number.to_string()),
            (false, None) => None,
        };
        let printed = printed.unwrap_or_else(|| "?".to_owned());
        // Writing to a string can't fail.
        let _ = write!(out, " {}={printed}", self.name);
    }
}

/// One kind of event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Format {
    pub id: u16,
    pub name: Box<str>,
    pub fields: Vec<Field>,
}

impl Format {
    /// Reads the text of a `format` file; `None` where it has no name or number.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let mut format = Self::default();
        let mut numbered = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().into();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok()?;
                numbered = true;
            } else {
                format.fields.extend(Field::parse(line));
            }
        }
        (numbered && !format.name.is_empty()).then_some(format)
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| *field.name == *name)
    }

    /// The record as in the tracer's text: `name: field=value …`.
    pub fn print(&self, record: &[u8], out: &mut String) {
        out.push_str(&self.name);
        out.push(':');
        let own = self.fields.iter();
        for field in own.filter(|field| !field.name.starts_with("common_")) {
            match (&*self.name, &*field.name) {
                ("sched_switch", "prev_state") => {
                    let state = field.number(record).map(task_state);
                    // Writing to a string can't fail.
                    let _ = write!(out, " prev_state={} ==>", state.unwrap_or_default());
                }
                _ => field.print(record, out),
            }
        }
    }
}

/// The state in which a task left its CPU, by the letters of `include/trace/events/sched.h`:
/// the bits of `TASK_REPORT`, and above them the mark of a task that was preempted.
fn task_state(bits: u64) -> String {
    let letters = (0..8).zip("SDTtXZPI".chars());
    let mut state: String = letters
        .filter(|(bit, _)| bits >> bit & 1 == 1)
        .map(|(_, letter)| letter)
        .collect();
    if state.is_empty() {
        state.push('R');
    }
    if bits >> 8 & 0xf != 0 {
        state.push('+');
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCH: &str = "name: sched_switch\nID: 319\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:pid_t next_pid;\toffset:40;\tsize:4;\tsigned:1;\n\
        \tfield:__data_loc char[] name;\toffset:44;\tsize:4;\tsigned:0;\n";

    #[test]
    fn a_switch_prints_as_the_kernel_prints_it() {
        let format = Format::parse(SWITCH.as_bytes()).expect("a format");
        let mut record = vec![0; 48];
        record[8..12].copy_from_slice(b"bash");
        record[24] = 7;
        record[32] = 2;
        record[40] = 9;
        record[44..48].copy_from_slice(&(3 << 16 | 48_u32).to_le_bytes());
        record.extend_from_slice(b"abc");
        let mut text = String::new();
        format.print(&record, &mut text);
        let expected =
            "sched_switch: prev_comm=bash prev_pid=7 prev_state=D ==> next_pid=9 name=abc";
        assert_eq!(text, expected);
    }

    #[test]
    fn states_have_the_kernels_letters() {
        for (bits, letters) in [(0, "R"), (0x100, "R+"), (1, "S"), (2, "D"), (0x80, "I")] {
            assert_eq!(task_state(bits), letters);
        }
    }

    #[test]
    fn fields_beyond_a_record_have_no_value() {
        let format = Format::parse(SWITCH.as_bytes()).expect("a format");
        let field = format.field("prev_state").expect("a field");
        assert_eq!(field.number(&[0; 39]), None);
        assert_eq!(Format::parse(b"name: x\n"), None);
    }
}
