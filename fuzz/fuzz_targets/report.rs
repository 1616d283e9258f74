//! Any bytes: read, analysed and rendered as `pagewise report` does, but for names of addresses.
//! Times and counts of all sizes are among the bytes, so what they lead to must stay small:
//! `-rss_limit_mb=1024 -timeout=20`, as fuzz/smoke sets them.
#![no_main]

mod columns;

use libfuzzer_sys::fuzz_target;
use pagewise_answer::plan::Rules;
use pagewise_faults::Attributor;
use pagewise_formats::perf_data::PerfData;
use pagewise_formats::{folded, function_graph, perf_script, trace_dat};
use pagewise_model::profile::Profile;
use pagewise_model::recording::Sidecar;
use pagewise_model::recording::Surroundings;
use pagewise_model::symbol::{Name, NamedList, SymbolTable, Unnamed};
use pagewise_profile::{ProfileCollector, ProfileRules, summarise};
use pagewise_report::exports::{folded_stacks, samples};
use pagewise_report::html::{render, render_fault_paths, render_profile};
use pagewise_report::text::{self, Style};
use pagewise_traces::fault_paths::{self, Collector};
use std::io::sink;

const WIDTH: usize = 100;
const STYLE: Style = Style {
    color: true,
    unicode: true,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(data) = PerfData::parse(bytes) {
        recording(&data);
    } else if bytes.starts_with(trace_dat::MAGIC) {
        let mut collector = Collector::default();
        if let Ok(trace) = trace_dat::TraceDat::parse(bytes) {
            let summary = trace.read(&mut collector);
            trace_of(&collector, &summary);
        }
    } else if function_graph::looks_like(bytes) {
        let mut collector = Collector::default();
        let cores = function_graph::Cores {
            threads: 1,
            piece: 1 << 16,
        };
        let summary = function_graph::read_on(cores, bytes, &mut collector);
        trace_of(&collector, &summary.expect("memory is readable"));
    } else if perf_script::looks_like(bytes) {
        profile(&perf_script::read(bytes).expect("memory is readable"));
    } else {
        profile(&folded::read(bytes).expect("memory is readable"));
    }
});

fn recording(data: &PerfData<'_>) {
    let sidecar = data.sidecar().cloned().unwrap_or_default();
    let mut attributor = Attributor::new(data.sources(), &sidecar);
    let mut collector = ProfileCollector::new(data.sources(), |_| true);
    data.read(
        |event| {
            attributor.event_with_chain(&event, None);
            collector.event_with_chain(&event, None);
        },
        |_| (),
    );
    let found = collector.finish(&NamedList::default());
    profile(&found);
    faults(attributor, &sidecar, &found);
}

fn faults(attributor: Attributor, sidecar: &Sidecar, profile: &Profile) {
    let attribution = attributor.finish();
    let keys = attribution.frame_keys();
    let mut named = NamedList::default();
    let nowhere = named.names.intern(Name::Unknown {
        reason: Unnamed::NoMapping,
        module: String::new(),
    });
    named.of = vec![nowhere; keys.len()];
    let names = SymbolTable::new(&keys, named);
    let rules = Rules::shipped().expect("shipped rules are right");
    let around = Surroundings::default();
    let findings = pagewise_answer::findings(
        &attribution,
        &names,
        sidecar,
        Some(profile),
        &rules,
        &around,
    );
    let _ = text::render(&findings, WIDTH, STYLE);
    let _ = pagewise_report::json::to_string(&findings);
    let _ = render(&findings);
}

fn profile(profile: &Profile) {
    columns::check(profile);
    let rules = ProfileRules::shipped().expect("shipped rules are right");
    let findings = summarise(profile, &rules);
    let _ = text::profile::render(&findings, WIDTH, STYLE);
    let _ = pagewise_report::json::to_string(&findings);
    let _ = render_profile(profile, &findings, "fuzz");
    for event in (0..profile.events.len()).filter_map(|at| u16::try_from(at).ok()) {
        folded_stacks::write(profile, event, &mut sink()).expect("a sink takes all");
    }
    samples::write_csv(profile, &mut sink()).expect("a sink takes all");
}

fn trace_of(collector: &Collector, summary: &function_graph::Summary) {
    let calibration = fault_paths::estimate(collector);
    let findings = fault_paths::analyse(collector, summary, calibration);
    let _ = pagewise_report::fault_paths::render(&findings, WIDTH, STYLE);
    let _ = pagewise_report::json::to_string(&findings);
    let _ = render_fault_paths(&findings, "fuzz");
}
