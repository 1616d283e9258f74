//! Whether huge pages help, as measured by a chase and as simulated.

use crate::answer::{Evidence, Kind};
use crate::huge_simulation::HugeSimulation;
use crate::probe::Probe;
use crate::quantity::{change_by_interval, relative_change};

impl Evidence for Probe {
    const KIND: Kind = Kind::HugeProbe;

    fn verdict(&self) -> String {
        probe(self)
    }
}

/// What huge pages change for a random chase on this machine; what the host does where that was not
/// measured.
fn probe(found: &Probe) -> String {
    let all = found
        .effect
        .iter()
        .max_by(|a, b| a.huge_share.total_cmp(&b.huge_share));
    match all.filter(|point| point.huge_share > 0.0) {
        None => found.host.sentence.clone(),
        Some(point) => format!(
            "Huge pages change the time of a random chase through {} by {}.",
            found.effect_memory,
            change_by_interval(&point.change)
        ),
    }
}

impl Evidence for HugeSimulation {
    const KIND: Kind = Kind::HugeSimulation;

    fn verdict(&self) -> String {
        simulation(self)
    }
}

/// What huge pages would change in translating each program's addresses, natively and in a guest. Whether
/// they help is more than that, and not said.
fn simulation(found: &HugeSimulation) -> String {
    let of = |name: &str, workload: &str| {
        let mut rows = found.configurations.iter();
        rows.find(|row| row.name == name && row.workload == workload)
            .map(|row| row.speed)
    };
    let sentences = found.workloads.iter().filter_map(|workload| {
        let native = of("native, huge pages", workload)?;
        let guest = of("guest, huge at both levels", workload)
            .zip(of("guest, small at both levels", workload))
            .map_or(String::new(), |(both, none)| {
                format!(", {} in a guest", relative_change(both / none))
            });
        let native = relative_change(native);
        Some(format!(
            "{workload}, simulated: huge pages change the speed by {native} natively{guest}, by address translation alone."
        ))
    });
    let mut all = sentences.collect::<Vec<String>>();
    if !all.is_empty() {
        all.push(LEFT_OUT.to_owned());
    }
    all.join(" ")
}

/// Zeroing 2 MiB for a byte can make a program a hundred times slower that translation makes faster.
const LEFT_OUT: &str = "Faults, zeroing and memory are not simulated: 'pagewise huge balance' measures what huge pages do in all.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::huge_simulation::Configuration;

    #[test]
    fn a_simulation_of_translation_does_not_say_help() {
        let row = |name: &str, speed: f64| Configuration {
            name: name.to_owned(),
            workload: "sparse".to_owned(),
            ns_per_access: 1.0,
            speed,
            small_per_1000: 0.0,
            huge_per_1000: 0.0,
            refill_share: 0.0,
        };
        let found = HugeSimulation {
            machine: "a machine".to_owned(),
            workloads: vec!["sparse".to_owned()],
            configurations: vec![
                row("native, small pages", 1.0),
                row("native, huge pages", 1.295),
            ],
            controlled: Vec::new(),
            sweep: Vec::new(),
            reuse: Vec::new(),
            reaches: Vec::new(),
        };
        let said = simulation(&found);
        assert!(!said.contains("help"), "{said}");
        assert!(said.contains("by address translation alone"), "{said}");
        assert!(
            said.contains("zeroing and memory are not simulated"),
            "{said}"
        );
        let nothing = HugeSimulation {
            workloads: Vec::new(),
            ..found
        };
        assert_eq!(simulation(&nothing), "");
    }
}
