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

/// What huge pages would change for each program, natively and in a guest.
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
                format!(", {} in a guest", effect(both / none))
            });
        let native = effect(native);
        Some(format!(
            "{workload}, simulated: huge pages {native} natively{guest}."
        ))
    });
    sentences.collect::<Vec<String>>().join(" ")
}

fn effect(speed: f64) -> String {
    let change = relative_change(speed);
    match speed {
        speed if (speed - 1.0).abs() < 0.01 => format!("do not matter ({change})"),
        speed if speed > 1.0 => format!("help ({change} speed)"),
        _ => format!("hurt ({change} speed)"),
    }
}
