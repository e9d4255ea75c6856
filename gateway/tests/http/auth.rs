//! Who may do what over HTTP. The tokens of these tests are scopes.

use super::client::Client;
use super::server::Running;
use prombus::{StartAt, SubscribeOptions};
use prombus_gateway::GatewayOptions;
use serde_json::{Value, json};

async fn ask(
    client: &mut Client,
    token: &str,
    method: &str,
    target: &str,
    body: &str,
) -> (u16, String) {
    let bearer = format!("Bearer {token}");
    let reply = client
        .request(
            method,
            target,
            &[("authorization", &bearer)],
            body.as_bytes(),
        )
        .await;
    match reply.head.status {
        status @ (200 | 204) => (status, String::new()),
        _ => reply.error(),
    }
}

async fn start() -> Running {
    let server = Running::with_scopes(GatewayOptions::default()).await;
    server.fill("a.one", 2).await;
    server.fill("b.one", 2).await;
    for (topic, group) in [("a.one", "g"), ("b.one", "g")] {
        let options = SubscribeOptions {
            from: StartAt::Earliest,
            ..SubscribeOptions::default()
        };
        drop(
            server
                .bus()
                .subscribe(topic, group, options)
                .await
                .expect("subscribed"),
        );
    }
    server
}

#[tokio::test]
async fn without_a_token_nothing_but_health_answers() {
    let server = start().await;
    let mut client = server.client().await;
    let document = prombus_api::openapi::document();
    for (path, operations) in document["paths"].as_object().expect("paths") {
        for method in operations.as_object().expect("operations").keys() {
            let target = path.replace("{topic}", "a.one");
            let reply = client
                .request(&method.to_uppercase(), &target, &[], b"")
                .await;
            if ["/healthz", "/livez", "/readyz"].contains(&path.as_str()) {
                assert_eq!(reply.head.status, 200, "{path}");
                continue;
            }
            reply.is_error(401, "unauthorized");
            assert_eq!(reply.head.header("www-authenticate"), Some("Bearer"));
        }
    }
}

#[tokio::test]
async fn tokens_that_are_good_for_nothing() {
    let server = start().await;
    let mut client = server.client().await;
    assert_eq!(
        ask(&mut client, "wrong", "GET", "/topics", "").await,
        (401, "bad_token".to_owned())
    );
    assert_eq!(
        ask(&mut client, "expired", "GET", "/topics", "").await,
        (401, "token_expired".to_owned())
    );
    client
        .get("/topics?token=wrong")
        .await
        .is_error(401, "bad_token");
    client
        .get("/replay?topic=a.one&token=subscribe:a.*")
        .await
        .ok();
    let basic = [("authorization", "Basic YTpi")];
    client
        .request("GET", "/topics", &basic, b"")
        .await
        .is_error(401, "unauthorized");
}

#[tokio::test]
async fn each_route_needs_its_right() {
    let server = start().await;
    let mut client = server.client().await;
    let pull = r#"{"topic":"T","group":"g","max":1}"#;
    let settle = r#"{"topic":"T","group":"g","ids":[]}"#;
    let seek = r#"{"topic":"T","group":"g","from":"earliest","dry_run":true}"#;
    let redrive = r#"{"topic":"T","dry_run":true}"#;
    // The right that is needed, and those that are not enough. Whoever may administer a topic may look at its groups,
    // and whoever may write to it knows that it is there.
    for (right, others, method, target, body) in [
        ("publish", "subscribe admin", "POST", "/publish/T", "1"),
        ("publish", "subscribe admin", "POST", "/import?topic=T", ""),
        ("subscribe", "publish admin", "GET", "/replay?topic=T", ""),
        ("subscribe", "publish admin", "GET", "/export?topic=T", ""),
        (
            "subscribe",
            "publish admin",
            "GET",
            "/latest-by-key?topic=T",
            "",
        ),
        ("subscribe", "publish", "GET", "/lag?topic=T&group=g", ""),
        (
            "subscribe",
            "publish",
            "GET",
            "/explain?topic=T&group=g",
            "",
        ),
        (
            "subscribe",
            "publish",
            "GET",
            "/cursors?topic=T&group=g",
            "",
        ),
        ("subscribe", "publish", "GET", "/groups?topic=T&group=g", ""),
        ("subscribe", "publish admin", "POST", "/pull", pull),
        ("subscribe", "publish admin", "POST", "/ack", settle),
        ("subscribe", "publish admin", "POST", "/nack", settle),
        ("subscribe", "publish admin", "POST", "/modack", settle),
        ("admin", "publish subscribe", "POST", "/cursors", seek),
        (
            "admin",
            "publish subscribe",
            "POST",
            "/dlq/redrive",
            redrive,
        ),
        ("admin", "publish subscribe", "POST", "/topics/T/purge", ""),
        ("admin", "publish subscribe", "PUT", "/topics/T", ""),
        (
            "admin",
            "publish subscribe",
            "DELETE",
            "/groups?topic=T&group=g",
            "",
        ),
        ("admin", "publish subscribe", "DELETE", "/topics/T", ""),
    ] {
        let on = |topic: &str| (target.replace('T', topic), body.replace('T', topic));
        let forbidden = (403, "forbidden".to_owned());
        let others: Vec<String> = others
            .split(' ')
            .map(|right| format!("{right}:a.*"))
            .collect();
        let token = format!("{right}:a.*");
        let (there, said) = on("a.one");
        let refused = ask(&mut client, &others.join(" "), method, &there, &said).await;
        assert_eq!(refused, forbidden, "{method} {target}");
        let (elsewhere, said) = on("b.one");
        let refused = ask(&mut client, &token, method, &elsewhere, &said).await;
        assert_eq!(refused, forbidden, "{method} {target}");
        let (there, said) = on("a.one");
        let allowed = ask(&mut client, &token, method, &there, &said).await;
        assert!(
            [200, 204].contains(&allowed.0),
            "{method} {target}: {allowed:?}"
        );
    }
    assert!(server.bus().topic("b.one").is_ok());
}

#[tokio::test]
async fn redriving_needs_to_write_here_and_to_read_there() {
    let server = start().await;
    let mut client = server.client().await;
    let body = r#"{"topic":"a.one","dry_run":true}"#;
    for (token, status) in [
        ("publish:a.*", 403),
        ("subscribe:dlq.a.*", 403),
        ("publish:a.* subscribe:dlq.a.*", 200),
    ] {
        assert_eq!(
            ask(&mut client, token, "POST", "/dlq/redrive", body)
                .await
                .0,
            status,
            "{token}"
        );
    }
    assert_eq!(
        ask(
            &mut client,
            "subscribe:dlq.a.*",
            "GET",
            "/dlq?topic=a.one",
            ""
        )
        .await
        .0,
        200
    );
}

#[tokio::test]
async fn lists_show_only_what_one_may_see() {
    let server = start().await;
    let mut client = server.client().await;
    let names = |list: &Value| -> Vec<String> {
        let topics = list["topics"].as_array().expect("topics").iter();
        topics
            .map(|info| info["topic"].as_str().expect("a name").to_owned())
            .collect()
    };
    for (token, expected) in [
        ("publish:a.*", vec!["a.one"]),
        ("subscribe:b.*", vec!["b.one"]),
        ("admin:**", vec!["a.one", "b.one"]),
        ("subscribe:c.*", vec![]),
    ] {
        let list = client.get(&format!("/topics?token={token}")).await.ok();
        assert_eq!(names(&list), expected, "{token}");
    }
    client
        .get("/topics/b.one?token=publish:a.*")
        .await
        .is_error(403, "forbidden");
    client
        .get("/metrics?token=subscribe:a.*")
        .await
        .is_error(403, "forbidden");
    assert_eq!(
        client.get("/metrics?token=subscribe:**").await.head.status,
        200
    );
    let groups = client
        .get("/groups?topic=a.one&token=publish:a.*")
        .await
        .ok();
    assert_eq!(
        groups["groups"],
        json!([]),
        "who may only write does not see who reads"
    );
}

#[tokio::test]
async fn what_is_not_allowed_is_not_known_either() {
    let server = start().await;
    let mut client = server.client().await;
    for target in [
        "/replay?topic=none",
        "/export?topic=none",
        "/groups?topic=none",
        "/dlq?topic=none",
    ] {
        let token = "subscribe:a.*";
        assert_eq!(
            ask(&mut client, token, "GET", target, "").await,
            (403, "forbidden".to_owned()),
            "{target}"
        );
    }
}
