//! Holds `docs/schema/findings.json` true: what [`Findings`] serialise to fits it, it describes
//! nothing that is never written, and it refuses what is wrong.

use serde_json::{Value, json};

mod checker;
mod sample;

use checker::Checker;

fn schema() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schema/findings.json"
    );
    let text = std::fs::read_to_string(path).expect("the schema is there");
    serde_json::from_str(&text).expect("the schema is JSON")
}

fn errors(document: &Value) -> Vec<String> {
    let schema = schema();
    let mut checker = Checker::new(&schema);
    checker.check(document);
    checker.errors
}

fn churning() -> Value {
    serde_json::to_value(sample::churning()).expect("findings serialise")
}

#[test]
fn all_samples_fit_the_schema() {
    for findings in [
        sample::churning(),
        sample::healthy(),
        sample::bare(),
        sample::hostile(),
    ] {
        let text = pagewise_report::json::to_string(&findings).expect("findings serialise");
        let document: Value = serde_json::from_str(&text).expect("the output is JSON");
        assert_eq!(errors(&document), [""; 0]);
    }
}

#[test]
fn the_schema_describes_no_property_that_is_never_written() {
    let schema = schema();
    let mut checker = Checker::new(&schema);
    checker.check(&churning());
    // The other ways to end and to set; the sample has one of each kind that matters.
    let elsewhere = [
        "/$defs/ending/oneOf/1/properties/killed",
        "/$defs/setting/oneOf/3/properties/kind",
        "/$defs/setting/oneOf/3/properties/mode",
        // Described in profile.json; a test of its own holds that.
        "/properties/profile",
    ];
    let unused: Vec<String> = checker
        .unused_properties()
        .into_iter()
        .filter(|path| !elsewhere.contains(&path.as_str()))
        .collect();
    assert_eq!(unused, [""; 0]);
}

#[test]
fn every_value_of_an_enumeration_is_one_that_the_model_writes() {
    use pagewise_model::findings::{Cause, RegionKind};
    use pagewise_model::loss::LossKind;
    let schema = schema();
    let values = |pointer: &str| {
        let list = schema.pointer(pointer).and_then(Value::as_array);
        list.expect("an enumeration").clone()
    };
    for value in values("/$defs/cause/enum") {
        serde_json::from_value::<Cause>(value).expect("a cause of the model");
    }
    for value in values("/$defs/region/enum") {
        serde_json::from_value::<RegionKind>(value).expect("a region of the model");
    }
    for value in values("/properties/losses/propertyNames/enum") {
        serde_json::from_value::<LossKind>(value).expect("a loss of the model");
    }
}

/// Fails to compile when the model gains a value, so that the schema gains it too.
#[test]
fn the_schema_knows_every_cause_region_and_loss() {
    use pagewise_model::findings::{Cause, RegionKind};
    use pagewise_model::loss::LossKind;
    let counted = |pointer: &str| {
        let list = schema()
            .pointer(pointer)
            .and_then(Value::as_array)
            .map(Vec::len);
        list.expect("an enumeration")
    };
    let causes = |cause: Cause| match cause {
        Cause::FirstTouch
        | Cause::RefaultAfterMunmap
        | Cause::RefaultAfterBrk
        | Cause::RefaultAfterDontneed
        | Cause::RefaultAfterFree
        | Cause::CopyOnWrite
        | Cause::WriteAfterRead
        | Cause::FileMinor
        | Cause::FileMajor
        | Cause::Shared
        | Cause::SwapIn
        | Cause::WriteProtect
        | Cause::StackGrowth
        | Cause::HugePage
        | Cause::Unknown => 15,
    };
    let regions = |region: RegionKind| match region {
        RegionKind::Heap
        | RegionKind::MmappedChunk
        | RegionKind::ThreadArena
        | RegionKind::Stack
        | RegionKind::FilePrivate
        | RegionKind::FileShared
        | RegionKind::SharedAnonymous
        | RegionKind::Anonymous
        | RegionKind::Hugetlb
        | RegionKind::Unknown => 10,
    };
    let losses = |loss: LossKind| match loss {
        LossKind::RingOverrun
        | LossKind::Throttled
        | LossKind::UnknownRecord
        | LossKind::MalformedRecord
        | LossKind::Truncated
        | LossKind::OutOfOrder
        | LossKind::UnpairedFault
        | LossKind::KernelFaultsInvisible
        | LossKind::FaultsWithoutEvent
        | LossKind::UnknownProcess
        | LossKind::TimelineGap
        | LossKind::WriteFailed
        | LossKind::ImpossibleTime
        | LossKind::ImpossibleWeight => 14,
    };
    assert_eq!(counted("/$defs/cause/enum"), causes(Cause::Unknown));
    assert_eq!(counted("/$defs/region/enum"), regions(RegionKind::Unknown));
    assert_eq!(
        counted("/properties/losses/propertyNames/enum"),
        losses(LossKind::Truncated)
    );
}

#[test]
fn wrong_documents_are_refused() {
    let breakages: [(&str, Value); 6] = [
        ("/schema_version", json!(2)),
        ("/cost/wall", json!(-1)),
        ("/verdict", Value::Null),
        ("/by_cause/0/key", json!("moon_phase")),
        ("/ending", json!({"exited": "zero"})),
        ("/advice/0/settings/0/kind", json!("magic")),
    ];
    for (pointer, value) in breakages {
        let mut document = churning();
        *document.pointer_mut(pointer).expect("the sample has it") = value;
        assert!(!errors(&document).is_empty(), "{pointer} passed");
    }
    let mut document = churning();
    document["surprise"] = json!(1);
    assert_eq!(
        errors(&document),
        ["/surprise: not described by the schema"]
    );
    let mut document = churning();
    document.as_object_mut().expect("an object").remove("pid");
    assert_eq!(errors(&document), [": lacks pid"]);
}
