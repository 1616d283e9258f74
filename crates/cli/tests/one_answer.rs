//! `doctor` and `report` say the same of one recording, word for word.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

#[path = "support/command.rs"]
mod command;

use command::pagewise;
use serde_json::Value;

/// Copies from a socket, for which there are rules on the samples' functions.
const COPIES: &str = "import socket, threading
server = socket.create_server(('127.0.0.1', 0))
to = socket.create_connection(server.getsockname())
at, _ = server.accept()
def send():
    for _ in range(1500): to.sendall(bytes(1 << 20))
    to.close()
threading.Thread(target=send).start()
room = bytearray(1 << 20)
while at.recv_into(room): pass";
/// Blocks that glibc returns each time, for a moment.
const CHURN: &str = "import time\nend = time.monotonic() + 0.3\n\
    while time.monotonic() < end: bytearray(40 << 20)";

fn document(words: &[&str]) -> Value {
    let output = pagewise(words);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {message}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Asks about one run, and about its recording; returns the one document.
fn asked_twice(program: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("perf.data").display().to_string();
    let words = ["doctor", "-q", "--no-report", "--json", "--record", &data];
    let live = document(&[&words, &["--", "python3", "-c", program][..]].concat());
    let kept = document(&["report", "--json", &data]);
    for part in ["verdict", "diagnoses", "advice"] {
        assert_eq!(kept[part], live[part], "{part}");
    }
    assert!(kept == live, "report prints another document");
    live
}

#[test]
fn doctor_and_report_say_the_same_of_one_recording() {
    asked_twice(CHURN);
    let document = asked_twice(COPIES);
    let diagnoses = document["diagnoses"].as_array().expect("a list").iter();
    let mut ids = diagnoses.filter_map(|one| one["id"].as_str());
    if !ids.any(|id| id.starts_with("profile.")) {
        skipped!("the kernel's functions were not sampled, so that no rule of samples applied");
    }
}
