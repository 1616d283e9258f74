//! Our documents for a terminal: links become text that can be typed.

/// The text without Markdown syntax. A link to a topic becomes the command that shows it; a link
/// into the repository, which an installation lacks, becomes plain text.
pub fn plain(text: &str, is_topic: impl Fn(&str) -> bool) -> String {
    let mut whole = String::with_capacity(text.len());
    for (at, part) in text.split("```").enumerate() {
        if at % 2 == 1 {
            // The first line names the language.
            for line in part.lines().skip(1) {
                whole += if line.is_empty() { "" } else { "    " };
                whole += line;
                whole.push('\n');
            }
            continue;
        }
        let part = links_in_words(part.strip_prefix('\n').unwrap_or(part), &is_topic);
        for line in part.replace("**", "").lines() {
            match line.strip_prefix('#') {
                Some(heading) => whole += heading.trim_start_matches('#').trim_start(),
                None => whole += line,
            }
            whole.push('\n');
        }
    }
    whole
}

fn links_in_words(text: &str, is_topic: &impl Fn(&str) -> bool) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((words, target, before, after)) = next_link(rest) {
        whole += before.strip_suffix('!').unwrap_or(before);
        if !before.ends_with('!') {
            whole += words;
            if target.contains("://") {
                whole += &format!(" ({target})");
            } else if let Some(name) = topic(target).filter(|name| is_topic(name)) {
                whole += &format!(" (pagewise help {name})");
            }
        }
        rest = after;
    }
    whole + rest
}

/// Text and target of the first link, and the text before and after it.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some((
        &text[start + 1..middle],
        &text[middle + 2..end],
        &text[..start],
        &text[end + 1..],
    ))
}

/// The topic's name, by the rule of the build script.
fn topic(target: &str) -> Option<String> {
    let path = target.split('#').next()?;
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let name = match file {
        "README.md" => folder.rsplit('/').next()?,
        _ => file.strip_suffix(".md").unwrap_or(file),
    };
    (!name.is_empty()).then(|| name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_say_what_to_type_and_code_stays_as_it_is() {
        let text = "\
# Title
See [the\nother](../OTHER.md#part), [code](../../crates) and [a **page**](https://x.y/z). ![p](p.png)

```sh
pagewise [a](other.md)

# no heading
```
## Next
";
        let expected = "\
Title
See the\nother (pagewise help other), code and a page (https://x.y/z). \n
    pagewise [a](other.md)

    # no heading
Next
";
        assert_eq!(plain(text, |name| name == "other"), expected);
    }

    #[test]
    fn what_only_looks_like_a_link_stays() {
        for text in ["52 % [49, 56] of it\n", "](\n", "[a](b\n"] {
            assert_eq!(plain(text, |_| true), text);
        }
    }
}
