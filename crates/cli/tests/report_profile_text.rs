//! `pagewise report` on profiles that come as text.

mod support;

use support::report;

const SCRIPT: &str = "\
a b:c 12/13 [000] 10.000000:     250000 cpu-clock:pppH: 
\tffffffff81000001 copy_page+0x1 ([kernel.kallsyms])
\t    7f0000000002 main+0x7 (/usr/bin/x)

a b:c 12/13 [000] 10.010000:     250000 cpu-clock:pppH: 
\t    7f0000000002 main+0x9 (/usr/bin/x)

";

#[test]
fn the_text_of_perf_script_is_reported_on() {
    let output = report(&[], SCRIPT);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("copy_page") && text.contains("main"),
        "{text}"
    );
    let output = report(&["--json"], SCRIPT);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(json.to_string().contains("copy_page"), "{json}");
}

#[test]
fn folded_stacks_are_reported_on() {
    let output = report(&[], "x;main;copy_page_[k] 3\nx;main 5\n");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("copy_page") && text.contains("main"),
        "{text}"
    );
}
