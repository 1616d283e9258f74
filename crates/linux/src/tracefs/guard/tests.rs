use super::*;
use std::path::PathBuf;

/// A tracefs of plain files, as an idle kernel shows it.
struct Fake {
    folder: tempfile::TempDir,
}

const IDLE: &[(&str, &str)] = &[
    ("current_tracer", "nop\n"),
    ("tracing_on", "1\n"),
    ("buffer_size_kb", "7 (expanded: 1408)\n"),
    ("set_ftrace_filter", "#### all functions enabled ####\n"),
    ("set_ftrace_notrace", "#### no functions disabled ####\n"),
    ("set_graph_function", "#### all functions enabled ####\n"),
    ("set_graph_notrace", "#### no functions disabled ####\n"),
    ("set_ftrace_pid", "no pid\n"),
    ("set_event_pid", ""),
    ("set_event", ""),
    ("tracing_thresh", "0\n"),
    ("max_graph_depth", "0\n"),
    ("trace_clock", "[local] global counter mono\n"),
    ("options/funcgraph-proc", "0\n"),
    ("events/sched/sched_switch/enable", "0\n"),
    ("per_cpu/cpu0/stats", "entries: 0\noverrun: 0\n"),
];

impl Fake {
    fn idle() -> Self {
        let fake = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        IDLE.iter().for_each(|(file, text)| fake.put(file, text));
        fs::create_dir_all(fake.top().path("instances")).unwrap();
        fake
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.top().path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn top(&self) -> Control {
        Control::at(self.folder.path().join("tracing"))
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn begin(&self) -> Result<Guard, Error> {
        Guard::begin(self.top(), &self.journal(), false).map(|(guard, _)| guard)
    }

    /// Content of the files, except those that the kernel itself would write.
    fn snapshot(&self) -> Vec<(String, String)> {
        let read = |(file, _): &(&str, &str)| ((*file).to_owned(), self.top().read(file).unwrap());
        IDLE.iter().map(read).collect()
    }
}

/// Changes nearly everything that a capture changes.
fn change(guard: &mut Guard) {
    let top = guard.top().clone();
    for (file, value) in [
        ("tracing_on", "0"),
        ("trace_clock", "global"),
        ("max_graph_depth", "3"),
        ("current_tracer", "function_graph"),
        ("options/funcgraph-proc", "1"),
        ("events/sched/sched_switch/enable", "1"),
    ] {
        guard.set(&top, file, value).unwrap();
    }
    for file in ["set_graph_function", "set_ftrace_filter"] {
        guard
            .replace(&top, file, ["handle_mm_fault", "find_vma"])
            .unwrap();
    }
    guard.replace(&top, "set_ftrace_pid", ["42"]).unwrap();
}

/// Plain files keep what is written; an idle kernel's lists and choices are read differently.
fn as_the_kernel_reads(snapshot: &mut [(String, String)]) {
    for (file, text) in snapshot {
        let idle = IDLE.iter().find(|(name, _)| name == file).unwrap().1;
        let is_same = match text.as_str() {
            "" => is_empty_list(idle),
            "local\n" => idle.starts_with("[local]"),
            _ => false,
        };
        if is_same {
            idle.clone_into(text);
        }
    }
}

fn is_empty_list(text: &str) -> bool {
    text.lines().all(super::super::control::is_no_entry)
}

#[test]
fn everything_is_put_back() {
    let fake = Fake::idle();
    let before = fake.snapshot();
    let mut guard = fake.begin().unwrap();
    change(&mut guard);
    assert_ne!(fake.snapshot(), before);
    guard.restore().unwrap();
    let mut after = fake.snapshot();
    as_the_kernel_reads(&mut after);
    assert_eq!(after, before);
    assert_eq!(fs::read(fake.journal().join("trace.journal")).unwrap(), b"");
}

#[test]
fn everything_is_put_back_on_a_panic_too() {
    let fake = Fake::idle();
    let before = fake.snapshot();
    let result = std::panic::catch_unwind(|| {
        let mut guard = fake.begin().unwrap();
        change(&mut guard);
        panic!("in the middle");
    });
    assert!(result.is_err());
    let mut after = fake.snapshot();
    as_the_kernel_reads(&mut after);
    assert_eq!(after, before);
}

#[test]
fn the_next_one_cleans_up_after_a_kill() {
    let fake = Fake::idle();
    let before = fake.snapshot();
    let mut guard = fake.begin().unwrap();
    change(&mut guard);
    let instance = guard.instance().unwrap();
    let journal = fs::read(fake.journal().join("trace.journal")).unwrap();
    let killed = fake.snapshot();
    // State after a kill: the files and the journal as they are, the lock gone.
    drop(guard);
    for (file, text) in &killed {
        fake.put(file, text);
    }
    fs::create_dir_all(instance.root()).unwrap();
    fs::write(fake.journal().join("trace.journal"), journal).unwrap();

    let (next, recovered) = Guard::begin(fake.top(), &fake.journal(), false).unwrap();
    let recovered = recovered.expect("there was something to put back");
    assert_eq!(recovered.owner, std::process::id().to_string());
    assert_eq!(recovered.instances, 1);
    assert!(recovered.files >= 9, "{recovered:?}");
    drop(next);
    let mut after = fake.snapshot();
    as_the_kernel_reads(&mut after);
    assert_eq!(after, before);
    assert_eq!(recover(&fake.top(), &fake.journal()).unwrap(), None);
}

#[test]
fn a_journal_of_another_boot_is_forgotten() {
    let fake = Fake::idle();
    let mut journal = Journal::open(&fake.journal()).unwrap();
    journal.begin("another-boot").unwrap();
    journal
        .note(&Saved {
            file: "tracing_on".to_owned(),
            content: "0\n".to_owned(),
        })
        .unwrap();
    drop(journal);
    assert_eq!(recover(&fake.top(), &fake.journal()).unwrap(), None);
    assert_eq!(fake.top().read("tracing_on").unwrap(), "1\n");
}

#[test]
fn another_tracer_is_left_alone_and_named() {
    for (file, content, is_leftover) in [
        ("current_tracer", "function\n", false),
        ("set_event", "sched:sched_switch\n", false),
        ("set_graph_function", "vfs_read\nvfs_write\n", true),
        ("set_ftrace_pid", "4242\n", true),
        ("tracing_thresh", "100\n", true),
        ("per_cpu/cpu0/stats", "entries: 12\n", true),
        ("instances/other/current_tracer", "function_graph\n", false),
    ] {
        let fake = Fake::idle();
        fake.put(file, content);
        let before = fake.snapshot();
        let error = fake.begin().unwrap_err();
        let Error::InUse(conflicts) = &error else {
            panic!("{error}");
        };
        assert_eq!(conflicts.len(), 1, "{file}");
        assert_eq!(conflicts[0].is_leftover, is_leftover, "{file}");
        let first_line = content.lines().next().unwrap();
        let text = error.to_string();
        let shown = if file.ends_with("stats") {
            "12 events"
        } else {
            first_line
        };
        assert!(text.contains(shown), "{text}");
        assert_eq!(text.contains("--force"), is_leftover, "{text}");
        assert_eq!(fake.snapshot(), before);
        let forced = Guard::begin(fake.top(), &fake.journal(), true);
        assert_eq!(forced.is_ok(), is_leftover, "{file}");
    }
}

#[test]
fn a_forced_trace_puts_leftovers_back() {
    let fake = Fake::idle();
    fake.put("set_graph_function", "vfs_read\nxfs_read [xfs]\n");
    let (mut guard, _) = Guard::begin(fake.top(), &fake.journal(), true).unwrap();
    change(&mut guard);
    let differences = guard.restore().unwrap();
    // The kernel would show the module again; a plain file shows what was written.
    assert_eq!(
        fake.top().read("set_graph_function").unwrap(),
        "vfs_read\nxfs_read\n"
    );
    let message = differences
        .iter()
        .find(|one| one.file == "set_graph_function");
    assert!(message.unwrap().to_string().contains("xfs_read [xfs]"));
}

#[test]
fn two_traces_at_once_are_refused() {
    let fake = Fake::idle();
    let first = fake.begin().unwrap();
    let error = fake.begin().unwrap_err().to_string();
    assert!(
        error.contains("another pagewise trace is running"),
        "{error}"
    );
    drop(first);
    fake.begin().unwrap();
}

#[test]
fn a_buffer_that_was_never_used_goes_back_to_its_usual_size() {
    let fake = Fake::idle();
    let mut guard = fake.begin().unwrap();
    let top = guard.top().clone();
    guard.set(&top, "buffer_size_kb", "4096").unwrap();
    let differences = guard.restore().unwrap();
    assert_eq!(fake.top().read("buffer_size_kb").unwrap(), "1408\n");
    assert_eq!(differences, []);
}
