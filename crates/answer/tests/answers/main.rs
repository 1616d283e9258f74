//! All answers about recordings, traces and experiments, field by field: any change of an answer
//! shows here, intended or not.
//!
//! `UPDATE_GOLDEN=1 cargo test -p pagewise-answer --test answers` rewrites `fixtures/answers`.
//! Names of code are those at the time of the recording (`fixtures/recordings/names.json.zst`);
//! without one, they are made from addresses, because the files that ran are not available.
//! Experiments are synthetic, from a seeded generator.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times, counts and sizes that are made up"
)]

mod experiments;
mod held;
mod plans;
mod recordings;
mod traces;
