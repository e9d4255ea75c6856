//! Obligation 7: keyed records, their versions and what writes may expect of them.

use super::Harness;
use super::case::Case;
use crate::{Batch, Change, CommitError, Expect, Keyed, VersionMismatch};

/// Each write gives a higher version, and reads see value and version of the last one.
pub async fn versions_grow_with_each_write<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    assert_eq!(case.get("k").await, None);
    let mut last = None;
    for value in [&b"one"[..], b"", b"\x00\xff\xfe", b"one", &[7; 100_000]] {
        let version = case.put("k", value, Expect::Any).await.expect("a write");
        assert!(Some(version) > last, "versions grow");
        last = Some(version);
        let expected = Keyed {
            version,
            value: value.into(),
        };
        assert_eq!(case.get("k").await, Some(expected));
        case.put("other", value, Expect::Any)
            .await
            .expect("a write");
    }
}

/// `Any`, `Absent` and `Version` let through what they say, and a refusal tells what is there.
pub async fn expectations_are_kept<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let refused = case.put("k", b"0", Expect::Version(1)).await;
    assert_eq!(refused, Err(mismatch("k", None)));
    let first = case
        .put("k", b"1", Expect::Absent)
        .await
        .expect("nothing was there");
    for expect in [
        Expect::Absent,
        Expect::Version(first + 1),
        Expect::Version(0),
    ] {
        let refused = case.put("k", b"2", expect).await;
        assert_eq!(refused, Err(mismatch("k", Some(first))), "{expect:?}");
    }
    let second = case
        .put("k", b"3", Expect::Version(first))
        .await
        .expect("it was there");
    let refused = case.put("k", b"4", Expect::Version(first)).await;
    assert_eq!(refused, Err(mismatch("k", Some(second))));
    assert_eq!(case.get("k").await.expect("a record").value.as_ref(), b"3");
}

/// A record goes when it is as expected; removing nothing is fine where nothing was expected.
pub async fn deleting_records<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    case.delete("k", Expect::Any)
        .await
        .expect("nothing to remove");
    case.delete("k", Expect::Absent)
        .await
        .expect("nothing to remove");
    assert_eq!(
        case.delete("k", Expect::Version(1)).await,
        Err(mismatch("k", None))
    );

    let version = case.put("k", b"1", Expect::Any).await.expect("a write");
    for expect in [Expect::Absent, Expect::Version(version + 1)] {
        let refused = case.delete("k", expect).await;
        assert_eq!(refused, Err(mismatch("k", Some(version))));
    }
    case.delete("k", Expect::Version(version))
        .await
        .expect("it was there");
    assert_eq!(case.get("k").await, None);
    let case = case.reopen().await;
    assert_eq!(case.get("k").await, None);
    let version = case.put("k", b"2", Expect::Absent).await;
    let version = version.expect("nothing is there");
    case.delete("k", Expect::Any).await.expect("it was there");
    let again = case.put("k", b"3", Expect::Absent).await;
    let again = again.expect("nothing is there");
    assert!(again > version, "nobody takes it for the old one");
    case.delete("k", Expect::Any).await.expect("it was there");
    assert_eq!(case.store.list("").await.expect("a list"), []);
}

/// Changes of a batch are applied in order, and each sees the ones before.
pub async fn writes_of_one_batch_see_each_other<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let mut batch = Batch::new();
    batch.change(put("a", b"1", Expect::Absent));
    batch.change(put("b", b"1", Expect::Absent));
    batch.change(put("a", b"2", Expect::Any));
    batch.change(delete("b", Expect::Any));
    batch.change(put("b", b"3", Expect::Absent));
    let versions = case.commit(batch).await.versions;
    assert_eq!(versions.len(), 4, "one for each put");
    assert!(
        versions[0] < versions[2],
        "the second write of a key is newer"
    );
    let (a, b) = (case.get("a").await, case.get("b").await);
    let (a, b) = (a.expect("a record"), b.expect("a record"));
    assert_eq!((a.version, a.value.as_ref()), (versions[2], &b"2"[..]));
    assert_eq!((b.version, b.value.as_ref()), (versions[3], &b"3"[..]));

    let mut batch = Batch::new();
    batch.change(delete("a", Expect::Version(a.version)));
    batch.change(put("c", b"1", Expect::Absent));
    batch.change(put("c", b"2", Expect::Absent));
    let refused = case.store.commit(batch).await;
    assert!(
        matches!(refused, Err(CommitError::VersionMismatch(_))),
        "{refused:?}"
    );
    assert_eq!((case.get("a").await, case.get("c").await), (Some(a), None));
}

/// A prefix lists what starts with it, in the order of bytes, and nothing else.
pub async fn records_are_listed_by_prefix_in_order<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let keys = [
        "group/b",
        "group/a",
        "group/a/1",
        "group",
        "group0",
        "Group/a",
        "grouß",
        "h",
        "group/\u{10ffff}",
    ];
    for key in keys {
        case.put(key, key.as_bytes(), Expect::Any)
            .await
            .expect("a write");
    }
    for prefix in [
        "",
        "g",
        "group",
        "group/",
        "group/a",
        "group/a/1",
        "grou\u{df}",
        "x",
        "group/\u{10ffff}",
    ] {
        let mut expected: Vec<&str> = keys
            .into_iter()
            .filter(|key| key.starts_with(prefix))
            .collect();
        expected.sort_unstable();
        let listed = case.store.list(prefix).await.expect("a list");
        let found: Vec<&str> = listed.iter().map(|(key, _)| key.as_ref()).collect();
        assert_eq!(found, expected, "prefix {prefix:?}");
        for (key, record) in &listed {
            assert_eq!(record.value.as_ref(), key.as_bytes());
            assert_eq!(case.get(key).await.as_ref(), Some(record));
        }
    }
}

/// Values and versions are the same after a restart, and versions go on.
pub async fn records_survive_reopening<H: Harness>(harness: &H) {
    let mut case = Case::new(harness).await;
    let mut version = 0;
    for round in 0..4u8 {
        version = case
            .put("k", &[round], Expect::Any)
            .await
            .expect("a write")
            .max(version + 1);
        case.put(&format!("k/{round}"), b"", Expect::Absent)
            .await
            .expect("a write");
        let before = case.store.list("").await.expect("a list");
        assert_eq!(before.len(), usize::from(round) + 2);
        case = case.reopen().await;
        assert_eq!(case.store.list("").await.expect("a list"), before);
        assert_eq!(
            case.get("k").await.map(|record| record.version),
            Some(version)
        );
    }
}

impl<H: Harness> Case<'_, H> {
    async fn get(&self, key: &str) -> Option<Keyed> {
        self.store.get(key).await.expect("an answer")
    }

    async fn put(&self, key: &str, value: &[u8], expect: Expect) -> Result<u64, CommitError> {
        let receipt = self.change(put(key, value, expect)).await?;
        assert_eq!(receipt.versions.len(), 1, "one version for one put");
        Ok(receipt.versions[0])
    }

    async fn delete(&self, key: &str, expect: Expect) -> Result<(), CommitError> {
        let receipt = self.change(delete(key, expect)).await?;
        assert_eq!(receipt.versions, [], "no version for what is gone");
        Ok(())
    }
}

fn put(key: &str, value: &[u8], expect: Expect) -> Change {
    Change::Put {
        key: key.into(),
        value: value.into(),
        expect,
    }
}

fn delete(key: &str, expect: Expect) -> Change {
    Change::Delete {
        key: key.into(),
        expect,
    }
}

fn mismatch(key: &str, found: Option<u64>) -> CommitError {
    CommitError::VersionMismatch(VersionMismatch {
        key: key.into(),
        found,
    })
}
