//! Synthetic runs of two arms: what is compared, promised, judged and reported.

use crate::held::holds;
use crate::recordings::analysed;
use pagewise_compare::gate::{
    Now, Observed, Terms, batch, comparable, culprit, faults_seen, judge, mean,
};
use pagewise_compare::profile_diff::SettingRules;
use pagewise_compare::{
    Criteria, Stopping, causal_doubt, compare, correct_for_many, faster_by, noise, promise,
    promised, sentence,
};
use pagewise_compare::{run_diff, tune};
use pagewise_faults::paging::{Sample, Watched, heat, larger_budget};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::gate::{Baseline, GateHost, GateRun, GateSide, Metric};
use pagewise_model::paging::DistanceBucket;
use pagewise_model::proof::Comparison;
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Nanos};
use pagewise_simulate::tlb::steps as probe;
use pagewise_stats::Random;
use pagewise_stats::centre;
use serde_json::json;
use std::collections::BTreeMap;

/// A program and what changes: times and faults of the arm as multiples of the baseline's.
struct Case {
    seconds: f64,
    faults: f64,
    times: f64,
    system_times: f64,
    faults_times: f64,
    noise: f64,
    pairs: usize,
}

/// All combinations of effects, noise and numbers of pairs.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (times, system_times, faults_times) in [
        (1.0, 1.0, 1.0),
        (0.97, 0.9, 0.9),
        (0.5, 0.2, 0.01),
        (0.9, 1.0, 1.0),
        (1.3, 1.5, 2.0),
    ] {
        for noise in [0.0, 0.01, 0.2] {
            for pairs in [1, 2, 5, 6, 12, 30] {
                cases.push(Case {
                    seconds: 0.4,
                    faults: 60_000.0,
                    times,
                    system_times,
                    faults_times,
                    noise,
                    pairs,
                });
            }
        }
    }
    cases
}

fn around(random: &mut Random, spread: f64) -> f64 {
    let uniform = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
    1.0 + spread * (2.0 * uniform - 1.0)
}

fn cost(random: &mut Random, case: &Case, is_arm: bool) -> RunCost {
    let of = |times: f64| if is_arm { times } else { 1.0 };
    let mut draw = || around(random, case.noise);
    let seconds = case.seconds * of(case.times);
    RunCost {
        wall: Nanos::from_secs_f64(seconds * draw()),
        user: Nanos::from_secs_f64(0.5 * seconds * draw()),
        system: Nanos::from_secs_f64(0.4 * case.seconds * of(case.system_times) * draw()),
        minor_faults: (case.faults * of(case.faults_times) * draw()) as u64,
        major_faults: (20.0 * draw()) as u64,
        max_rss: Bytes((64e6 * of(2.0 - case.times) * draw()) as u64),
        voluntary_switches: (100.0 * draw()) as u64,
        involuntary_switches: (30.0 * draw()) as u64,
    }
}

fn both(random: &mut Random, case: &Case) -> [Vec<RunCost>; 2] {
    let pairs = (0..case.pairs).map(|_| [false, true].map(|is_arm| cost(random, case, is_arm)));
    let (baseline, arm) = pairs.map(|[a, b]| (a, b)).unzip();
    [baseline, arm]
}

#[test]
fn of_pairs_of_runs() {
    let criteria = [
        Criteria::default(),
        Criteria {
            fewer_faults: false,
            max_rss: Some(Bytes(90_000_000)),
            min_gain: 1.05,
            half_width: 0.1,
            level: 0.01,
        },
    ];
    let mut random = Random::seeded(1);
    let mut found = Vec::new();
    for case in cases() {
        let [baseline, arm] = both(&mut random, &case);
        for criteria in &criteria {
            let one = compare("arm", &baseline, &arm, criteria);
            let stopping = Stopping::default().among(3, criteria.level);
            found.push(json!({
                "sentence": sentence(&one),
                "promise": promise(&one, 3, criteria).map(|message| (message.speed, message.by_cpu, message.more_pairs)),
                "promised": promised(&one, 1, criteria),
                "faster_by": faster_by(&one, criteria),
                "enough": [Stopping::default().enough(&one), stopping.enough(&one)],
                "doubt": causal_doubt(&baseline, &arm),
                "noise": noise(&baseline).map(|noise| (noise.wall, noise.cpu)),
                "comparison": one,
            }));
        }
    }
    holds("pairs-of-runs", &found);
}

#[test]
fn of_several_arms() {
    let mut random = Random::seeded(2);
    let criteria = Criteria::default();
    let cases = cases();
    let mut found: Vec<Vec<Comparison>> = Vec::new();
    for pairs in [5, 6, 12, 30] {
        let of_so_many = || cases.iter().filter(|case| case.pairs == pairs);
        for arms in [1, 2, 5, 15] {
            let compared = of_so_many().take(arms).map(|case| {
                let [baseline, arm] = both(&mut random, case);
                compare("arm", &baseline, &arm, &criteria)
            });
            let mut compared: Vec<Comparison> = compared.collect();
            correct_for_many(&mut compared, &criteria);
            found.push(compared);
        }
    }
    let rounds: Vec<Vec<usize>> = found
        .iter()
        .map(|arms| {
            let arms: Vec<(usize, Comparison)> = arms.iter().cloned().enumerate().collect();
            tune::survivors(&arms, 2)
        })
        .collect();
    holds("several-arms", &json!({"arms": found, "survivors": rounds}));
}

#[test]
fn of_gates() {
    let mut random = Random::seeded(3);
    let mut found = Vec::new();
    for (number, case) in cases().into_iter().enumerate() {
        let [old, new] = both(&mut random, &case).map(|runs| {
            let run = |cost: RunCost| GateRun {
                cost,
                peak: (number % 4 != 3).then_some(cost.max_rss),
            };
            runs.into_iter().map(run).collect::<Vec<_>>()
        });
        let barred = match number % 5 {
            4 => BTreeMap::from([(Metric::ElapsedTime, "another host".to_owned())]),
            _ => BTreeMap::new(),
        };
        let allowed = ["2%", "20%,elapsed=off", "0%,faults=5%"][number % 3];
        let terms = Terms {
            allowances: allowed.parse().expect("it is one"),
            barred,
            planned: (case.pairs, case.pairs + number % 2),
        };
        let typical = mean(&old);
        let side = |runs: &[GateRun]| GateSide {
            command: vec!["./app".to_owned()],
            baseline: (number % 7 == 0).then(|| "then.json".to_owned()),
            runs: runs.to_vec(),
        };
        found.push(json!({
            "gate": judge(&terms, side(&old), side(&new)),
            "open": (1..=case.pairs).map(|at| terms.is_open(&old[..at], &new[..at])).collect::<Vec<_>>(),
            "few": terms.too_few(),
            "typical": typical,
            "batch": batch(Nanos(typical.cost.wall.0 / 100)),
        }));
    }
    holds("gates", &found);
}

#[test]
fn of_stored_runs_elsewhere() {
    let host = GateHost {
        hostname: "one".into(),
        kernel: "6.1".into(),
        architecture: "x86_64".into(),
        cpu: "a CPU".into(),
        cpus: 4,
        page_size: 4096,
        huge_pages: Some("madvise".into()),
        c_library: Some("glibc 2.36".into()),
    };
    let changes: [fn(&mut GateHost); 9] = [
        |_| (),
        |host| host.hostname = "two".into(),
        |host| host.kernel = "6.12".into(),
        |host| host.architecture = "aarch64".into(),
        |host| host.cpu = "another CPU".into(),
        |host| host.cpus = 8,
        |host| host.page_size = 16_384,
        |host| host.huge_pages = None,
        |host| host.c_library = None,
    ];
    let mut found = Vec::new();
    for change in changes {
        for (then, now) in [
            (Some(0.0), Some(0.25)),
            (Some(0.26), Some(0.0)),
            (Some(0.25), Some(0.3)),
            (None, Some(0.1)),
            (Some(0.1), None),
        ] {
            let mut other = host.clone();
            change(&mut other);
            let baseline = Baseline {
                host: other,
                made_unix_ms: 0,
                contended: then,
                batch: 1,
                runs: Vec::new(),
                faults: None,
            };
            let baseline = Document::new(baseline).about(Subject::of_command(vec!["app".into()]));
            for command in ["app", "other"] {
                let command = [command.to_owned()];
                let now = Now {
                    host: &host,
                    command: &command,
                    contended: now,
                };
                let message = comparable(&baseline, now);
                found.push((message.refused, message.times, message.warnings));
            }
        }
    }
    holds("stored-runs", &found);
}

/// A run compared with itself with one of its costs a little, more or much larger or smaller.
#[test]
fn of_runs_that_cost_more() {
    let findings = analysed("churn").findings().expect("the rules are right");
    let rules = SettingRules::shipped().expect("the rules are right");
    type Change = fn(&mut RunCost, f64);
    let changes: [(&str, Change); 6] = [
        ("user", |cost, by| {
            cost.user = Nanos((cost.user.0 as f64 * by) as u64)
        }),
        ("system", |cost, by| {
            cost.system = Nanos((cost.system.0 as f64 * by) as u64)
        }),
        ("wall", |cost, by| {
            cost.wall = Nanos((cost.wall.0 as f64 * by) as u64)
        }),
        ("faults", |cost, by| {
            cost.minor_faults = (cost.minor_faults as f64 * by) as u64
        }),
        ("major", |cost, by| cost.major_faults += (by * 60.0) as u64),
        ("memory", |cost, by| {
            cost.max_rss = Bytes((cost.max_rss.0 as f64 * by) as u64)
        }),
    ];
    let mut found = Vec::new();
    for length in [1.0, 40.0] {
        for contended in [0.0, 0.1, 1.0] {
            for (what, change) in changes {
                for by in [0.1, 0.8, 0.95, 1.0, 1.08, 1.15, 1.3, 2.0, 30.0] {
                    let mut one = findings.clone();
                    for (_, change) in changes {
                        change(&mut one.cost, length);
                    }
                    let mut other = one.clone();
                    change(&mut other.cost, by);
                    let side = |name, findings| run_diff::Run {
                        name,
                        findings,
                        contended,
                    };
                    let message = run_diff::compare(side("a", &one), side("b", &other), &rules);
                    found.push((
                        what,
                        by,
                        message.map(|message| (message.verdict, message.evidence.figures)),
                    ));
                }
            }
        }
    }
    holds("runs-that-cost-more", &found);
}

/// The reasons for growth, between recordings that differ in everything and in size.
#[test]
fn of_what_grew() {
    let names = ["churn", "kinds", "fork", "huge", "allocator", "each"];
    let findings = names.map(|name| analysed(name).findings().expect("the rules are right"));
    let mut found = Vec::new();
    for (a, old) in names.iter().zip(&findings) {
        for (b, new) in names.iter().zip(&findings) {
            let (Some(before), Some(after)) = (faults_seen(old, None), faults_seen(new, Some(old)))
            else {
                continue;
            };
            let of = |faults, findings: &pagewise_model::findings::Findings| Observed {
                faults,
                total: findings.cost.faults() as f64,
            };
            let message = culprit(of(&before, old), of(&after, new));
            found.push((a, b, message));
        }
    }
    holds("what-grew", &found);
}

#[test]
fn of_budgets_and_heat() {
    let mut random = Random::seeded(4);
    let mut found = Vec::new();
    for samples in [0, 49, 50, 400, 20_000] {
        for pages in [30, 5_000] {
            let mut to_pages = 16;
            let buckets: Vec<DistanceBucket> = (0..8)
                .map(|_| {
                    let from_pages = to_pages;
                    to_pages *= 4;
                    DistanceBucket {
                        from_pages,
                        to_pages,
                        ahead: random.below(50) as u64,
                        refaults: random.below(2_000) as u64,
                    }
                })
                .collect();
            let sample = Sample {
                samples,
                squares: 64 * samples,
                pages,
            };
            let larger = larger_budget(&buckets, &sample, 90_000, 4096);
            let watched = Watched {
                soon_of: samples,
                soon: samples / 3,
                written: samples / 7,
                later_of: samples / 2,
                later: samples / 4,
            };
            found.push((larger, heat(&watched)));
        }
    }
    holds("budgets", &found);
}

#[test]
fn of_readings() {
    let mut random = Random::seeded(5);
    let mut found = Vec::new();
    for spread in [0.0, 0.05, 0.5] {
        for count in [1, 2, 5, 40] {
            let mut readings = |level: f64| -> Vec<f64> {
                (0..count)
                    .map(|_| level * around(&mut random, spread))
                    .collect()
            };
            let (low, high) = (readings(10.0), readings(13.0));
            let differences: Vec<f64> = low.iter().zip(&high).map(|(a, b)| b - a).collect();
            let mut draw = Random::seeded(6);
            found.push(json!({
                "value": probe::value(&low),
                "estimate": probe::estimate(&low, &mut draw),
                "ratio": probe::ratio(&high, &low, &mut draw),
                "centre": centre(&differences).map(|one| (one.median, one.low, one.high)),
            }));
        }
    }
    holds("readings", &found);
}
