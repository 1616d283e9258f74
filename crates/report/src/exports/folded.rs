//! Folded stacks: `caller;called;innermost weight`, one per line, as flame graph tools read them.

use crate::visible::visible;
use pagewise_model::call_map::CallMap;
use std::io::{self, Write};

/// Which self time of a call is the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// Without the tracer's cost.
    Corrected,
    /// As traced.
    Raw,
}

/// Writes the call paths of faults with their self times in nanoseconds; paths without self time
/// are left out. The kind of the faults is the outermost frame.
///
/// # Errors
/// When `out` can't be written.
pub fn write(map: &CallMap, times: Times, out: &mut impl Write) -> io::Result<()> {
    let mut stacks: Vec<String> = Vec::with_capacity(map.nodes.len());
    for node in &map.nodes {
        let function = map.functions.get(node.function as usize);
        let name = frame(function.map_or("", String::as_str));
        let caller = node.parent.and_then(|parent| stacks.get(parent as usize));
        let stack = match caller {
            Some(caller) => format!("{caller};{name}"),
            None => format!("{};{name}", frame(node.class.describe())),
        };
        let weight = match times {
            Times::Corrected => node.corrected_self_ns,
            Times::Raw => node.self_ns,
        };
        if weight > 0 {
            writeln!(out, "{stack} {weight}")?;
        }
        stacks.push(stack);
    }
    Ok(())
}

/// A name without the characters that separate frames and lines.
fn frame(name: &str) -> String {
    visible(name).replace(';', ":")
}
