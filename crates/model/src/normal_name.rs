//! Names in the form by which functions of two builds, or two runs, are the same: without the
//! numbers, hashes and marks that a compiler or a runtime gives anew each time.

/// Copies that a compiler makes of a function, each with a number or none.
const COPIES: [&str; 9] = [
    "isra",
    "constprop",
    "part",
    "llvm",
    "lto_priv",
    "cold",
    "clone",
    "localalias",
    "specialized",
];
/// The compilers' tiers in names of .NET (`Foo::Bar()[Tier0]`).
const TIERS: [&str; 10] = [
    "[Tier0]",
    "[Tier1]",
    "[OptimizedTier1]",
    "[OptimizedTier1OSR]",
    "[InstrumentedTier0]",
    "[InstrumentedTier1]",
    "[Optimized]",
    "[QuickJitted]",
    "[PreJIT]",
    "[MinOptJitted]",
];
/// Kinds of frames of async-profiler (interpreted, compiled, inlined, C1, kernel).
const KINDS: [&str; 5] = ["_[0]", "_[j]", "_[i]", "_[1]", "_[k]"];
/// Code of V8, by how it is logged.
const V8: [&str; 6] = [
    "LazyCompile:",
    "Function:",
    "JS:",
    "Script:",
    "Eval:",
    "Callback:",
];
/// Words of runtimes that a number follows, the same class or function in each run.
const NUMBERED: [&str; 13] = [
    "GeneratedMethodAccessor",
    "GeneratedConstructorAccessor",
    "GeneratedSerializationConstructorAccessor",
    "GeneratedFieldAccessor",
    "$Proxy",
    "jdk.proxy",
    "jdk/proxy",
    "$$Lambda$",
    "$$Lambda.",
    "$MockitoMock$",
    "$ByteBuddy$",
    // Hail's generated classes and methods.
    "__C",
    "__m",
];
/// The same where a hexadecimal hash follows.
const HASHED: [&str; 3] = ["CGLIB$$", "$$Lambda/", "$$Lambda.0x"];
/// Functions that Julia compiles, with a number at their end.
const JULIA: [&str; 4] = ["julia_", "jfptr_", "japi1_", "jlsys_"];

/// The normal form of a function's name.
#[must_use]
pub fn normal(name: &str) -> String {
    let name = without_julia_number(without_endings(name));
    let mut rest = name;
    let mut out = String::with_capacity(name.len());
    if let Some((start, function)) = v8(name) {
        out.push_str(start);
        rest = function;
    }
    while let Some(first) = rest.chars().next() {
        if let Some(behind) = without_address(rest) {
            rest = behind;
            continue;
        }
        if let Some((word, behind)) = numbered(&out, rest) {
            out.push_str(word);
            rest = behind;
            continue;
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// The normal form of a file: that of code which a runtime has made is named after the process.
#[must_use]
pub fn normal_module(module: &str) -> &str {
    let is_jitted = module.starts_with("jitted-") && module.ends_with(".so");
    let is_map = module.starts_with("perf-") && module.ends_with(".map");
    match is_jitted || is_map {
        true => "[jit]",
        false => module,
    }
}

/// Without what compilers and profilers append.
fn without_endings(mut name: &str) -> &str {
    loop {
        let shorter = without_copy(name)
            .or_else(|| without_clone(name))
            .or_else(|| without_rust_hash(name))
            .or_else(|| without_version(name))
            .or_else(|| TIERS.iter().find_map(|tier| name.strip_suffix(tier)))
            .or_else(|| KINDS.iter().find_map(|kind| name.strip_suffix(kind)));
        match shorter {
            Some(shorter) if !shorter.is_empty() => name = shorter,
            _ => return name,
        }
    }
}

/// Without the last `.isra.0`, `.cold` or `.llvm.123`.
fn without_copy(name: &str) -> Option<&str> {
    let (before, last) = name.rsplit_once('.')?;
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let (before, mark) = match is_number {
        true => before.rsplit_once('.')?,
        // Java has methods of the other names.
        false => (
            before,
            matches!(last, "cold" | "localalias").then_some(last)?,
        ),
    };
    COPIES.contains(&mark).then_some(before)
}

/// Without the last ` [clone .isra.0]`, as demanglers write it.
fn without_clone(name: &str) -> Option<&str> {
    let open = name.strip_suffix(']')?.rfind(" [clone ")?;
    Some(&name[..open])
}

/// Without `::h0123456789abcdef`.
fn without_rust_hash(name: &str) -> Option<&str> {
    let (before, hash) = name.rsplit_once("::h")?;
    (hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(before)
}

/// Without the version of a symbol (`memcpy@@GLIBC_2.14`).
fn without_version(name: &str) -> Option<&str> {
    let (before, version) = name.split_once('@')?;
    let version = version.strip_prefix('@').unwrap_or(version);
    let (library, number) = version.rsplit_once('_')?;
    let is_library = library.starts_with(|c: char| c.is_ascii_uppercase());
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    (is_library && is_number && !version.contains(' ')).then_some(before)
}

/// Without the number of a function of Julia.
fn without_julia_number(name: &str) -> &str {
    let is_julia = JULIA.iter().any(|start| name.starts_with(start));
    let shorter = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match shorter.strip_suffix('_') {
        Some(function) if is_julia && shorter.len() < name.len() => function,
        _ => name,
    }
}

/// Code of V8 without the mark of its compiler: `*` Turbofan, `+` Maglev, `^` Sparkplug, `~` the
/// interpreter. A function goes through all of them, under `LazyCompile` or `Function`.
fn v8(name: &str) -> Option<(&'static str, &str)> {
    let (start, function) = V8
        .iter()
        .find_map(|start| Some((*start, name.strip_prefix(start)?)))?;
    let function = function
        .strip_prefix(['*', '+', '^', '~'])
        .unwrap_or(function);
    match start {
        "LazyCompile:" | "Function:" => Some(("JS:", function)),
        _ => Some((start, function)),
    }
}

/// Behind the address of a class that has no other name (`Foo/0x00007f12c4c0.bar`), or behind a
/// crate's number in Rust (`core[8a7b01c2d3e4f506]::fmt`).
fn without_address(text: &str) -> Option<&str> {
    let hex = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
    for start in ["/0x", "+0x", ".0x"] {
        if let Some(behind) = text.strip_prefix(start)
            && hex(behind) >= 6
        {
            return Some(&behind[hex(behind)..]);
        }
    }
    let behind = text.strip_prefix('[')?;
    let rest = behind[hex(behind)..].strip_prefix(']')?;
    (hex(behind) >= 8 && rest.starts_with("::")).then_some(rest)
}

/// At a word that a number or hash follows, after what is already taken over: the word, and the
/// text behind its number.
fn numbered<'a>(before: &str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let starts_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let word = |words: &'static [&str]| words.iter().find(|word| text.starts_with(**word));
    let (length, taken) = if let Some(word) = word(&HASHED) {
        let hash = text[word.len()..].trim_start_matches("0x");
        let digits = hash.bytes().take_while(u8::is_ascii_hexdigit).count();
        (word.len(), text.len() - hash.len() + digits)
    } else {
        let word = word(&NUMBERED)?;
        let digits = text[word.len()..].bytes().take_while(u8::is_ascii_digit);
        (word.len(), word.len() + digits.count())
    };
    let word = &text[..length];
    if taken == length || (word.starts_with("__") && !starts_word) {
        return None;
    }
    let behind = &text[taken..];
    // Before Java 15 a lambda's class has a second number: `Foo$$Lambda$14/1234567.apply`.
    let second = behind.strip_prefix('/').map(|behind| {
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        (digits, &behind[digits..])
    });
    let behind = match second {
        Some((1.., behind)) if !behind.starts_with('x') => behind,
        _ => behind,
    };
    let word = word.trim_end_matches("0x");
    Some((word.trim_end_matches(['$', '/', '.']), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_each_run_gives_anew_are_no_part_of_a_name() {
        for (name, expected) in [
            (
                "Foo$$Lambda$237/0x0000d8f191b7584a.apply",
                "Foo$$Lambda.apply",
            ),
            ("Foo$$Lambda/0x00007f3c1c0a.apply", "Foo$$Lambda.apply"),
            ("Foo$$Lambda$14/1234567.apply", "Foo$$Lambda.apply"),
            ("Foo$$Lambda$14.apply", "Foo$$Lambda.apply"),
            ("Foo$$Lambda.0x00007f3c1c0a.apply", "Foo$$Lambda.apply"),
            (
                "LambdaForm$MH/0x00000008010a.invoke",
                "LambdaForm$MH.invoke",
            ),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor31.invoke",
                "jdk.internal.reflect.GeneratedMethodAccessor.invoke",
            ),
            ("jdk.proxy2.$Proxy17.get", "jdk.proxy.$Proxy.get"),
            (
                "A$$EnhancerBySpringCGLIB$$1a2b3c4d.f",
                "A$$EnhancerBySpringCGLIB.f",
            ),
            (
                "__C1045Compiled.__m23split_ToArray",
                "__CCompiled.__msplit_ToArray",
            ),
            ("LazyCompile:*walk a.js:3:7", "JS:walk a.js:3:7"),
            ("Function:^walk a.js:3:7", "JS:walk a.js:3:7"),
            ("JS:~walk a.js:3:7", "JS:walk a.js:3:7"),
            ("java.lang.String.hashCode_[j]", "java.lang.String.hashCode"),
            ("julia_sum_1234", "julia_sum"),
            (
                "void [app] Foo::Bar()[OptimizedTier1]",
                "void [app] Foo::Bar()",
            ),
        ] {
            assert_eq!(normal(name), expected);
        }
    }

    #[test]
    fn clones_and_build_hashes_are_no_part_of_a_name() {
        for (name, expected) in [
            ("shrink_node.isra.0", "shrink_node"),
            ("f.constprop.3.cold", "f"),
            ("f.part.0.isra.1", "f"),
            ("f(int) [clone .constprop.0] [clone .cold]", "f(int)"),
            ("work.llvm.294074568487191761", "work"),
            (
                "core::ops::function::FnOnce::call_once::hc386bbc4cd613e30",
                "core::ops::function::FnOnce::call_once",
            ),
            ("core[8a7b01c2d3e4f506]::fmt::write", "core::fmt::write"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("cfree@GLIBC_2.2.5", "cfree"),
        ] {
            assert_eq!(normal(name), expected);
        }
    }

    #[test]
    fn what_only_looks_like_a_number_stays() {
        for name in [
            "std::fmt",
            "com.foo.part.Bar.run",
            "Cache.coldStart",
            "Store.clone",
            "main.main.func1",
            "sha256_block",
            "a::hash",
            "my__C12",
            "lambda$main$0",
            "operator[]",
            "x.0",
            "memcpy@plt",
            "walk@2_0",
        ] {
            assert_eq!(normal(name), name);
        }
    }

    #[test]
    fn generated_code_is_in_no_file_of_one_process() {
        assert_eq!(normal_module("jitted-4711-12.so"), "[jit]");
        assert_eq!(normal_module("perf-4711.map"), "[jit]");
        assert_eq!(normal_module("perf"), "perf");
    }
}
