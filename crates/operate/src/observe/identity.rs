//! Programs that change their identity, whose events the kernel hides.

use pagewise_linux::perf::Note;
use pagewise_linux::process::effective_user;
use std::fs;
use std::path::Path;

/// Adds our notes to the recorder's. The recorder's note that it was detached is dropped if a note
/// already reports the program's change of identity.
pub(super) fn add_notes(notes: &mut Vec<String>, ours: Vec<String>) {
    let detached = Note::Detached.text();
    if ours.iter().any(|note| note.contains(IDENTITY)) {
        notes.retain(|note| *note != detached);
    }
    notes.extend(ours);
}

/// Words that only the note about a change of identity has.
const IDENTITY: &str = "runs under another identity";

/// A warning if the program changes its identity, so that the kernel hides its events from us.
pub(super) fn warning(program: &Path) -> Option<String> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let metadata = fs::metadata(program).ok()?;
    let bits = metadata.permissions().mode();
    let changes_user = bits & libc::S_ISUID != 0 && metadata.uid() != effective_user();
    let changes_group = bits & libc::S_ISGID != 0;
    ((changes_user || changes_group) && effective_user() != 0).then(|| {
        format!(
            "{} {IDENTITY} (set-user-ID or set-group-ID), so the kernel does \
             not let its faults be recorded. Remedy: run pagewise as root.",
            program.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_identity_is_told_once() {
        let recorded = || vec!["rings".to_owned(), Note::Detached.text()];
        let ours = format!("su {IDENTITY} (set-user-ID)");
        let mut notes = recorded();
        add_notes(&mut notes, vec![ours.clone()]);
        assert_eq!(notes, ["rings".to_owned(), ours]);
        let mut notes = recorded();
        add_notes(&mut notes, vec!["other".to_owned()]);
        assert_eq!(notes.len(), 3);
    }
}
