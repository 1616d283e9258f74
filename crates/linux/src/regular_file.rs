//! Opening what should be a regular file where another user may have put anything: the mere opening
//! of a pipe or a device can block or have effects, so the file is looked at before.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens the file at `path` for reading; `None` if it cannot be, or is not a regular file.
pub fn open(path: &Path) -> Option<File> {
    let place = place(path)?;
    let is_file = place.metadata().is_ok_and(|found| found.is_file());
    is_file.then(|| reopened(&place)).flatten()
}

/// A descriptor of what `path` leads to, which opens nothing (open(2), `O_PATH`).
pub fn place(path: &Path) -> Option<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_CLOEXEC)
        .open(path)
        .ok()
}

/// Opens for reading what the descriptor `place` leads to, wherever its path leads meanwhile.
pub fn reopened(place: &File) -> Option<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(format!("/proc/self/fd/{}", place.as_raw_fd()))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;
    use std::sync::mpsc::channel;

    /// A pipe's writer waits until somebody opens the pipe to read.
    #[test]
    fn a_pipe_is_not_opened_to_see_that_it_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let [pipe, link] = ["pipe", "link"].map(|name| folder.path().join(name));
        let made = Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        symlink(&pipe, &link).unwrap();
        let (opened, was_opened) = channel();
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let file = OpenOptions::new().write(true).open(pipe);
                opened.send(()).unwrap();
                file.map(drop)
            }
        });
        for path in [&pipe, &link, &folder.path().to_owned()] {
            assert!(open(path).is_none(), "{}", path.display());
        }
        assert!(was_opened.try_recv().is_err());
        drop(File::open(&pipe).unwrap());
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_regular_file_is_opened_through_links_too() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        std::fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        for path in [&file, &link] {
            let text = std::io::read_to_string(open(path).unwrap()).unwrap();
            assert_eq!(text, "text");
        }
        assert!(open(&folder.path().join("missing")).is_none());
    }
}
