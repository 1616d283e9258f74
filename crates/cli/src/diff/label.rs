//! Short names for the two sides of a comparison.

use std::path::Path;

/// Reads `--labels A,B`.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("\"{text}\": expected two names with a comma between them");
    let (a, b) = text.split_once(',').ok_or_else(wrong)?;
    let (a, b) = (a.trim(), b.trim());
    match a.is_empty() || b.is_empty() || a == b || b.contains(',') {
        true => Err(wrong()),
        false => Ok((a.to_owned(), b.to_owned())),
    }
}

/// The file names without endings if they differ and are meaningful, otherwise the folders' names,
/// otherwise A and B.
pub fn from_paths(a: &Path, b: &Path) -> (String, String) {
    let file = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        Some(name.split('.').next().unwrap_or(name).to_owned())
    };
    let folder = |path: &Path| Some(path.parent()?.file_name()?.to_str()?.to_owned());
    let differ = |a: Option<String>, b: Option<String>| {
        let (a, b) = (a?, b?);
        (a != b && !a.is_empty() && !b.is_empty() && a != "-" && b != "-").then_some((a, b))
    };
    let telling = |name: Option<String>| name.filter(|name| name != "trace");
    differ(telling(file(a)), telling(file(b)))
        .or_else(|| {
            differ(
                telling(file(a)).or(folder(a)),
                telling(file(b)).or(folder(b)),
            )
        })
        .or_else(|| differ(folder(a), folder(b)))
        .unwrap_or_else(|| ("A".to_owned(), "B".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_differs() {
        for (a, b, labels) in [
            (
                "redis-6.1/trace.txt.zst",
                "tpcc-6.1/trace.txt",
                ("redis-6.1", "tpcc-6.1"),
            ),
            ("redis/trace.txt", "x/anon.txt", ("redis", "anon")),
            ("x/before.dat", "x/after.dat", ("before", "after")),
            ("trace.txt", "trace.txt", ("A", "B")),
            ("-", "trace.txt", ("A", "B")),
        ] {
            let (found_a, found_b) = from_paths(Path::new(a), Path::new(b));
            assert_eq!((&*found_a, &*found_b), labels, "{a} {b}");
        }
        assert_eq!(pair("old, new"), Ok(("old".to_owned(), "new".to_owned())));
        for wrong in ["", "old", "a,a", ",b", "a,b,c"] {
            assert!(pair(wrong).is_err(), "{wrong}");
        }
    }
}
