//! Prints the page of a generated profile: `cargo run -p pagewise-report --example sample_profile
//! -- SAMPLES`. A load of three threads with a stall of one second at the fifth, in which
//! `copy_user` burns one of them.

use pagewise_model::profile::{
    Frame, FrameId, FrameKind, Profile, ProfileEvent, ProfileSample, ProfileThread, WeightUnit,
};
use pagewise_model::units::Nanos;

const SECONDS: u64 = 20;
const NAMES: [&str; 6] = [
    "main",
    "serve",
    "parse",
    "tcp_recvmsg",
    "copy_user",
    "<b>idle</b>",
];
const STALL: std::ops::Range<u64> = 5_000_000_000..6_000_000_000;

fn main() -> Result<(), String> {
    let argument = std::env::args().nth(1);
    let samples = argument.map_or(Ok(10_000), |text| text.parse::<u64>());
    let samples = samples.map_err(|error| format!("SAMPLES: {error}"))?;
    let page = pagewise_report::html::render_profile(&profile(samples), "generated", "a profile");
    print!("{}", page.map_err(|error| error.to_string())?);
    Ok(())
}

fn profile(samples: u64) -> Profile {
    let frame = |name: &str| Frame {
        name: name.into(),
        module: if name.contains('_') {
            "[kernel]"
        } else {
            "server"
        }
        .into(),
        kind: FrameKind::User,
        unnamed: None,
    };
    let thread = |tid: i32| ProfileThread {
        pid: 100,
        tid,
        comm: "server".into(),
    };
    let mut profile = Profile {
        frames: NAMES.map(frame).into(),
        threads: [100, 101, 102].map(thread).into(),
        events: vec![ProfileEvent {
            name: "cpu-clock".to_owned(),
            unit: WeightUnit::Samples,
            frequency: Some(99),
        }],
        start: Nanos(1_700_000_000_250_000_000),
        span: Nanos(SECONDS * 1_000_000_000),
        has_times: true,
        ..Profile::default()
    };
    let stacks: [&[u32]; 4] = [&[0, 1, 2], &[0, 1, 3], &[0, 1, 3, 4], &[0, 5]];
    let nodes = stacks.map(|stack| profile.stacks.intern(stack.iter().map(|&id| FrameId(id))));
    let mut noise = 1_u64;
    for at in 0..samples {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let time = SECONDS * 1_000_000_000 / samples * at;
        let thread = u32::try_from(noise >> 33).unwrap_or(0) % 3;
        let stack = match STALL.contains(&time) && thread == 1 {
            true => 2,
            false => [0, 1, 0, 3][(noise >> 40) as usize % 4],
        };
        profile.samples.push(ProfileSample {
            time,
            thread,
            cpu: 0,
            event: 0,
            weight: 1,
            stack: nodes[stack],
        });
    }
    profile
}
