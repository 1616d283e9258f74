//! Folders and files that belong to us alone, wherever they are.
//!
//! Anything that another user created or can write to is not trusted: a journal controls what is
//! written where, and a cache contains code to run. In a shared folder names can be guessed and
//! taken first, so neither a name nor a link proves ownership; the opened file does (fstat(2)).
//!
//! Only the folder itself is checked, not its parents.

use crate::sys::process::effective_user;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Write permission of group and others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Creates `folder` and its parents for us alone if missing; otherwise checks that it is ours and
/// removes the write permission of others.
///
/// # Errors
/// If it cannot be created, is a link or not a folder, or belongs to another user.
pub fn make(folder: &Path) -> io::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    match made {
        // A dangling link, or not a folder: the check reports which.
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => check(folder),
    }
}

/// Checks that `folder` is ours, and removes the write permission of others.
///
/// # Errors
/// As [`make`]; [`ErrorKind::NotFound`] if it is missing.
pub fn check(folder: &Path) -> io::Result<()> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC)
        .open(folder);
    let opened = opened.map_err(|error| match error.raw_os_error() {
        // O_DIRECTORY's error comes first if both apply.
        Some(libc::ELOOP | libc::ENOTDIR) => refused("it is a link or not a folder: remove it"),
        _ => error,
    })?;
    let found = opened.metadata()?;
    check_owner(&found, &[effective_user()])?;
    if found.mode() & WRITABLE_BY_OTHERS != 0 {
        let kept = found.mode() & 0o777 & !WRITABLE_BY_OTHERS;
        opened.set_permissions(Permissions::from_mode(kept))?;
    }
    Ok(())
}

/// Opens a file of ours that no other user can write to.
///
/// # Errors
/// As [`open_of`], and if others can write to it.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = open_of(&[effective_user()], path, options)?;
    if file.metadata()?.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(refused(
            "others can write to it: inspect it, then remove it",
        ));
    }
    Ok(file)
}

/// Opens a file of one of these users. Follows no link and does not block on a pipe.
///
/// # Errors
/// If it cannot be opened, is not a regular file, or belongs to another user.
pub fn open_of(users: &[u32], path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // The mere opening of a pipe or a device can have effects.
    let is_special = |found: Metadata| !found.is_file() && !found.is_symlink();
    if path.symlink_metadata().is_ok_and(is_special) {
        return Err(refused("it is not a regular file: remove it"));
    }
    let file = options
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) => refused("it is a link: remove it"),
            _ => error,
        })?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(refused("it is not a regular file: remove it"));
    }
    check_owner(&found, users)?;
    Ok(file)
}

/// Folder for data that need not survive a reboot, not yet created: below `XDG_RUNTIME_DIR` if that
/// is ours (with `sudo -E` it is not), otherwise `/run/pagewise` for root; `None` for other users.
#[must_use]
pub fn runtime() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let ours = named.filter(|folder| is_ours(folder));
    let ours = ours.map(|folder| folder.join("pagewise"));
    ours.or_else(|| (effective_user() == 0).then(|| "/run/pagewise".into()))
}

/// Our folder among the temporary ones, not yet created: others may have taken its name.
#[must_use]
pub fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("pagewise-{}", effective_user()))
}

fn is_ours(folder: &Path) -> bool {
    let found = folder.metadata();
    found.is_ok_and(|found| {
        found.is_dir() && found.uid() == effective_user() && found.mode() & WRITABLE_BY_OTHERS == 0
    })
}

fn check_owner(found: &Metadata, users: &[u32]) -> io::Result<()> {
    let owner = found.uid();
    match users.contains(&owner) {
        true => Ok(()),
        false => Err(refused(&format!("it belongs to another user (id {owner})"))),
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{chown, symlink};
    use std::process::Command;

    /// A user other than us, to check against where we may not change a file's owner.
    fn another() -> u32 {
        effective_user() + 1
    }

    #[test]
    fn a_folder_is_made_for_us_alone_and_closed_to_others() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("state/pagewise");
        make(&folder).unwrap();
        let mode = || fs::metadata(&folder).unwrap().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&folder, Permissions::from_mode(0o775)).unwrap();
        make(&folder).unwrap();
        assert_eq!(mode(), 0o755);
    }

    #[test]
    fn a_link_and_a_file_are_no_folder_of_ours() {
        let top = tempfile::tempdir().unwrap();
        let (link, file) = (top.path().join("link"), top.path().join("file"));
        symlink(top.path(), &link).unwrap();
        fs::write(&file, "").unwrap();
        for path in [link, file] {
            let error = make(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        }
        let missing = check(&top.path().join("none")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn links_pipes_and_files_that_others_can_write_to_are_refused() {
        let top = tempfile::tempdir().unwrap();
        let [file, link, pipe] = ["file", "link", "pipe"].map(|name| top.path().join(name));
        fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let read = |path: &Path| open(path, OpenOptions::new().read(true)).map(drop);
        read(&file).unwrap();
        let message = |path: &Path| read(path).unwrap_err().to_string();
        assert!(message(&link).contains("link"));
        assert!(message(&pipe).contains("not a regular file"));
        fs::set_permissions(&file, Permissions::from_mode(0o620)).unwrap();
        assert!(message(&file).contains("others can write"));
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("file");
        fs::write(&file, "text").unwrap();
        let of_another = open_of(&[another()], &file, OpenOptions::new().read(true));
        assert!(of_another.unwrap_err().to_string().contains("another user"));
        // Only root can give files away.
        if effective_user() == 0 {
            let folder = top.path().join("folder");
            fs::create_dir(&folder).unwrap();
            for path in [&file, &folder] {
                chown(path, Some(another()), None).unwrap();
            }
            let error = open(&file, OpenOptions::new().read(true)).unwrap_err();
            assert!(error.to_string().contains("another user"), "{error}");
            let error = make(&folder).unwrap_err();
            assert!(error.to_string().contains("another user"), "{error}");
            assert!(!is_ours(&folder));
        }
    }
}
