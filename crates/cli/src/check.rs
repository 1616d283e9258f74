//! `pagewise check`: what this machine allows, what is missing, how to get it.

use crate::{own_library, terminal};
use anyhow::Result;
use clap::Args as ClapArgs;
use pagewise_linux::{capability, proc::ProcRoot, pseudo_file};
use pagewise_model::answer::Document;
use pagewise_model::capability::{Capability, Check};
use pagewise_report::text;
use std::process::ExitCode;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise check                      what works here, what does not
  pagewise check --json | jq '.evidence.check.capabilities[] | .name, .state'
  sudo pagewise check                 the same as root";

/// Options of `pagewise check`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Print JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
}

/// Tries everything and prints the results. A missing capability is not a failure.
///
/// # Errors
/// If the result cannot be printed.
pub fn run(args: &Args) -> Result<ExitCode> {
    let release = ProcRoot::default().path("sys/kernel/osrelease");
    let check = Document::new(Check {
        kernel: pseudo_file::setting(&release).unwrap_or_else(|| "unknown".to_string()),
        capabilities: capabilities(),
    });
    terminal::present(&check, args.json, text::check::render)?;
    Ok(ExitCode::SUCCESS)
}

/// The capabilities of this machine, and of this build.
fn capabilities() -> Vec<Capability> {
    let mut found = capability::capabilities();
    found.push(own_library::capability());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_groups_and_fit_the_terminal() {
        let check = Document::new(Check {
            kernel: "6.18".to_string(),
            capabilities: capabilities(),
        });
        for width in [60, 80, 120] {
            let plain = text::Style {
                color: false,
                unicode: true,
            };
            let text = text::check::render(&check, width, plain);
            assert!(!text.contains("\nOthers\n"), "{text}");
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.is_some_and(|widest| widest <= width), "{text}");
        }
    }
}
