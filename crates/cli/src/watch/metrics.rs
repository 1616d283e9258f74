//! `watch --metrics`: the newest figures for Prometheus, in a file or by HTTP.

use anyhow::Context;
use pagewise_model::findings::Findings;
use pagewise_model::timeline::TimelinePoint;
use pagewise_operate::watch::{Answer, Looks, Reading, serve};
use pagewise_report::metrics::{Figures, Format, Observed, text};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Destination of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file, rewritten each second.
    File(PathBuf),
    /// `/metrics` at this address.
    Address(SocketAddr),
}

/// `:PORT` listens only on this machine's loopback address; for other hosts, give an address.
pub fn target(text: &str) -> Result<Target, String> {
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse();
        let port = port.map_err(|_| format!("{text} has no port (0 to 65535) after the colon"))?;
        return Ok(Target::Address((Ipv4Addr::LOCALHOST, port).into()));
    }
    match text.parse() {
        Ok(address) => Ok(Target::Address(address)),
        Err(_) if text.is_empty() => Err("name a file, :PORT or ADDRESS:PORT".to_owned()),
        Err(_) => Ok(Target::File(PathBuf::from(text))),
    }
}

/// Minimum time between two writes of the file.
const BEAT: Duration = Duration::from_secs(1);

/// Metrics exported while a tree is watched.
pub struct Exporter {
    figures: Arc<Mutex<Figures>>,
    file: Option<PathBuf>,
    written: Option<Instant>,
    _looks: Option<Looks>,
}

impl Exporter {
    /// Starts to export; looks inside `processes` each `look`, if requested.
    ///
    /// # Errors
    /// If the address is in use, or the file cannot be written.
    pub fn start(
        target: &Target,
        processes: &[i32],
        look: Option<Duration>,
    ) -> anyhow::Result<Self> {
        let figures = Arc::new(Mutex::new(Figures::default()));
        let file = match target {
            Target::Address(address) => {
                let bound = serve(*address, answer(Arc::clone(&figures)))?;
                eprintln!("pagewise: metrics at http://{bound}/metrics");
                None
            }
            Target::File(path) => {
                write(path, &Figures::default())?;
                Some(path.clone())
            }
        };
        let looks =
            look.map(|every| Looks::start(processes.to_vec(), every, taker(Arc::clone(&figures))));
        Ok(Self {
            _looks: looks.transpose()?,
            figures,
            file,
            written: None,
        })
    }

    /// Takes a reading.
    ///
    /// # Errors
    /// If the file can no longer be written.
    pub fn take(&mut self, reading: &Reading) -> anyhow::Result<()> {
        let mut figures = lock(&self.figures);
        // PSS is read less often than the other figures.
        let pss = reading.point.pss.or(figures.point.pss);
        figures.point = TimelinePoint {
            pss,
            ..reading.point
        };
        figures.pressure = reading.pressure.or(figures.pressure);
        let is_due = self.written.is_none_or(|last| last.elapsed() >= BEAT);
        if let (Some(path), true) = (&self.file, is_due) {
            write(path, &figures)?;
            self.written = Some(Instant::now());
        }
        Ok(())
    }
}

impl Drop for Exporter {
    /// Figures of a process that is no longer watched are outdated: the file is removed.
    fn drop(&mut self) {
        if let Some(path) = &self.file {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The response to a scrape, from the newest figures.
fn answer(figures: Arc<Mutex<Figures>>) -> impl Fn(bool) -> Answer {
    move |wants_open_metrics| {
        let format = match wants_open_metrics {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        };
        Answer {
            media_type: format.media_type(),
            body: text(&lock(&figures), format),
        }
    }
}

/// Stores the findings of a look inside; reports only once that nothing can be seen.
fn taker(figures: Arc<Mutex<Figures>>) -> impl FnMut(anyhow::Result<Findings>) + Send + 'static {
    let mut message = false;
    move |found| {
        let at = SystemTime::now().duration_since(UNIX_EPOCH);
        let at = at.map_or(0.0, |at| at.as_secs_f64());
        if let (Err(error), false) = (&found, message) {
            message = true;
            eprintln!("pagewise: cannot look inside: {error:#}");
        }
        // Old figures would look like new ones.
        lock(&figures).observed = found.ok().map(|findings| Observed { at, findings });
    }
}

fn lock(figures: &Mutex<Figures>) -> std::sync::MutexGuard<'_, Figures> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Written atomically, and readable by the collector, which usually runs as another user.
fn write(path: &Path, figures: &Figures) -> anyhow::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let written = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".pagewise-")
            .tempfile_in(folder)?;
        file.write_all(text(figures, Format::Prometheus).as_bytes())?;
        let readable = std::fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(readable)?;
        file.persist(path)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write metrics to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_this_machine_s_own_and_anything_else_a_file() {
        let address = |text: &str| Ok(Target::Address(text.parse().unwrap()));
        assert_eq!(target(":9101"), address("127.0.0.1:9101"));
        assert_eq!(target("0.0.0.0:9101"), address("0.0.0.0:9101"));
        assert_eq!(target("[::1]:0"), address("[::1]:0"));
        assert_eq!(target("a.prom"), Ok(Target::File("a.prom".into())));
        assert!(target(":99999").is_err() && target(":x").is_err() && target("").is_err());
    }

    #[test]
    fn a_file_is_there_while_somebody_watches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.prom");
        let target = Target::File(path.clone());
        let mut exporter = Exporter::start(&target, &[1], None).unwrap();
        let mut reading = Reading::default();
        reading.point.minor_faults = 77;
        exporter.take(&reading).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("pagewise_page_faults_total{kind=\"minor\"} 77"));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        drop(exporter);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let nowhere = Target::File("/no/such/folder/x.prom".into());
        let error = Exporter::start(&nowhere, &[1], None).err().unwrap();
        assert!(error.to_string().contains("/no/such/folder/x.prom"));
    }
}
