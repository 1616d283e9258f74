//! A finished session as data.

use super::session::Session;
use anyhow::Result;
use pagewise_answer::balance_verdict::{Evidence, verdict};
use pagewise_linux::hugepages::vmm;
use pagewise_linux::proc::ProcRoot;
use pagewise_linux::pseudo_file;
use pagewise_model::answer::Document;
use pagewise_model::balance::{
    Balance, BalancedProcess, Changes, GuestRange, HugeVerdict, Refused,
};
use pagewise_model::units::{Bytes, Nanos};
use std::path::Path;

/// How many pages of a slot may be missing where khugepaged makes it huge.
const MOST_MISSING: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none";

impl Session<'_> {
    /// All results of the session.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn conclude(mut self) -> Result<Document<Balance>> {
        self.budget.update(
            std::time::Instant::now(),
            pagewise_linux::sys::machine::thread_cpu_time(),
        );
        // For a program that has ended, its last known state is used.
        let after = match self.population.pids().is_empty() || !self.population.is_alive() {
            true => self.last,
            false => self.state(),
        };
        let (verdict, sentence) = self.verdict();
        self.note_what_is_odd();
        let deeds = &self.population.deeds;
        let processes = self.processes()?;
        let journals = match self.plan.restore || !self.population.is_alive() {
            true => Vec::new(),
            false => self.population.journals(),
        };
        let notes = std::mem::take(&mut self.notes);
        let found = Balance {
            processes,
            applied: self.plan.acts,
            elapsed: self.started.elapsed().into(),
            huge_page: self.huge_page(),
            signal: self.signal.label(),
            walk_events: self.walk_events(),
            no_counters: self.signal.no_counters.clone(),
            controller: self.controller_name.to_owned(),
            max_rss: self.plan.max_rss,
            before: self.before,
            after,
            peak_rss: self.peak_rss,
            built: changes(&deeds.collapses),
            split: changes(&deeds.splits),
            refused: deeds
                .refusals
                .iter()
                .map(|(why, &count)| Refused {
                    reason: why.label().to_owned(),
                    count,
                })
                .collect(),
            fights: self.population.fights(),
            controller_cpu: self.budget.spent(),
            verdict,
            journals: journals
                .iter()
                .map(|path| path.display().to_string())
                .collect(),
            points: self.points,
        };
        Ok(Document::new(found)
            .with_verdict(sentence)
            .with_notes(notes))
    }

    fn verdict(&mut self) -> (HugeVerdict, String) {
        let sum = self.population.summary();
        let growth = match self.plan.acts {
            // The growth due to building, without the program's own.
            true => self.population.growth_by_us() + sum.growth,
            false => sum.growth,
        };
        // When a program ends, its map is gone.
        let seen = self.points.iter().map(|point| point.possible).max();
        let blind = self
            .points
            .iter()
            .all(|point| point.cost_ns.is_none() && point.walk_share.is_none());
        // A chase adds nothing if there is a better signal, and takes a while.
        let chase = match blind || !self.plan.acts {
            true => self.chase(),
            false => None,
        };
        verdict(&Evidence {
            pairs: &self.pairs,
            proves: self.plan.prove,
            points: &self.points,
            growth,
            slots: (sum.huge + sum.small).max(seen.unwrap_or(0)),
            huge: match sum.huge + sum.small {
                0 => self.last.huge,
                _ => sum.huge,
            },
            chase,
        })
    }

    fn huge_page(&self) -> Bytes {
        let first = self.population.members.first();
        first.map_or(Bytes(2 << 20), |member| member.map.huge_page)
    }

    fn walk_events(&self) -> Option<String> {
        let table = self.signal.table.as_ref()?;
        self.signal
            .no_counters
            .is_none()
            .then(|| format!("{} ({})", table.name, table.source))
    }

    fn processes(&self) -> Result<Vec<BalancedProcess>> {
        let proc = ProcRoot::default();
        let mut found = Vec::new();
        for member in &self.population.members {
            let monitor = vmm::monitor(&proc, member.target.pid(), &member.map)?;
            let memory = monitor.map(|monitor| monitor.memory).unwrap_or_default();
            found.push(BalancedProcess {
                pid: member.target.pid(),
                comm: member.comm.clone(),
                map: member.history.map(member.map.huge_page),
                guest_memory: memory
                    .into_iter()
                    .map(|memory| GuestRange {
                        start: format!("{:#x}", memory.start),
                        length: memory.length,
                        misaligned_by: memory.misaligned_by,
                    })
                    .collect(),
            });
        }
        Ok(found)
    }

    fn note_what_is_odd(&mut self) {
        for (pid, why) in &self.population.unreachable {
            self.notes
                .push(format!("Process {pid} was left out: {why}"));
        }
        let fights = self.population.fights();
        if fights > 0 {
            self.notes.push(format!(
                "{fights} slots were changed back by others (khugepaged, reclaim, or the program) and left alone. A program started with --only-ours gets only the huge pages that it requests."
            ));
        }
        if let (slots @ 1.., added) = self.population.filled_by_others() {
            let most = pseudo_file::setting(Path::new(MOST_MISSING));
            let most = most.map_or_else(String::new, |most| format!(" (here {most})"));
            self.notes.push(format!(
                "khugepaged made {slots} slots huge of which parts were not in memory, and so added {added} that the program had released or never touched. It does that where {MOST_MISSING} is above 0{most}; with 0 it builds huge pages only where all pages are there."
            ));
        }
        for obstacle in self.population.obstacles() {
            self.notes.push(obstacle);
        }
        // A comparison has no budget, and decides whatever the controller left undone.
        if !self.budget.has_cpu() && self.pairs.is_empty() {
            self.notes.push(
                "The controller used up its CPU time, so it acted less than it could have: raise --max-cpu."
                    .to_owned(),
            );
        }
        if self.points.iter().all(|point| point.cost_ns.is_none()) && !self.points.is_empty() {
            self.notes.push(self.signal.remedy());
        }
    }
}

fn changes(times: &[u64]) -> Changes {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = |share: usize| {
        sorted
            .get(sorted.len() * share / 100)
            .map(|&time| Nanos(time))
    };
    Changes {
        count: sorted.len() as u64,
        median: at(50),
        p95: at(95),
    }
}
