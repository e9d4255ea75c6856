//! Frames of every kind with every field.

use crate::frames::*;
use crate::options::{AlsoPublish, PublishOptions, SubscribeOptions};
use crate::record::Record;
use prombus_interface::{FieldFilter, Ordering, Pattern, StartAt};
use proptest::prelude::*;
use std::borrow::Cow;

/// A client's frame as it is written.
pub(super) fn write_client(frame: &ClientFrame<'_>) -> String {
    let mut out = Vec::new();
    let corr = frame.corr.as_deref();
    match &frame.request {
        Request::Auth(auth) => write_auth(&mut out, auth, corr),
        Request::Publish(publish) => write_publish(&mut out, publish, corr),
        Request::Subscribe(subscribe) => write_subscribe(&mut out, subscribe, corr),
        Request::Unsubscribe(name) => write_unsubscribe(&mut out, &name.topic, &name.group, corr),
        Request::Ack(ack) => write_ack(&mut out, ack, corr),
        Request::Nack(nack) => write_nack(&mut out, nack, corr),
        Request::Modack(modack) => write_modack(&mut out, modack, corr),
        Request::Pause(name) => write_pause(&mut out, &name.topic, &name.group, corr),
        Request::Resume(name) => write_resume(&mut out, &name.topic, &name.group, corr),
        Request::Revoked(revoked) => write_revoked(&mut out, revoked, corr),
    }
    String::from_utf8(out).unwrap()
}

pub(super) fn client_frame() -> impl Strategy<Value = ClientFrame<'static>> {
    let corr = prop::option::of(text());
    (corr, request()).prop_map(|(corr, request)| ClientFrame { corr, request })
}

pub(super) fn text() -> impl Strategy<Value = Cow<'static, str>> {
    prop_oneof![
        3 => "[a-z.:-]{0,40}".prop_map(Cow::Owned),
        1 => any::<String>().prop_map(Cow::Owned),
    ]
}

pub(super) fn record() -> impl Strategy<Value = Record<'static>> {
    let ids = (
        text(),
        prop::option::of(text()),
        any::<u64>(),
        text(),
        any::<u64>(),
    );
    let lists = (pairs(), texts(), texts());
    (
        ids,
        prop::option::of(text()),
        any::<Option<u32>>(),
        payload(),
        lists,
    )
        .prop_map(
            |((id, sid, ts, topic, seq), key, partition, payload, (headers, caused_by, tags))| {
                Record {
                    id,
                    sid,
                    ts,
                    topic,
                    seq,
                    key,
                    partition,
                    headers,
                    payload,
                    caused_by,
                    tags,
                }
            },
        )
}

/// Payloads that are easy to end too early or too late.
pub(super) fn payload() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "null",
        "true",
        "-1.50e+3",
        "\"\"",
        r#""}]\"{[\\""#,
        "[]",
        "{}",
        r#"{ "a" : [ 1 , { "b" : "}" } ] , "op" : "ACK" , "corr" : "no" }"#,
        r#"[[[["ü \u00fc"]]],{"topic":"x"}]"#,
    ])
}

fn request() -> impl Strategy<Value = Request<'static>> {
    let auth = (prop::option::of(text()), any::<bool>());
    prop_oneof![
        auth.prop_map(|(token, batch)| Request::Auth(Auth { token, batch })),
        publish().prop_map(Request::Publish),
        subscribe().prop_map(Request::Subscribe),
        name().prop_map(Request::Unsubscribe),
        (name(), prop::collection::vec(any::<u32>(), 1..4)).prop_map(|(name, partitions)| {
            let GroupName { topic, group } = name;
            Request::Revoked(Partitions {
                topic,
                group,
                partitions,
            })
        }),
        (name(), ids(), prop::collection::vec(publish(), 0..3)).prop_map(|(name, ids, publish)| {
            let GroupName { topic, group } = name;
            Request::Ack(Ack {
                topic,
                group,
                ids,
                publish,
            })
        }),
        (
            name(),
            ids(),
            prop::option::of(text()),
            any::<Option<u64>>()
        )
            .prop_map(|(name, ids, reason, delay_ms)| {
                let GroupName { topic, group } = name;
                Request::Nack(Nack {
                    topic,
                    group,
                    ids,
                    reason,
                    delay_ms,
                })
            }),
        (name(), ids(), any::<Option<u64>>()).prop_map(|(name, ids, extend_ms)| {
            let GroupName { topic, group } = name;
            Request::Modack(Modack {
                topic,
                group,
                ids,
                extend_ms,
            })
        }),
        name().prop_map(Request::Pause),
        name().prop_map(Request::Resume),
    ]
}

fn name() -> impl Strategy<Value = GroupName<'static>> {
    (text(), text()).prop_map(|(topic, group)| GroupName { topic, group })
}

fn ids() -> impl Strategy<Value = Ids<'static>> {
    prop_oneof![
        text().prop_map(Ids::One),
        prop::collection::vec(text(), 0..5).prop_map(Ids::Many),
    ]
}

fn publish() -> impl Strategy<Value = Publish<'static>> {
    (text(), payload(), publish_options()).prop_map(|(topic, payload, options)| Publish {
        topic,
        payload,
        options,
    })
}

fn publish_options() -> impl Strategy<Value = PublishOptions<'static>> {
    let said = (
        prop::option::of(text()),
        any::<Option<u64>>(),
        prop::option::of(text()),
    );
    let lists = (pairs(), texts(), texts());
    let expected = any::<(Option<u64>, Option<u64>)>();
    let schedule = (
        any::<(Option<u64>, Option<u64>, bool)>(),
        prop::option::of(text()),
    );
    let also_publish = prop::collection::vec(also_publish(), 0..3);
    let later = (schedule, also_publish);
    (said, lists, prop::option::of(text()), expected, later).prop_map(
        |(
            (id, ts, key),
            (headers, tags, caused_by),
            sid,
            expected,
            ((schedule, every), also_publish),
        )| {
            PublishOptions {
                id,
                ts,
                key,
                headers,
                tags,
                caused_by,
                sid,
                expect_seq: expected.0,
                expect_key_seq: expected.1,
                deliver_at: schedule.0,
                delay_ms: schedule.1,
                every,
                catch_up: schedule.2,
                also_publish,
            }
        },
    )
}

fn also_publish() -> impl Strategy<Value = AlsoPublish<'static>> {
    let payload = prop_oneof![Just("1"), Just("{\"a\": [null]}"), Just("\"\\u0041\"")];
    (text(), payload).prop_map(|(topic, payload)| AlsoPublish {
        topic,
        payload: payload.into(),
    })
}

fn subscribe() -> impl Strategy<Value = Subscribe<'static>> {
    (text(), prop::option::of(text()), subscribe_options()).prop_map(|(topic, group, options)| {
        let options = Box::new(options);
        Subscribe {
            topic,
            group,
            options,
        }
    })
}

fn subscribe_options() -> impl Strategy<Value = SubscribeOptions> {
    let size = || prop::option::of(0usize..1 << 20);
    let sizes = (size(), size(), any::<Option<u64>>(), any::<Option<u32>>());
    let ordering = prop::option::of(prop_oneof![Just(Ordering::None), Just(Ordering::Key)]);
    let rest = (
        any::<Option<bool>>(),
        prop::option::of(filter()),
        texts(),
        ordering,
        any::<Option<bool>>(),
        any::<Option<bool>>(),
    );
    (prop::option::of(position()), sizes, rest).prop_map(|(start, sizes, rest)| SubscribeOptions {
        start,
        batch_size: sizes.0,
        max_in_flight: sizes.1,
        ack_timeout_ms: sizes.2,
        max_attempts: sizes.3,
        manual_ack: rest.0,
        filter: rest.1,
        topics: rest.2,
        ordering: rest.3,
        upcast: rest.4,
        partitioned: rest.5,
    })
}

fn position() -> impl Strategy<Value = StartAt> {
    prop_oneof![
        Just(StartAt::Latest),
        Just(StartAt::Earliest),
        any::<u64>().prop_map(StartAt::Ts),
        any::<String>().prop_map(StartAt::AfterId),
        any::<u64>().prop_map(StartAt::Seq),
    ]
}

fn filter() -> impl Strategy<Value = FieldFilter> {
    let headers = prop::collection::btree_map(any::<String>(), any::<String>(), 0..3);
    (prop::option::of(pattern()), headers, texts()).prop_map(|(key, headers, tags)| FieldFilter {
        key,
        headers,
        tags,
    })
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let text = any::<String>().prop_filter("two stars are a segment", |text| !text.contains("**"));
    text.prop_map(|text| Pattern::new(&text).expect("a pattern"))
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(any::<String>(), 0..3)
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((any::<String>(), any::<String>()), 0..3)
}
