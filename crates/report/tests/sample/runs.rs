//! Costs of single runs, and the experiment over them.

use super::{Noise, estimate};
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::proof::{Arm, Comparison, Proof, Verdict};
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Nanos};

/// The observed run.
pub fn baseline_cost() -> RunCost {
    RunCost {
        wall: Nanos(2_312_000_000),
        user: Nanos(549_000_000),
        system: Nanos(1_738_000_000),
        minor_faults: 760_838,
        major_faults: 3,
        max_rss: Bytes(11_534_336),
        voluntary_switches: 4,
        involuntary_switches: 231,
    }
}

fn runs(noise: &mut Noise, user: f64, system: f64, faults: f64, rss: u64) -> Vec<RunCost> {
    let secs = |mean: f64, noise: &mut Noise| {
        Nanos::from_secs_f64(mean * (1.0 + 0.035 * noise.normal()).max(0.5))
    };
    (0..9)
        .map(|_| {
            let (user, system) = (secs(user, noise), secs(system, noise));
            RunCost {
                wall: user + system + Nanos((12e6 + 9e6 * noise.unit()) as u64),
                user,
                system,
                minor_faults: (faults * (1.0 + 0.001 * noise.normal())) as u64,
                major_faults: 0,
                max_rss: Bytes(rss + (noise.unit() * 120e3) as u64),
                voluntary_switches: 3,
                involuntary_switches: 200,
            }
        })
        .collect()
}

fn knobs() -> Settings {
    let tunable = |name: &str, value: &str| Setting::GlibcTunable {
        name: name.into(),
        value: value.into(),
    };
    Settings(vec![
        tunable("glibc.malloc.trim_threshold", "1048576"),
        tunable("glibc.malloc.mmap_threshold", "33554432"),
    ])
}

fn comparison(arm: &str, verdict: Verdict, speedup: [f64; 3], fault_ratio: f64) -> Comparison {
    let [value, low, high] = speedup;
    Comparison {
        arm: arm.into(),
        wall_speedup: estimate(value, low, high),
        cpu_speedup: estimate(value * 1.01, low * 1.01, high * 1.01),
        fault_ratio: estimate(fault_ratio, fault_ratio * 0.999, fault_ratio * 1.001),
        rss_change_bytes: 278_528.0,
        p_adjusted: if verdict == Verdict::Faster {
            0.0039
        } else {
            0.62
        },
        pairs: 9,
        verdict,
    }
}

/// Two arms against the baseline; the first wins and is confirmed.
pub fn proof() -> Proof {
    let mut noise = Noise(3);
    let arm = |name: &str, settings, runs| Arm {
        name: name.into(),
        settings,
        runs,
        failed: None,
    };
    let one_knob = Settings(vec![knobs().0.remove(1)]);
    Proof {
        arms: vec![
            arm(
                "as it is",
                Settings::default(),
                runs(&mut noise, 0.55, 1.74, 760_841.0, 11_534_336),
            ),
            arm(
                "both thresholds",
                knobs(),
                runs(&mut noise, 0.274, 0.006, 951.0, 11_812_864),
            ),
            arm(
                "mmap_threshold only",
                one_knob,
                runs(&mut noise, 0.56, 1.79, 760_900.0, 11_534_336),
            ),
        ],
        comparisons: vec![
            comparison("both thresholds", Verdict::Faster, [7.9, 7.2, 8.6], 0.00125),
            comparison(
                "mmap_threshold only",
                Verdict::NoDifference,
                [0.97, 0.93, 1.02],
                1.0,
            ),
            Comparison {
                pairs: 0,
                p_adjusted: 1.0,
                ..comparison(
                    "jemalloc",
                    Verdict::Undecided,
                    [1.0, 0.0, f64::MAX / 2.0],
                    1.0,
                )
            },
        ],
        winner: Some("both thresholds".into()),
        confirmation: Some(comparison(
            "both thresholds",
            Verdict::Faster,
            [7.9, 7.3, 8.5],
            0.00125,
        )),
        summary:
            "Proved: 7.9 times as fast (95 % interval 7.3 to 8.5) over 9 fresh pairs of runs; \
                  faults fell from 760,841 to 951, peak memory rose by 272 KiB."
                .into(),
        notes: vec!["The machine was noisy: single runs differ by up to 11 %.".into()],
    }
}
