//! The part of HTTP/1.1 that a scrape needs: one request per connection, one connection at a time.

use anyhow::Context;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Clients that take longer, or send more, than a scrape get no reply.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_REQUEST: usize = 16 << 10;

/// Response to a scrape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text's media type.
    pub media_type: &'static str,
    /// The text.
    pub body: String,
}

/// Serves the result of `answer` until the program ends; its argument is true if the client
/// explicitly accepts OpenMetrics, and otherwise it returns the common format. Returns the address,
/// whose port may have been left to the kernel.
///
/// # Errors
/// If it cannot listen there.
pub fn serve(
    address: SocketAddr,
    answer: impl Fn(bool) -> Answer + Send + 'static,
) -> anyhow::Result<SocketAddr> {
    serve_within(address, PATIENCE, answer)
}

/// The same with another patience.
fn serve_within(
    address: SocketAddr,
    patience: Duration,
    answer: impl Fn(bool) -> Answer + Send + 'static,
) -> anyhow::Result<SocketAddr> {
    let refused = || format!("cannot listen on {address} for metrics");
    let listener = TcpListener::bind(address).with_context(refused)?;
    let bound = listener.local_addr().with_context(refused)?;
    let answer_all = move || {
        for stream in listener.incoming() {
            match stream {
                // A client that disconnects is no problem of ours.
                Ok(mut stream) => drop(answer_one(&mut stream, patience, &answer)),
                // No descriptor is left: retry later.
                Err(_) => std::thread::sleep(patience),
            }
        }
    };
    std::thread::Builder::new()
        .name("pagewise-metrics".to_owned())
        .spawn(answer_all)
        .context("cannot start a thread that serves metrics")?;
    Ok(bound)
}

fn answer_one(
    stream: &mut TcpStream,
    patience: Duration,
    answer: &dyn Fn(bool) -> Answer,
) -> io::Result<()> {
    stream.set_write_timeout(Some(patience))?;
    let Some(request) = request(stream, patience)? else {
        return respond(
            stream,
            "431 Request Header Fields Too Large",
            "text/plain",
            "",
        );
    };
    let mut words = request.lines().next().unwrap_or_default().split(' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    match (method, path) {
        (Some("GET"), "/metrics") => {
            let found = answer(wants_open_metrics(&request));
            respond(stream, "200 OK", found.media_type, &found.body)
        }
        (Some("GET"), _) => {
            let hint = "Metrics are at /metrics.\n";
            respond(stream, "404 Not Found", "text/plain", hint)
        }
        _ => respond(stream, "405 Method Not Allowed", "text/plain", ""),
    }
}

/// The request with its headers; `None` if it is too long.
fn request(stream: &mut TcpStream, patience: Duration) -> io::Result<Option<String>> {
    let until = Instant::now() + patience;
    let (mut bytes, mut piece) = (Vec::new(), [0; 2048]);
    while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            more => bytes.extend_from_slice(&piece[..more]),
        }
        if bytes.len() > LONGEST_REQUEST {
            return Ok(None);
        }
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Prometheus names OpenMetrics in its Accept header.
fn wants_open_metrics(request: &str) -> bool {
    let accepts = |line: &str| {
        line.split_once(':').is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("accept") && value.contains("application/openmetrics-text")
        })
    };
    request.lines().any(accepts)
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(HOUR)).unwrap();
        let mut answer = Vec::new();
        // If bytes of the request are left unread, the connection is reset after the response.
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    fn figures(open: bool) -> Answer {
        Answer {
            media_type: match open {
                true => "application/openmetrics-text",
                false => "text/plain; version=0.0.4",
            },
            body: match open {
                true => "faults 5\n# EOF\n",
                false => "faults 5\n",
            }
            .to_owned(),
        }
    }

    #[test]
    fn a_scrape_gets_its_format_and_others_are_refused() {
        let address = serve_within(([127, 0, 0, 1], 0).into(), HOUR, figures).unwrap();
        let plain = ask(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(plain.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
        assert!(plain.ends_with("faults 5\n"));
        let open =
            "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
        let open = ask(address, open);
        assert!(open.contains("application/openmetrics-text") && open.ends_with("# EOF\n"));
        assert!(ask(address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask(address, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        let long = format!(
            "GET /metrics HTTP/1.1\r\nx: {}\r\n\r\n",
            "y".repeat(1 << 20)
        );
        let refused = ask(address, &long);
        assert!(
            refused.is_empty() || refused.starts_with("HTTP/1.1 431 "),
            "{refused}"
        );
        let taken = serve(address, figures).err().unwrap();
        assert!(taken.to_string().contains(&address.to_string()), "{taken}");
    }

    #[test]
    fn a_silent_client_does_not_keep_others_waiting() {
        let patience = Duration::from_millis(50);
        let address = serve_within(([127, 0, 0, 1], 0).into(), patience, figures).unwrap();
        let silent = TcpStream::connect(address).unwrap();
        // On a busy machine a client may itself be slower than that.
        while !ask(address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 ") {}
        drop(silent);
    }
}
