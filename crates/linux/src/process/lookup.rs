//! Finds the file for a command name by the rules of `execvp(3)`, with an error for each way to
//! fail.

use super::Error;
use super::environment::Environment;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Search path when the environment has none (as glibc's `confstr(_CS_PATH)`).
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that `program` refers to under `environment`'s `PATH`. A name with a slash is a path.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotExecutable`] if the only files of that name cannot be executed.
pub fn find(program: &OsStr, environment: &Environment) -> Result<PathBuf, Error> {
    if program.as_bytes().contains(&b'/') {
        return check_named(Path::new(program));
    }
    let default = OsString::from(DEFAULT_PATH);
    let path = environment.get(OsStr::new("PATH")).unwrap_or(&default);
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        let candidate = folder.join(program);
        match candidate.metadata() {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => {
                return Ok(candidate);
            }
            Ok(found) if found.is_file() => refused = refused.or(Some(candidate)),
            _ => {}
        }
    }
    Err(match refused {
        Some(path) => Error::NotExecutable {
            path,
            reason: "it has no execute permission",
        },
        None => Error::NotFound {
            program: program.to_owned(),
        },
    })
}

fn check_named(path: &Path) -> Result<PathBuf, Error> {
    let refuse = |reason| {
        Err(Error::NotExecutable {
            path: path.to_owned(),
            reason,
        })
    };
    match path.metadata() {
        Ok(found) if found.is_dir() => refuse("it is a folder"),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => {
            refuse("it has no execute permission")
        }
        Ok(_) => Ok(path.to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            refuse("a folder on its path is not accessible")
        }
        Err(_) => Err(Error::NotFound {
            program: path.as_os_str().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(folders: &[&Path]) -> Environment {
        let joined = std::env::join_paths(folders).unwrap();
        Environment::from([("PATH".into(), joined)])
    }

    #[test]
    fn a_later_executable_wins_over_an_earlier_plain_file() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(first.path().join("tool"), "").unwrap();
        std::fs::write(second.path().join("tool"), "").unwrap();
        let both = path(&[first.path(), second.path()]);
        let refused = find(OsStr::new("tool"), &both).unwrap_err();
        assert_eq!(refused.shell_status(), 126);
        let file = second.path().join("tool");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(find(OsStr::new("tool"), &both).unwrap(), file);
    }

    #[test]
    fn unknown_names_have_the_shells_status() {
        let error = find(OsStr::new("no-such-tool"), &path(&[Path::new("/nowhere")])).unwrap_err();
        assert_eq!(error.shell_status(), 127);
        assert_eq!(
            find(OsStr::new("./no/such"), &path(&[]))
                .unwrap_err()
                .shell_status(),
            127
        );
        assert_eq!(
            find(OsStr::new("/etc"), &path(&[]))
                .unwrap_err()
                .shell_status(),
            126
        );
    }
}
