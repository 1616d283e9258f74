//! `pagewise report --push`: sends the samples to a server.

use super::name_of;
use crate::{duration, export};
use anyhow::{Context, Result};
use clap::Args;
use pagewise_model::profile::Profile;
use pagewise_model::units::Nanos;
use pagewise_operate::push::{Push, Server, TOKEN, Token, push};
use pagewise_report::exports::pprof;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a token's file that are read; a token has some hundred.
const MOST_TOKEN: u64 = 64 << 10;

/// Where to send the samples, and as what.
#[derive(Args, Debug, Default)]
#[group(skip)]
pub struct Options {
    /// Send the samples to a Pyroscope server (pprof, to its /ingest), instead of the report
    ///
    /// Needs curl. The token, if the server wants one, comes from --push-token-file or the
    /// environment variable PAGEWISE_PUSH_TOKEN: USER:TOKEN is sent as basic authentication, anything
    /// else as bearer token.
    #[arg(long, value_name = "URL", group = "of_samples", conflicts_with_all = ["export", "json", "output"])]
    push: Option<String>,

    /// Name of the application for --push, with labels if wanted: 'web{env=test}'
    ///
    /// By default the observed program's name and the host: web{host=HOST}.
    #[arg(long, value_name = "NAME", requires = "push")]
    push_name: Option<String>,

    /// A file with the token for --push
    #[arg(long, value_name = "FILE", requires = "push")]
    push_token_file: Option<PathBuf>,

    /// Time for --push as a whole
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration::parse, requires = "push")]
    push_timeout: Duration,
}

impl Options {
    /// Whether samples are to be sent.
    pub fn is_wanted(&self) -> bool {
        self.push.is_some()
    }

    /// Sends a profile, or one event of it.
    ///
    /// # Errors
    /// If the server has not accepted it.
    pub fn send(&self, profile: &Profile, event: Option<&str>, file: &Path) -> Result<()> {
        let server = Server::parse(self.push.as_deref().unwrap_or_default())?;
        let token = self.token()?;
        if token.is_some() && server.is_in_the_clear() {
            eprintln!("pagewise: the token goes to the server unencrypted: https:// would hide it");
        }
        let mut profile = export::of_event(profile, event)?.into_owned();
        for event in &mut profile.events {
            // Pyroscope joins the parts of a profile's type by colons.
            event.name = event.name.replace(':', "_");
        }
        let (from, until) = time(&mut profile, file);
        let name = self
            .push_name
            .clone()
            .unwrap_or_else(|| default_name(&profile));
        let mut body = Vec::new();
        pprof::write(&profile, &mut body)?;
        let sent = Push {
            server: &server,
            name: &name,
            from,
            until,
            profile: &body,
            patience: self.push_timeout,
        };
        push(&sent, token.as_ref())?;
        eprintln!(
            "pagewise: {}: {} samples sent as {name}, {} bytes",
            name_of(file),
            profile.samples.len(),
            body.len()
        );
        Ok(())
    }

    fn token(&self) -> Result<Option<Token>> {
        if let Some(path) = &self.push_token_file {
            let cannot = || format!("--push-token-file {}", path.display());
            let mut text = String::new();
            File::open(path)
                .and_then(|file| file.take(MOST_TOKEN).read_to_string(&mut text))
                .with_context(cannot)?;
            return Token::parse(&text).map(Some).with_context(cannot);
        }
        match std::env::var(TOKEN) {
            Ok(text) if !text.is_empty() => Token::parse(&text).map(Some).context(TOKEN),
            _ => Ok(None),
        }
    }
}

/// When the profile was taken. Where the recording does not tell, it ended when its file was last
/// written.
fn time(profile: &mut Profile, file: &Path) -> (Nanos, Nanos) {
    let span = profile.span;
    let from = *profile.began_unix.get_or_insert_with(|| {
        let written = file.metadata().and_then(|file| file.modified());
        let end = written.unwrap_or_else(|_| SystemTime::now());
        let end = end.duration_since(UNIX_EPOCH).unwrap_or_default();
        let end = u64::try_from(end.as_nanos()).unwrap_or(u64::MAX);
        Nanos(end.saturating_sub(span.0))
    });
    (from, Nanos(from.0.saturating_add(span.0)))
}

/// The program and the host, as far as they are known, in characters that a name may have.
fn default_name(profile: &Profile) -> String {
    let plain = |text: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        text.replace(|c| !allowed(c), "_")
    };
    let program = profile.service_name().filter(|name| !name.is_empty());
    let program = plain(program.unwrap_or("pagewise"));
    match &*profile.host.hostname {
        "" => program,
        host => format!("{program}{{host={}}}", plain(host)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_program_and_the_host() {
        let mut profile = Profile::default();
        assert_eq!(default_name(&profile), "pagewise");
        profile.command = vec!["/usr/bin/my{app}".to_owned(), "x".to_owned()];
        profile.host.hostname = "node 1".to_owned();
        assert_eq!(default_name(&profile), "my_app_{host=node_1}");
    }

    #[test]
    fn a_recording_without_a_date_ended_when_its_file_was_written() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let written = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        file.as_file().set_modified(written).expect("our own file");
        let mut profile = Profile {
            span: Nanos(5_000_000_000),
            ..Profile::default()
        };
        let (from, until) = time(&mut profile, file.path());
        assert_eq!(from, Nanos(1_699_999_995_000_000_000));
        assert_eq!(until, Nanos(1_700_000_000_000_000_000));
        assert_eq!(profile.began_unix, Some(from));
        profile.began_unix = Some(Nanos(7));
        assert_eq!(time(&mut profile, file.path()).0, Nanos(7));
    }
}
