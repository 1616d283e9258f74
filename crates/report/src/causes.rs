//! Errors with their causes, as the programs print them.

use std::error::Error;

/// An error and its causes, except those that the text already has: many errors repeat their cause.
pub fn sentence<'a>(chain: impl Iterator<Item = &'a (dyn Error + 'static)>) -> String {
    let mut message = String::new();
    for cause in chain.map(ToString::to_string) {
        if !message.contains(&cause) {
            let between = if message.is_empty() { "" } else { ": " };
            message += between;
            message += &cause;
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_cause_that_is_told_is_not_told_again() {
        let causes =
            ["step 1", "cannot write x: no room", "no room", "disk 3"].map(io::Error::other);
        let chain = causes.iter().map(|cause| cause as &(dyn Error + 'static));
        assert_eq!(sentence(chain), "step 1: cannot write x: no room: disk 3");
    }
}
