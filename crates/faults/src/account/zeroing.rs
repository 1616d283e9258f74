//! CPU time in which memory is zeroed for calloc: malloc must clear a block that it had kept, whatever
//! the program uses of it.

use pagewise_model::profile::{Frame, FrameKind, NodeId, Profile};

/// Frames behind the one that zeroes, in which a function of this kind is looked for: a chain of frame
/// pointers lacks the caller of a function that has no frame.
const NEAR: usize = 2;

/// The function that requests the zeroed memory, where the innermost code zeroes it.
pub(super) fn for_calloc(profile: &Profile, stack: NodeId) -> Option<&str> {
    let frames = profile.stacks.frames(stack);
    let frames = frames.filter_map(|id| profile.frames.get(id.0 as usize));
    for_calloc_of(frames)
}

fn for_calloc_of<'a>(mut frames: impl Iterator<Item = &'a Frame>) -> Option<&'a str> {
    let zeroes = |frame: &&Frame| {
        let name = frame.name.trim_start_matches('_');
        frame.kind != FrameKind::Kernel && name.starts_with("memset")
    };
    frames.next().filter(zeroes)?;
    let callers = frames.take(NEAR).map(|frame| &*frame.name);
    let mut asking = callers.filter(|name| name.to_ascii_lowercase().contains("calloc"));
    asking.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroing_below_a_kind_of_calloc_is_of_calloc() {
        let asking = |names: &[&str]| {
            let frame = |name: &&str| Frame {
                name: (*name).into(),
                module: "a.out".into(),
                kind: FrameKind::User,
                unnamed: None,
            };
            let frames: Vec<Frame> = names.iter().map(frame).collect();
            for_calloc_of(frames.iter()).map(str::to_owned)
        };
        let of_libc = ["__memset_avx2_unaligned_erms", "__libc_calloc", "main"];
        assert_eq!(asking(&of_libc).as_deref(), Some("__libc_calloc"));
        let of_numpy = ["__memset_avx512_unaligned_erms", "default_calloc", "zeros"];
        assert_eq!(asking(&of_numpy).as_deref(), Some("default_calloc"));
        assert_eq!(asking(&["memset", "clear", "draw", "calloc"]), None);
        assert_eq!(asking(&["memcpy", "__libc_calloc"]), None);
    }
}
