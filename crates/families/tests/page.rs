//! docs/RUNTIMES.md is made from this crate's rules and the results of `tests/world/run`.

use std::path::Path;
use std::process::Command;

#[test]
fn the_page_of_runtimes_is_up_to_date() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/world/run");
    let check = Command::new("python3").arg(script).arg("--check").output();
    let check = check.expect("python3, as CONTRIBUTING.md asks");
    let said = String::from_utf8_lossy(&check.stderr);
    assert!(check.status.success(), "{said}");
}
