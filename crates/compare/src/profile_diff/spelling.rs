//! Functions that two tools spell differently. perf leaves out the parameters of C++ functions, and of the names
//! that a C library has for one function each tool selects another. A name that one side alone has is compared
//! with the others of the other side by what all spellings share.

use pagewise_model::normal_name::{normal, normal_module};
use pagewise_model::profile::{Frame, FrameKind, NodeId, Profile};
use rustc_hash::{FxHashMap, FxHashSet};

/// The functions, as (file, name), that are compared by what all spellings share.
#[derive(Default)]
pub(super) struct Spellings(FxHashSet<(String, String)>);

impl Spellings {
    /// Of two sides, each with the files of the other.
    pub(super) fn new([a, b]: [(&Profile, &Files<'_>); 2]) -> Self {
        let (mut a, mut b) = (functions(a), functions(b));
        let both: FxHashSet<_> = a.intersection(&b).cloned().collect();
        a.retain(|function| !both.contains(function));
        b.retain(|function| !both.contains(function));
        let [shared_a, shared_b] = [&a, &b].map(|side| {
            let shared = side
                .iter()
                .map(|(file, name)| (file.clone(), shared(file, name)));
            shared.collect::<FxHashSet<_>>()
        });
        let alike: FxHashSet<_> = shared_a.intersection(&shared_b).collect();
        let differ = a
            .into_iter()
            .chain(b)
            .filter(|(file, name)| alike.contains(&(file.clone(), shared(file, name))));
        Self(differ.collect())
    }

    /// The name by which a function of this file, in its normal form, is compared.
    pub(super) fn name(&self, file: &str, name: String) -> String {
        let function = (file.to_owned(), name);
        match self.0.contains(&function) {
            true => shared(file, &function.1),
            false => function.1,
        }
    }
}

/// What calls a program's or a thread's first function. Only some unwinders get there, so a stack begins behind it.
pub(super) fn is_start(frame: &Frame) -> bool {
    const STARTS: [&str; 6] = [
        "start",
        "start_main",
        "start_call_main",
        "start_thread",
        "clone",
        "clone3",
    ];
    let is_of_program = &*frame.name == "_start";
    is_of_program || (is_c_library(&frame.module) && STARTS.contains(&public(&frame.name)))
}

/// The files of one side's functions, where each name is in one file alone.
pub(super) struct Files<'a> {
    of: FxHashMap<&'a str, Option<&'a str>>,
    /// The functions that are inlined nowhere.
    called: FxHashSet<&'a str>,
}

impl<'a> Files<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let mut of = FxHashMap::default();
        for frame in profile.frames.iter().filter(|frame| !has_none(frame)) {
            let file = of.entry(&*frame.name).or_insert(Some(&*frame.module));
            *file = file.filter(|known| *known == &*frame.module);
        }
        let (inlined, called): (Vec<&Frame>, Vec<&Frame>) = profile
            .frames
            .iter()
            .partition(|frame| frame.kind == FrameKind::Inlined);
        let mut called: FxHashSet<&str> = called.iter().map(|frame| &*frame.name).collect();
        for frame in inlined.iter().filter(|frame| !has_none(frame)) {
            called.remove(&*frame.name);
        }
        Self { of, called }
    }

    /// Whether a frame of the other side is of an inlined call; perf 6.1 calls whole functions inlined.
    pub(super) fn is_inlined(&self, frame: &Frame) -> bool {
        let is_called = self.called.contains(&*frame.name) || is_of_glibc(frame);
        let is_whole = has_none(frame) && is_called;
        frame.kind == FrameKind::Inlined && !is_whole
    }

    /// The file of a frame that is called from `parent`. Text does not name the file of inlined calls: it is that
    /// of the function around them, unless the other side knows the name, or it is of glibc's own use.
    pub(super) fn file(&self, profile: &'a Profile, parent: NodeId, frame: &'a Frame) -> &'a str {
        if !has_none(frame) {
            return &frame.module;
        }
        if let Some(known) = self.of.get(&*frame.name).copied().flatten() {
            return known;
        }
        if is_of_glibc(frame) {
            return "libc.so.6";
        }
        let mut around = profile.stacks.frames(parent);
        let found = around.find_map(|frame| {
            let frame = &profile.frames[frame.0 as usize];
            (!has_none(frame)).then_some(&*frame.module)
        });
        found.unwrap_or_default()
    }
}

/// Whether inlined calls are named in one of two profiles alone: by another tool, or with debug information.
pub(super) fn one_names_inlined(a: &Profile, b: &Profile) -> bool {
    let names = |profile: &Profile| {
        let mut inlined = profile.frames.iter();
        inlined.any(|frame| frame.kind == FrameKind::Inlined && !frame.module.is_empty())
    };
    names(a) != names(b)
}

/// Whether the name is one of glibc's own use, which only functions of glibc have.
fn is_of_glibc(frame: &Frame) -> bool {
    frame.name.starts_with("__GI_")
}

fn has_none(frame: &Frame) -> bool {
    frame.kind == FrameKind::Inlined && frame.module.is_empty()
}

fn functions((profile, files): (&Profile, &Files<'_>)) -> FxHashSet<(String, String)> {
    let named = profile.stacks.nodes().filter_map(|(_, parent, frame)| {
        let frame = &profile.frames[frame.0 as usize];
        let file = normal_module(files.file(profile, parent, frame));
        frame
            .unnamed
            .is_none()
            .then(|| (file.to_owned(), &frame.name))
    });
    let distinct: FxHashSet<_> = named.collect();
    let normal = distinct
        .into_iter()
        .map(|(file, name)| (file, normal(name)));
    normal.collect()
}

fn shared(file: &str, name: &str) -> String {
    match is_c_library(file) {
        true => match public(name) {
            "cfree" => "free".to_owned(),
            // One function where it is made of vector instructions.
            name => match name.strip_prefix("memcpy_") {
                Some(instructions) => format!("memmove_{instructions}"),
                None => name.to_owned(),
            },
        },
        false => without_parameters(name).to_owned(),
    }
}

fn is_c_library(file: &str) -> bool {
    ["libc.so", "libc-", "libpthread", "ld-linux", "ld-musl"]
        .iter()
        .any(|start| file.starts_with(start))
}

/// The public name of a function of a C library.
fn public(name: &str) -> &str {
    let name = name
        .strip_prefix("__GI_")
        .unwrap_or(name)
        .trim_start_matches('_');
    let name = name.strip_prefix("libc_").unwrap_or(name);
    let name = name.strip_suffix("_impl").unwrap_or(name);
    name.strip_suffix("64").unwrap_or(name)
}

/// A C++ function's name without its parameters and without the type that it returns.
fn without_parameters(name: &str) -> &str {
    let mut end = name;
    while let Some(shorter) = [" const", " volatile", " &", " &&"]
        .iter()
        .find_map(|mark| end.strip_suffix(mark))
    {
        end = shorter;
    }
    if !end.ends_with(')') || end.ends_with("operator()") || end.ends_with("(anonymous namespace)")
    {
        return name;
    }
    let Some(head) = before_last_parentheses(end) else {
        return name;
    };
    let start = head.len() - behind_type(head).len();
    &head[start..]
}

/// What stands before the parentheses at the end.
fn before_last_parentheses(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let opening = text.bytes().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == b'(' && depth == 0
    })?;
    (opening > 0).then(|| &text[..opening])
}

/// What stands behind the last space outside of brackets; an operator's name may have one.
fn behind_type(head: &str) -> &str {
    let mut depth = 0_usize;
    let mut start = 0;
    for (at, byte) in head.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' | b')' | b'}' | b']' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => start = at + 1,
            b'o' if depth == 0 && is_operator(head, at) => break,
            _ => {}
        }
    }
    &head[start..]
}

fn is_operator(head: &str, at: usize) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let rest = head[at..].strip_prefix("operator");
    let begins = at == 0 || !is_word(head.as_bytes()[at - 1]);
    begins && rest.is_some_and(|rest| !rest.bytes().next().is_some_and(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_returned_types_go() {
        for (name, expected) in [
            ("node::Start(int, char**)", "node::Start"),
            ("void sort<int*>(int*, int*)", "sort<int*>"),
            ("A::f(std::function<void (int)>) const", "A::f"),
            (
                "a::{lambda(int)#1}::operator()(int) const",
                "a::{lambda(int)#1}::operator()",
            ),
            (
                "std::ostream& std::operator<< <char>(std::ostream&, char)",
                "std::operator<< <char>",
            ),
            ("A::operator new(unsigned long)", "A::operator new"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            (
                "std::map<int, A*>::at(int const&) &",
                "std::map<int, A*>::at",
            ),
            ("node::Start", "node::Start"),
            ("f(anonymous namespace)", "f(anonymous namespace)"),
            ("A::operator()", "A::operator()"),
            (
                "<T as core::fmt::Debug>::fmt",
                "<T as core::fmt::Debug>::fmt",
            ),
            ("(int)", "(int)"),
            ("f)", "f)"),
            ("é(ü)", "é"),
        ] {
            assert_eq!(without_parameters(name), expected);
        }
    }

    #[test]
    fn names_of_one_function_of_a_c_library_are_alike() {
        for names in [
            &["free", "cfree", "__libc_free", "__GI___libc_free"][..],
            &["mmap", "__mmap", "__GI___mmap64"],
            &[
                "__memcpy_avx_unaligned_erms",
                "__memmove_avx_unaligned_erms",
            ],
            &["__libc_start_main", "__libc_start_main_impl"],
        ] {
            let distinct: FxHashSet<String> =
                names.iter().map(|name| shared("libc.so.6", name)).collect();
            assert_eq!(distinct.len(), 1, "{distinct:?}");
        }
        assert_ne!(shared("libc.so.6", "memset"), shared("libc.so.6", "memcpy"));
        assert_eq!(shared("libfoo.so", "__GI_f"), "__GI_f");
    }
}
