//! The target machine of the library, and the settings of the outer build that apply to it.

use crate::flags::{for_library, without_linking};
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// The target for which a toolchain on it always has Rust's own libraries.
const GLIBC: &str = "x86_64-unknown-linux-gnu";

/// The libc whose dynamic linker loads the library.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Libc {
    Glibc,
    Musl,
}

/// The library's side of the build.
pub struct Target {
    /// The triple.
    pub name: String,
    /// The linker, if cargo was given one.
    pub linker: Option<String>,
    /// The outer build's flags that apply.
    pub flags: Vec<String>,
    /// Whether it must work with older glibcs than this machine's: a static pagewise goes anywhere.
    pub is_portable: bool,
}

/// A C compiler that can report where its own archives are: a program and its first arguments.
pub struct Compiler(String);

impl Target {
    /// The target of the library for programs with `libc`; `None` if it cannot run, or if this
    /// build may lack Rust's own libraries for it.
    pub fn of_library(libc: Libc) -> Option<Self> {
        let about = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
        let runs =
            about("ARCH") == "x86_64" && about("OS") == "linux" && about("POINTER_WIDTH") == "64";
        if !runs {
            return None;
        }
        let target = env::var("TARGET").expect("cargo sets TARGET");
        let host = env::var("HOST").expect("cargo sets HOST");
        match (about("ENV") == "musl", libc) {
            (false, Libc::Glibc) => Some(Self::outer(target)),
            (false, Libc::Musl) => None,
            (true, Libc::Musl) => {
                let mut outer = Self::outer(target);
                outer.flags.push("-Ctarget-feature=-crt-static".to_owned());
                Some(outer)
            }
            // A static pagewise can preload into programs with either libc.
            (true, Libc::Glibc) if host == GLIBC => Some(Self {
                linker: None,
                flags: without_linking(outer_flags()),
                name: host,
                is_portable: true,
            }),
            (true, Libc::Glibc) => {
                println!(
                    "cargo::warning=`pagewise run` of this build pages programs of musl alone: the library for \
                     programs of glibc is built on {GLIBC}, and this is {host}"
                );
                None
            }
        }
    }

    /// The outer build's target, with its linker and the flags that apply.
    fn outer(name: String) -> Self {
        Self {
            name,
            linker: env::var("RUSTC_LINKER").ok(),
            flags: outer_flags(),
            is_portable: false,
        }
    }

    /// Compilers for this target, the one that links first.
    pub fn compilers(&self) -> Vec<Compiler> {
        let linker = self
            .flags
            .iter()
            .find_map(|flag| flag.strip_prefix("-Clinker="));
        let named = [
            format!("CC_{}", self.name),
            format!("CC_{}", self.name.replace('-', "_")),
            "TARGET_CC".to_owned(),
            "CC".to_owned(),
        ];
        let variables = named.iter().filter_map(|name| {
            println!("cargo::rerun-if-env-changed={name}");
            env::var(name).ok()
        });
        let words = [
            linker.map(str::to_owned),
            self.linker.clone(),
            Some("cc".to_owned()),
        ];
        words
            .into_iter()
            .flatten()
            .chain(variables)
            .map(Compiler)
            .collect()
    }
}

fn outer_flags() -> Vec<String> {
    let given = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    for_library(given.split('\u{1f}').filter(|flag| !flag.is_empty()))
}

impl Compiler {
    /// The program with its first arguments.
    pub fn command(&self) -> Command {
        let mut words = self.0.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("cc"));
        command.args(words);
        command
    }

    /// One of the compiler's own files.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let output = self
            .command()
            .arg(format!("-print-file-name={name}"))
            .output()
            .ok()?;
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        (path.is_absolute() && path.exists()).then_some(path)
    }
}
