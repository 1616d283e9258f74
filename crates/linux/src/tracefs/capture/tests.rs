use super::*;
use std::fs;

const FUNCTIONS: &str = "\
__handle_mm_fault
handle_mm_fault
lock_mm_and_find_vma
wp_page_copy
";

/// A tracefs of plain files. They keep line numbers as text, which the capture takes for a refusal,
/// as from kernels before 5.1: it has to fall back to names.
fn fake() -> (tempfile::TempDir, Tracefs, Options) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tracing");
    for (file, text) in [
        ("available_tracers", "function_graph function nop\n"),
        ("available_filter_functions", FUNCTIONS),
        ("current_tracer", "nop\n"),
        ("tracing_on", "1\n"),
        ("buffer_size_kb", "1408\n"),
        ("set_ftrace_filter", "#### all functions enabled ####\n"),
        ("set_graph_function", "#### all functions enabled ####\n"),
        ("set_ftrace_pid", "no pid\n"),
        ("set_event_pid", ""),
        ("set_event", ""),
        ("max_graph_depth", "0\n"),
        ("trace_clock", "[local] global\n"),
        ("trace", "# tracer: nop\n"),
        ("trace_pipe", "text\n"),
        ("options/funcgraph-proc", "0\n"),
        ("options/funcgraph-cpu", "1\n"),
        ("events/sched/sched_switch/enable", "0\n"),
        (
            "per_cpu/cpu0/stats",
            "entries: 0\nbytes: 1048576\nnow ts:  12.000034\n",
        ),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let options = Options {
        buffer_kib: 2048,
        depth: 2,
        events: true,
        roots: Vec::new(),
        forced: false,
        journal: folder.path().join("run"),
    };
    (folder, Tracefs::at(root), options)
}

fn read(tracefs: &Tracefs, file: &str) -> String {
    tracefs.control().read(file).unwrap()
}

#[test]
fn a_capture_sets_up_the_tracer() {
    let (_folder, tracefs, options) = fake();
    let mut capture = Capture::prepare(&tracefs, &options).unwrap();
    for (file, expected) in [
        ("current_tracer", "function_graph\n"),
        ("tracing_on", "0\n"),
        ("buffer_size_kb", "2048\n"),
        ("max_graph_depth", "2\n"),
        ("trace_clock", "global\n"),
        ("options/funcgraph-proc", "1\n"),
        (
            "set_graph_function",
            "handle_mm_fault\nlock_mm_and_find_vma\n",
        ),
        (
            "set_ftrace_filter",
            "handle_mm_fault\nlock_mm_and_find_vma\n",
        ),
        ("events/sched/sched_switch/enable", "1\n"),
    ] {
        assert_eq!(read(&tracefs, file), expected, "{file}");
    }
    assert_eq!(capture.events(), ["sched:sched_switch"]);
    assert!(!capture.is_in_instance());
    let all = capture.functions().candidates.clone();
    let selection = capture.select(&all).unwrap();
    assert_eq!((selection.wanted, selection.taken), (4, 4));
    capture.watch(&Target::Tasks(vec![7, 8])).unwrap();
    assert_eq!(read(&tracefs, "set_ftrace_pid"), "7\n8\n");
    assert_eq!(read(&tracefs, "set_event_pid"), "7\n8\n");
    assert!((capture.fill() - 0.5).abs() < 1e-9);
    assert_eq!(capture.now_us().unwrap(), 12_000_034);
    let mut text = Vec::new();
    assert!(capture.read(&mut text, 1 << 20).unwrap());
    assert_eq!(text, b"text\n");
    capture.finish().unwrap();
    assert_eq!(read(&tracefs, "current_tracer"), "nop\n");
    assert_eq!(read(&tracefs, "set_ftrace_pid"), "");
}

#[test]
fn names_that_the_kernel_does_not_take_are_counted() {
    let (_folder, tracefs, options) = fake();
    let mut capture = Capture::prepare(&tracefs, &options).unwrap();
    let missing = Function {
        name: "no such function".to_owned(),
        line: 99,
        rare: false,
    };
    let mut wanted = capture.functions().root_functions();
    wanted.push(missing);
    let selection = capture.select(&wanted).unwrap();
    assert_eq!(selection.rejected, ["no such function"]);
    assert_eq!(selection.wanted, 3);
}

#[test]
fn a_failure_half_way_leaves_nothing_changed() {
    let (_folder, tracefs, options) = fake();
    fs::remove_file(tracefs.control().path("trace_pipe")).unwrap();
    let error = Capture::prepare(&tracefs, &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("trace_pipe"), "{error}");
    assert_eq!(read(&tracefs, "current_tracer"), "nop\n");
    assert_eq!(read(&tracefs, "tracing_on"), "1\n");
    assert_eq!(read(&tracefs, "buffer_size_kb"), "1408\n");
    assert_eq!(read(&tracefs, "max_graph_depth"), "0\n");
}

#[test]
fn a_kernel_without_the_tracer_says_what_it_has() {
    let (_folder, tracefs, options) = fake();
    fs::write(
        tracefs.control().path("available_tracers"),
        "blk function nop\n",
    )
    .unwrap();
    let error = Capture::prepare(&tracefs, &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("it has: blk function nop"), "{error}");
    assert!(error.contains("CONFIG_FUNCTION_GRAPH_TRACER"), "{error}");
}
