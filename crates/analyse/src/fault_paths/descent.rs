//! Looking into a part of the faults: level by level, each level's calls inside those that the
//! level above left (the paper's dynamic preprocessing).

use super::layer::{Layer, layer_of};
use super::signature::Class;
use pagewise_model::fault_paths::DescentStep;

/// What a step goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A layer; [`Layer::Fault`] is the fault itself.
    Layer(Layer),
    /// A function, by its name without suffixes.
    Function(String),
}

/// One step, from the outside in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where to.
    pub goal: Goal,
    /// Only in faults of this kind.
    pub class: Option<Class>,
    /// Only calls that take at least so long on the CPU, corrected, ns…
    pub from_ns: Option<u64>,
    /// … and less than that.
    pub to_ns: Option<u64>,
}

impl Step {
    /// Whether a function is the step's goal.
    pub(super) fn is_goal(&self, base: &str, is_fault: bool) -> bool {
        match &self.goal {
            Goal::Layer(Layer::Fault) => is_fault,
            Goal::Layer(layer) => layer_of(base) == Some(*layer),
            Goal::Function(name) => name == base,
        }
    }

    /// Whether a call belongs.
    pub(super) fn takes(&self, class: Class, ns: f64) -> bool {
        let bound = |ns: u64| f64::from(u32::try_from(ns).unwrap_or(u32::MAX));
        self.class.is_none_or(|wanted| wanted == class)
            && self.from_ns.is_none_or(|from| ns >= bound(from))
            && self.to_ns.is_none_or(|to| ns < bound(to))
    }
}

/// The steps with what they met.
#[derive(Clone, Debug, Default)]
pub(super) struct Descent {
    pub steps: Vec<Step>,
    /// The tracer's cost of a call, ns.
    pub cost: f64,
    /// Calls met, calls left and their time, by step.
    pub met: Vec<(u64, u64, f64)>,
}

impl Descent {
    pub(super) fn new(steps: Vec<Step>, cost: f64) -> Self {
        Self {
            met: vec![(0, 0, 0.0); steps.len()],
            steps,
            cost,
        }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sums of durations, not negative"
    )]
    pub(super) fn findings(&self) -> Vec<DescentStep> {
        let each = self.steps.iter().zip(&self.met);
        each.map(|(step, &(met, calls, time))| DescentStep {
            name: match &step.goal {
                Goal::Layer(layer) => layer.describe().to_owned(),
                Goal::Function(name) => name.clone(),
            },
            class: step.class,
            from_ns: step.from_ns,
            to_ns: step.to_ns,
            met,
            calls,
            time_ns: time.max(0.0) as u64,
        })
        .collect()
    }
}
