//! What must hold of every profile, whatever bytes it was read from.

use pagewise_model::profile::Profile;

/// Times in order, columns of one length, and numbers that name what there is.
pub fn check(profile: &Profile) {
    assert!(profile.samples.times.iter().is_sorted());
    for sample in profile.samples.iter() {
        assert!((sample.thread as usize) < profile.threads.len());
        assert!(usize::from(sample.event) < profile.events.len());
        for frame in profile.stacks.frames(sample.stack) {
            assert!((frame.0 as usize) < profile.frames.len());
        }
    }
}
