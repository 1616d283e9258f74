use super::*;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// A request: its first line, its headers, its body.
struct Request {
    line: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

fn request(stream: &mut TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a request");
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let line = lines.remove(0);
    let length = lines.iter().find_map(|header| {
        let (name, value) = header.split_once(": ")?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        is_it.then(|| value.parse::<usize>().expect("a length"))
    });
    let mut body = vec![0; length.expect("a body")];
    reader.read_exact(&mut body).expect("the body");
    Request {
        line,
        headers: lines,
        body,
    }
}

/// A server that answers one request so.
fn server(answer: &'static str) -> (Server, JoinHandle<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}/", listener.local_addr().expect("bound"));
    let handle = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let request = request(&mut stream);
        stream
            .write_all(answer.as_bytes())
            .expect("a client that listens");
        request
    });
    (Server::parse(&address).expect("an address"), handle)
}

fn has_curl() -> bool {
    Command::new("curl").arg("--version").output().is_ok()
}

fn profile(server: &Server) -> Push<'_> {
    Push {
        server,
        name: "web{env=a b}",
        from: Nanos(1_700_000_000_900_000_000),
        until: Nanos(1_700_000_002_100_000_000),
        profile: b"\x1f\x8b\0profile\n",
        patience: Duration::from_secs(60),
    }
}

fn send(server: &Server, token: Option<&str>) -> Result<(), Error> {
    let token = token.map(|token| Token::parse(token).expect("a token"));
    push(&profile(server), token.as_ref())
}

#[test]
fn a_profile_arrives_as_it_is_with_name_time_and_token() {
    if !has_curl() {
        skipped!("there is no curl");
        return;
    }
    let (address, handle) = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    send(&address, Some(" se\"cr\\et\n")).expect("accepted");
    let request = handle.join().expect("a request");
    assert_eq!(
        request.line,
        "POST /ingest?name=web%7Benv%3Da%20b%7D&from=1700000000&until=1700000003&format=pprof&spyName=pagewise HTTP/1.1"
    );
    let bearer = "Authorization: Bearer se\"cr\\et".to_owned();
    assert!(request.headers.contains(&bearer), "{:?}", request.headers);
    assert_eq!(request.body, b"\x1f\x8b\0profile\n");

    let (address, handle) = server("HTTP/1.1 204 No Content\r\n\r\n");
    send(&address, Some("user:pass")).expect("accepted");
    let headers = handle.join().expect("a request").headers;
    let basic = "Authorization: Basic dXNlcjpwYXNz".to_owned();
    assert!(headers.contains(&basic), "{headers:?}");
}

#[test]
fn refusals_say_what_to_do() {
    if !has_curl() {
        skipped!("there is no curl");
        return;
    }
    let message = |answer: &'static str| {
        let (address, handle) = server(answer);
        let error = send(&address, None).expect_err("refused");
        handle.join().expect("a request");
        error.to_string()
    };
    let unauthorised =
        message("HTTP/1.1 401 Unauthorized\r\nContent-Length: 13\r\n\r\nno \u{1b}[31mtoken");
    assert!(
        unauthorised.contains("status 401 (no [31mtoken)"),
        "{unauthorised}"
    );
    assert!(unauthorised.contains(TOKEN), "{unauthorised}");
    let elsewhere = message(
        "HTTP/1.1 307 Temporary\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(elsewhere.contains("status 307. Remedy"), "{elsewhere}");
    let cut = message("nonsense");
    assert!(cut.contains("could not be reached"), "{cut}");

    // The port of a client: taken, so that no other test gets it, and nobody listens on it.
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let client = TcpStream::connect(other.local_addr().expect("bound")).expect("connected");
    let address = format!("http://{}", client.local_addr().expect("bound"));
    let error = send(&Server::parse(&address).expect("an address"), None);
    let message = error.expect_err("nobody listens").to_string();
    assert!(
        message.contains("could not be reached") && message.contains("onnect"),
        "{message}"
    );
}

#[test]
fn a_server_that_does_not_answer_is_left() {
    if !has_curl() {
        skipped!("there is no curl");
        return;
    }
    // The kernel takes the connection, and nobody the request.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", silent.local_addr().expect("bound"));
    let address = Server::parse(&address).expect("an address");
    let push = Push {
        patience: Duration::from_millis(300),
        ..profile(&address)
    };
    let error = super::push(&push, None).expect_err("nobody answers");
    assert!(error.to_string().contains("within 0.3 s"), "{error}");
    // A client that ignores its own limit.
    assert!(matches!(judged(&push, None), Err(Error::Late { .. })));
}

#[test]
fn only_addresses_of_http_without_secrets_are_taken() {
    for text in ["http://h:4040", "http://h:4040/", "http://h:4040/ingest"] {
        assert_eq!(Server::parse(text).expect(text).0, "http://h:4040");
    }
    for text in [
        "h:4040",
        "ftp://h",
        "http://",
        "http:///x",
        "http://u:p@h",
        "http://h/?a=b",
        "http://h\"\n",
    ] {
        assert!(Server::parse(text).is_err(), "{text}");
    }
    for token in ["", " \n", "a b", "a\nheader = \"X: y\"", "é"] {
        assert!(Token::parse(token).is_err(), "{token}");
    }
    let clear = |text| Server::parse(text).expect(text).is_in_the_clear();
    assert!(clear("http://pyroscope:4040") && !clear("https://pyroscope"));
    assert!(!clear("http://127.0.0.1:4040") && !clear("http://localhost:4040"));
}
