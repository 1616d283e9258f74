//! Policies by name.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

use crate::alone::Alone;
use crate::clock::Clock;
use crate::csr::Csr;
use crate::fifo::Fifo;
use crate::foreign::{Foreign, ForeignError};
use crate::page::MAX_PAGES;
use crate::policy::Policy;
use crate::prefetch::Prefetch;
use crate::replay::Replay;
use crate::s3fifo::S3Fifo;
use crate::streaming::Streaming;
use crate::trace::{Trace, TraceError};
use crate::two_queue::TwoQueue;

/// The limits that a policy is made for.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Pages that can be managed. Four bytes of metadata are reserved for each, and used as pages
    /// come.
    pub pages: u32,
    /// Pages that may be resident at a time.
    pub budget: u32,
}

/// A policy cannot be made.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// No such name.
    #[error("unknown policy '{0}'; there are {names}, prefetch+NAME, alone+NAME, replay:FILE and ./OBJECT.so", names = names())]
    Unknown(String),
    /// More pages than the metadata has room for.
    #[error("{0} pages are too many to manage: at most {MAX_PAGES}")]
    TooManyPages(u32),
    /// The recording to replay cannot be opened.
    #[error("cannot read the recording {path}: {why}")]
    Recording {
        /// Its path.
        path: String,
        /// Why.
        why: String,
    },
    /// The shared object is not a policy.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The recording to replay is not a fault trace.
    #[error("{path}: {why}")]
    Trace {
        /// Its path.
        path: String,
        /// Why.
        why: TraceError,
    },
    /// A budget without pages.
    #[error("the budget is 0 pages")]
    NoBudget,
}

/// The names, each with a one-line description, in the order of the help.
pub const POLICIES: [(&str, &str); 7] = [
    (
        "2q",
        "active and inactive lists with refault distances, like Linux",
    ),
    ("fifo", "evicts the page that has been resident longest"),
    (
        "clock",
        "first in, first out, with a second chance for pages in use",
    ),
    (
        "s3fifo",
        "small, main and ghost queues: scans do not push out useful pages",
    ),
    (
        "csr",
        "for graphs and sweeps: vertex arrays stay, a window slides over the edges",
    ),
    (
        "replay:FILE",
        "reads ahead in the order of a run recorded with --record-faults FILE",
    ),
    (
        "prefetch",
        "reads streams and strides ahead; keeps a part of what they sweep over (prefetch+NAME: over NAME)",
    ),
];

fn names() -> String {
    POLICIES.map(|(name, _)| name).join(", ")
}

/// Reads the file at a path, or says why it cannot.
pub type ReadFile = fn(&str) -> Result<Vec<u8>, String>;

/// The policy called `name`; a recording is read by `read`.
///
/// # Errors
/// When there is no policy of that name, or the configuration is out of range.
pub fn by_name(
    name: &str,
    config: &Config,
    read: ReadFile,
) -> Result<Box<dyn Policy>, PolicyError> {
    if config.pages > MAX_PAGES {
        return Err(PolicyError::TooManyPages(config.pages));
    }
    if config.budget == 0 {
        return Err(PolicyError::NoBudget);
    }
    let Config { pages, budget } = *config;
    Ok(match name {
        "2q" | "fifo" | "clock" | "s3fifo" => {
            let inner = eviction(name, config).expect("one of the four");
            Box::new(Prefetch::clusters(inner))
        }
        "prefetch" => Box::new(Streaming::new(pages, budget)),
        "csr" => Box::new(Csr::new(pages, budget)),
        _ => {
            if let Some(inner) = name.strip_prefix("prefetch+") {
                let inner = match eviction(inner, config) {
                    Some(inner) => inner,
                    None => by_name(inner, config, read)?,
                };
                Box::new(Prefetch::new(inner, budget))
            } else if let Some(inner) = name.strip_prefix("alone+") {
                let inner = eviction(inner, config);
                let inner = inner.ok_or_else(|| PolicyError::Unknown(name.to_owned()))?;
                Box::new(Alone::new(inner))
            } else if let Some(path) = name.strip_prefix("replay:") {
                let trace = recording(path, read)?;
                Box::new(Replay::new(&trace, by_name("2q", config, read)?, budget))
            } else if name.contains('/') {
                Box::new(Foreign::load(name, pages, budget)?)
            } else {
                return Err(PolicyError::Unknown(name.to_owned()));
            }
        }
    })
}

/// The eviction policy called `name`; these read nothing ahead.
#[must_use]
pub fn eviction(name: &str, config: &Config) -> Option<Box<dyn Policy>> {
    let Config { pages, budget } = *config;
    Some(match name {
        "2q" => Box::new(TwoQueue::new(pages, budget)),
        "fifo" => Box::new(Fifo::new(pages)),
        "clock" => Box::new(Clock::new(pages, budget)),
        "s3fifo" => Box::new(S3Fifo::new(pages, budget)),
        _ => return None,
    })
}

fn recording(path: &str, read: ReadFile) -> Result<Trace, PolicyError> {
    let bytes = read(path).map_err(|why| PolicyError::Recording {
        path: path.to_owned(),
        why,
    })?;
    Trace::parse(&bytes).map_err(|why| PolicyError::Trace {
        path: path.to_owned(),
        why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: Config = Config {
        pages: 100,
        budget: 10,
    };

    fn none(_path: &str) -> Result<Vec<u8>, String> {
        Err("there are no files here".to_owned())
    }

    #[test]
    fn every_listed_policy_can_be_made() {
        for (name, _) in POLICIES.iter().filter(|(name, _)| !name.contains(':')) {
            let policy = by_name(name, &CONFIG, none).expect("listed");
            assert!(policy.name().starts_with(name), "{}", policy.name());
        }
        for name in ["prefetch+csr", "alone+2q"] {
            let policy = by_name(name, &CONFIG, none).expect("composed");
            assert_eq!(policy.name(), name);
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let error = |name, config: Config| match by_name(name, &config, none) {
            Err(error) => error.to_string(),
            Ok(policy) => panic!("{} was made", policy.name()),
        };
        assert!(error("lru", CONFIG).contains("unknown policy 'lru'; there are 2q, fifo"));
        assert!(error("prefetch+lru", CONFIG).contains("'lru'"));
        assert!(error("alone+prefetch", CONFIG).contains("'alone+prefetch'"));
        assert!(error("replay:/nowhere", CONFIG).contains("/nowhere"));
        assert!(
            error(
                "2q",
                Config {
                    budget: 0,
                    ..CONFIG
                }
            )
            .contains("0 pages")
        );
        assert!(
            error(
                "2q",
                Config {
                    pages: u32::MAX,
                    ..CONFIG
                }
            )
            .contains("too many")
        );
    }
}
