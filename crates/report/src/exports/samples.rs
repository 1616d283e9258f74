//! A profile as a table with a row for each sample: CSV (RFC 4180) or Parquet.

use super::parquet::{Column, ParquetWriter, Value};
use crate::visible::visible;
use pagewise_model::profile::{NO_CPU, NodeId, Profile, WeightUnit};
use std::io::{self, Write};

/// Columns of the table. Times are nanoseconds since the profile's start; a stack begins with its
/// outermost function, and functions are separated by semicolons.
pub const SAMPLES: &[Column] = &[
    Column::optional("time_ns"),
    Column::text("event"),
    Column::integer("weight"),
    Column::text("unit"),
    Column::optional("pid"),
    Column::optional("tid"),
    Column::text("comm"),
    Column::optional("cpu"),
    Column::text("function"),
    Column::text("module"),
    Column::text("stack"),
];

/// Writes CSV, starting with a line of column names.
///
/// # Errors
/// When `out` can't be written.
pub fn write_csv(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<&str> = SAMPLES.iter().map(|column| column.name).collect();
    write!(out, "{}\r\n", names.join(","))?;
    rows(profile, |row| {
        for (at, value) in row.iter().enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            match value {
                Value::Integer(number) | Value::Optional(Some(number)) => write!(out, "{number}")?,
                Value::Real(number) => write!(out, "{number}")?,
                Value::Text(text) => quoted(text, out)?,
                // Absent; the other kinds are in no column of this table.
                Value::Optional(None)
                | Value::OptionalReal(_)
                | Value::OptionalText(_)
                | Value::Bytes(_)
                | Value::Identifiers(_) => {}
            }
        }
        out.write_all(b"\r\n")
    })
}

/// Writes a Parquet file.
///
/// # Errors
/// When `out` can't be written.
pub fn write_parquet(profile: &Profile, out: impl Write) -> io::Result<()> {
    let mut table = ParquetWriter::new(out, "samples", SAMPLES)?;
    rows(profile, |row| table.write(row))?;
    table.finish()?;
    Ok(())
}

/// Text quoted for CSV. Spreadsheets treat text that begins with `=`, `+`, `-` or `@` as a formula:
/// an apostrophe in front makes names of unknown origin harmless.
fn quoted(text: &str, out: &mut impl Write) -> io::Result<()> {
    let text = visible(text);
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    if !is_formula && !text.contains([',', '"']) {
        return out.write_all(text.as_bytes());
    }
    let mark = if is_formula { "'" } else { "" };
    write!(out, "\"{mark}{}\"", text.replace('"', "\"\""))
}

fn rows(
    profile: &Profile,
    mut write: impl FnMut(&[Value<'_>]) -> io::Result<()>,
) -> io::Result<()> {
    let mut stack = String::new();
    let mut last = None;
    let known = |id: i32| u64::try_from(id).ok();
    for sample in profile.samples.iter() {
        let (Some(event), Some(thread)) = (
            profile.events.get(usize::from(sample.event)),
            profile.threads.get(sample.thread as usize),
        ) else {
            continue;
        };
        if last != Some(sample.stack) {
            spell(profile, sample.stack, &mut stack);
            last = Some(sample.stack);
        }
        let frame = profile.frame_of(sample.stack);
        write(&[
            Value::Optional(profile.has_times.then_some(sample.time)),
            Value::Text(&event.name),
            Value::Integer(sample.weight),
            Value::Text(unit(event.unit)),
            Value::Optional(known(thread.pid)),
            Value::Optional(known(thread.tid)),
            Value::Text(&thread.comm),
            Value::Optional((sample.cpu != NO_CPU).then_some(sample.cpu.into())),
            Value::Text(frame.map_or("", |frame| &frame.name)),
            Value::Text(frame.map_or("", |frame| &frame.module)),
            Value::Text(&stack),
        ])?;
    }
    Ok(())
}

fn unit(unit: WeightUnit) -> &'static str {
    match unit {
        WeightUnit::Nanoseconds => "ns",
        WeightUnit::Events => "events",
        WeightUnit::Samples => "samples",
        WeightUnit::Bytes => "bytes",
    }
}

fn spell(profile: &Profile, stack: NodeId, text: &mut String) {
    text.clear();
    let mut frames: Vec<&str> = Vec::new();
    for id in profile.stacks.frames(stack) {
        frames.push(
            profile
                .frames
                .get(id.0 as usize)
                .map_or("", |frame| &frame.name),
        );
    }
    for name in frames.iter().rev() {
        if !text.is_empty() {
            text.push(';');
        }
        text.extend(name.chars().map(|c| if c == ';' { ':' } else { c }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_formats::perf_script;

    #[test]
    fn a_row_for_each_sample_with_odd_names_in_quotes() {
        let text = "=a, \"b\" 3 [001] 1.000000: 5 cpu-clock:\n\tff f(int, int)+0x1 (/b/x)\n\tff main (/b/x)\n\n\
                    x 2/4 2.000000: faults:\n";
        let profile = perf_script::read(text.as_bytes()).expect("memory is readable");
        let mut out = Vec::new();
        write_csv(&profile, &mut out).expect("memory is writable");
        assert_eq!(
            String::from_utf8(out).expect("names are UTF-8"),
            "time_ns,event,weight,unit,pid,tid,comm,cpu,function,module,stack\r\n\
             0,cpu-clock,5,ns,,3,\"'=a, \"\"b\"\"\",1,\"f(int, int)\",x,\"main;f(int, int)\"\r\n\
             1000000000,faults,1,samples,2,4,x,,,,\r\n"
        );
    }
}
