//! Prints a sample report: `cargo run -p pagewise-report --example sample_report -- KIND FORMAT`,
//! where KIND is `churning`, `healthy`, `bare`, `hostile`, `large` or `both` (with samples of CPU time) and
//! FORMAT is `text`, `json` or `html`.

use pagewise_report::text::Style;

#[path = "../tests/sample/mod.rs"]
mod sample;

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kind, format) = match arguments.as_slice() {
        [kind, format] => (kind.as_str(), format.as_str()),
        _ => {
            return Err(
                "usage: sample_report churning|healthy|bare|hostile|large|both text|json|html"
                    .into(),
            );
        }
    };
    let mut findings = match kind {
        "churning" | "both" => sample::churning(),
        "healthy" => sample::healthy(),
        "bare" => sample::bare(),
        "hostile" => sample::hostile(),
        "large" => sample::large(),
        other => return Err(format!("no sample is called {other}")),
    };
    let style = Style {
        color: true,
        unicode: true,
    };
    match format {
        "text" => print!("{}", pagewise_report::text::render(&findings, 100, style)),
        "json" => print!(
            "{}",
            pagewise_report::json::to_string(&findings).map_err(|error| error.to_string())?
        ),
        "html" => {
            let page = match kind {
                "both" => {
                    let (profile, seen) = sample::profile();
                    findings.profile = Some(seen.evidence);
                    pagewise_report::html::render_with_profile(&findings, &profile, "sample")
                }
                _ => pagewise_report::html::render(&findings),
            };
            print!("{}", page.map_err(|error| error.to_string())?);
        }
        other => return Err(format!("no format is called {other}")),
    }
    Ok(())
}
