//! What must not get in, and that nothing of a token shows in the error.

use super::signer::{self, NOW_MS, NOW_SECS, Signer, assembled, hs256, key_set, signed};
use super::*;
use crate::auth::jwt::{encode, hs256_key};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

fn by_keys(text: String) -> Authenticator {
    let source: Arc<dyn KeySource> = Arc::new(move || signer::fetched(text.clone()));
    Authenticator::jwks(source, Expected::default())
}

/// The error, after a look at what it prints.
async fn refusal(authenticator: &Authenticator, token: &str) -> AuthError {
    let refused = authenticator.authenticate(Some(token), NOW_MS).await;
    let Err(error) = refused else {
        panic!("{token} was taken");
    };
    let printed = format!("{error} {error:?}");
    for part in token.split('.').filter(|part| part.len() > 8) {
        assert!(!printed.contains(part), "{printed} shows {part}");
    }
    error
}

fn malformed(error: &AuthError) -> bool {
    matches!(error, AuthError::Malformed { .. }) && code(error) == "bad_token"
}

#[tokio::test]
async fn garbage() {
    let good = hs256(&json!({"exp": NOW_SECS + 60}));
    let (head, signature) = good.rsplit_once('.').expect("three parts");
    let claims = format!(r#"{{"exp":{}}}"#, NOW_SECS + 60);
    let header = r#"{"alg":"HS256"}"#;
    let garbage = [
        "x".to_owned(),
        "..".to_owned(),
        "a.b".to_owned(),
        "ü.ü.ü".to_owned(),
        head.to_owned(),
        format!("{good}.x"),
        format!(".{good}"),
        format!("{good}="),
        format!(" {good}"),
        format!("{head}.{}+", &signature[1..]),
        assembled("", &claims, b"s"),
        assembled("[]", &claims, b"s"),
        assembled("{}", &claims, b"s"),
        assembled(r#"{"alg":5}"#, &claims, b"s"),
        assembled(r#"{"alg":"HS256","alg":"none"}"#, &claims, b"s"),
        assembled(
            r#"{"alg":"HS256","crit":["b64"],"b64":false}"#,
            &claims,
            b"s",
        ),
        "x.".repeat(MAX_TOKEN_BYTES),
    ];
    for authenticator in [
        by_secret(Expected::default()),
        by_keys(signed()["jwks"].to_string()),
    ] {
        for token in &garbage {
            let error = refusal(&authenticator, token).await;
            assert!(malformed(&error), "{token}: {error}");
        }
    }
    // A good signature does not help claims that make no sense.
    let authenticator = by_secret(Expected::default());
    for claims in [
        "",
        "[]",
        "5",
        "null",
        r#"{"exp":"soon"}"#,
        r#"{"exp":9e9,"aud":5}"#,
        r#"{"exp":9e9,"exp":1}"#,
    ] {
        let message = format!(
            "{}.{}",
            encode(header.as_bytes()),
            encode(claims.as_bytes())
        );
        let signature = ring::hmac::sign(&hs256_key(signer::SECRET), message.as_bytes());
        let error = refusal(
            &authenticator,
            &assembled(header, claims, signature.as_ref()),
        )
        .await;
        assert!(malformed(&error), "{claims}: {error}");
    }
}

#[tokio::test]
async fn unsigned_tokens() {
    let claims = format!(r#"{{"exp":{},"scope":"admin:**"}}"#, NOW_SECS + 60);
    for authenticator in [
        by_secret(Expected::default()),
        by_keys(signed()["jwks"].to_string()),
    ] {
        for algorithm in ["none", "None", "NONE", "nOnE", ""] {
            for signature in [b"".as_slice(), b"whatever"] {
                let header = format!(r#"{{"alg":"{algorithm}"}}"#);
                let error = refusal(&authenticator, &assembled(&header, &claims, signature)).await;
                let algorithm = algorithm.to_owned();
                assert_eq!(error, AuthError::WrongAlgorithm { algorithm });
                assert_eq!(code(&error), "bad_token");
            }
        }
        let header = assembled(r#"{"alg":"HS256","kid":"rsa-1"}"#, &claims, b"");
        assert_eq!(code(&refusal(&authenticator, &header).await), "bad_token");
    }
}

/// A public key is no secret: whoever signs with it as if it were one must not get in.
#[tokio::test]
async fn a_public_key_used_as_a_secret() {
    let authenticator = by_keys(signed()["jwks"].to_string());
    let jwk = &signed()["jwks"]["keys"][0];
    let n = jwk["n"].as_str().expect("a modulus");
    let secrets = [
        n.as_bytes().to_vec(),
        URL_SAFE_NO_PAD.decode(n).expect("base64url"),
        jwk.to_string().into_bytes(),
    ];
    let claims = format!(r#"{{"exp":{},"scope":"admin:**"}}"#, NOW_SECS + 60);
    for secret in secrets {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &secret);
        for algorithm in ["HS256", "RS256", "ES256", "EdDSA"] {
            let header = format!(r#"{{"alg":"{algorithm}","kid":"rsa-1"}}"#);
            let message = format!(
                "{}.{}",
                encode(header.as_bytes()),
                encode(claims.as_bytes())
            );
            let mac = ring::hmac::sign(&key, message.as_bytes());
            let error = refusal(&authenticator, &assembled(&header, &claims, mac.as_ref())).await;
            assert_eq!(code(&error), "bad_token", "{algorithm}");
        }
    }
    // Nor does a secret that somebody left in the set become a key.
    let oct = json!({"keys": [jwk, {"kty": "oct", "kid": "s", "alg": "HS256", "k": "c2VjcmV0"}]});
    let token =
        sign_hs256(&Secret::new("secret"), &json!({"exp": NOW_SECS + 60})).expect("a token");
    let error = refusal(&by_keys(oct.to_string()), &token).await;
    let algorithm = "HS256".to_owned();
    assert_eq!(error, AuthError::WrongAlgorithm { algorithm });
}

#[tokio::test]
async fn another_key_or_a_changed_token() {
    let by_secret = by_secret(Expected::default());
    let foreign = sign_hs256(&Secret::new("another"), &json!({"exp": NOW_SECS + 60}));
    let error = refusal(&by_secret, &foreign.expect("a token")).await;
    assert_eq!(error, AuthError::WrongSignature);
    let by_keys = by_keys(signed()["jwks"].to_string());
    for algorithm in ["RS256", "ES256", "EdDSA"] {
        let token = signed()["tokens"][algorithm]
            .as_str()
            .expect("a token")
            .to_owned();
        let parts: Vec<&str> = token.split('.').collect();
        let claims = encode(br#"{"exp":2000000000,"scope":"admin:**"}"#);
        let changed = format!("{}.{claims}.{}", parts[0], parts[2]);
        assert_eq!(refusal(&by_keys, &changed).await, AuthError::WrongSignature);
        let mut signature = URL_SAFE_NO_PAD.decode(parts[2]).expect("base64url");
        signature[20] ^= 1;
        let changed = format!("{}.{}.{}", parts[0], parts[1], encode(&signature));
        assert_eq!(refusal(&by_keys, &changed).await, AuthError::WrongSignature);
        let cut = format!("{}.{}.{}", parts[0], parts[1], encode(&signature[1..]));
        assert_eq!(refusal(&by_keys, &cut).await, AuthError::WrongSignature);
    }
    // The name of another key, or of another kind of key, does not help.
    let (one, other) = (Signer::new("one", 1), Signer::new("other", 2));
    let keys = self::by_keys(key_set(&[&one, &other]));
    let token = one.signed(r#"{"alg":"EdDSA","kid":"other"}"#);
    assert_eq!(refusal(&keys, &token).await, AuthError::WrongSignature);
    let token = one.signed(r#"{"alg":"RS256","kid":"one"}"#);
    let kid = Some("one".to_owned());
    assert_eq!(refusal(&keys, &token).await, AuthError::UnknownKey { kid });
    let nameless = one.signed(r#"{"alg":"EdDSA"}"#);
    assert!(
        keys.authenticate(Some(&nameless), NOW_MS).await.is_ok(),
        "each key is tried"
    );
}

/// A token of another library: only its signature is right, so that is not what is complained about.
#[tokio::test]
async fn a_token_that_never_expires() {
    let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0Ij\
                 oxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";
    let secret = Secret::new("your-256-bit-secret");
    let authenticator =
        Authenticator::jwt_secret(&secret, Expected::default()).expect("an authenticator");
    let error = refusal(&authenticator, token).await;
    assert_eq!((code(&error), error), ("bad_token", AuthError::NoExpiry));
}

#[tokio::test]
async fn wrong_times_places_and_policies() {
    let authenticator = by_secret(expected("me", "bus"));
    let with = |changes: serde_json::Value| {
        let mut claims = json!({"iss": "me", "aud": ["x", "bus"], "exp": NOW_SECS + 60});
        for (name, value) in changes.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        hs256(&claims)
    };
    assert!(
        authenticator
            .authenticate(Some(&with(json!({}))), NOW_MS)
            .await
            .is_ok()
    );
    for (changes, code) in [
        (json!({"exp": NOW_SECS - 60}), "token_expired"),
        (json!({"exp": null}), "bad_token"),
        (json!({"nbf": NOW_SECS + 60}), "bad_token"),
        (json!({"iss": "Me"}), "bad_token"),
        (json!({"iss": null}), "bad_token"),
        (json!({"aud": "buss"}), "bad_token"),
        (json!({"aud": []}), "bad_token"),
        (json!({"aud": null}), "bad_token"),
        (json!({"policy": "all"}), "bad_token"),
        (json!({"policy": [{"effect": "deny"}]}), "bad_token"),
        (
            json!({"policy": [{"effect": "allow", "action": "*", "topics": ["a**"]}]}),
            "bad_token",
        ),
    ] {
        let error = refusal(&authenticator, &with(changes.clone())).await;
        assert_eq!(super::code(&error), code, "{changes}: {error}");
    }
    let error = refusal(&authenticator, &with(json!({"iss": 5}))).await;
    assert!(malformed(&error));
}

#[tokio::test]
async fn names_in_a_header_are_cut_in_the_refusal() {
    let long = "k".repeat(5_000);
    let header = format!(r#"{{"alg":"EdDSA","kid":"{long}"}}"#);
    let one = Signer::new("one", 1);
    let error = refusal(&by_keys(key_set(&[&one])), &one.signed(&header)).await;
    let kid = Some("k".repeat(64));
    assert_eq!(error, AuthError::UnknownKey { kid });
}
