//! The experiment of Zhu Chen et al., "Performance optimization of transparent huge pages in MIPS
//! VZ virtualization environment", in simulation, compared with the paper's figures.
//!
//! `cargo run --release -p pagewise-paper [-- --sweep] [-- --calibrate]`; exits with 1 if a figure
//! or an ordering is not reproduced. `--sweep` repeats it under other assumptions about the
//! machine, `--calibrate` repeats the fit and reports what the fit cannot determine.
//!
//! What is *calibrated*: the two costs of a refill (`machines/3a4000.toml`), the time of an access
//! without refills ([`experiment::BASE_NS`]) and the share of pricing sweeps
//! ([`pagewise_simulate::tlb::workload::Mcf`]): four numbers fitted to five of the paper
//! ([`experiment::targets`]). What is *predicted*: the order of all configurations, the point at
//! which the controller settles, refills by page size, every other workload. It is a calibration
//! with few remaining degrees of freedom, not a validation.
#![forbid(unsafe_code)]

mod experiment;
mod fit;
mod sensitivity;
mod suite;
#[cfg(test)]
mod tests;
mod text;

use experiment::{FULL, Results, orderings, targets};
use pagewise_simulate::tlb::Machine;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo run --release -p pagewise-paper [-- [--sweep] [--calibrate]]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(other) = arguments
        .iter()
        .find(|argument| !["--sweep", "--calibrate"].contains(&argument.as_str()))
    {
        eprintln!("{other}: not an option\n{USAGE}");
        return ExitCode::from(2);
    }
    let asked = |option: &str| arguments.iter().any(|argument| argument == option);
    let Some(machine) = Machine::named("3a4000") else {
        eprintln!("the machine 3a4000 is not shipped");
        return ExitCode::FAILURE;
    };
    eprintln!("Simulating the paper's configurations…");
    let results = Results::simulate(&machine, FULL);
    eprintln!("Simulating the suite…");
    let suite = suite::suite(&machine, FULL);
    let targets = targets(&results);
    let mut orderings = orderings(&results);
    orderings.extend(suite::orderings(&suite));
    print!("{}", text::cases(&results));
    print!("{}", text::targets(&targets));
    print!("{}", text::orderings(&orderings));
    print!("{}", text::suite(&suite));
    if asked("--sweep") {
        eprintln!("Simulating other assumptions…");
        let variants = sensitivity::sensitivity(&machine, FULL);
        print!("{}", text::sensitivity(&variants));
    }
    if asked("--calibrate") {
        eprintln!("Fitting, from {} ns per access…", experiment::BASE_NS);
        print!("{}", text::fit(&fit::calibrate(&machine, FULL)));
    }
    let holds = targets.iter().all(|target| target.holds()) && orderings.iter().all(|o| o.holds);
    print!("{}", text::end(holds));
    ExitCode::from(u8::from(!holds))
}
