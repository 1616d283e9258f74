//! Other programs that speak to servers for us (`debuginfod-find`, `curl`): with their certificates,
//! proxies and protocols, but with our limits of time and memory.

use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Interval of checks whether the client has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of its output that are kept. Clients print a path, a status or a server's message.
const MOST_OUTPUT: u64 = 1 << 20;

/// How a client ended, and what it printed.
pub struct Answer {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub message: String,
}

impl Answer {
    /// Runs the client with `input` as its standard input; `None` if it was ended because it took
    /// longer than `patience`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn receive(
        command: &mut Command,
        input: &[u8],
        patience: Duration,
    ) -> io::Result<Option<Self>> {
        let until = Instant::now() + patience;
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn()?;
        let (output, message) = (text_of(child.stdout.take()), text_of(child.stderr.take()));
        feed(&mut child, input.to_vec());
        let Some(status) = wait(&mut child, until)? else {
            return Ok(None);
        };
        // Does not wait for a child of the client that keeps a pipe open.
        let text = |of: &mpsc::Receiver<String>| of.recv_timeout(Duration::from_secs(1));
        Ok(Some(Self {
            status,
            output: text(&output).unwrap_or_default(),
            message: text(&message).unwrap_or_default(),
        }))
    }
}

/// Writes the client's input on another thread: it may read late, or never.
fn feed(child: &mut Child, input: Vec<u8>) {
    let Some(mut pipe) = child.stdin.take() else {
        return;
    };
    // A client that ends without reading says why itself.
    thread::spawn(move || drop(pipe.write_all(&input)));
}

/// Waits for the client, and ends it at `until`; then `None`.
fn wait(child: &mut Child, until: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Reads a pipe on another thread, so that its writer never waits for us.
fn text_of(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // After an error, use what was read until then.
            let _ = pipe.by_ref().take(MOST_OUTPUT).read_to_end(&mut text);
            let _ = io::copy(&mut pipe, &mut io::sink());
        }
        // The receiver may be gone.
        let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, input: &[u8], patience: Duration) -> Option<Answer> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Answer::receive(&mut command, input, patience).expect("there is a shell")
    }

    #[test]
    fn input_output_and_status_belong_to_the_client() {
        let patience = Duration::from_secs(60);
        let answer = shell("cat; echo why >&2; exit 3", b"in", patience).expect("in time");
        assert_eq!(answer.status.code(), Some(3));
        assert_eq!((&*answer.output, &*answer.message), ("in", "why\n"));
    }

    #[test]
    fn what_is_printed_without_end_is_cut() {
        let script = "dd if=/dev/zero bs=1M count=3 2>/dev/null; echo end >&2";
        let answer = shell(script, b"", Duration::from_secs(60)).expect("in time");
        assert_eq!(answer.output.len() as u64, MOST_OUTPUT);
        assert_eq!(answer.message, "end\n");
    }

    #[test]
    fn a_client_that_never_reads_or_ends_is_ended() {
        let much = vec![b'x'; 1 << 20];
        let begun = Instant::now();
        assert!(shell("exec sleep 1000", &much, Duration::from_millis(200)).is_none());
        assert!(begun.elapsed() < Duration::from_secs(500));
    }
}
