//! The options that look into a part of the faults: `--path`, `--layer`, `--range`, `--class`.

use clap::Args;
use pagewise_model::units::Nanos;
use pagewise_traces::fault_paths::{Class, Goal, Layer, Step};

/// Where in the faults to look.
#[derive(Args, Debug, Default)]
pub struct Options {
    /// Report on the calls of this function or layer inside faults as if they were the faults
    #[arg(long, value_name = "NAME", conflicts_with = "path")]
    pub(super) layer: Option<String>,

    /// The same, level by level: each step is inside the one before, optionally with a range:
    /// 'fault/handle_mm_fault[15us..25us]/charge'
    #[arg(long, value_name = "STEPS")]
    pub(super) path: Option<String>,

    /// For traces, only calls (of the last step) whose corrected duration is in this range:
    /// 15us..25us, 100us.., ..2us. For samples, only this period, from the start: 12s..13s
    #[arg(long, value_name = "FROM..TO")]
    pub(super) range: Option<String>,

    /// Only faults of this kind, by its name in JSON: anonymous, write_copy, … (cow for write_copy)
    #[arg(long, value_name = "KIND")]
    pub(super) class: Option<String>,
}

impl Options {
    /// The requested period of a profile; `None` for all of it if no range is given.
    pub fn stretch(&self) -> Result<Option<(Nanos, Nanos)>, String> {
        let Some(text) = &self.range else {
            return Ok(None);
        };
        let (from, to) = self::range(text)?;
        Ok(Some((
            Nanos(from.unwrap_or(0)),
            Nanos(to.unwrap_or(u64::MAX)),
        )))
    }

    /// The steps; empty if whole faults are wanted.
    pub fn steps(&self) -> Result<Vec<Step>, String> {
        let path = match (&self.path, &self.layer) {
            (Some(path), _) => path.clone(),
            (None, Some(layer)) => format!("fault/{layer}"),
            (None, None) if self.range.is_none() && self.class.is_none() => return Ok(Vec::new()),
            (None, None) => "fault".to_owned(),
        };
        let mut steps = path
            .split('/')
            .map(step)
            .collect::<Result<Vec<Step>, String>>()?;
        if let (Some(range), Some(last)) = (&self.range, steps.last_mut()) {
            (last.from_ns, last.to_ns) = self::range(range)?;
        }
        if let (Some(name), Some(first)) = (&self.class, steps.first_mut()) {
            first.class = Some(class(name)?);
        }
        Ok(steps)
    }
}

fn step(text: &str) -> Result<Step, String> {
    let text = text.trim();
    let (name, range) = match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((name, within)) => (name.trim(), range(within)?),
        None => (text, (None, None)),
    };
    if name.is_empty() || name.contains(['[', ']', ' ']) {
        return Err(format!(
            "\"{text}\": expected a function or a layer, optionally with a range: charge[2us..9us]"
        ));
    }
    Ok(Step {
        goal: goal(name),
        class: None,
        from_ns: range.0,
        to_ns: range.1,
    })
}

/// A layer by its name in JSON, otherwise a function.
fn goal(name: &str) -> Goal {
    let layer = serde_json::from_value::<Layer>(serde_json::Value::from(name));
    layer.map_or_else(|_| Goal::Function(name.to_owned()), Goal::Layer)
}

fn class(name: &str) -> Result<Class, String> {
    let name = match name {
        "cow" => "write_copy",
        "swap" => "swap_in",
        name => name,
    };
    serde_json::from_value(serde_json::Value::from(name)).map_err(|_| {
        format!("--class {name}: not a kind of fault; kinds are anonymous, zero_page, write_copy, …: see pagewise help schema.json")
    })
}

/// `15us..25us`; either end may be left out.
fn range(text: &str) -> Result<(Option<u64>, Option<u64>), String> {
    let wrong = || format!("\"{text}\": expected a range of times such as 15us..25us or 1ms..");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let end = |text: &str| match text.trim() {
        "" => Ok(None),
        text => nanos(text).map(Some).ok_or_else(wrong),
    };
    let (from, to) = (end(from)?, end(to)?);
    match (from, to) {
        (None, None) => Err(wrong()),
        (Some(from), Some(to)) if from >= to => Err(wrong()),
        range => Ok(range),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a duration that a person typed, not negative"
)]
fn nanos(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let factor = match text[at..].trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let value: f64 = text[..at].parse().ok()?;
    Some((value * factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_layers_and_ranges() {
        let options = Options {
            path: Some("fault/handle_mm_fault[15us..25us]/charge".to_owned()),
            range: Some("..1.5us".to_owned()),
            class: Some("cow".to_owned()),
            layer: None,
        };
        let steps = options.steps().expect("sound");
        assert_eq!(steps[0].goal, Goal::Layer(Layer::Fault));
        assert_eq!(steps[0].class, Some(Class::WriteCopy));
        assert_eq!(steps[1].goal, Goal::Function("handle_mm_fault".to_owned()));
        assert_eq!(
            (steps[1].from_ns, steps[1].to_ns),
            (Some(15_000), Some(25_000))
        );
        assert_eq!(steps[2].goal, Goal::Layer(Layer::Charge));
        assert_eq!((steps[2].from_ns, steps[2].to_ns), (None, Some(1_500)));
        assert_eq!(Options::default().steps(), Ok(Vec::new()));
        for (path, range, class) in [
            (Some("a//b"), None, None),
            (Some("a[1us]"), None, None),
            (None, Some("5us..2us"), None),
            (None, Some(".."), None),
            (None, Some("1..2"), None),
            (None, None, Some("nonsense")),
        ] {
            let options = Options {
                layer: None,
                path: path.map(str::to_owned),
                range: range.map(str::to_owned),
                class: class.map(str::to_owned),
            };
            assert!(options.steps().is_err(), "{options:?}");
        }
    }
}
