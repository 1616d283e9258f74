//! The HTML page as a file: its size, its content, and what must not occur in it.

use pagewise_model::answer::Document;
use pagewise_report::html::{
    render, render_profile, render_profile_diff, render_run_diff, render_with_profile,
};
use serde_json::Value;
use std::io::Read;

mod sample;

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number below 26"
)]
fn letter(noise: &mut sample::Noise) -> char {
    char::from(b'a' + (noise.unit() * 26.0) as u8)
}

/// The text inside the data element, with its encoding.
fn data(page: &str) -> (&str, &str) {
    let start = page.find("data-encoding=\"").expect("the data element") + 15;
    let (encoding, rest) = page[start..].split_once("\">").expect("an encoding");
    let (data, _) = rest.split_once("</script>").expect("the element ends");
    (encoding, data)
}

fn unbase64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => u32::from(c - b'A'),
        b'a'..=b'z' => u32::from(c - b'a') + 26,
        b'0'..=b'9' => u32::from(c - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        other => panic!("{other} is no digit of base64"),
    };
    let (mut word, mut bits, mut bytes) = (0_u32, 0, Vec::new());
    for c in text.bytes().filter(|&c| c != b'=') {
        word = word << 6 | value(c);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((word >> bits & 0xff) as u8);
        }
    }
    bytes
}

fn json(page: &str) -> String {
    let (encoding, data) = data(page);
    match encoding {
        "plain" => data.to_owned(),
        "deflate" => {
            let mut text = String::new();
            flate2::read::ZlibDecoder::new(unbase64(data).as_slice())
                .read_to_string(&mut text)
                .expect("the data inflate");
            text
        }
        other => panic!("the page does not know the encoding {other}"),
    }
}

fn report(page: &str) -> serde_json::Value {
    serde_json::from_str(&json(page)).expect("the data are JSON")
}

#[test]
fn the_findings_come_out_of_the_page_as_they_went_in() {
    for (findings, encoding) in [(sample::bare(), "plain"), (sample::large(), "deflate")] {
        let page = render(&findings).expect("the page is made");
        assert_eq!(data(&page).0, encoding);
        let expected = serde_json::to_string(&findings.evidence).expect("findings serialise");
        assert!(
            json(&page).contains(&expected),
            "the findings changed underway"
        );
        assert_eq!(
            report(&page)["pids"],
            serde_json::json!(findings.subject.pids)
        );
    }
}

#[test]
fn no_name_can_end_the_element_or_start_another() {
    let mut findings = sample::bare();
    findings.verdict = "</script><script>alert(1)</script><!--".into();
    let page = render(&findings).expect("the page is made");
    let (encoding, data) = data(&page);
    assert_eq!(encoding, "plain");
    assert!(!data.contains('<'));
    assert_eq!(
        page.matches("<script").count(),
        3,
        "the data, the columns and the page's own"
    );
    assert_eq!(report(&page)["verdict"], findings.verdict);
}

#[test]
fn the_page_asks_for_nothing() {
    let page = render(&sample::churning()).expect("the page is made");
    assert!(page.contains("default-src 'none'"));
    for address in ["http://", "https://", "src=\"", "@import", "url("] {
        let found = page
            .match_indices(address)
            .filter(|&(at, _)| !page[at..].starts_with("http://www.w3.org/"))
            .count();
        assert_eq!(found, 0, "{address}");
    }
}

#[test]
fn a_large_report_stays_below_five_megabytes() {
    let page = render(&sample::large()).expect("the page is made");
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    assert_eq!(report(&page)["faults"]["frames_left_out"], 0);
}

#[test]
fn too_many_frames_are_left_out_and_counted() {
    let mut findings = sample::bare();
    let mut noise = sample::Noise(1);
    // Names that do not compress; mangled ones hardly do either.
    for _ in 0..150_000 {
        let name: String = (0..60).map(|_| letter(&mut noise)).collect();
        findings
            .flame
            .children
            .push(pagewise_model::findings::FlameNode {
                name,
                total: 1.0,
                ..Default::default()
            });
        findings.flame.total += 1.0;
    }
    findings.flame.children[0].total = 1e6;
    findings.flame.total += 1e6;
    let page = render(&findings).expect("the page is made");
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    let report = &report(&page)["faults"];
    assert_eq!(report["frames_left_out"], 149_999);
    assert_eq!(
        report["findings"]["flame"]["children"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[test]
fn the_same_findings_give_the_same_page() {
    let once = render(&sample::churning()).expect("the page is made");
    let again = render(&sample::churning()).expect("the page is made");
    assert_eq!(once, again);
}

/// The bytes of a page's columns: two characters are thirteen bits.
fn columns(page: &str) -> Vec<u8> {
    let (_, rest) = page
        .split_once("id=\"pagewise-bytes\"")
        .expect("the element");
    let text = rest.split_once('>').expect("its start").1;
    let text = text.split_once('<').expect("its end").0;
    let digits: Vec<u8> = (b'!'..=b'~').filter(|c| !b"\"&<".contains(c)).collect();
    let value = |c: u8| {
        let place = digits.iter().position(|&digit| digit == c);
        u32::try_from(place.expect("a digit")).expect("below 91")
    };
    let (mut held, mut bits, mut bytes) = (0_u32, 0, Vec::new());
    for pair in text.as_bytes().chunks(2) {
        held |= (value(pair[0]) * 91 + value(pair[1])) << bits;
        bits += 13;
        while bits >= 8 {
            bytes.push((held & 0xff) as u8);
            held >>= 8;
            bits -= 8;
        }
    }
    bytes
}

/// The numbers of a column.
fn numbers(bytes: &[u8], column: &Value) -> Vec<u64> {
    let at = |index: usize| usize::try_from(column[index].as_u64().expect("a number")).unwrap();
    let mut unpacked = Vec::new();
    flate2::read::DeflateDecoder::new(&bytes[at(0)..at(0) + at(1)])
        .read_to_end(&mut unpacked)
        .expect("the column inflates");
    let (mut found, mut value, mut shift) = (Vec::new(), 0, 0);
    for byte in unpacked {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            found.push(value);
            (value, shift) = (0, 0);
        }
    }
    found
}

/// The stack of each node of a page's tree, innermost first.
fn stacks_of(bytes: &[u8], pack: &Value) -> Vec<Vec<String>> {
    let (ups, frames) = (
        numbers(bytes, &pack["ups"]),
        numbers(bytes, &pack["node_frames"]),
    );
    let mut stacks = vec![Vec::new()];
    let mut open: Vec<String> = Vec::new();
    for (up, frame) in ups.into_iter().zip(frames) {
        open.truncate(open.len() - usize::try_from(up).unwrap());
        let name = &pack["frames"][usize::try_from(frame).unwrap()][0];
        open.push(name.as_str().expect("a name").to_owned());
        stacks.push(open.iter().rev().cloned().collect());
    }
    stacks
}

#[test]
fn a_profiles_samples_are_in_its_page_one_by_one() {
    let (profile, findings) = sample::profile();
    let page = render_profile(&profile, &findings, "sample").expect("a page");
    let (data, bytes): (Value, _) = (
        serde_json::from_str(&json(&page)).expect("JSON"),
        columns(&page),
    );
    assert_eq!(data["subject"], "sample");
    let pack = &data["profile"]["pack"];
    let stacks = stacks_of(&bytes, pack);
    let side = &pack["sides"][0];
    let track = &side["tracks"][0];
    let column = |name: &str| numbers(&bytes, &track[name]);
    let leaves = column("leaves");
    let (times, ranks) = (column("times"), column("stacks"));
    let (cpus, threads, weights) = (column("cpus"), column("threads"), column("weights"));
    // The expected next CPU and the last thread and weight on each CPU, as the page decodes them.
    let (mut next, mut before, mut tick) = ([0_u64; 2], 0_usize, 0);
    let (mut running, mut held) = ([0_u64; 2], [0_u64; 2]);
    let zero = profile.start.0 / 10_000;
    for (at, sample) in profile.samples.iter().enumerate() {
        tick += times[at];
        assert_eq!(tick, (profile.start.0 + sample.time) / 10_000 - zero);
        let cpu = if cpus[at] == 0 {
            next[before]
        } else {
            cpus[at] - 1
        };
        (next[before], before) = (cpu, usize::try_from(cpu).unwrap());
        assert_eq!(cpu, u64::from(sample.cpu));
        if threads[at] > 0 {
            running[before] = threads[at] - 1;
        }
        assert_eq!(running[before], u64::from(sample.thread));
        if weights[at] > 0 {
            held[before] = weights[at] - 1;
        }
        assert_eq!(held[before], sample.weight);
        let node = leaves[usize::try_from(ranks[at]).unwrap()];
        assert_eq!(
            stacks[usize::try_from(node).unwrap()],
            sample::names(&profile, sample.stack)
        );
    }
}

#[test]
fn a_recording_of_both_has_both_on_its_page() {
    let (profile, findings) = sample::profile();
    let mut run = sample::churning();
    run.profile = Some(findings.evidence);
    let page = render_with_profile(&run, &profile, "sample");
    let page = page.expect("a page");
    let data: Value = serde_json::from_str(&json(&page)).expect("JSON");
    assert!(data["faults"]["findings"]["cost"]["wall"].is_number());
    assert!(data["faults"]["findings"]["profile"].is_null());
    assert_eq!(data["profile"]["findings"]["events"][0]["samples"], 990);
    assert_eq!(
        stacks_of(&columns(&page), &data["profile"]["pack"]).len(),
        4
    );
    assert!(
        page.contains("990 of cpu-clock"),
        "for browsers without scripts too"
    );
}

#[test]
fn two_profiles_lie_over_one_tree() {
    let (a, _) = sample::profile();
    let mut b = a.clone();
    b.frames[1].name = "compress.isra.0".into();
    b.frames[2].name = "memcpy".into();
    let diff = pagewise_model::profile_diff::ProfileDiff {
        a: Default::default(),
        b: Default::default(),
        event: "cpu-clock".to_owned(),
        slowdown: None,
        measure: pagewise_model::profile_diff::Measure::CpusInUse,
        block: pagewise_model::units::Nanos(1),
        blocks: (1, 1),
        run: None,
        functions: Vec::new(),
        stacks: Vec::new(),
        detectable: 0.1,
        tree: Vec::new(),
        unknown: vec![],
        settings: Vec::new(),
        counters: Vec::new(),
    };
    let diff = Document::new(diff).with_verdict("memcpy grew");
    let page = render_profile_diff(&diff, &a, &b).expect("a page");
    let data: Value = serde_json::from_str(&json(&page)).expect("JSON");
    let stacks = stacks_of(&columns(&page), &data["profile_diff"]["pack"]);
    let message: Vec<String> = stacks.iter().map(|stack| stack.join(" < ")).collect();
    let expected = [
        "",
        "main",
        "compress < main",
        "asm_exc_page_fault < compress < main",
        "memcpy < compress < main",
    ];
    assert_eq!(message, expected);
}

#[test]
fn two_runs_without_samples_have_a_page_with_their_figures() {
    let cost = |minor_faults| pagewise_model::run::RunCost {
        minor_faults,
        ..Default::default()
    };
    let side = |name: &str, faults| pagewise_model::side::Side {
        name: name.to_owned(),
        subject: pagewise_model::answer::Subject::of_command(vec!["sort".to_owned()]),
        host: String::new(),
        sums: cost(faults),
    };
    let diff = pagewise_model::run_diff::RunDiff {
        a: side("before.json", 548_000),
        b: side("after.json", 10_000),
        figures: vec![pagewise_model::run_diff::FigureChange {
            quantity: pagewise_model::run_diff::Quantity::Faults,
            a: 548_000.0,
            b: 10_000.0,
            differs: true,
        }],
        causes: Vec::new(),
        settings: Vec::new(),
    };
    let verdict = "548,000 page faults became 10,000";
    let diff = Document::new(diff).with_verdict(verdict);
    let page = render_run_diff(&diff, verdict).expect("a page");
    let data = report(&page);
    assert_eq!(data["subject"], "before.json against after.json");
    assert_eq!(data["verdict"], verdict);
    assert_eq!(data["run_diff"]["figures"][0]["a"], 548_000.0);
    assert!(data.get("profile_diff").is_none(), "it has no samples");
}
