//! The example policies, built as their first lines describe, run on a trace.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use pagewise_policy::catalogue::eviction;
use pagewise_policy::trace::{Reference, ReferenceKind, Trace};
use pagewise_policy::{Config, Span, by_name};
use pagewise_simulate::paging::{Memory, Outcome, min, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds with `program`; `None`, with a message, where it is missing.
fn built(program: &str, arguments: &[&str], name: &str) -> Option<String> {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = Command::new(program)
        .args(arguments)
        .arg("-o")
        .arg(&output)
        .current_dir(root().join("examples/policies"))
        .output();
    match done {
        Ok(done) => {
            let errors = String::from_utf8_lossy(&done.stderr);
            assert!(
                done.status.success() && errors.is_empty(),
                "{program}: {errors}"
            );
            Some(output.to_str().expect("UTF-8").to_owned())
        }
        Err(error) => {
            skipped!("{program} cannot be run: {error}");
            None
        }
    }
}

/// A loop over a third more pages than memory; some of them are written, some freed.
fn trace() -> Trace {
    let mut references = Vec::new();
    for round in 0..6 {
        for page in 0..4000 {
            let kind = if page % 5 == 0 {
                ReferenceKind::Write
            } else {
                ReferenceKind::Read
            };
            references.push(Reference {
                page,
                region: 0,
                thread: 1,
                kind,
            });
        }
        for page in 100 * round..100 * round + 50 {
            references.push(Reference {
                page,
                region: 0,
                thread: 1,
                kind: ReferenceKind::Remove,
            });
        }
    }
    let regions = BTreeMap::from([(
        0,
        Span {
            first: 0,
            count: 4000,
        },
    )]);
    Trace {
        references,
        regions,
        budget_pages: 3000,
        page_bytes: 4096,
        ..Trace::default()
    }
}

fn outcome(trace: &Trace, name: &str) -> Outcome {
    let config = Config {
        pages: trace.pages(),
        budget: 3000,
    };
    let policy = eviction(name, &config)
        .unwrap_or_else(|| by_name(name, &config, |_| Err(String::new())).expect("a policy"));
    run(trace, &*policy, Memory::new(3000))
}

fn beats_fifo_in_a_loop(policy: &str) {
    let trace = trace();
    let (fifo, theirs) = (outcome(&trace, "fifo"), outcome(&trace, policy));
    let bound = min(
        &trace,
        Memory {
            pages: 3000,
            batch: 1,
        },
    );
    assert_eq!(theirs.first_touches, fifo.first_touches);
    assert!(
        theirs.refaults * 10 < fifo.refaults * 8,
        "{theirs:?} {fifo:?}"
    );
    assert!(theirs.refaults >= bound.refaults, "{theirs:?} {bound:?}");
}

#[test]
fn the_example_in_c() {
    let arguments = "-O2 -Wall -Wextra -Werror -shared -fPIC -I ../../include random.c";
    let arguments: Vec<_> = arguments.split(' ').collect();
    if let Some(object) = built("cc", &arguments, "random.so") {
        beats_fifo_in_a_loop(&object);
        let composed = format!("prefetch+{object}");
        assert!(outcome(&trace(), &composed).refaults * 4 < outcome(&trace(), &object).refaults);
    }
}

#[test]
fn the_example_in_rust() {
    let arguments = "--edition 2024 -O --crate-type cdylib -C panic=abort last_in.rs";
    let arguments: Vec<_> = arguments.split(' ').collect();
    if let Some(object) = built("rustc", &arguments, "last_in.so") {
        beats_fifo_in_a_loop(&object);
    }
}

#[test]
fn the_header_is_c_and_cpp_and_its_hints_are_harmless() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = "#include <pagewise_pager.h>\nint main(void) { static char page[4096];\n\
        return pagewise_declare(page, 4096, PAGEWISE_HOT) | pagewise_read_ahead(page, 4096)\n\
        | pagewise_keep(page, 4096) | pagewise_let_go(page, 4096) | pagewise_send_away(page, 4096); }\n";
    for (compiler, name) in [("cc", "hints.c"), ("c++", "hints.cc")] {
        let source = folder.join(name);
        std::fs::write(&source, program).expect("a writable folder");
        let source = source.to_str().expect("UTF-8");
        let arguments = ["-Wall", "-Wextra", "-Werror", "-I", "../../include", source];
        if let Some(object) = built(compiler, &arguments, &format!("{name}.out")) {
            assert!(Command::new(object).status().expect("runs").success());
        }
    }
}

#[test]
fn what_is_no_policy_is_refused_with_its_name() {
    let config = Config {
        pages: 100,
        budget: 10,
    };
    let error = |name: &str| {
        by_name(name, &config, |_| Err(String::new()))
            .err()
            .expect("refused")
            .to_string()
    };
    assert!(error("./nowhere.so").contains("./nowhere.so"));
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("empty.c");
    std::fs::write(&source, "int nothing;\n").expect("a writable folder");
    let source = source.to_str().expect("UTF-8");
    if let Some(object) = built("cc", &["-shared", "-fPIC", source], "empty.so") {
        assert!(error(&object).contains("exports no 'pagewise_policy'"));
    }
    std::fs::write(
        source,
        "#include <pagewise_pager.h>\nconst struct pagewise_policy pagewise_policy = \
         {.abi = 7, .size = sizeof(struct pagewise_policy)};\n",
    )
    .expect("a writable folder");
    let arguments = ["-shared", "-fPIC", "-I", "../../include", source];
    if let Some(object) = built("cc", &arguments, "seven.so") {
        assert!(error(&object).contains("version 7"));
    }
}
