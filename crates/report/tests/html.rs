//! The HTML page as a file: its size, what is in it, what can't be.

use pagewise_report::html::render;
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
        let expected = serde_json::to_string(&findings).expect("findings serialise");
        assert!(
            json(&page).contains(&expected),
            "the findings changed underway"
        );
        assert_eq!(report(&page)["findings"]["pid"], findings.pid);
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
        2,
        "the data and the page's own"
    );
    assert_eq!(report(&page)["findings"]["verdict"], findings.verdict);
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
    assert_eq!(report(&page)["frames_left_out"], 0);
}

#[test]
fn too_many_frames_are_left_out_and_counted() {
    let mut findings = sample::bare();
    let mut noise = sample::Noise(1);
    // Names that do not compress, as mangled ones hardly do.
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
    let report = report(&page);
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
