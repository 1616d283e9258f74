//! Files that Pagewise writes for its user.
//!
//! A recording reveals memory addresses and a report shows command lines: both are readable only by
//! their owner, and never go into a file that another user created. An existing file is replaced by
//! a new one of ours. A result gets its name once it is complete, so that a full disk or a kill
//! leaves the previous one; a recording gets it at once, since partial data is worth keeping.
//!
//! Anything that is not a file (`/dev/stdout`, a pipe, `/dev/null`) is written to directly, unless it
//! is another user's.

use anyhow::{Context, Result, bail};
use pagewise_linux::process::interrupt;
use pagewise_linux::sys::process::effective_user;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempPath;

/// A result being written.
pub struct Destination {
    path: PathBuf,
    writer: Writer,
}

enum Writer {
    /// Next to its destination, until it is complete.
    Aside(BufWriter<File>, TempPath),
    /// Not a file that could be replaced.
    Straight(BufWriter<File>),
}

/// Writes a complete result.
///
/// # Errors
/// If it can't be written; the previous file is then still there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut destination = Destination::create(path)?;
    destination
        .write_all(bytes)
        .with_context(|| cannot_write(path))?;
    destination.finish()
}

/// Starts a recording: a new file, with its name from now on.
///
/// # Errors
/// If it can't be created.
pub fn begin(path: &Path) -> Result<File> {
    match aside(path)? {
        Some((target, file, name)) => {
            let named = name.persist(&target).map_err(|refused| refused.error);
            named.with_context(|| cannot_write(path))?;
            Ok(file)
        }
        None => straight(path),
    }
}

/// Keeps an earlier file as `FILE.old`, as perf does.
pub fn keep_previous(path: &Path) {
    let mut old = path.as_os_str().to_owned();
    old.push(".old");
    // If there is none, or it cannot be renamed, writing goes ahead and reports any problem.
    if path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let _ = fs::rename(path, old);
    }
}

/// Reports early, before a run is spent, that nothing can be written there.
///
/// # Errors
/// The reason.
pub fn check(path: &Path) -> Result<()> {
    // Anything that is not a file is left alone: a pipe can be opened only once.
    match aside(path)? {
        Some(_) => Ok(()),
        None => check_special(
            path,
            &fs::metadata(path).with_context(|| cannot_write(path))?,
        ),
    }
}

/// Makes a folder for results, or checks that one that is there is not open to the writing of others; nor may
/// others be able to put a folder of theirs in its place.
///
/// # Errors
/// If it cannot be made, or another user owns it or the folder around it and lets all others write to it.
pub fn make_folder(path: &Path) -> Result<()> {
    let cannot = || format!("cannot make the folder {}", path.display());
    let around = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(around).with_context(cannot)?;
    // With the sticky bit, as /tmp has it, only its owner can rename what is in it.
    refuse_others(around, |mode| mode & 0o002 != 0 && mode & 0o1000 == 0)?;
    fs::create_dir_all(path).with_context(cannot)?;
    refuse_others(path, |mode| mode & 0o002 != 0)
}

/// Refuses a folder of another user where `is_open` says so of its mode.
fn refuse_others(folder: &Path, is_open: impl Fn(u32) -> bool) -> Result<()> {
    let found = fs::metadata(folder)
        .with_context(|| format!("cannot use the folder {}", folder.display()))?;
    let is_trusted = [0, effective_user()].contains(&found.uid());
    if !is_trusted && is_open(found.permissions().mode()) {
        bail!(
            "the folder {} belongs to another user (id {}), and all may write to it; name a folder of your own",
            folder.display(),
            found.uid()
        );
    }
    Ok(())
}

impl Destination {
    /// Starts a result.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub fn create(path: &Path) -> Result<Self> {
        let (path, writer) = match aside(path)? {
            Some((target, file, name)) => (target, Writer::Aside(BufWriter::new(file), name)),
            None => {
                let file = straight(path)?;
                (path.to_path_buf(), Writer::Straight(BufWriter::new(file)))
            }
        };
        Ok(Self { path, writer })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If not everything could be written, as on a full disk.
    pub fn finish(self) -> Result<()> {
        let cannot = || cannot_write(&self.path);
        match self.writer {
            Writer::Aside(mut out, name) => {
                out.flush().with_context(cannot)?;
                let named = name.persist(&self.path).map_err(|refused| refused.error);
                named.with_context(cannot)
            }
            Writer::Straight(mut out) => out.flush().with_context(cannot),
        }
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.writer {
            Writer::Aside(out, _) => out.write(bytes),
            Writer::Straight(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.writer {
            Writer::Aside(out, _) => out.flush(),
            Writer::Straight(out) => out.flush(),
        }
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// A new file in the folder of `path`, accessible only by its owner, and the name that it will
/// take; `None` if `path` cannot be a regular file.
fn aside(path: &Path) -> Result<Option<(PathBuf, File, TempPath)>> {
    let special = ["/dev", "/proc"].iter().any(|root| path.starts_with(root));
    if special {
        return Ok(None);
    }
    let target = target(path);
    match fs::symlink_metadata(&target) {
        Ok(found) if found.is_dir() => bail!("{}: it is a folder", cannot_write(path)),
        Ok(found) if !found.is_file() && !found.is_symlink() => return Ok(None),
        Ok(found) => may_replace(&target, &found).with_context(|| cannot_write(path))?,
        Err(_) => {}
    }
    let made = tempfile::Builder::new()
        .prefix(".pagewise-")
        .tempfile_in(folder(&target));
    match made {
        Ok(made) => {
            // Separately: together, their errors would name the temporary file.
            let (file, name) = made.into_parts();
            Ok(Some((target, file, name)))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && is_own(&target) => {
            Ok(None)
        }
        Err(error) => Err(without_name(&error)).with_context(|| cannot_write(path)),
    }
}

/// The error without the name of a temporary file, which says nothing to anybody. The error of the
/// system is not among its sources, so its text is cut.
fn without_name(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let own = text.split_once(" at path ").map_or(&*text, |(own, _)| own);
    io::Error::new(error.kind(), own)
}

/// Whether a file of ours exists there: if the folder allows no new file, it can be written
/// directly.
fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.uid() == effective_user())
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The target of a link of our own; otherwise the path itself. Another user's link, as may exist in
/// a shared folder, is replaced and not followed.
fn target(path: &Path) -> PathBuf {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() && found.uid() == effective_user() => {
            fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
        }
        _ => path.to_path_buf(),
    }
}

/// In a folder that all may write to, others' files can't be replaced (`S_ISVTX`, inode(7)). Files
/// that their owner has write-protected are not replaced.
fn may_replace(path: &Path, found: &Metadata) -> Result<()> {
    let own = effective_user();
    if own == 0 || found.is_symlink() {
        return Ok(());
    }
    let of_folder = fs::metadata(folder(path))?;
    let is_shared = of_folder.permissions().mode() & 0o1000 != 0 && of_folder.uid() != own;
    if is_shared && found.uid() != own {
        bail!("it belongs to another user; name another file");
    }
    if found.uid() == own && found.permissions().mode() & 0o200 == 0 {
        bail!("it is write-protected");
    }
    Ok(())
}

/// Opens what is not a file, or a file that can't be replaced.
fn straight(path: &Path) -> Result<File> {
    let cannot = || cannot_write(path);
    let found = fs::metadata(path).with_context(cannot)?;
    check_special(path, &found)?;
    let file = match found.file_type().is_fifo() {
        true => pipe(path).with_context(cannot)?,
        false => open(path, 0).with_context(cannot)?,
    };
    check_special(path, &file.metadata().with_context(cannot)?)?;
    if is_own(path) {
        let private = fs::Permissions::from_mode(0o600);
        file.set_permissions(private).with_context(cannot)?;
    }
    Ok(file)
}

fn open(path: &Path, flags: i32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.write(true).truncate(true).custom_flags(flags);
    options.open(path)
}

/// Opens a pipe once it has a reader, unless we are asked to end before.
fn pipe(path: &Path) -> io::Result<File> {
    /// Time between two looks for a reader.
    const PAUSE: Duration = Duration::from_millis(20);
    let file = loop {
        match open(path, libc::O_NONBLOCK) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
            opened => break opened?,
        }
        if interrupt::requested().is_some() {
            let why = "it is a pipe that nobody reads";
            return Err(io::Error::new(ErrorKind::Interrupted, why));
        }
        std::thread::sleep(PAUSE);
    };
    // Waiting for the reader is right from now on.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}

/// Refuses a pipe or socket of another user, who would read what is for its owner alone. What we
/// have open already (`/dev/stdout`) was chosen by whoever started us.
fn check_special(path: &Path, found: &Metadata) -> Result<()> {
    let kind = found.file_type();
    let is_shared = kind.is_fifo() || kind.is_socket();
    let is_open = ["/dev/std", "/dev/fd/", "/proc/self/fd/"]
        .iter()
        .any(|start| path.as_os_str().as_bytes().starts_with(start.as_bytes()));
    if is_shared && !is_open && ![0, effective_user()].contains(&found.uid()) {
        bail!(
            "{}: it is a pipe of another user (id {})",
            cannot_write(path),
            found.uid()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_not_finished_leaves_the_file_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        fs::write(&path, "before").unwrap();
        let mut begun = Destination::create(&path).unwrap();
        begun.write_all(b"half").unwrap();
        drop(begun);
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write(&path, b"whole").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    }

    #[test]
    fn outputs_are_private_whatever_was_at_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for begun in [false, true] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
            let reader = File::open(&path).unwrap();
            match begun {
                true => begin(&path).unwrap().write_all(b"secret").unwrap(),
                false => write(&path, b"secret").unwrap(),
            }
            assert_eq!(mode(&path), 0o600);
            assert_eq!(io::read_to_string(reader).unwrap(), "old");
            assert_eq!(fs::read_to_string(&path).unwrap(), "secret");
        }
    }

    #[test]
    fn an_own_link_is_followed_and_a_special_file_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        write(&link, b"new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        write(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_folder_and_a_missing_one_are_refused_early() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check(folder.path()).is_err());
        let missing = folder.path().join("none/x");
        assert!(format!("{:#}", check(&missing).unwrap_err()).contains("cannot write"));
        assert!(check(&folder.path().join("x")).is_ok());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn errors_do_not_name_temporary_files() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("missing/report.html");
        let message = format!("{:#}", write(&missing, b"text").unwrap_err());
        assert!(message.ends_with("(os error 2)"), "{message}");
        assert!(!message.contains(".pagewise-"), "{message}");
    }

    #[test]
    fn a_pipe_of_another_user_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let own = fs::metadata(&path).unwrap();
        assert!(check_special(&path, &own).is_ok());
        // Only root can give files away.
        if effective_user() == 0 {
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            for refused in [
                write(&path, b"secret"),
                begin(&path).map(drop),
                check(&path),
            ] {
                let message = format!("{:#}", refused.unwrap_err());
                assert!(
                    message.contains("a pipe of another user (id 1)"),
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn a_pipe_without_a_reader_is_opened_once_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read_to_string(path).unwrap()
        });
        write(&path, b"text").unwrap();
        assert_eq!(reader.join().unwrap(), "text");
    }

    #[test]
    fn tables_avoid_another_users_world_writable_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables");
        make_folder(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        make_folder(&path).unwrap();
        // Only root can give folders away.
        if effective_user() == 0 {
            std::os::unix::fs::chown(&path, Some(1), None).unwrap();
            let message = make_folder(&path).unwrap_err().to_string();
            assert!(message.contains("another user (id 1)"), "{message}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            make_folder(&path).unwrap();
        }
    }

    #[test]
    fn errors_do_not_name_the_temporary_file() {
        let missing = Path::new("/nowhere/at/all/x");
        let message = format!("{:#}", write(missing, b"").unwrap_err());
        assert!(
            message.contains("No such file") && !message.contains(".pagewise-"),
            "{message}"
        );
    }
}
