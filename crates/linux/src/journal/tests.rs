use super::*;

fn setting(path: &str, before: &str) -> Line {
    Line {
        setting: Some(Setting {
            path: path.into(),
            before: before.to_owned(),
            after: String::new(),
        }),
        ..Line::default()
    }
}

#[test]
fn a_whole_journal_is_not_cut_wherever_its_file_stands() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"one\ntwo\nthr").unwrap();
    assert_eq!(drop_cut_line(&mut file).unwrap(), 8);
    assert_eq!(drop_cut_line(&mut file).unwrap(), 8);
    assert_eq!(file.metadata().unwrap().len(), 8);
}

#[test]
fn what_is_noted_says_who_and_what_was_there() {
    let top = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(top.path(), "j", Lock::Alone).unwrap();
    assert_eq!(journal.record().unwrap(), None);
    let owner = Owner::this("trace");
    let head = Line {
        owner: Some(owner.clone()),
        ..Line::default()
    };
    journal.note(&head).unwrap();
    journal.note(&setting("a b", "x\n\n{\"")).unwrap();
    let record = journal.record().unwrap().unwrap();
    assert_eq!(record.owner.as_ref(), Some(&owner));
    assert_eq!(record.settings[0].before, "x\n\n{\"");
    assert!(owner.start_ticks > 0 && is_running(owner.pid, owner.start_ticks));
    assert!(!is_running(owner.pid, owner.start_ticks + 1));
    assert!(record.is_of_boot(&boot_id()));
    assert!(!record.is_of_boot("another"));
    journal.empty().unwrap();
    assert_eq!(journal.record().unwrap(), None);
}

#[test]
fn one_has_it_alone_or_several_share_it_and_the_last_one_knows() {
    let top = tempfile::tempdir().unwrap();
    let open = |lock| Journal::open(top.path(), "j", lock);
    let alone = open(Lock::Alone).unwrap();
    let path = alone.path().to_owned();
    assert!(Journal::abandoned(&path).unwrap().is_none());
    assert!(matches!(open(Lock::Shared), Err(Error::Held(_))));
    drop(alone);
    let [first, second] = [open(Lock::Shared).unwrap(), open(Lock::Shared).unwrap()];
    assert!(Journal::abandoned(&path).unwrap().is_none());
    assert!(!first.is_last().unwrap());
    assert!(second.is_last().unwrap());
    drop((first, second));
    assert!(Journal::abandoned(&path).unwrap().is_some());
}

#[test]
fn a_journal_that_was_removed_meanwhile_is_made_again() {
    let top = tempfile::tempdir().unwrap();
    let first = Journal::open(top.path(), "j", Lock::Alone).unwrap();
    let path = first.path().to_owned();
    let waiting = std::thread::spawn({
        let folder = top.path().to_owned();
        move || Journal::open(&folder, "j", Lock::Alone).unwrap()
    });
    // Whether or not the other has opened the file by now, it gets one that exists at the path.
    remove(&path).unwrap();
    drop(first);
    let mut second = waiting.join().unwrap();
    second.note(&setting("a", "b")).unwrap();
    assert_eq!(read(&path).unwrap().unwrap().settings.len(), 1);
}

#[test]
fn what_is_no_journal_says_so_and_only_the_end_may_be_cut() {
    let parse = |text: &str| Record::parse(Path::new("j"), text);
    for wrong in ["shopping list", "shopping list\n", "{}\n", "{\"a\":1}\n"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
    let line = serde_json::to_string(&setting("a", "b")).unwrap();
    assert!(parse(&format!("{line}\n{{\n{line}\n")).is_err());
    assert!(parse(&format!("{line}\n{{\"set\n")).is_err());
    let cut = parse(&format!("{line}\n{{\"set")).unwrap().unwrap();
    assert_eq!(cut.settings.len(), 1);
    assert_eq!(parse("{\"owner\":{").unwrap(), None);
    assert_eq!(parse("\0\0\0").unwrap(), None);
    let zeros = parse(&format!("{line}\n\0\0")).unwrap().unwrap();
    assert_eq!(zeros.settings.len(), 1);
}
