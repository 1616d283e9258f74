//! Our plugin for QEMU's user-mode emulator: built by the machine's own compiler on first use, and
//! kept in a private cache.

use anyhow::{Context, Result, bail};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The plugin's source, embedded so that a single installed file suffices.
const SOURCE: &str = include_str!("../../../../../plugin/memory_trace.c");
/// Compilers by name, first choice first.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// An emulator with our plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    /// `qemu-x86_64` and the like.
    pub program: PathBuf,
    /// The plugin.
    pub plugin: PathBuf,
    /// Its version as it reports it.
    pub version: String,
}

impl Emulator {
    /// Finds the emulator for this machine's processor and builds the plugin for it, unless it is
    /// already built.
    ///
    /// # Errors
    /// Names the missing package.
    pub fn ready() -> Result<Self> {
        let name = format!("qemu-{}", std::env::consts::ARCH);
        let Some(program) = find(&name) else {
            bail!(
                "{name} is not installed: 'apt install qemu-user' (Debian, Ubuntu), 'dnf install \
                 qemu-user' (Fedora). The static variant (qemu-user-static) takes no plugins"
            );
        };
        let message = Command::new(&program).arg("--version").output();
        let message = message.with_context(|| format!("cannot run {}", program.display()))?;
        let version = String::from_utf8_lossy(&message.stdout);
        let version = version.lines().next().unwrap_or_default().to_owned();
        let plugin = built(api_version(&version))?;
        Ok(Self {
            program,
            plugin,
            version,
        })
    }
}

/// Version of the plugin interface of an emulator: 1 up to QEMU 8.1, 2 from 8.2 on.
fn api_version(version: &str) -> u32 {
    let number = version.split_whitespace().nth(2).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
    let release: (u32, u32) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match release {
        release if release >= (8, 2) => 2,
        _ => 1,
    }
}

/// The plugin for an interface, from the cache or newly built.
fn built(api: u32) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    (SOURCE, api).hash(&mut hasher);
    let folder = cache()?;
    let plugin = folder.join(format!("memory_trace-{:016x}.so", hasher.finish()));
    if plugin.is_file() {
        return Ok(plugin);
    }
    let Some(compiler) = COMPILERS.into_iter().find_map(find) else {
        bail!(
            "there is no C compiler to build the plugin with: 'apt install gcc libc6-dev' \
             (Debian, Ubuntu), 'dnf install gcc' (Fedora)"
        );
    };
    // Under another name first, so that a concurrent run never sees half a file.
    let fresh = folder.join(format!(".fresh-{}", std::process::id()));
    compile(&compiler, api, &fresh)?;
    fs::rename(&fresh, &plugin).with_context(|| format!("cannot make {}", plugin.display()))?;
    Ok(plugin)
}

fn compile(compiler: &Path, api: u32, output: &Path) -> Result<()> {
    let mut child = Command::new(compiler)
        .args(["-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-x", "c"])
        .arg(format!("-DAPI_VERSION={api}"))
        .arg("-o")
        .arg(output)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", compiler.display()))?;
    if let Some(mut input) = child.stdin.take() {
        // If the compiler ends early, its reason is reported below.
        let _ = input.write_all(SOURCE.as_bytes());
    }
    let done = child.wait_with_output()?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let missing_headers = match said.contains("No such file or directory") {
            true => " (headers of the C library: 'apt install libc6-dev')",
            false => "",
        };
        bail!(
            "{} cannot build the plugin{missing_headers}: {}",
            compiler.display(),
            said.lines().next().unwrap_or("it printed nothing")
        );
    }
    Ok(())
}

/// A folder that is ours alone, because its files are loaded and run.
fn cache() -> Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = match (set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, Some(home)) => PathBuf::from(home).join(".cache"),
        (None, None) => bail!("set HOME or XDG_CACHE_HOME: the plugin needs a folder"),
    };
    let folder = folder.join("pagewise");
    pagewise_linux::own_folder::make(&folder).with_context(|| {
        format!(
            "cannot use {}: set XDG_CACHE_HOME to a folder of your own",
            folder.display()
        )
    })?;
    Ok(folder)
}

/// A program in `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).map(|folder| folder.join(name));
    places.into_iter().find(|place| is_executable(place))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulators_take_the_interface_of_their_release() {
        assert_eq!(
            api_version("qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7)"),
            1
        );
        assert_eq!(api_version("qemu-x86_64 version 8.1.5"), 1);
        assert_eq!(api_version("qemu-x86_64 version 8.2.0"), 2);
        assert_eq!(api_version("qemu-aarch64 version 10.0.2"), 2);
        assert_eq!(api_version("?"), 1);
    }
}
