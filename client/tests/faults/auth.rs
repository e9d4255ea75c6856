//! Tokens: refused, expired, fresh ones from a provider, and refreshed before they expire.

use crate::broker::{Broker, Fault};
use crate::{connect, options, within};
use prombus_api::Code;
use prombus_client::{Client, ClientOptions, PublishOptions, Token, TokenSource};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A provider that gives `token-1`, `token-2` and so on.
fn counting(refresh_after: Option<Duration>) -> (TokenSource, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let source = TokenSource::provider(move || {
        let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
        let token = Token::new(format!("token-{number}"));
        let token = match refresh_after {
            Some(pause) => token.refresh_after(pause),
            None => token,
        };
        async move { Ok::<_, String>(token) }
    });
    (source, asked)
}

fn with(token: TokenSource) -> ClientOptions {
    ClientOptions { token, ..options() }
}

#[tokio::test]
async fn a_refused_token_ends_the_client() {
    let broker = Broker::start().await;
    broker
        .state()
        .refused
        .insert("wrong".to_owned(), Code::BadToken);
    let error = within(Client::connect(&broker.url(), with("wrong".into())))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "bad_token");
    assert!(!error.to_string().contains("wrong"), "{error}");
    assert_eq!(broker.state().connections, 1);
    let client = connect(&broker, with("right".into())).await;
    within(client.close()).await.unwrap();
}

#[tokio::test]
async fn a_provider_is_asked_again_but_not_believed_twice() {
    let broker = Broker::start().await;
    for token in ["token-1", "token-2"] {
        broker
            .state()
            .refused
            .insert(token.to_owned(), Code::BadToken);
    }
    let (source, asked) = counting(None);
    let client = connect(&broker, with(source)).await;
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    within(client.close()).await.unwrap();

    broker
        .state()
        .refused
        .insert("same".to_owned(), Code::BadToken);
    let same = TokenSource::provider(|| async { Ok::<_, String>(Token::new("same")) });
    let error = within(Client::connect(&broker.url(), with(same)))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "bad_token");
}

#[tokio::test]
async fn a_token_that_expires_is_replaced_by_the_provider() {
    let broker = Broker::start().await;
    broker
        .state()
        .faults
        .push_back(Fault::Error(2, Code::TokenExpired));
    let (source, _) = counting(None);
    let client = connect(&broker, with(source)).await;
    within(client.publish("t", "a", &PublishOptions::default()))
        .await
        .unwrap();
    let tokens = [Some("token-1".to_owned()), Some("token-2".to_owned())];
    assert_eq!(broker.state().tokens, tokens);
    assert_eq!(broker.state().log.len(), 1);
}

#[tokio::test]
async fn a_fixed_token_that_expires_ends_the_client() {
    let broker = Broker::start().await;
    broker
        .state()
        .faults
        .push_back(Fault::Error(2, Code::TokenExpired));
    let client = connect(&broker, with("fixed".into())).await;
    let error = within(client.publish("t", "a", &PublishOptions::default()))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "token_expired");
}

#[tokio::test]
async fn a_token_is_refreshed_on_the_live_connection() {
    let broker = Broker::start().await;
    let (source, _) = counting(Some(Duration::from_millis(5)));
    let client = connect(&broker, with(source)).await;
    broker.until(|state| state.tokens.len() >= 3).await;
    assert_eq!(broker.state().connections, 1);
    within(client.close()).await.unwrap();
}

#[tokio::test]
async fn a_provider_that_fails_says_why() {
    let broker = Broker::start().await;
    let failing = TokenSource::provider(|| async { Err::<Token, _>("the vault is sealed") });
    let options = ClientOptions {
        wait_for_server: false,
        ..with(failing)
    };
    let error = within(Client::connect(&broker.url(), options))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "no_token");
    assert!(error.to_string().contains("the vault is sealed"));
}
