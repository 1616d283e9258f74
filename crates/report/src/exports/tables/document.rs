//! What every document has: the run, its host and settings, what is missing, what is wrong.

use super::identity::{self, Identifier};
use super::{Figures, Tables, schema};
use crate::exports::parquet::Value;
use pagewise_model::advice::Advice;
use pagewise_model::answer::{Document, Kind, Subject};
use pagewise_model::findings::{Diagnosis, Run};
use pagewise_model::host::HostSnapshot;
use pagewise_model::loss::Losses;
use pagewise_model::proof::{Clock, Comparison, Proof, Verdict};
use pagewise_model::units::Estimate;
use serde::Serialize;
use std::io;

/// The part of a document that all kinds share.
pub(super) struct Head<'a> {
    kind: Kind,
    subject: &'a Subject,
    host: &'a HostSnapshot,
    verdict: &'a str,
    diagnoses: &'a [Diagnosis],
    advice: &'a [Advice],
    proof: Option<&'a Proof>,
    losses: &'a Losses,
}

impl<'a> Head<'a> {
    pub(super) fn new<E>(document: &'a Document<E>) -> Self {
        Self {
            kind: document.kind,
            subject: &document.subject,
            host: &document.host,
            verdict: &document.verdict,
            diagnoses: &document.diagnoses,
            advice: &document.advice,
            proof: document.proof.as_ref(),
            losses: &document.losses,
        }
    }

    /// The same for the same recording, however often and wherever it is exported.
    pub(super) fn identifier(&self, figures: &Figures) -> Identifier {
        let command = self.subject.command.join("\0");
        let pids = format!("{:?}", self.subject.pids);
        let figures = format!("{figures:?}");
        let parts = [
            &*name_of(&self.kind),
            &self.host.hostname,
            &self.host.kernel,
            &command,
            &pids,
            &figures,
            self.verdict,
        ];
        identity::of_parts(parts.map(str::as_bytes))
    }

    pub(super) fn write(&self, figures: &Figures, tables: &mut Tables) -> io::Result<()> {
        self.write_run(figures, tables)?;
        let (host, include) = (self.host, tables.include);
        tables.table("settings", schema::SETTINGS, |rows| {
            for (name, value) in &host.settings {
                let value = include.setting(name, value);
                rows.of_run(&[Value::Text(name), Value::Text(&value)])?;
            }
            Ok(())
        })?;
        tables.table("losses", schema::LOSSES, |rows| {
            for (kind, count) in self.losses.iter() {
                rows.of_run(&[Value::Text(&name_of(&kind)), Value::Integer(count)])?;
            }
            Ok(())
        })?;
        self.write_findings(tables)
    }

    fn write_run(&self, figures: &Figures, tables: &mut Tables) -> io::Result<()> {
        let (host, include) = (self.host, tables.include);
        let cost = figures.cost;
        let command = include.command(&self.subject.command);
        let hash = (!self.subject.command.is_empty())
            .then(|| identity::hexadecimal(&identity::of_text(&self.subject.command.join(" "))));
        let program = self.subject.command.first().map_or("", |path| short(path));
        let verdict = include.sentence(self.verdict);
        let known = |number: u64| Value::Optional((number > 0).then_some(number));
        tables.table("runs", schema::RUNS, |rows| {
            rows.of_run(&[
                Value::Integer(schema::VERSION),
                Value::Text(&name_of(&self.kind)),
                Value::Text(figures.scope),
                Value::Optional(figures.started_unix_ms),
                Value::Optional(figures.elapsed.map(|time| time.0)),
                Value::Optional(cost.map(|cost| cost.cpu()).or(figures.cpu).map(|cpu| cpu.0)),
                Value::Optional(cost.map(|cost| cost.system.0)),
                Value::Optional(cost.map(|cost| cost.minor_faults)),
                Value::Optional(cost.map(|cost| cost.major_faults)),
                Value::Optional(cost.map(|cost| cost.max_rss.0)),
                Value::Text(&host.hostname),
                Value::Text(&host.kernel),
                Value::Text(&host.architecture),
                Value::Text(&host.cpu),
                known(host.cpus.into()),
                known(host.memory_bytes),
                known(host.page_size),
                Value::Text(program),
                Value::OptionalText(command.as_deref()),
                Value::OptionalText(hash.as_deref()),
                Value::Text(&verdict),
                Value::Integer(self.losses.iter().map(|(_, count)| count).sum()),
            ])
        })
    }

    /// A row per diagnosis with the first advice that cures it, and one per advice left over.
    fn write_findings(&self, tables: &mut Tables) -> io::Result<()> {
        let include = tables.include;
        let cure = |id: &String| self.advice.iter().find(|advice| advice.cures.contains(id));
        let message = |advice: &Advice| {
            let first = |found: &Diagnosis| cure(&found.id).is_some_and(|at| at == advice);
            self.diagnoses.iter().any(first)
        };
        tables.table("findings", schema::FINDINGS, |rows| {
            for found in self.diagnoses {
                rows.of_run(
                    &self.finding(
                        &found.id,
                        &name_of(&found.severity),
                        &include.sentence(&found.headline),
                        [found.share_of_cpu, found.share_of_elapsed],
                        cure(&found.id),
                        cure(&found.id)
                            .map(|advice| include.sentence(&advice.headline).into_owned())
                            .as_deref(),
                    ),
                )?;
            }
            for advice in self.advice.iter().filter(|advice| !message(advice)) {
                let headline = include.sentence(&advice.headline);
                let finding = advice.cures.first().map_or("", String::as_str);
                let row =
                    self.finding(finding, "", "", [None, None], Some(advice), Some(&headline));
                rows.of_run(&row)?;
            }
            Ok(())
        })
    }

    fn finding<'v>(
        &self,
        id: &'v str,
        severity: &'v str,
        headline: &'v str,
        shares: [Option<Estimate>; 2],
        advice: Option<&'v Advice>,
        advice_headline: Option<&'v str>,
    ) -> [Value<'v>; 19] {
        let proved = advice.and_then(|advice| self.proved(advice));
        let (speed_up, from) = match (proved, advice) {
            (Some(proved), _) => (Some(*Clock::Cpu.speed_up(proved)), Some("proved")),
            (None, Some(advice)) => (Some(advice.predicted_speedup), Some("predicted")),
            (None, None) => (None, None),
        };
        let [cpu, elapsed] = shares.map(bounds);
        let [speed, speed_low, speed_high] = bounds(speed_up);
        [
            Value::Text(id),
            Value::Text(severity),
            Value::Text(headline),
            cpu[0],
            cpu[1],
            cpu[2],
            elapsed[0],
            elapsed[1],
            elapsed[2],
            Value::OptionalText(advice.map(|advice| &*advice.rule)),
            Value::OptionalText(advice_headline),
            Value::OptionalText(advice.map(risk)),
            speed,
            speed_low,
            speed_high,
            Value::OptionalText(from),
            Value::OptionalReal(advice.map(|advice| advice.faults_avoided)),
            Value::Optional(advice.map(|advice| advice.rss_price.0)),
            Value::OptionalReal(proved.map(|proved| -proved.rss_change_bytes)),
        ]
    }

    /// The comparison that tried this advice to an end.
    fn proved(&self, advice: &Advice) -> Option<&Comparison> {
        let (proof, name) = (self.proof?, advice.name());
        let confirmed = proof.confirmation.iter().filter(|found| found.arm == name);
        let mut tried = confirmed.chain(proof.comparisons.iter().filter(|found| found.arm == name));
        tried.find(|found| {
            !matches!(
                found.verdict,
                Verdict::Undecided | Verdict::NotReached | Verdict::TriedOnce
            )
        })
    }
}

/// What an observed run's time and memory went to.
pub(super) fn write_accounts(run: &Run, tables: &mut Tables) -> io::Result<()> {
    let account = &run.account;
    let mut lines: Vec<(&str, &str, Estimate)> = Vec::new();
    let parts = [
        ("cpu", &account.cpu),
        ("elapsed", &account.elapsed),
        ("faults", &account.faults),
    ];
    for (name, parts) in parts {
        lines.extend(parts.iter().map(|part| (name, &*part.id, part.time)));
    }
    let entries = account.entries.iter();
    lines.extend(entries.map(|entry| ("kernel", &*entry.id, entry.time)));
    let work = account.work.iter();
    lines.extend(work.map(|work| ("kernel_work", &*work.id, work.time)));
    if let Some(delays) = &account.delays {
        let counted = [
            ("ready", delays.ready),
            ("disk", delays.disk),
            ("swap", delays.swap),
            ("reclaim", delays.reclaim),
            ("thrashing", delays.thrashing),
            ("compaction", delays.compaction),
            ("copying", delays.copying),
        ];
        for (part, delay) in counted {
            let time = delay.map(|delay| Estimate::exact(delay.time.0 as f64));
            lines.extend(time.map(|time| ("delays", part, time)));
        }
    }
    let causes: Vec<(String, Estimate)> = run
        .by_cause
        .iter()
        .map(|share| (name_of(&share.key), share.faults))
        .collect();
    let regions: Vec<(String, Estimate)> = run
        .by_region
        .iter()
        .map(|share| (name_of(&share.key), share.faults))
        .collect();
    let memory = [
        ("peak", run.cost.max_rss.0),
        ("churn", run.churn.bytes.0),
        ("huge", run.huge_pages.map_or(0, |huge| huge.held.0)),
    ];
    tables.table("accounts", schema::ACCOUNTS, |rows| {
        let mut line = |account: &str, part: &str, unit: &str, amount: Estimate| {
            rows.of_run(&[
                Value::Text(account),
                Value::Text(part),
                Value::Text(unit),
                Value::Real(amount.value),
                Value::Real(amount.low),
                Value::Real(amount.high),
            ])
        };
        for (account, part, time) in lines {
            line(account, part, "ns", time)?;
        }
        for (part, faults) in &causes {
            line("causes", part, "faults", *faults)?;
        }
        for (part, faults) in &regions {
            line("regions", part, "faults", *faults)?;
        }
        for (part, bytes) in memory.into_iter().filter(|(_, bytes)| *bytes > 0) {
            line("memory", part, "bytes", Estimate::exact(bytes as f64))?;
        }
        Ok(())
    })
}

fn bounds(estimate: Option<Estimate>) -> [Value<'static>; 3] {
    [
        Value::OptionalReal(estimate.map(|estimate| estimate.value)),
        Value::OptionalReal(estimate.map(|estimate| estimate.low)),
        Value::OptionalReal(estimate.map(|estimate| estimate.high)),
    ]
}

fn risk(advice: &Advice) -> &'static str {
    use pagewise_model::advice::Risk;
    match advice.risk {
        Risk::Low => "low",
        Risk::Medium => "medium",
        Risk::High => "high",
    }
}

/// The last part of a path.
fn short(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The name of a kind in the JSON.
pub(super) fn name_of(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}
