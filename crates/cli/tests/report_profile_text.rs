//! `pagewise report` on profiles given as text.

mod support;

use support::fed;

const SCRIPT: &str = "\
a b:c 12/13 [000] 10.000000:     250000 cpu-clock:pppH: 
\tffffffff81000001 copy_page+0x1 ([kernel.kallsyms])
\t    7f0000000002 main+0x7 (/usr/bin/x)

a b:c 12/13 [000] 10.010000:     250000 cpu-clock:pppH: 
\t    7f0000000002 main+0x9 (/usr/bin/x)

";

#[test]
fn the_text_of_perf_script_is_reported_on() {
    let output = fed("report", &[], SCRIPT);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("copy_page") && text.contains("main"),
        "{text}"
    );
    let output = fed("report", &["--json"], SCRIPT);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(json.to_string().contains("copy_page"), "{json}");
}

#[test]
fn folded_stacks_are_reported_on() {
    let output = fed("report", &[], "x;main;copy_page_[k] 3\nx;main 5\n");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(
        text.contains("copy_page") && text.contains("main"),
        "{text}"
    );
}

/// The content of an export.
fn exported(format: &str, more: &[&str], input: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("temporary directory");
    // To another name, Parquet is a folder of tables.
    let file = folder.path().join("export.parquet");
    let path = file.to_str().expect("temporary names are UTF-8");
    let arguments = [&["--export", format, "-o", path], more].concat();
    let output = fed("report", &arguments, input);
    assert!(output.status.success(), "{format}: {output:?}");
    assert!(output.stdout.is_empty(), "{format}: {output:?}");
    std::fs::read(file).expect("what was written")
}

fn json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn every_export_holds_the_samples() {
    let folded = exported("folded", &[], SCRIPT);
    assert_eq!(
        String::from_utf8_lossy(&folded),
        "a_b:c;main 250000\na_b:c;main;copy_page 250000\n"
    );
    let svg = String::from_utf8_lossy(&exported("svg", &[], SCRIPT)).into_owned();
    assert!(
        svg.contains("<title>copy_page (250,000, 50 %)</title>"),
        "{svg}"
    );
    let speedscope = json(&exported("speedscope", &[], SCRIPT));
    assert_eq!(speedscope["profiles"][0]["endValue"], 500_000);
    assert_eq!(
        speedscope["profiles"][0]["samples"][0],
        serde_json::json!([1, 0])
    );
    let firefox = json(&exported("firefox", &[], SCRIPT));
    assert_eq!(firefox["threads"][0]["samples"]["length"], 2);
    assert_eq!(firefox["threads"][0]["name"], "a b:c");
    let csv = exported("csv", &[], SCRIPT);
    assert_eq!(String::from_utf8_lossy(&csv).lines().count(), 3);
    let parquet = exported("parquet", &[], SCRIPT);
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    assert!(exported("pprof", &[], SCRIPT).starts_with(&[0x1f, 0x8b]));
    let perfetto = exported("perfetto", &[], SCRIPT);
    assert!(perfetto.windows(9).any(|bytes| bytes == b"copy_page"));
}

#[test]
fn one_event_is_chosen_by_name_and_a_change_is_drawn() {
    let faults = "x 1 [000] 3.000000: 2 faults:\n\tffff g+0x1 (/b)\n\n";
    let input = [SCRIPT, faults].concat();
    let folded = exported("folded", &["--event", "faults"], &input);
    assert_eq!(String::from_utf8_lossy(&folded), "x;g 2\n");
    let output = fed(
        "report",
        &["--export", "folded", "--event", "nothing"],
        &input,
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("cpu-clock:pppH, faults"), "{said}");
    let before = tempfile::NamedTempFile::new().expect("temporary file");
    std::fs::write(before.path(), "a_b:c;main;old 7\n").expect("temporary file");
    let before = before.path().to_str().expect("temporary names are UTF-8");
    // Folded stacks have one event, `samples`, which is the one compared here.
    let svg = exported("svg", &["--before", before], "a_b:c;main;new 9\n");
    let svg = String::from_utf8_lossy(&svg).into_owned();
    assert!(svg.contains("old (100 % before, 0 % after"), "{svg}");
}

/// Names that a shell, a browser or a table would interpret stay plain names.
#[test]
fn hostile_names_stay_inert_in_every_export() {
    let input = "</script><b> 1 [000] 1.000000: 5 cycles:\n\
        \tffff <img src=x onerror=alert(1)>\u{1b}[31m;'\"\u{0}+0x1 (/b/]]>x)\n\n\
        :-1 -1 [000] -2.000000: 5 cycles:\n\tffff f (x)\n\n\
         -1 [000] 3.000000: 5 cycles:\n\tffff f (x)\n\n";
    for format in [
        "folded",
        "svg",
        "speedscope",
        "pprof",
        "otlp",
        "firefox",
        "perfetto",
        "parquet",
        "csv",
    ] {
        let bytes = exported(format, &[], input);
        assert!(
            !bytes.contains(&0x1b) || matches!(format, "pprof" | "otlp" | "parquet" | "perfetto")
        );
        let text = String::from_utf8_lossy(&bytes);
        match format {
            "svg" => assert!(!text.contains("<img") && text.contains("&lt;img"), "{text}"),
            "folded" => assert_eq!(text.lines().count(), 3, "{text}"),
            _ => {}
        }
    }
}
