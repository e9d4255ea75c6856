//! Folders that can be opened and folders that cannot, on the machine's own files: a refusal changes nothing.

use crate::fixture::{START_MS, options};
use crate::plan::{Plan, PlannedEvent};
use prombus_log::{Log, OpenError, OsFiles, verify};
use prombus_store::{ManualClock, TopicOptions};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Set for the child: the folder it opens.
const FOLDER: &str = "PROMBUS_HELD_FOLDER";
const FIRST_SEGMENT: &str = "0000000000000001.seg";

fn open(folder: &Path) -> Result<Log, OpenError> {
    let clock = Arc::new(ManualClock::at(START_MS));
    let files = OsFiles::open(folder)?;
    Log::open(Arc::new(files), options(&clock, 2000)).map(|(log, _)| log)
}

/// Makes a log with some events and closes it.
fn make_log(folder: &Path) {
    let log = open(folder).expect("a new log");
    let mut plan = Plan::topic("t", TopicOptions::default());
    plan.events = (0..40)
        .map(|at| PlannedEvent::new("t", format!(r#""{at} {}""#, "x".repeat(50))))
        .collect();
    let commit = log.append(&plan.batch());
    log.commit_now();
    commit.wait().expect("a commit");
    log.maintain().expect("maintenance");
    log.close().expect("it closes");
}

/// Every file of a folder with its bytes.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| {
        let entry = entry.expect("an entry");
        let bytes = fs::read(entry.path()).unwrap_or_default();
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    });
    entries.collect()
}

#[test]
fn an_empty_folder_becomes_a_log_and_opens_again() {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join("new/log");
    make_log(&folder);
    let log = open(&folder).expect("it opens again");
    assert_eq!(log.tail_seq("t"), 40);
    drop(log);
    let log = open(&folder).expect("the lock ends with the log");
    assert_eq!(log.damage(), Vec::<String>::new());
}

#[test]
fn a_folder_of_other_things_is_refused_and_stays_as_it_is() {
    let foreign: [&[(&str, &str)]; 6] = [
        &[("letter.txt", "dear")],
        &[("letter.new", "dear")],
        &[("library.idx", "books")],
        &[(
            FIRST_SEGMENT,
            "this is no segment, though it has the name of one",
        )],
        &[(FIRST_SEGMENT, "short"), ("letter.txt", "dear")],
        &[("0000000000000001.seg.bak", "old"), ("CLOSED.txt", "shop")],
    ];
    for files in foreign {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("a file");
        }
        let before = content(folder.path());
        let refused = open(folder.path()).err().expect("a refusal");
        assert!(
            matches!(refused, OpenError::NotALog { .. }),
            "{files:?}: {refused}"
        );
        assert_eq!(content(folder.path()), before, "{files:?}");
    }
}

#[test]
fn a_log_of_a_newer_format_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    make_log(folder.path());
    fs::remove_file(folder.path().join("LOCK")).expect("the lock's file");
    let segments = content(folder.path());
    let segments = segments.keys().filter(|name| name.ends_with(".seg"));
    for name in segments {
        let path = folder.path().join(name);
        let sound = fs::read(&path).expect("a segment");
        let mut newer = sound.clone();
        newer[8..10].copy_from_slice(&7_u16.to_le_bytes());
        let checksum = xxh3_64(&newer[..56]).to_le_bytes();
        newer[56..64].copy_from_slice(&checksum);
        fs::write(&path, &newer).expect("a newer segment");
        fs::write(folder.path().join("CLOSED.new"), "begun").expect("a file");
        let before = content(folder.path());
        let refused = open(folder.path()).err().expect("a refusal");
        assert!(
            matches!(refused, OpenError::NewerFormat { version: 7, .. }),
            "{refused}"
        );
        assert_eq!(content(folder.path()), before);
        fs::write(&path, &sound).expect("the segment as it was");
    }
    open(folder.path()).expect("and now it opens");
}

#[test]
fn checking_a_folder_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    make_log(folder.path());
    let before = content(folder.path());
    let files = OsFiles::open_read_only(folder.path()).expect("a folder");
    let report = verify(Arc::new(files)).expect("a check");
    assert_eq!(report.events, 40);
    assert!(report.damage.is_empty() && report.bad_indexes.is_empty());
    assert_eq!(content(folder.path()), before);
}

#[test]
fn a_second_process_is_refused_until_the_first_one_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    make_log(folder.path());
    let this = std::env::current_exe().expect("this program");
    let mut command = Command::new(this);
    command.args(["--exact", "folders::hold_me", "--nocapture"]);
    command.env(FOLDER, folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("a child");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "held"), "the child opens the log");

    let before = content(folder.path());
    for _ in 0..2 {
        let refused = open(folder.path()).err().expect("a refusal");
        assert!(matches!(refused, OpenError::InUse), "{refused}");
    }
    assert_eq!(content(folder.path()), before);

    drop(child.stdin.take());
    assert!(child.wait().expect("its end").success());
    open(folder.path()).expect("the lock ended with the process");
}

/// Not a test of its own: it is what the test above starts, with the folder in the environment.
#[test]
fn hold_me() {
    use std::io::Write;
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let log = open(Path::new(&folder)).expect("it opens");
    // The test program's own words end without a line break.
    std::io::stdout().write_all(b"\nheld\n").expect("a parent");
    let mut rest = Vec::new();
    std::io::stdin().read_to_end(&mut rest).expect("the end");
    drop(log);
}

#[test]
fn two_logs_in_one_process_do_not_share_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = open(folder.path()).expect("it opens");
    assert!(matches!(open(folder.path()), Err(OpenError::InUse)));
    drop(first);
    open(folder.path()).expect("it opens");
}
