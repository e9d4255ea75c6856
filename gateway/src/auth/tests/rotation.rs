//! Key sets that change, fail and come late.

use super::signer::{self, NOW_MS, NOW_SECS, Signer, key_set, signed};
use super::*;
use crate::auth::rotation::{REFRESH_GAP_MS, REFRESH_INTERVAL_MS};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A source whose answer the test sets, and which counts how often it is asked.
#[derive(Default)]
struct Page {
    text: Mutex<Option<String>>,
    asked: AtomicUsize,
    /// How many answers are awaited at once, now and at most.
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl Page {
    fn authenticator(self: &Arc<Self>) -> Authenticator {
        let page = self.clone();
        let source: Arc<dyn KeySource> = Arc::new(move || -> Fetched {
            let page = page.clone();
            Box::pin(async move {
                page.asked.fetch_add(1, SeqCst);
                page.most_open
                    .fetch_max(page.open.fetch_add(1, SeqCst) + 1, SeqCst);
                tokio::task::yield_now().await;
                page.open.fetch_sub(1, SeqCst);
                let text = page.text.lock().expect("a lock").clone();
                match text {
                    Some(text) => signer::fetched(text).await,
                    None => signer::failed("no answer").await,
                }
            })
        });
        Authenticator::jwks(source, Expected::default())
    }

    fn shows(&self, text: impl Into<Option<String>>) {
        *self.text.lock().expect("a lock") = text.into();
    }

    fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

async fn outcome(authenticator: &Authenticator, signer: &Signer, now_ms: u64) -> &'static str {
    let token = signer.token();
    match authenticator.authenticate(Some(&token), now_ms).await {
        Ok(_) => "ok",
        Err(AuthError::UnknownKey { .. }) => "unknown key",
        Err(error) => code(&error),
    }
}

#[tokio::test]
async fn a_new_key_is_found_when_it_is_first_seen() {
    let (old, new) = (Signer::new("old", 1), Signer::new("new", 2));
    let page = Arc::new(Page::default());
    let authenticator = page.authenticator();
    page.shows(key_set(&[&old]));
    assert_eq!(authenticator.refresh(NOW_MS).await, Ok(()));
    page.shows(key_set(&[&old, &new]));
    let later_ms = NOW_MS + REFRESH_GAP_MS;
    assert_eq!(outcome(&authenticator, &new, later_ms).await, "ok");
    assert_eq!(outcome(&authenticator, &old, later_ms).await, "ok");
    assert_eq!(page.asked(), 2);
}

#[tokio::test]
async fn unknown_keys_do_not_make_it_ask_often() {
    let (known, unknown) = (Signer::new("known", 1), Signer::new("unknown", 2));
    let page = Arc::new(Page::default());
    page.shows(key_set(&[&known]));
    let authenticator = page.authenticator();
    for _ in 0..100 {
        assert_eq!(
            outcome(&authenticator, &unknown, NOW_MS).await,
            "unknown key"
        );
        assert_eq!(outcome(&authenticator, &known, NOW_MS).await, "ok");
    }
    assert_eq!(page.asked(), 1);
    assert_eq!(
        outcome(&authenticator, &unknown, NOW_MS + REFRESH_GAP_MS - 1).await,
        "unknown key"
    );
    assert_eq!(page.asked(), 1);
    assert_eq!(
        outcome(&authenticator, &unknown, NOW_MS + REFRESH_GAP_MS).await,
        "unknown key"
    );
    assert_eq!(page.asked(), 2);
    // A clock that was set far back does not end the asking for good.
    assert_eq!(outcome(&authenticator, &unknown, 0).await, "unknown key");
    assert_eq!(page.asked(), 3);
}

#[tokio::test]
async fn the_last_good_set_stays_while_the_source_fails() {
    let (one, other) = (Signer::new("one", 1), Signer::new("other", 2));
    let page = Arc::new(Page::default());
    let authenticator = page.authenticator();
    page.shows(key_set(&[&one]));
    assert_eq!(authenticator.refresh(NOW_MS).await, Ok(()));
    let mut now_ms = NOW_MS;
    let broken = [
        None,
        Some("<html>".to_owned()),
        Some("{}".to_owned()),
        Some(r#"{"keys":[]}"#.to_owned()),
        Some(r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#.to_owned()),
        Some(" ".repeat((1 << 20) + 1)),
        Some(json!({"keys": vec![one.jwk(); 101]}).to_string()),
    ];
    for text in broken {
        page.shows(text);
        assert!(authenticator.refresh(now_ms).await.is_err());
        now_ms += REFRESH_GAP_MS;
        assert_eq!(outcome(&authenticator, &one, NOW_MS).await, "ok");
        assert_eq!(outcome(&authenticator, &other, NOW_MS).await, "unknown key");
    }
    page.shows(key_set(&[&other]));
    assert_eq!(authenticator.refresh(now_ms).await, Ok(()));
    assert_eq!(outcome(&authenticator, &other, NOW_MS).await, "ok");
    assert_eq!(
        outcome(&authenticator, &one, NOW_MS).await,
        "unknown key",
        "it was withdrawn"
    );
}

#[tokio::test]
async fn a_source_that_never_worked_is_named() {
    let one = Signer::new("one", 1);
    let page = Arc::new(Page::default());
    let authenticator = page.authenticator();
    let error = authenticator.refresh(NOW_MS).await.expect_err("a failure");
    assert!(error.to_string().contains("no answer"), "{error}");
    assert_eq!(outcome(&authenticator, &one, NOW_MS).await, "unauthorized");
    page.shows(key_set(&[&one]));
    assert_eq!(
        outcome(&authenticator, &one, NOW_MS + REFRESH_GAP_MS).await,
        "ok"
    );
}

#[tokio::test]
async fn the_set_is_loaded_again_at_intervals() {
    let one = Signer::new("one", 1);
    let page = Arc::new(Page::default());
    page.shows(key_set(&[&one]));
    let authenticator = page.authenticator();
    let due = async |after_ms| {
        let outcome = authenticator.refresh_if_due(NOW_MS + after_ms).await;
        (outcome.is_ok(), page.asked())
    };
    assert_eq!(due(0).await, (true, 1));
    assert_eq!(due(REFRESH_INTERVAL_MS - 1).await, (true, 1));
    page.shows(None);
    assert_eq!(due(REFRESH_INTERVAL_MS).await, (false, 2));
    assert_eq!(
        due(REFRESH_INTERVAL_MS + 1).await,
        (true, 2),
        "not at once again"
    );
    page.shows(key_set(&[&one]));
    assert_eq!(due(REFRESH_INTERVAL_MS + REFRESH_GAP_MS).await, (true, 3));
    assert_eq!(due(REFRESH_INTERVAL_MS * 2).await, (true, 3));
    // Where there are no keys there is nothing to do.
    assert_eq!(Authenticator::off().refresh_if_due(NOW_MS).await, Ok(()));
    assert_eq!(Authenticator::off().refresh(NOW_MS).await, Ok(()));
}

#[tokio::test]
async fn one_load_serves_everybody_who_waits() {
    let one = Arc::new(Signer::new("one", 1));
    let page = Arc::new(Page::default());
    page.shows(key_set(&[&one]));
    let authenticator = page.authenticator();
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (authenticator, one) = (authenticator.clone(), one.clone());
            tokio::spawn(async move { outcome(&authenticator, &one, NOW_MS).await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("a task"), "ok");
    }
    assert_eq!(page.asked(), 1);
    for at in 0..5 {
        let refreshes = (authenticator.refresh(at), authenticator.refresh(at));
        let (first, second) = tokio::join!(refreshes.0, refreshes.1);
        assert_eq!((first, second), (Ok(()), Ok(())));
    }
    assert_eq!(page.most_open.load(SeqCst), 1);
}

/// Whoever sends a token and hangs up must not keep the others from getting the new keys.
#[tokio::test]
async fn hanging_up_does_not_stop_a_load() {
    let one = Signer::new("one", 1);
    let page = Arc::new(Page::default());
    page.shows(key_set(&[&one]));
    let authenticator = page.authenticator();
    {
        let token = one.token();
        let mut waiting = Box::pin(authenticator.authenticate(Some(&token), NOW_MS));
        let is_ready = std::future::poll_fn(|context| {
            std::task::Poll::Ready(waiting.as_mut().poll(context).is_ready())
        });
        assert!(!is_ready.await);
    }
    assert_eq!(outcome(&authenticator, &one, NOW_MS).await, "ok");
    assert_eq!(page.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_is_given_up() {
    let source: Arc<dyn KeySource> = Arc::new(|| -> Fetched { Box::pin(std::future::pending()) });
    let authenticator = Authenticator::jwks(source, Expected::default());
    let error = authenticator.refresh(NOW_MS).await.expect_err("a failure");
    assert!(error.reason.contains("10 s"), "{error}");
    let one = Signer::new("one", 1);
    assert_eq!(outcome(&authenticator, &one, NOW_MS).await, "unauthorized");
}

#[tokio::test]
async fn keys_in_a_file_are_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.json");
    let authenticator = Authenticator::jwks(Arc::new(FileKeys::new(&path)), Expected::default());
    let error = authenticator
        .refresh(NOW_MS)
        .await
        .expect_err("no file yet");
    assert!(error.reason.contains("keys.json"), "{error}");
    let (one, other) = (Signer::new("one", 1), Signer::new("other", 2));
    std::fs::write(&path, key_set(&[&one])).expect("a file");
    assert_eq!(authenticator.refresh(NOW_MS).await, Ok(()));
    assert_eq!(outcome(&authenticator, &one, NOW_MS).await, "ok");
    std::fs::write(&path, key_set(&[&other])).expect("a file");
    assert_eq!(
        outcome(&authenticator, &other, NOW_MS + REFRESH_GAP_MS).await,
        "ok"
    );
    std::fs::write(&path, " ".repeat(2 << 20)).expect("a file");
    let error = authenticator.refresh(NOW_MS).await.expect_err("too large");
    assert!(error.reason.contains("1 MiB"), "{error}");
}

#[tokio::test]
async fn keys_that_are_of_no_use_are_passed_over() {
    let one = Signer::new("one", 1);
    let rsa = signed()["jwks"]["keys"][0].clone();
    let ec = signed()["jwks"]["keys"][1].clone();
    let with = |key: &serde_json::Value, changes: serde_json::Value| {
        let mut key = key.clone();
        for (name, value) in changes.as_object().expect("an object") {
            key[name] = value.clone();
        }
        key
    };
    let useless = [
        json!(5),
        json!({}),
        json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}),
        with(&rsa, json!({"use": "enc"})),
        with(&rsa, json!({"key_ops": ["sign"]})),
        with(&rsa, json!({"alg": "RS512"})),
        with(&rsa, json!({"alg": "ES256"})),
        with(&rsa, json!({"n": "not base64url!"})),
        with(&rsa, json!({"e": null})),
        with(&ec, json!({"crv": "P-384"})),
        with(&ec, json!({"x": "AQAB"})),
        with(&one.jwk(), json!({"crv": "Ed448"})),
        with(&one.jwk(), json!({"x": null})),
    ];
    for key in &useless {
        let source = json!({"keys": [key]}).to_string();
        let source: Arc<dyn KeySource> = Arc::new(move || signer::fetched(source.clone()));
        let authenticator = Authenticator::jwks(source, Expected::default());
        assert!(authenticator.refresh(NOW_MS).await.is_err(), "{key}");
    }
    // Beside them, the good ones are found; a modulus may begin with a zero.
    let n = rsa["n"].as_str().expect("a modulus");
    let padded = jwt::encode(&[vec![0], decoded(n)].concat());
    let keys: Vec<_> = useless
        .into_iter()
        .chain([one.jwk(), with(&rsa, json!({"n": padded}))])
        .collect();
    let text = json!({ "keys": keys }).to_string();
    let source: Arc<dyn KeySource> = Arc::new(move || signer::fetched(text.clone()));
    let authenticator = Authenticator::jwks(source, Expected::default());
    assert_eq!(outcome(&authenticator, &one, NOW_MS).await, "ok");
    let token = signed()["tokens"]["RS256"]
        .as_str()
        .expect("a token")
        .to_owned();
    let grant = authenticator
        .authenticate(Some(&token), NOW_SECS * 1_000)
        .await;
    assert!(grant.is_ok());
}

fn decoded(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .expect("base64url")
}
