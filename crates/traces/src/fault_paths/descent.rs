//! Looking into a part of the faults, level by level: each level takes the calls inside those that
//! the previous level selected (the paper's dynamic preprocessing).

use super::layer::{Layer, layer_of};
use super::signature::Class;
use pagewise_model::fault_paths::DescentStep;

/// The target of a step.
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
    /// The target.
    pub goal: Goal,
    /// Only in faults of this kind.
    pub class: Option<Class>,
    /// Only calls that take at least this long on the CPU, corrected, ns…
    pub from_ns: Option<u64>,
    /// … and less than that.
    pub to_ns: Option<u64>,
}

impl Step {
    /// Whether a function is the step's target.
    pub(super) fn is_goal(&self, base: &str, is_fault: bool) -> bool {
        match &self.goal {
            Goal::Layer(Layer::Fault) => is_fault,
            Goal::Layer(layer) => layer_of(base) == Some(*layer),
            Goal::Function(name) => name == base,
        }
    }

    /// Whether a call is selected.
    pub(super) fn takes(&self, class: Class, ns: f64) -> bool {
        let bound = |ns: u64| f64::from(u32::try_from(ns).unwrap_or(u32::MAX));
        self.class.is_none_or(|wanted| wanted == class)
            && self.from_ns.is_none_or(|from| ns >= bound(from))
            && self.to_ns.is_none_or(|to| ns < bound(to))
    }
}

/// The steps with the calls they found.
#[derive(Clone, Debug, Default)]
pub(super) struct Descent {
    pub steps: Vec<Step>,
    /// The tracer's cost of a call, ns.
    pub cost: f64,
    /// Calls found, calls selected and their time, by step.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn step(goal: Goal) -> Step {
        Step {
            goal,
            class: None,
            from_ns: None,
            to_ns: None,
        }
    }

    #[test]
    fn a_goal_is_the_fault_a_layer_or_a_function_and_nothing_else() {
        let fault = step(Goal::Layer(Layer::Fault));
        assert!(fault.is_goal("exc_page_fault", true));
        assert!(!fault.is_goal("exc_page_fault", false));
        let layer = layer_of("__alloc_pages").expect("a layer's function");
        let layer = step(Goal::Layer(layer));
        assert!(layer.is_goal("__alloc_pages", false) && !layer.is_goal("my_own", false));
        let function = step(Goal::Function("clear_page".to_owned()));
        assert!(
            function.is_goal("clear_page", false) && !function.is_goal("clear_page_erms", true)
        );
    }

    #[test]
    fn bounds_hold_the_lower_end_and_not_the_upper_one() {
        let between = Step {
            class: Some(Class::Anonymous),
            from_ns: Some(100),
            to_ns: Some(200),
            ..step(Goal::Layer(Layer::Fault))
        };
        let taken = |ns: f64| between.takes(Class::Anonymous, ns);
        assert_eq!(
            [99.9, 100.0, 199.9, 200.0].map(taken),
            [false, true, true, false]
        );
        assert!(!between.takes(Class::ZeroPage, 150.0));
        assert!(step(Goal::Layer(Layer::Fault)).takes(Class::ZeroPage, 0.0));
    }
}
