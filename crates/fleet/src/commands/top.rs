//! What costs the fleet most.

use super::findings::lost;
use super::settings::Settings;
use super::units::Units;
use crate::answer::{Answer, told};
use crate::data::Samples;
use crate::engine::{Engine, Scan};
use crate::flame;
use crate::statistics::{FALSE_DISCOVERIES, Resamples, discoveries, moments, unpaired};
use crate::text::{Table, innermost, number, percent};
use crate::{Common, Output};
use anyhow::Result;
use clap::Args;
use pagewise_model::units::Estimate;
use serde::Serialize;
use std::path::PathBuf;

/// Options of `top`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

    #[command(flatten)]
    pub output: Output,

    /// Rows of each kind
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,

    /// Also write a flame graph of the fleet
    #[arg(long, value_name = "FILE.svg")]
    flame: Option<PathBuf>,

    /// Weigh samples of this event [default: CPU time]
    #[arg(long, value_name = "EVENT")]
    event: Option<String>,
}

#[derive(Debug, Serialize)]
struct Top {
    hosts: usize,
    /// CPU-hours per day.
    cpu_hours: Estimate,
    kernel_cpu_hours: Estimate,
    /// Sum over hosts of the most memory that a run held.
    peak_gib: Estimate,
    causes: Vec<Cause>,
    functions: Vec<FunctionCost>,
    paths: Vec<PathCost>,
    settings: Vec<SettingCost>,
    scans: Vec<Scan>,
}

#[derive(Debug, Serialize)]
struct Cause {
    finding: String,
    hosts: usize,
    cpu_hours: Estimate,
    share_of_cpu: f64,
}

#[derive(Debug, Serialize)]
struct FunctionCost {
    function: String,
    module: String,
    hosts: usize,
    own_cpu_hours: Estimate,
    total_cpu_hours: f64,
}

#[derive(Debug, Serialize)]
struct PathCost {
    stack: Vec<String>,
    hosts: usize,
    cpu_hours: Estimate,
}

/// A value of a setting whose hosts use more CPU time than the others.
#[derive(Debug, Serialize)]
struct SettingCost {
    setting: String,
    value: String,
    hosts: usize,
    cpu_hours_a_host: f64,
    cpu_hours_of_others: f64,
    p_value: f64,
}

/// Answers.
pub fn run(options: &Options) -> Result<Answer> {
    let mut engine = Engine::open(&options.common)?;
    let runs = engine.select(options.common.condition.as_deref())?;
    let units = Units::hosts(&runs);
    let resamples = Resamples::of(units.len());
    let samples = Samples::read(&mut engine, &units, options.event.as_deref())?;
    let hosts = |weights: &[f64]| weights.iter().filter(|&&weight| weight > 0.0).count();
    let rate = |weights: &[f64]| resamples.sum(&units.rates(weights));
    // Samples know the CPU time of what was sampled; where there are none, the runs' own count.
    let sampled = samples.all();
    let cpu: Vec<f64> = match sampled.iter().sum::<f64>() > 0.0 {
        true => sampled,
        false => units.cpu_ns.clone(),
    };
    let cpu_hours = rate(&cpu);
    let causes = causes(
        &mut engine,
        &units,
        &resamples,
        options.rows,
        cpu_hours.value,
    )?;
    let functions = samples.heaviest(options.rows).into_iter().map(|at| {
        let own = samples.own(at);
        FunctionCost {
            function: samples.functions[at].name.clone(),
            module: samples.functions[at].module.clone(),
            hosts: hosts(&own),
            own_cpu_hours: rate(&own),
            total_cpu_hours: units.rates(&samples.with_callees(at)).iter().sum(),
        }
    });
    let functions = functions.collect();
    let paths = samples
        .paths(options.rows)
        .into_iter()
        .map(|(stack, weights)| PathCost {
            stack: stack.into_iter().map(str::to_owned).collect(),
            hosts: hosts(&weights),
            cpu_hours: rate(&weights),
        });
    let paths = paths.collect();
    let settings = costly(
        &Settings::read(&mut engine, &units)?,
        &units.rates(&cpu),
        options.rows,
    );
    let picture = match options.flame.is_some() || options.output.page.is_some() {
        true => {
            let title = format!("{} hosts", units.len());
            let scales = units.scales(0..units.len());
            Some(flame::of(&title, &samples, &scales)?)
        }
        false => None,
    };
    if let (Some(path), Some(picture)) = (&options.flame, &picture) {
        flame::write(path, picture)?;
    }
    let gib: Vec<f64> = units
        .peak_bytes
        .iter()
        .map(|bytes| bytes / (1_u64 << 30) as f64)
        .collect();
    let top = Top {
        hosts: units.len(),
        cpu_hours,
        kernel_cpu_hours: rate(&samples.kernel()),
        peak_gib: resamples.sum(&gib),
        causes,
        functions,
        paths,
        settings,
        scans: engine.scans(),
    };
    let unnamed = (samples.unnamed > 0.0).then(|| {
        let share = samples.unnamed / (samples.unnamed + cpu.iter().sum::<f64>());
        format!(
            "{} of the samples are left out: no readable file has their frames.",
            percent(share)
        )
    });
    let notes = engine
        .notes()
        .into_iter()
        .chain(units.note())
        .chain(unnamed);
    Ok(Answer::new("fleet_top", top.verdict(), &top, top.tables())
        .with_flame(picture)
        .with_notes(notes.collect())
        .without(engine.unusable()))
}

fn causes(
    engine: &mut Engine,
    units: &Units,
    resamples: &Resamples,
    rows: usize,
    whole: f64,
) -> Result<Vec<Cause>> {
    let lost = lost(engine, units)?;
    let mut causes: Vec<Cause> = lost
        .into_iter()
        .map(|(finding, weights)| {
            let cpu_hours = resamples.sum(&units.rates(&weights));
            Cause {
                finding,
                hosts: weights.iter().filter(|&&weight| weight > 0.0).count(),
                share_of_cpu: cpu_hours.value / whole.max(f64::MIN_POSITIVE),
                cpu_hours,
            }
        })
        .collect();
    causes.sort_by(|a, b| b.cpu_hours.value.total_cmp(&a.cpu_hours.value));
    causes.truncate(rows);
    Ok(causes)
}

/// Fewest hosts on either side of a comparison.
const LEAST_HOSTS: usize = 3;

fn costly(settings: &Settings, rates: &[f64], rows: usize) -> Vec<SettingCost> {
    let mut tested = Vec::new();
    for (setting, value, units) in settings.iter() {
        let (with, without): (Vec<_>, Vec<_>) =
            (0..).zip(rates).partition(|(unit, _)| units.contains(unit));
        let rates =
            |part: Vec<(u32, &f64)>| part.into_iter().map(|pair| *pair.1).collect::<Vec<_>>();
        let (with, without) = (rates(with), rates(without));
        if with.len() < LEAST_HOSTS || without.len() < LEAST_HOSTS {
            continue;
        }
        tested.push(SettingCost {
            setting: setting.to_owned(),
            value: value.to_owned(),
            hosts: with.len(),
            cpu_hours_a_host: moments(&with).0,
            cpu_hours_of_others: moments(&without).0,
            p_value: unpaired(&with, &without),
        });
    }
    let p: Vec<f64> = tested.iter().map(|cost| cost.p_value).collect();
    let found = discoveries(&p, FALSE_DISCOVERIES);
    let found = tested
        .into_iter()
        .zip(found)
        .filter(|pair| pair.1)
        .map(|pair| pair.0);
    let mut found: Vec<SettingCost> = found
        .filter(|cost| cost.cpu_hours_a_host > cost.cpu_hours_of_others)
        .collect();
    found.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
    found.truncate(rows);
    found
}

impl Top {
    fn verdict(&self) -> String {
        let busy = format!(
            "{} hosts use {} CPU-hours per day, {} of them in the kernel.",
            self.hosts,
            told(&self.cpu_hours),
            percent(self.kernel_cpu_hours.value / self.cpu_hours.value.max(f64::MIN_POSITIVE))
        );
        match (self.causes.first(), self.functions.first()) {
            (Some(cause), _) => format!(
                "{busy} Most is lost to {}: {} CPU-hours per day on {} hosts.",
                cause.finding,
                told(&cause.cpu_hours),
                cause.hosts
            ),
            (None, Some(first)) => format!(
                "{busy} No finding says what is lost. The function that takes most is {}: {}.",
                first.function,
                told(&first.own_cpu_hours)
            ),
            (None, None) => busy,
        }
    }

    fn tables(&self) -> Vec<Table> {
        let heads = ["CPU-hours per day", "of all", "hosts", "finding"];
        let causes = self.causes.iter().map(|cause| {
            vec![
                told(&cause.cpu_hours),
                percent(cause.share_of_cpu),
                cause.hosts.to_string(),
                cause.finding.clone(),
            ]
        });
        let causes = Table::new("Causes", &heads, causes.collect());
        let heads = [
            "CPU-hours per day",
            "with callees",
            "hosts",
            "function",
            "module",
        ];
        let functions = self.functions.iter().map(|cost| {
            vec![
                told(&cost.own_cpu_hours),
                number(cost.total_cpu_hours),
                cost.hosts.to_string(),
                cost.function.clone(),
                cost.module.clone(),
            ]
        });
        let functions = Table::new("Functions", &heads, functions.collect());
        let paths = self.paths.iter().map(|cost| {
            vec![
                told(&cost.cpu_hours),
                cost.hosts.to_string(),
                innermost(&cost.stack),
            ]
        });
        let heads = ["CPU-hours per day", "hosts", "stack"];
        let paths = Table::new("Stacks", &heads, paths.collect());
        let settings = self.settings.iter().map(|cost| {
            vec![
                number(cost.cpu_hours_a_host),
                number(cost.cpu_hours_of_others),
                cost.hosts.to_string(),
                format!("{} = {}", cost.setting, cost.value),
            ]
        });
        let heads = [
            "CPU-hours per day and host",
            "of the others",
            "hosts",
            "setting",
        ];
        let title = "Settings whose hosts use more";
        let settings = Table::new(title, &heads, settings.collect());
        vec![causes, functions, paths, settings]
    }
}
