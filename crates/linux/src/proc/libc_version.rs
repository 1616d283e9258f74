//! Version of a GNU C library, from the banner inside the file.

use memchr::memmem;
use std::path::Path;

/// The banner of csu/version.c, which `libc.so.6` prints when run:
/// `GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.`
const BANNER: &[u8] = b"GNU C Library";

/// Longest banner that is searched for its version; distributors put their name into it.
const BANNER_LENGTH: usize = 256;

/// Version such as `2.36` of the GNU C library in `file`; `None` if the file is unreadable or
/// something else.
#[must_use]
pub fn glibc_version(file: &Path) -> Option<String> {
    glibc_version_in(&std::fs::read(file).ok()?)
}

/// The same from a file's content; also finds it in a program that links libc statically.
#[must_use]
pub(super) fn glibc_version_in(content: &[u8]) -> Option<String> {
    let start = memmem::find(content, BANNER)?;
    let banner = content.get(start..)?;
    let banner = banner.get(..BANNER_LENGTH).unwrap_or(banner);
    let after = memmem::find(banner, b"version ")? + b"version ".len();
    let version: String = banner[after..]
        .iter()
        .map(|&byte| char::from(byte))
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| version.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_version_not_the_distributors_number() {
        let banner =
            b"\0GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\n";
        assert_eq!(glibc_version_in(banner).as_deref(), Some("2.36"));
        let development = b"GNU C Library (GNU libc) development release version 2.41.9000.\n";
        assert_eq!(glibc_version_in(development).as_deref(), Some("2.41.9000"));
        assert_eq!(glibc_version_in(b"GNU C Library"), None);
        assert_eq!(glibc_version_in(b"musl libc"), None);
    }
}
