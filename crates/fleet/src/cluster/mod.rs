//! Where queries run: in this process, or on a cluster of Ballista (`--engine df://HOST:PORT`).
//!
//! The cluster runs physical plans that were made here, of DataFusion's own operators and functions
//! alone, so schedulers and executors are those that everybody has. What is ours (sums by unit, all
//! statistics) works here on what comes back.

use anyhow::{Result, bail};
use std::fmt;
use std::str::FromStr;
use url::{Host, Url};

#[cfg(feature = "ballista")]
mod ballista;
#[cfg(feature = "ballista")]
mod functions;
#[cfg(feature = "ballista")]
pub use ballista::{Cluster, Job};

#[cfg(not(feature = "ballista"))]
mod absent;
#[cfg(not(feature = "ballista"))]
pub use absent::{Cluster, Job};

/// The port on which Ballista's scheduler listens by default.
const PORT: u16 = 50050;

/// Which engine answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The one in this program.
    Embedded,
    /// A cluster.
    Cluster(Address),
}

/// Where a cluster's scheduler listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: Host<String>,
    port: u16,
}

/// What executors read for one query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Files that were opened.
    pub files: usize,
    /// Rows that came out of them.
    pub rows: usize,
    /// Bytes that were read of them.
    pub bytes: usize,
}

impl FromStr for Choice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "embedded" {
            return Ok(Self::Embedded);
        }
        let Some(rest) = text.strip_prefix("df://") else {
            bail!("it is embedded or df://HOST:PORT, the address of a Ballista scheduler");
        };
        let url = Url::parse(text)?;
        let host = url.host().filter(|host| *host != Host::Domain(""));
        let Some(host) = host else {
            bail!("df:// needs a host: df://HOST:{PORT}");
        };
        let is_more = !url.username().is_empty() || url.query().is_some();
        if is_more || url.fragment().is_some() || !matches!(url.path(), "" | "/") {
            bail!("{rest} is more than HOST:PORT");
        }
        Ok(Self::Cluster(Address {
            host: host.to_owned(),
            port: url.port().unwrap_or(PORT),
        }))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
            Self::Cluster(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "df://{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_the_embedded_one_or_a_host_with_a_port() {
        let told = |text: &str| text.parse::<Choice>().map(|choice| choice.to_string());
        assert_eq!(told("embedded").unwrap(), "embedded");
        assert_eq!(told("df://box").unwrap(), "df://box:50050");
        assert_eq!(told("df://10.0.0.7:99/").unwrap(), "df://10.0.0.7:99");
        assert_eq!(told("df://[::1]:99").unwrap(), "df://[::1]:99");
        let wrong = [
            "",
            "ballista",
            "http://box:50050",
            "df://",
            "df://:50050",
            "df://box:no",
            "df://box:70000",
            "df://box/data",
            "df://me@box",
            "df://box?x=1",
            "df://box#x",
        ];
        for wrong in wrong {
            assert!(told(wrong).is_err(), "{wrong}");
        }
    }
}
