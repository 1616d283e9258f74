//! The settings passed by the command to the pager: one environment variable, `PAGEWISE_PAGER`, of
//! `name=value` parts separated by newlines.

use alloc::borrow::ToOwned;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::String;

/// The variable.
pub const VARIABLE: &str = "PAGEWISE_PAGER";

/// How faults are to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The safest that works.
    Auto,
    /// Handler threads.
    Handler,
    /// SIGBUS.
    Signal,
}

/// What to do if pages must be evicted and the store has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Wait until there is room again.
    Wait,
    /// Keep more in memory than requested, and report it.
    Exceed,
    /// End the program.
    End,
}

impl WhenFull {
    /// All of them, by name.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("wait", Self::Wait),
        ("exceed", Self::Exceed),
        ("end", Self::End),
    ];

    /// The value of this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let mut all = Self::NAMES.into_iter();
        all.find(|(own, _)| *own == name).map(|(_, one)| one)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Exceed => "exceed",
            Self::End => "end",
        }
    }
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes that a process may keep resident.
    pub memory: u64,
    /// Name of the policy.
    pub policy: String,
    /// Directory, file or device of the store.
    pub store: CString,
    /// `disk`, `compressed`, `tiered` or `auto`.
    pub store_kind: String,
    /// Bytes that the store may take on disk.
    pub store_bytes: u64,
    /// Bytes of memory for compressed pages, within the budget.
    pub compressed_bytes: u64,
    /// Whether data on disk is encrypted.
    pub encrypt: bool,
    /// How faults are to be delivered.
    pub delivery: Choice,
    /// Smallest region to manage, bytes.
    pub smallest: u64,
    /// Lower limit of that size while much memory is in smaller regions, bytes.
    pub smallest_ever: u64,
    /// Smallest mapping of a file to manage, bytes; 0 if none is.
    pub files: u64,
    /// Processors whose time the run may use.
    pub processors: u32,
    /// Resident pages per second whose next use is watched.
    pub watch: u32,
    /// What to do if the store is full.
    pub when_full: WhenFull,
    /// Whether programs that cannot be managed are refused.
    pub strict: bool,
    /// Id of the process that launches the run's first program.
    pub launcher: u32,
    /// Path of the run's shared memory; empty for none.
    pub shared: CString,
    /// Path of the file for recording page events; empty for none.
    pub record: CString,
}

impl Settings {
    /// The text for [`VARIABLE`].
    #[must_use]
    pub fn to_text(&self) -> String {
        let delivery = match self.delivery {
            Choice::Auto => "auto",
            Choice::Handler => "fd",
            Choice::Signal => "sigbus",
        };
        format!(
            "memory={}\npolicy={}\nstore={}\nkind={}\nstore-bytes={}\ncompressed-bytes={}\n\
             encrypt={}\ndelivery={delivery}\nsmallest={}\nsmallest-ever={}\nfiles={}\nprocessors={}\nwatch={}\n\
             when-full={}\nstrict={}\nlauncher={}\nshared={}\nrecord={}",
            self.memory,
            self.policy,
            self.store.to_string_lossy(),
            self.store_kind,
            self.store_bytes,
            self.compressed_bytes,
            self.encrypt,
            self.smallest,
            self.smallest_ever,
            self.files,
            self.processors,
            self.watch,
            self.when_full.name(),
            self.strict,
            self.launcher,
            self.shared.to_string_lossy(),
            self.record.to_string_lossy()
        )
    }

    /// Parses the settings from that text.
    ///
    /// # Errors
    /// The name of the first part that is absent or malformed.
    pub fn from_text(text: &str) -> Result<Self, &'static str> {
        let part = |name: &'static str| {
            text.lines()
                .filter_map(|line| line.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value)
                .ok_or(name)
        };
        let number = |name| part(name)?.parse::<u64>().map_err(|_| name);
        let string = |name| CString::new(part(name)?).map_err(|_| name);
        Ok(Self {
            memory: number("memory")?,
            policy: part("policy")?.to_owned(),
            store: string("store")?,
            store_kind: part("kind")?.to_owned(),
            store_bytes: number("store-bytes")?,
            compressed_bytes: number("compressed-bytes")?,
            encrypt: part("encrypt")? == "true",
            delivery: match part("delivery")? {
                "auto" => Choice::Auto,
                "fd" => Choice::Handler,
                "sigbus" => Choice::Signal,
                _ => return Err("delivery"),
            },
            smallest: number("smallest")?,
            smallest_ever: number("smallest-ever")?,
            files: number("files")?,
            processors: number("processors")?.try_into().map_err(|_| "processors")?,
            watch: number("watch")?.try_into().map_err(|_| "watch")?,
            when_full: WhenFull::by_name(part("when-full")?).ok_or("when-full")?,
            strict: part("strict")? == "true",
            launcher: number("launcher")?.try_into().map_err(|_| "launcher")?,
            shared: string("shared")?,
            record: string("record")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_the_environment() {
        let settings = Settings {
            memory: 1 << 30,
            policy: "prefetch+2q".to_owned(),
            store: c"/var/tmp".to_owned(),
            store_kind: "disk".to_owned(),
            store_bytes: 8 << 30,
            compressed_bytes: 0,
            encrypt: true,
            delivery: Choice::Signal,
            smallest: 64 << 20,
            smallest_ever: 256 << 10,
            files: 1 << 20,
            processors: 4,
            watch: 40,
            when_full: WhenFull::Wait,
            strict: true,
            launcher: 77,
            shared: c"/proc/1/fd/3".to_owned(),
            record: CString::default(),
        };
        assert_eq!(Settings::from_text(&settings.to_text()), Ok(settings));
        assert_eq!(Settings::from_text("memory=x"), Err("memory"));
    }
}
