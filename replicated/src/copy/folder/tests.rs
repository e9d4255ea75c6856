//! A copy goes on after it was closed or killed, and is made anew where it cannot be trusted.

use super::*;
use prombus_store::{Change, Expect};

async fn put(copy: &FolderCopy, value: &str) {
    let mut batch = Batch::new();
    batch.change(Change::Put {
        key: "key".into(),
        value: value.as_bytes().into(),
        expect: Expect::Any,
    });
    let outcomes = copy.apply(vec![batch], 1, 1).await.expect("applied");
    assert!(outcomes[0].is_ok());
}

async fn value(copy: &FolderCopy) -> Option<String> {
    let found = copy.store().get("key").await.expect("a read")?;
    String::from_utf8(found.value.to_vec()).ok()
}

fn open(folder: &Path) -> (FolderCopy, Option<Rebuilt>) {
    FolderCopy::open(folder, 7).expect("it opens")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_copy_is_there_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (copy, rebuilt) = open(folder.path());
    assert_eq!(rebuilt, Some(Rebuilt::New));
    put(&copy, "1").await;
    copy.store().close().await.expect("it closes");
    let node = copy.node();
    drop(copy);
    let (copy, rebuilt) = open(folder.path());
    assert_eq!((rebuilt, value(&copy).await.as_deref()), (None, Some("1")));
    assert_eq!(copy.node(), node, "it is the same node");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_not_closed_is_there_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (copy, _) = open(folder.path());
    put(&copy, "1").await;
    drop(copy);
    let (copy, rebuilt) = open(folder.path());
    assert_eq!((rebuilt, value(&copy).await.as_deref()), (None, Some("1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_older_version_left_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join(OLDER_LOG_FOLDER)).expect("a folder");
    fs::write(folder.path().join(STATE_FILE), "0000000000000007 closed\n").expect("written");
    let (copy, rebuilt) = open(folder.path());
    assert_eq!((rebuilt, value(&copy).await), (Some(Rebuilt::Older), None));
    assert!(!folder.path().join(OLDER_LOG_FOLDER).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_copy_takes_the_place_of_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let (copy, _) = open(folder.path());
    put(&copy, "1").await;
    let image = copy.image().await.expect("an image").expect("files");
    let staged = copy.stage().expect("a place").expect("it can");
    for file in &image.files {
        let mut bytes = vec![0; file.bytes as usize];
        file.file.read_at(&mut bytes, 0).expect("read");
        let copied = staged.files().create(&file.name).expect("a file");
        copied.write_at(&bytes, 0).expect("written");
        copied.truncate(file.file_bytes).expect("its length");
    }
    put(&copy, "2").await;
    assert_eq!(value(&copy).await.as_deref(), Some("2"));
    staged.adopt(1).expect("it is the same position");
    assert_eq!(value(&copy).await.as_deref(), Some("1"));
    put(&copy, "3").await;
    let empty = copy.stage().expect("a place").expect("it can");
    empty.adopt(4).expect_err("it is at another position");
    assert_eq!(value(&copy).await.as_deref(), Some("3"));
    drop(copy);
    let (copy, rebuilt) = open(folder.path());
    assert_eq!((rebuilt, value(&copy).await.as_deref()), (None, Some("3")));
    let empty = copy.stage().expect("a place").expect("it can");
    empty.adopt(0).expect("nothing is in it");
    assert_eq!(value(&copy).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_copy_is_made_anew() {
    let folder = tempfile::tempdir().expect("a folder");
    let (copy, _) = open(folder.path());
    put(&copy, "1").await;
    copy.store().close().await.expect("it closes");
    drop(copy);
    for entry in fs::read_dir(folder.path().join("log-1")).expect("a log") {
        let path = entry.expect("a file").path();
        let mut bytes = fs::read(&path).expect("its bytes");
        if path.extension().is_some_and(|extension| extension == "seg") {
            bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
            fs::write(&path, bytes).expect("written");
        }
    }
    let opened = FolderCopy::open(folder.path(), 7);
    let (copy, rebuilt) = opened.expect("it opens");
    assert_eq!(
        (rebuilt, value(&copy).await),
        (Some(Rebuilt::Damaged), None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_copy_of_this_log_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let (copy, _) = open(folder.path());
    let error = FolderCopy::open(folder.path(), 7).err().expect("in use");
    assert!(matches!(error, OpenCopyError::InUse(_)), "{error}");
    copy.store().close().await.expect("it closes");
    drop(copy);
    let error = FolderCopy::open(folder.path(), 8)
        .err()
        .expect("another log");
    assert!(
        matches!(
            error,
            OpenCopyError::AnotherLog {
                found: 7,
                wanted: 8,
                ..
            }
        ),
        "{error}"
    );
    let other = tempfile::tempdir().expect("a folder");
    fs::write(other.path().join("letter"), "dear").expect("written");
    let error = FolderCopy::open(other.path(), 7).err().expect("no copy");
    assert!(matches!(error, OpenCopyError::Foreign(_)), "{error}");
    assert_eq!(
        fs::read_to_string(other.path().join("letter")).expect("there"),
        "dear"
    );
}
