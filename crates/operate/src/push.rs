//! Sends a profile to a server that takes pprof over HTTP: Pyroscope's `/ingest`, which Grafana
//! Alloy and Grafana Cloud take as well.
//!
//! curl(1) does the sending, with this machine's proxies and certificates, and with limits of ours.
//! It reads the address and the credentials from its standard input: nothing secret is on a command
//! line, in an environment or on a disk.

use pagewise_linux::process::client::Answer;
use pagewise_model::units::Nanos;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::process::Command;
use std::time::Duration;
use tempfile::NamedTempFile;
use thiserror::Error;

/// Time until a connection must exist.
const CONNECT: Duration = Duration::from_secs(10);
/// Characters of a server's message that are shown.
const MOST_MESSAGE: usize = 200;

/// The environment variable with the token.
pub const TOKEN: &str = "PAGEWISE_PUSH_TOKEN";

/// What to send, and where.
pub struct Push<'a> {
    /// The server.
    pub server: &'a Server,
    /// Name of the application, optionally with labels: `web{env=test}`.
    pub name: &'a str,
    /// Unix times of the first and the last moment.
    pub from: Nanos,
    /// See `from`.
    pub until: Nanos,
    /// Gzipped pprof.
    pub profile: &'a [u8],
    /// Time for the whole request.
    pub patience: Duration,
}

/// A server's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server(String);

/// A server's credentials: a bearer token, or `USER:PASSWORD` for basic authentication.
pub struct Token(String);

/// Why nothing was sent, or what the server did not like.
#[derive(Debug, Error)]
pub enum Error {
    /// The address is none.
    #[error("{0}: expected the address of a Pyroscope server such as http://HOST:4040")]
    Address(String),
    /// The token can't be part of a header.
    #[error("the token is empty or has characters that an HTTP header cannot have")]
    Token,
    /// There is no curl.
    #[error(
        "curl, which does the sending, could not be started ({0}). Remedy: install it (package curl), \
         or write the profile with --export pprof -o FILE and send it from elsewhere"
    )]
    NoClient(io::Error),
    /// The request's body could not be stored.
    #[error("the profile could not be stored for sending: {0}")]
    Body(io::Error),
    /// No connection.
    #[error(
        "{server} could not be reached: {message}. Remedy: check the address, and that the server runs"
    )]
    Unreachable {
        /// The server.
        server: String,
        /// curl's message.
        message: String,
    },
    /// It took too long.
    #[error(
        "{server} did not answer within {seconds} s (--push-timeout); whether it has taken the profile is unknown"
    )]
    Late {
        /// The server.
        server: String,
        /// The limit.
        seconds: f64,
    },
    /// The server's refusal.
    #[error("{server} refused the profile with HTTP status {status}{}{}", said(.message), remedy(*.status))]
    Refused {
        /// The server.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The beginning of its message.
        message: String,
    },
}

impl Server {
    /// Checks an address.
    ///
    /// # Errors
    /// If it is not one of HTTP, or has a user name or a query in it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let host = ["http://", "https://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme));
        let is_sound = host.is_some_and(|host| {
            !host.is_empty()
                && !host.starts_with('/')
                && host.chars().all(|c| c.is_ascii_graphic())
                && !host.contains(['"', '\\', '?', '#', '@'])
        });
        if !is_sound {
            return Err(Error::Address(text.to_owned()));
        }
        let base = text.trim_end_matches('/');
        Ok(Self(
            base.strip_suffix("/ingest").unwrap_or(base).to_owned(),
        ))
    }

    /// Whether others on the way can read what is sent there.
    #[must_use]
    pub fn is_in_the_clear(&self) -> bool {
        let Some(host) = self.0.strip_prefix("http://") else {
            return false;
        };
        let own = ["localhost", "127.", "[::1]"];
        !own.iter().any(|own| host.starts_with(own))
    }
}

impl Token {
    /// Checks a token; blanks and line ends around it do not count.
    ///
    /// # Errors
    /// If a header can't hold it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let token = text.trim();
        match !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic()) {
            true => Ok(Self(token.to_owned())),
            false => Err(Error::Token),
        }
    }

    /// As a line of curl's configuration.
    fn line(&self) -> String {
        let quoted = self.0.replace('\\', "\\\\").replace('"', "\\\"");
        match self.0.contains(':') {
            true => format!("user = \"{quoted}\"\n"),
            false => format!("header = \"Authorization: Bearer {quoted}\"\n"),
        }
    }
}

/// Sends a profile.
///
/// # Errors
/// If the server has not accepted it in time.
pub fn push(push: &Push<'_>, token: Option<&Token>) -> Result<(), Error> {
    let mut body = NamedTempFile::new().map_err(Error::Body)?;
    body.write_all(push.profile).map_err(Error::Body)?;
    let mut data = std::ffi::OsString::from("@");
    data.push(body.path());
    let mut command = Command::new("curl");
    command
        .args(["--disable", "--config", "-", "--silent", "--show-error"])
        .args(["--globoff", "--proto", "=http,https"])
        .args(["--connect-timeout", &CONNECT.as_secs_f64().to_string()])
        .args(["--max-time", &push.patience.as_secs_f64().to_string()])
        .args(["--write-out", "%{stderr}\n%{http_code}"])
        .args(["--header", "Content-Type: application/octet-stream"])
        .arg("--data-binary")
        .arg(data)
        .env_remove(TOKEN);
    let settings = settings(push, token);
    // curl keeps to its own limits; this is for one that does not.
    let patience = push.patience.saturating_add(CONNECT);
    let answer = Answer::receive(&mut command, settings.as_bytes(), patience);
    let answer = answer.map_err(|error| match error.kind() {
        ErrorKind::Interrupted => Error::Body(error),
        _ => Error::NoClient(error),
    })?;
    judged(push, answer)
}

/// curl's configuration: the address and the credentials.
fn settings(push: &Push<'_>, token: Option<&Token>) -> String {
    const SECOND: u64 = 1_000_000_000;
    let (from, until) = (push.from.0 / SECOND, push.until.0.div_ceil(SECOND));
    let (server, name) = (&push.server.0, encoded(push.name));
    let mut settings = format!(
        "url = \"{server}/ingest?name={name}&from={from}&until={until}&format=pprof&spyName=pagewise\"\n"
    );
    settings.extend(token.map(Token::line));
    settings
}

/// What a query's value may hold as it is (RFC 3986, unreserved characters); the rest as `%XX`.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            _ => {
                // A string takes whatever is written.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}

/// curl's exit status for a time limit (curl(1), EXIT CODES).
const TIMED_OUT: i32 = 28;

fn judged(push: &Push<'_>, answer: Option<Answer>) -> Result<(), Error> {
    let server = push.server;
    let late = || Error::Late {
        server: server.0.clone(),
        seconds: push.patience.as_secs_f64(),
    };
    let answer = answer.ok_or_else(late)?;
    let (message, status) = answer.message.rsplit_once('\n').unwrap_or_default();
    let status: u16 = status.trim().parse().unwrap_or(0);
    match (answer.status.code(), status) {
        (Some(0), 200..300) => Ok(()),
        (Some(0), 100..) => Err(Error::Refused {
            server: server.0.clone(),
            status,
            message: shown(&answer.output),
        }),
        // Either limit; only without a connection is it certain that nothing arrived.
        (Some(TIMED_OUT), _) if !message.contains("onnection timed out") => Err(late()),
        _ => Err(Error::Unreachable {
            server: server.0.clone(),
            message: shown(message),
        }),
    }
}

/// The first line, without what would control a terminal.
fn shown(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line = line.strip_prefix("curl: ").unwrap_or(line);
    let safe = line.chars().filter(|c| !c.is_control());
    safe.take(MOST_MESSAGE).collect()
}

fn said(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(" ({message})"),
    }
}

fn remedy(status: u16) -> &'static str {
    match status {
        401 | 403 => {
            ". Remedy: set PAGEWISE_PUSH_TOKEN, or --push-token-file, to a token that may write"
        }
        404 | 405 => ". Remedy: give the server's own address, to which /ingest is added",
        413 => ". Remedy: send less: one --event, or a --range",
        429 => ". Remedy: try again later",
        300..=399 => ". Remedy: give the address to which it redirects",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
