//! Cursors: read, set, looked at before they are set; lag; what retention took.

use crate::support::*;
use prombus::{Cursor, SeekEffect, StartAt, SubscribeOptions};

#[tokio::test(start_paused = true)]
async fn a_cursor_names_the_last_settled_event() {
    let bus = bus();
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    let before = bus.cursor("t", "g").await.expect("it exists");
    assert_eq!(
        before,
        Cursor {
            topic: "t".into(),
            group: "g".into(),
            last_id: None,
            last_ts: None,
            last_seq: 0
        }
    );
    let first = publish_one(&bus, "t", 1).await;
    publish_one(&bus, "t", 2).await;
    take(&subscription, 1).await;
    let cursor = bus.cursor("t", "g").await.expect("it exists");
    let json = serde_json::to_string(&cursor).expect("JSON");
    let expected = format!(
        r#"{{"topic":"t","group":"g","lastId":"{}","lastTs":{START_MS},"lastSeq":1}}"#,
        first.id
    );
    assert_eq!(json, expected);
    sleep(500).await;
    let lag = bus.lag("t", "g").await.expect("it exists");
    assert_eq!(
        (lag.lag, lag.lag_ms, lag.tail, lag.last_cursor.last_seq),
        (1, 500, 2, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_seek_delivers_again_or_passes_over_and_says_so_before() {
    let bus = bus();
    publish(&bus, "t", 10).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    take(&subscription, 5).await;
    let held = next(&subscription).await;
    assert_eq!(held.event.seq(), 6);

    let back = bus
        .seek_dry_run("t", "g", StartAt::Seq(3))
        .await
        .expect("it exists");
    assert_eq!(
        back,
        SeekEffect {
            cursor: 2,
            redelivered: 3,
            skipped: 0,
            beyond_tail: false,
        }
    );
    let ahead = bus
        .seek_dry_run("t", "g", StartAt::Latest)
        .await
        .expect("it exists");
    assert_eq!(
        ahead,
        SeekEffect {
            cursor: 10,
            redelivered: 0,
            skipped: 5,
            beyond_tail: false,
        }
    );
    assert_eq!(
        bus.cursor("t", "g").await.expect("it exists").last_seq,
        5,
        "only looked at"
    );

    assert_eq!(bus.seek("t", "g", StartAt::Seq(3)).await, Ok(back));
    assert_eq!(
        held.ack_confirmed().await.map_err(|error| error.kind()),
        Err("LeaseLost")
    );
    assert_eq!(take(&subscription, 8).await, [3, 4, 5, 6, 7, 8, 9, 10]);
    bus.seek("t", "g", StartAt::Earliest)
        .await
        .expect("it exists");
    let first = next(&subscription).await;
    assert_eq!((first.event.seq(), first.context.attempt), (1, 1));
    bus.seek("t", "g", StartAt::Latest)
        .await
        .expect("it exists");
    publish_one(&bus, "t", 11).await;
    assert_eq!(take(&subscription, 1).await, [11]);
}

#[tokio::test(start_paused = true)]
async fn a_group_without_members_can_be_moved_too() {
    let bus = bus();
    publish(&bus, "t", 5).await;
    drop(
        bus.subscribe("t", "g", earliest())
            .await
            .expect("subscribed"),
    );
    sleep(1_000).await;
    bus.seek("t", "g", StartAt::Seq(4))
        .await
        .expect("it exists");
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    assert_eq!(take(&subscription, 2).await, [4, 5]);
}

#[tokio::test(start_paused = true)]
async fn what_retention_took_is_skipped_and_counted() {
    let bus = bus();
    publish(&bus, "t", 5).await;
    let options = SubscribeOptions {
        max_in_flight: 1,
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    let first = next(&subscription).await;
    bus.purge_topic("t").await.expect("it exists");
    publish_one(&bus, "t", 6).await;
    first.ack();
    assert_eq!(take(&subscription, 1).await, [6]);
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.skipped, info.counts.skipped, info.cursor), (4, 4, 6));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_gone_when_its_retry_is_due_is_skipped() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    next(&subscription).await.nack_after("later", 1_000);
    bus.purge_topic("t").await.expect("it exists");
    nothing(&subscription, 5_000).await;
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!((info.skipped, info.cursor, info.lag), (1, 1, 0));
}
