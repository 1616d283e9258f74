//! The call text after the columns: leaf, open, close, comment.
//!
//! The forms, by kernel (`kernel/trace/trace_functions_graph.c`):
//!
//! ```text
//! f();                      f [module]();              leaf
//! f() {                     f(mm=0x…, addr=0x…) {      open; arguments since 6.15
//! }                         } /* f */                  close; the name with funcgraph-tail
//! f(); /* = 0x0 */          } /* f = -12 */            returned value, 6.5 to 6.12
//! f(); /* ret=0x0 */        } /* f ret=-12 */          returned value, since 6.13
//! f() { /* <-caller+0x12 */ f(); /* <-caller+0x12 ret=0x0 */   return address, since 6.13
//! /* sched_switch: … */                                event of another tracer
//! ```

use super::line::{Call, Content, Tail};
use super::names::{NameId, Names};
use memchr::{memchr, memmem};

/// Parses call text without its indentation; `None` when it has no known form.
#[inline(always)]
pub(super) fn parse<'a>(names: &mut Names, text: &'a [u8]) -> Option<Content<'a>> {
    match text {
        [name @ .., b'(', b')', b';'] => match names.recall(name) {
            Some(name) => Some(Content::Leaf(plain(name))),
            None => function(names, text),
        },
        [name @ .., b'(', b')', b' ', b'{'] => match names.recall(name) {
            Some(name) => Some(Content::Open(plain(name))),
            None => function(names, text),
        },
        [b'}', b' ', b'/', b'*', b' ', name @ .., b' ', b'*', b'/'] => match names.recall(name) {
            Some(name) => Some(Content::Close(Tail {
                name: Some(name),
                returned: None,
            })),
            None => close(names, name),
        },
        [b'}'] => Some(Content::Close(Tail::default())),
        _ => unusual(names, text),
    }
}

fn plain(name: NameId) -> Call<'static> {
    Call {
        name,
        args: &[],
        returned: None,
    }
}

#[cold]
fn unusual<'a>(names: &mut Names, text: &'a [u8]) -> Option<Content<'a>> {
    if let Some(event) = text.strip_prefix(b"/*") {
        let event = event.trim_ascii_end();
        let event = event.strip_suffix(b"*/").unwrap_or(event);
        return Some(Content::Event(event.trim_ascii()));
    }
    if let Some(rest) = text.strip_prefix(b"}") {
        let rest = rest.trim_ascii();
        if rest.is_empty() {
            return Some(Content::Close(Tail::default()));
        }
        return close(names, comment(rest)?);
    }
    function(names, text)
}

/// The inside of `/* … */`.
fn comment(text: &[u8]) -> Option<&[u8]> {
    Some(text.strip_prefix(b"/*")?.strip_suffix(b"*/")?.trim_ascii())
}

#[cold]
fn close<'a>(names: &mut Names, inside: &[u8]) -> Option<Content<'a>> {
    let inside = inside.trim_ascii();
    let (head, returned) = split_returned(inside);
    let head = head
        .split(|&b| b == b'<')
        .next()
        .unwrap_or(head)
        .trim_ascii();
    let name = if head.is_empty() {
        None
    } else {
        Some(named(names, head)?)
    };
    Some(Content::Close(Tail { name, returned }))
}

#[cold]
fn function<'a>(names: &mut Names, text: &'a [u8]) -> Option<Content<'a>> {
    let (code, returned) = split_comment(text);
    let open = memchr(b'(', code)?;
    let name = &code[..open];
    let rest = &code[open + 1..];
    if let Some(args) = rest.strip_suffix(b");") {
        let name = named(names, name)?;
        return Some(Content::Leaf(Call {
            name,
            args,
            returned,
        }));
    }
    let args = rest.strip_suffix(b") {").or(rest.strip_suffix(b"){"))?;
    let name = named(names, name)?;
    Some(Content::Open(Call {
        name,
        args,
        returned,
    }))
}

/// Splits a trailing `/* <-caller ret=0x0 */` off a call. Returns the call and the returned value,
/// if the comment has one.
fn split_comment(text: &[u8]) -> (&[u8], Option<i64>) {
    let text = text.trim_ascii_end();
    if !text.ends_with(b"*/") {
        return (text, None);
    }
    let Some(at) = memmem::rfind(text, b"/*") else {
        return (text, None);
    };
    let inside = comment(&text[at..]).unwrap_or_default();
    (text[..at].trim_ascii_end(), split_returned(inside).1)
}

/// Splits `f ret=-12`, `f = -12`, `ret=0x0` or `= 0x0` into the text before the value and the
/// value.
fn split_returned(inside: &[u8]) -> (&[u8], Option<i64>) {
    for key in [b"ret=".as_slice(), b"= "] {
        let Some(at) = memmem::rfind(inside, key) else {
            continue;
        };
        let starts_a_word = at == 0 || inside[at - 1] == b' ';
        if let (true, Some(value)) = (starts_a_word, number(&inside[at + key.len()..])) {
            return (inside[..at].trim_ascii_end(), Some(value));
        }
    }
    (inside, None)
}

/// `0x1f`, `-12` or `12`; a hexadecimal value is the register's bits.
fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    }
}

/// The name `f` or `f [module]`.
fn named(names: &mut Names, text: &[u8]) -> Option<NameId> {
    let text = text.trim_ascii();
    let (name, module) = match memchr(b' ', text) {
        Some(blank) => (
            &text[..blank],
            Some(text[blank + 1..].strip_prefix(b"[")?.strip_suffix(b"]")?),
        ),
        None => (text, None),
    };
    let is_symbol =
        |&b: &u8| b.is_ascii_alphanumeric() || b"_.$@:~<>,-+/".contains(&b) || b >= 0x80;
    if name.is_empty() || !name.iter().all(is_symbol) {
        return None;
    }
    let id = names.intern(name);
    if let Some(module) = module {
        names.alias(text, id, module);
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(char, String, Option<i64>, String)> {
        let mut names = Names::default();
        let content = parse(&mut names, text.as_bytes())?;
        let again = parse(&mut names, text.as_bytes());
        assert_eq!(Some(content), again, "the second time the name is known");
        Some(match content {
            Content::Leaf(call) => (
                'l',
                names.text(call.name).into(),
                call.returned,
                String::from_utf8_lossy(call.args).into(),
            ),
            Content::Open(call) => (
                'o',
                names.text(call.name).into(),
                call.returned,
                String::from_utf8_lossy(call.args).into(),
            ),
            Content::Close(tail) => (
                'c',
                tail.name.map_or(String::new(), |n| names.text(n).into()),
                tail.returned,
                String::new(),
            ),
            Content::Event(text) => (
                'e',
                String::from_utf8_lossy(text).into(),
                None,
                String::new(),
            ),
            _ => return None,
        })
    }

    #[test]
    fn every_form_of_every_kernel() {
        let cases: &[(&str, char, &str, Option<i64>, &str)] = &[
            ("f();", 'l', "f", None, ""),
            ("f() {", 'o', "f", None, ""),
            ("}", 'c', "", None, ""),
            ("} /* f */", 'c', "f", None, ""),
            ("f [ext4]() {", 'o', "f", None, ""),
            ("} /* f [ext4] */", 'c', "f", None, ""),
            ("f.isra.0.part.3();", 'l', "f.isra.0.part.3", None, ""),
            (
                "f(mm=0xff, addr=0x7f) {",
                'o',
                "f",
                None,
                "mm=0xff, addr=0x7f",
            ),
            ("f [m](a=1);", 'l', "f", None, "a=1"),
            ("f(); /* = 0x0 */", 'l', "f", Some(0), ""),
            ("f(); /* ret=0x10 */", 'l', "f", Some(16), ""),
            ("} /* f = -14 */", 'c', "f", Some(-14), ""),
            ("} /* f ret=-12 */", 'c', "f", Some(-12), ""),
            (
                "} /* f [xfs] ret=0xfffffffffffffff4 */",
                'c',
                "f",
                Some(-12),
                "",
            ),
            ("f() { /* <-caller+0x12/0x30 */", 'o', "f", None, ""),
            (
                "f(a=2); /* <-caller+0x12 ret=0x1 */",
                'l',
                "f",
                Some(1),
                "a=2",
            ),
            (
                "/* sched_switch: a {;} ==> b */",
                'e',
                "sched_switch: a {;} ==> b",
                None,
                "",
            ),
            ("/* f(); */", 'e', "f();", None, ""),
        ];
        for (text, kind, name, returned, args) in cases {
            let expected = (*kind, (*name).to_owned(), *returned, (*args).to_owned());
            assert_eq!(parsed(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for text in ["", "hello", "f(", "} /* a b */", "f()", "a b c();"] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
    }
}
