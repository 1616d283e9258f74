//! All that is said of recordings, traces and experiments, field by field: a change of an answer
//! shows here, wanted or not.
//!
//! `UPDATE_GOLDEN=1 cargo test -p pagewise-analyse --test answers` writes `fixtures/answers` anew.
//! Names of code are those that it had when it was recorded (`fixtures/recordings/names.json.zst`);
//! where it had none, they are made of addresses, for the files that ran are not there. Experiments
//! are made up, by a generator with a seed.
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
