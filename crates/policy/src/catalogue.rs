//! Policies by name.

use thiserror::Error;

use crate::clock::Clock;
use crate::fifo::Fifo;
use crate::page::MAX_PAGES;
use crate::policy::Policy;
use crate::prefetch::Prefetch;
use crate::s3fifo::S3Fifo;
use crate::two_queue::TwoQueue;

/// What a policy is made for.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Pages that may be managed; metadata of four bytes each is reserved, and used as pages come.
    pub pages: u32,
    /// Pages that may be resident.
    pub budget: u32,
}

/// A policy cannot be made.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// No such name.
    #[error("unknown policy '{0}'; there are {names}, and prefetch+NAME", names = names())]
    Unknown(String),
    /// More pages than the metadata has room for.
    #[error("{0} pages are too many to manage: at most {MAX_PAGES}")]
    TooManyPages(u32),
    /// A budget without pages.
    #[error("a budget of 0 pages leaves nothing to decide")]
    NoBudget,
}

/// Names and one line about each, in the order of the help.
pub const POLICIES: [(&str, &str); 5] = [
    (
        "2q",
        "active and inactive list with refault distances, as Linux has them",
    ),
    ("fifo", "the page resident longest leaves"),
    (
        "clock",
        "first in, first out, with a second chance for pages in use",
    ),
    (
        "s3fifo",
        "small, main and ghost queue: scans push out nothing of worth",
    ),
    (
        "prefetch",
        "reads streams and strides ahead, over 2q (or over NAME: prefetch+NAME)",
    ),
];

fn names() -> String {
    POLICIES.map(|(name, _)| name).join(", ")
}

/// The policy called `name`.
///
/// # Errors
/// When there is none of that name, or the configuration is out of range.
pub fn by_name(name: &str, config: &Config) -> Result<Box<dyn Policy>, PolicyError> {
    if config.pages > MAX_PAGES {
        return Err(PolicyError::TooManyPages(config.pages));
    }
    if config.budget == 0 {
        return Err(PolicyError::NoBudget);
    }
    let Config { pages, budget } = *config;
    Ok(match name {
        "2q" => Box::new(TwoQueue::new(pages, budget)),
        "fifo" => Box::new(Fifo::new(pages)),
        "clock" => Box::new(Clock::new(pages, budget)),
        "s3fifo" => Box::new(S3Fifo::new(pages, budget)),
        "prefetch" => by_name("prefetch+2q", config)?,
        _ => match name.strip_prefix("prefetch+") {
            Some(inner) => Box::new(Prefetch::new(by_name(inner, config)?, budget)),
            None => return Err(PolicyError::Unknown(name.to_owned())),
        },
    })
}
