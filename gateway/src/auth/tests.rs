//! Tokens of every kind, good and bad, through the door.

mod refused;
mod rotation;
mod signer;

use super::*;
use serde_json::json;
use signer::{NOW_MS, NOW_SECS, SECRET, hs256, signed};

/// The wire code of an error.
fn code(error: &AuthError) -> &'static str {
    crate::api_error::ApiError::from(error.clone())
        .code
        .as_str()
}

fn expected(issuer: &str, audience: &str) -> Expected {
    Expected {
        issuer: Some(issuer.to_owned()),
        audience: Some(audience.to_owned()),
    }
}

fn by_secret(expected: Expected) -> Authenticator {
    Authenticator::jwt_secret(&Secret::new(SECRET), expected).expect("an authenticator")
}

#[tokio::test]
async fn where_auth_is_off_any_token_will_do() {
    let off = Authenticator::off();
    assert!(off.is_off());
    for token in [None, Some(""), Some("whatever")] {
        let grant = off.authenticate(token, NOW_MS).await.expect("a grant");
        assert!(grant.policy.may(Action::Admin, "t", None));
        assert_eq!(grant.expires_at_ms, None);
    }
}

#[tokio::test]
async fn the_static_token_is_good_for_everything() {
    let authenticator =
        Authenticator::token(&Secret::new("open sesame")).expect("an authenticator");
    assert!(!authenticator.is_off());
    let grant = authenticator
        .authenticate(Some("open sesame"), NOW_MS)
        .await;
    assert!(grant.expect("a grant").policy.may(Action::Admin, "t", None));
    for wrong in [
        "open sesamf",
        "open sesam",
        "open sesame ",
        "x",
        "Open sesame",
    ] {
        let refused = authenticator.authenticate(Some(wrong), NOW_MS).await;
        assert_eq!(refused.expect_err(wrong), AuthError::WrongToken);
    }
    for missing in [None, Some("")] {
        let refused = authenticator.authenticate(missing, NOW_MS).await;
        assert_eq!(refused.expect_err("no token"), AuthError::Missing);
    }
}

#[tokio::test]
async fn a_jwt_carries_policy_subject_and_end() {
    let authenticator = by_secret(expected("me", "bus"));
    let token = hs256(&json!({
        "iss": "me", "aud": "bus", "sub": "sensor-7", "exp": NOW_SECS + 60,
        "policy": [{"effect": "allow", "action": "publish", "topics": ["heartbeat.*"]}],
    }));
    let grant = authenticator
        .authenticate(Some(&token), NOW_MS)
        .await
        .expect("a grant");
    assert_eq!(grant.subject.as_deref(), Some("sensor-7"));
    assert!(
        grant
            .policy
            .may(Action::Publish, "heartbeat.received", None)
    );
    assert!(
        !grant
            .policy
            .may(Action::Subscribe, "heartbeat.received", None)
    );
    let end_ms = NOW_MS + 65_000;
    assert_eq!(grant.expires_at_ms, Some(end_ms), "exp and the tolerance");
    assert!(!grant.is_expired(end_ms - 1));
    assert!(grant.is_expired(end_ms));
}

#[tokio::test]
async fn scopes_come_as_a_list_or_as_words() {
    let authenticator = by_secret(Expected::default());
    for claims in [
        json!({"exp": NOW_SECS + 60, "scope": "openid publish:a.* subscribe:b.**"}),
        json!({"exp": NOW_SECS + 60, "scopes": ["publish:a.*", "openid", "subscribe:b.**"]}),
        json!({"exp": NOW_SECS + 60, "scopes": ["publish:a.*"], "scope": "subscribe:b.**"}),
    ] {
        let grant = authenticator
            .authenticate(Some(&hs256(&claims)), NOW_MS)
            .await;
        let policy = grant.expect("a grant").policy;
        assert!(policy.may(Action::Publish, "a.x", None), "{claims}");
        assert!(policy.may(Action::Subscribe, "b", None), "{claims}");
        assert!(!policy.may(Action::Subscribe, "a.x", None), "{claims}");
    }
    // The policy is the whole truth where there is one.
    let both = json!({"exp": NOW_SECS + 60, "policy": [], "scope": "admin:**"});
    let grant = authenticator
        .authenticate(Some(&hs256(&both)), NOW_MS)
        .await;
    assert!(!grant.expect("a grant").policy.may(Action::Admin, "t", None));
    let neither = json!({"exp": NOW_SECS + 60});
    let grant = authenticator
        .authenticate(Some(&hs256(&neither)), NOW_MS)
        .await;
    assert_eq!(*grant.expect("a grant").policy, Policy::default());
}

#[tokio::test]
async fn clocks_may_differ_by_five_seconds() {
    let authenticator = by_secret(Expected::default());
    let outcome = async |claims| {
        let token = hs256(&claims);
        authenticator
            .authenticate(Some(&token), NOW_MS)
            .await
            .map(|_| ())
    };
    let expired = |expired_at_ms| Err(AuthError::Expired { expired_at_ms });
    assert_eq!(outcome(json!({"exp": NOW_SECS - 4})).await, Ok(()));
    assert_eq!(outcome(json!({"exp": NOW_SECS as f64 - 4.5})).await, Ok(()));
    assert_eq!(
        outcome(json!({"exp": NOW_SECS - 5})).await,
        expired(NOW_MS - 5_000)
    );
    assert_eq!(outcome(json!({"exp": 0})).await, expired(0));
    assert_eq!(outcome(json!({"exp": -1e300})).await, expired(0));
    assert_eq!(outcome(json!({"exp": 1e300})).await, Ok(()));
    assert_eq!(
        outcome(json!({"exp": 1e300, "nbf": NOW_SECS + 5})).await,
        Ok(())
    );
    let valid_from_ms = NOW_MS + 6_000;
    let early = Err(AuthError::NotYetValid { valid_from_ms });
    assert_eq!(
        outcome(json!({"exp": 1e300, "nbf": NOW_SECS + 6})).await,
        early
    );
}

#[tokio::test]
async fn tokens_that_others_signed_are_taken() {
    let source: Arc<dyn KeySource> = Arc::new(|| signer::fetched(signed()["jwks"].to_string()));
    let expected = expected("https://issuer.example", "prombus");
    let authenticator = Authenticator::jwks(source, expected);
    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let token = signed()["tokens"][algorithm]
            .as_str()
            .expect("a token")
            .to_owned();
        let grant = authenticator.authenticate(Some(&token), NOW_MS).await;
        let grant = grant.unwrap_or_else(|error| panic!("{algorithm}: {error}"));
        assert_eq!(grant.subject.as_deref(), Some("sensor-7"));
        assert!(
            grant
                .policy
                .may(Action::Publish, "heartbeat.received", None)
        );
        assert_eq!(grant.expires_at_ms, Some(2_000_000_005_000));
    }
}

#[tokio::test]
async fn a_function_decides() {
    let authenticator = Authenticator::function(|token| match token {
        "good" => Ok(Grant::everything()),
        _ => Err(AuthError::WrongToken),
    });
    assert!(
        authenticator
            .authenticate(Some("good"), NOW_MS)
            .await
            .is_ok()
    );
    let refused = authenticator.authenticate(Some("bad"), NOW_MS).await;
    assert_eq!(code(&refused.expect_err("rejected")), "bad_token");
    let waiting = Authenticator::hook(|token| {
        let is_good = token == "good";
        async move {
            tokio::task::yield_now().await;
            is_good.then(Grant::everything).ok_or(AuthError::Missing)
        }
    });
    assert!(waiting.authenticate(Some("good"), NOW_MS).await.is_ok());
    let refused = waiting.authenticate(Some("bad"), NOW_MS).await;
    assert_eq!(code(&refused.expect_err("rejected")), "unauthorized");
}
