//! Members on any of three nodes of one group, whichever of them owns it.

use crate::nodes::{LIMIT, linked_cluster};
use crate::{LEASE, consume, numbers, options, subscribe};
use prombus::{
    Delivery, Ended, GroupInfo, PublishOptions, Reason, StartAt, SubscribeOptions, Subscription,
};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

async fn next(subscription: &Subscription) -> Delivery {
    let next = tokio::time::timeout(LIMIT, subscription.next()).await;
    next.expect("in time").expect("an event")
}

/// Waits until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < limit, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Takes deliveries of several members, acknowledges them, and returns their payloads, of which none comes twice.
async fn consume_all(subscriptions: &[&Subscription], count: usize) -> BTreeSet<String> {
    let mut payloads = BTreeSet::new();
    while payloads.len() < count {
        let all = subscriptions.iter().map(|one| Box::pin(one.next()));
        let (delivery, ..) = tokio::time::timeout(LIMIT, futures_util::future::select_all(all))
            .await
            .expect("in time");
        let delivery = delivery.expect("an event");
        let payload = delivery.event.payload().to_owned();
        delivery.ack_confirmed().await.expect("acknowledged");
        assert!(payloads.insert(payload), "it came twice");
    }
    payloads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_on_all_nodes_share_the_events_of_a_group() {
    let [one, two, three] = linked_cluster().await;
    one.publish(0..5).await;
    let members = [
        subscribe(&one).await,
        subscribe(&two).await,
        subscribe(&three).await,
    ];
    let all: Vec<&Subscription> = members.iter().collect();
    assert_eq!(consume_all(&all, 5).await, numbers(0..5));
    two.publish(5..20).await;
    three.publish(20..40).await;
    assert_eq!(consume_all(&all, 35).await, numbers(5..40));
    // Each of them gets something while the others do nothing.
    for (at, member) in members.iter().enumerate() {
        let first = 40 + 9 * at;
        one.publish(first..first + 9).await;
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(next(member).await);
        }
        for delivery in held {
            delivery.ack_confirmed().await.expect("acknowledged");
        }
        // The others take the rest.
        let info = two.bus.group("t", "g").await.expect("a group");
        assert_eq!(info.members.len(), 3, "{info:?}");
        consume_all(&all, 6).await;
    }
    // All nodes tell the same of the group, and who is where.
    for node in [&one, &two, &three] {
        let info = node.bus.group("t", "g").await.expect("a group");
        assert_eq!((info.lag, info.in_flight), (0, 0));
        let nodes: Vec<Option<&str>> = info.members.iter().map(|one| one.node.as_deref()).collect();
        assert_eq!(nodes, [None, Some("http://two"), Some("http://three")]);
        let explanation = node.bus.explain("t", "g").await.expect("an explanation");
        assert_eq!(explanation.node.as_deref(), Some("http://one"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_of_a_group_reaches_its_owner_from_any_node() {
    let [one, two, _three] = linked_cluster().await;
    one.publish(0..10).await;
    let local = subscribe(&one).await;
    assert_eq!(consume(&local, 10).await, numbers(0..10));
    let effect = two
        .bus
        .seek("t", "g", StartAt::Seq(6))
        .await
        .expect("moved");
    assert_eq!((effect.cursor, effect.redelivered), (5, 5));
    assert_eq!(consume(&local, 5).await, numbers(5..10));
    let info = two.bus.pause_group("t", "g").await.expect("paused");
    assert!(info.paused_since_ms.is_some());
    let info = one.bus.resume_group("t", "g").await.expect("resumed");
    assert!(info.paused_since_ms.is_none());
    let error = two.bus.undo_seek("t", "g").await;
    error.expect("undone");
    let again = two.bus.undo_seek("t", "g").await.expect_err("only once");
    assert!(!again.is_retryable(), "{again}");
    // A group that is removed on one node ends its members on all.
    let relayed = subscribe(&two).await;
    two.bus.remove_group("t", "g").await.expect("removed");
    assert!(
        tokio::time::timeout(LIMIT, relayed.next())
            .await
            .expect("in time")
            .is_none()
    );
    assert_eq!(relayed.ended(), Some(Ended::GroupRemoved));
    assert!(
        tokio::time::timeout(LIMIT, local.next())
            .await
            .expect("in time")
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relayed_member_settles_in_every_way() {
    let [one, two, _three] = linked_cluster().await;
    one.publish(0..1).await;
    let local = subscribe(&one).await;
    assert_eq!(consume(&local, 1).await, numbers(0..1));
    let member = subscribe(&two).await;
    local.control().pause();
    one.publish(1..5).await;
    let (refused, extended, stepped, left) = (
        next(&member).await,
        next(&member).await,
        next(&member).await,
        next(&member).await,
    );
    // Refused, and back at once.
    let id = refused.event.id().into_owned();
    refused.nack_after("not now", 0);
    let again = next(&member).await;
    assert_eq!((&*again.event.id(), again.context.attempt), (&*id, 2));
    again.ack_confirmed().await.expect("acknowledged");
    // Acknowledged and published in one step.
    let mut batch = two.bus.batch();
    batch.add("results", "7", &PublishOptions::default());
    let published = stepped.ack_and_publish(batch).await.expect("both");
    assert_eq!(published.len(), 1);
    // Held longer than leases are; the one that was not comes again.
    let until = Instant::now() + LEASE + Duration::from_secs(1);
    while Instant::now() < until {
        extended.extend_confirmed(2_000).await.expect("extended");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    extended.ack_confirmed().await.expect("still its own");
    let again = next(&member).await;
    assert_eq!(
        (again.event.id(), again.context.attempt),
        (left.event.id(), 2)
    );
    again.ack_confirmed().await.expect("acknowledged");
    let info = one.bus.group("t", "g").await.expect("a group");
    assert_eq!((info.lag, info.in_flight), (0, 0));
    // By ids, as over a socket.
    one.publish(5..6).await;
    let delivery = next(&member).await;
    let ids = vec![delivery.event.id().into_owned()];
    let settled = member
        .control()
        .settle_ids("t", ids, prombus::SettleOp::Ack)
        .await;
    assert!(settled.iter().all(Result::is_ok), "{settled:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leases_of_a_member_that_leaves_are_free_at_once() {
    let [one, two, _three] = linked_cluster().await;
    let local = subscribe(&one).await;
    let member = subscribe(&two).await;
    local.control().pause();
    one.publish(0..3).await;
    let held = next(&member).await;
    let began = Instant::now();
    drop((held, member));
    local.control().resume();
    assert_eq!(consume(&local, 3).await, numbers(0..3));
    assert!(began.elapsed() < LEASE, "it was waited for");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_breaks_costs_a_member_nothing_that_it_holds() {
    let [one, two, _three] = linked_cluster().await;
    // Far longer than the test takes, also on a busy machine.
    let options = || SubscribeOptions {
        ack_timeout_ms: Some(LIMIT.as_millis() as u64),
        ..options()
    };
    let local = one
        .bus
        .subscribe("t", "g", options())
        .await
        .expect("a member");
    let member = loop {
        // The first beats of a new owner may not be here yet.
        if let Ok(member) = two.bus.subscribe("t", "g", options()).await {
            break member;
        }
    };
    local.control().pause();
    one.publish(0..4).await;
    let held = [next(&member).await, next(&member).await];
    let mut payloads = BTreeSet::new();
    one.cut_links(true);
    local.control().resume();
    // What the member holds is nobody else's, though nobody can reach it; what had not left the owner's node may be.
    let until = Instant::now() + Duration::from_secs(1);
    while let Ok(free) = tokio::time::timeout_at(until, local.next()).await {
        let free = free.expect("an event");
        let is_held = held.iter().any(|one| one.event.seq() == free.event.seq());
        assert!(!is_held, "it is in two hands");
        assert!(payloads.insert(free.event.payload().to_owned()));
        free.ack_confirmed().await.expect("acknowledged");
    }
    one.cut_links(false);
    for delivery in held {
        assert!(payloads.insert(delivery.event.payload().to_owned()));
        delivery.ack_confirmed().await.expect("still its own");
    }
    // What it did not look at is free as soon as its node can tell.
    let left = 4 - payloads.len();
    payloads.extend(consume_all(&[&local, &member], left).await);
    assert_eq!(payloads, numbers(0..4));
    one.publish(4..6).await;
    assert_eq!(consume_all(&[&local, &member], 2).await, numbers(4..6));
    let info = two.bus.group("t", "g").await.expect("a group");
    assert_eq!((info.lag, info.in_flight), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_owner_closes_its_members_elsewhere_go_on_with_what_they_hold() {
    let [one, two, three] = linked_cluster().await;
    let local = subscribe(&one).await;
    let members = [subscribe(&two).await, subscribe(&three).await];
    local.control().pause();
    one.publish(0..6).await;
    let mut held = Vec::new();
    for member in &members {
        held.push(next(member).await);
    }
    one.bus.close().await.expect("closed");
    two.publish(6..9).await;
    let mut payloads = BTreeSet::new();
    for delivery in held {
        assert!(payloads.insert(delivery.event.payload().to_owned()));
        delivery.ack_confirmed().await.expect("still its own");
    }
    let rest = consume_all(&[&members[0], &members[1]], 7).await;
    payloads.extend(rest);
    assert_eq!(payloads, numbers(0..9));
    until("all is settled", async || {
        let info = three.bus.group("t", "g").await.expect("a group");
        (info.lag, info.in_flight) == (0, 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_is_cut_off_is_replaced_by_a_node_that_only_relayed() {
    let [one, two, three] = linked_cluster().await;
    one.publish(0..2).await;
    let local = subscribe(&one).await;
    let lost = [next(&local).await, next(&local).await];
    let members = [subscribe(&two).await, subscribe(&three).await];
    local.control().pause();
    two.publish(2..6).await;
    let mut held = vec![next(&members[0]).await, next(&members[1]).await];
    // Its beats do not arrive, and it cannot be reached: nobody subscribes, and the group moves.
    one.cut(true);
    one.cut_links(true);
    two.cut_links(false);
    until("another node owns the group", async || {
        let mut served = 0;
        for node in [&two, &three] {
            let nodes = node.bus.nodes().await.expect("nodes");
            served += nodes
                .iter()
                .filter(|one| one.is_asked)
                .map(|one| one.groups)
                .sum::<u64>();
        }
        served > 0
    })
    .await;
    two.publish(6..8).await;
    // What is new comes at once; what the members hold is still theirs.
    let mut payloads = BTreeSet::new();
    for delivery in held.drain(..) {
        assert!(payloads.insert(delivery.event.payload().to_owned()));
        delivery.ack_confirmed().await.expect("still its own");
    }
    // When the old owner is back, its members are relayed, with what they hold where that has not run out.
    one.cut(false);
    local.control().resume();
    let all = [&local, &members[0], &members[1]];
    for delivery in lost {
        // Its lease may be over by now, and the event another's.
        let _ = delivery.ack_confirmed().await;
    }
    while payloads.len() < 6 {
        let nexts = all.iter().map(|one| Box::pin(one.next()));
        let (delivery, ..) = tokio::time::timeout(LIMIT, futures_util::future::select_all(nexts))
            .await
            .expect("in time");
        let delivery = delivery.expect("an event");
        let payload = delivery.event.payload().to_owned();
        delivery.ack_confirmed().await.expect("acknowledged");
        if payload.parse::<usize>().expect("a number") >= 2 {
            assert!(payloads.insert(payload), "it came twice");
        }
    }
    until("all is settled", async || {
        let info = one.bus.group("t", "g").await;
        info.is_ok_and(|info| (info.lag, info.in_flight) == (0, 0))
    })
    .await;
}

/// The topics of a pattern's group, on several nodes.
const FOLLOWED: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_of_a_pattern_are_relayed_and_keep_what_they_hold_when_the_owner_changes() {
    let [one, two, three] = linked_cluster().await;
    let publish = async |numbers: std::ops::Range<usize>| {
        for number in numbers {
            let topic = format!("p.{}", number % FOLLOWED);
            let options = PublishOptions::default();
            let published = three.bus.publish(&topic, &number, &options).await;
            published.expect("published");
        }
    };
    publish(0..FOLLOWED).await;
    let follow = async |node: &crate::nodes::Node| {
        let options = SubscribeOptions {
            ack_timeout_ms: Some(LIMIT.as_millis() as u64),
            ..options()
        };
        let subscribed = node.bus.subscribe("p.*", "g", options).await;
        subscribed.expect("a subscription")
    };
    // The first node serves all topics, for as long as its member holds something.
    let owner = follow(&one).await;
    let mut owners = Vec::new();
    for _ in 0..FOLLOWED {
        owners.push(next(&owner).await);
    }
    // The second one gets its share of each.
    let relayed = follow(&two).await;
    publish(FOLLOWED..5 * FOLLOWED).await;
    let mut held = Vec::new();
    for _ in 0..FOLLOWED {
        held.push(next(&relayed).await);
    }
    for topic in 0..FOLLOWED {
        let explained = two.bus.explain(&format!("p.{topic}"), "g").await;
        let explained = explained.expect("an explanation");
        assert_eq!(explained.node.as_deref(), Some("http://one"));
    }
    let payloads = held.iter().map(|one| one.event.payload().to_owned());
    let in_hands: BTreeSet<String> = payloads.collect();
    assert_eq!(in_hands.len(), FOLLOWED);
    // The owner goes. The second node serves its topics with what its member holds, which comes to nobody else.
    for delivery in owners {
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    one.bus.close().await.expect("closed");
    drop(owner);
    let rest = consume_all(&[&relayed], 4 * FOLLOWED - held.len()).await;
    assert!(rest.is_disjoint(&in_hands), "{rest:?} {in_hands:?}");
    for delivery in held {
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    let all: BTreeSet<String> = rest.union(&in_hands).cloned().collect();
    assert_eq!(all, numbers(FOLLOWED..5 * FOLLOWED));
    let third = follow(&three).await;
    publish(5 * FOLLOWED..9 * FOLLOWED).await;
    let more = consume_all(&[&relayed, &third], 4 * FOLLOWED).await;
    assert_eq!(more, numbers(5 * FOLLOWED..9 * FOLLOWED));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_members_of_a_group_asks_the_one_that_serves_it() {
    let [one, two, three] = linked_cluster().await;
    one.publish(0..10).await;
    let served = subscribe(&one).await;
    let relayed = subscribe(&two).await;
    let held = [next(&served).await, next(&relayed).await];
    three.catch_up().await;
    let knows_all = async || {
        let owner = one.bus.group("t", "g").await.expect("a group");
        let info = three.bus.group("t", "g").await.expect("a group");
        let all = three.bus.groups("t").await.expect("groups");
        let explained = three.bus.explain("t", "g").await.expect("explained");
        let names = |info: &GroupInfo| {
            let members = info.members.iter();
            members.map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        let is_known = |info: &GroupInfo| {
            names(info) == names(&owner)
                && info.in_flight == owner.in_flight
                && info.counts.delivered == owner.counts.delivered
        };
        names(&owner).len() == 2
            && owner.in_flight >= 2
            && is_known(&info)
            && matches!(&all[..], [only] if is_known(only))
            && is_known(&explained.group)
            && explained.reason != Reason::NoMembers
            && explained.node.as_deref() == Some("http://one")
    };
    until("the third node knows the members", &knows_all).await;
    let nodes = three.bus.nodes().await.expect("nodes");
    let asking = nodes.iter().find(|node| node.is_asked).expect("itself");
    assert_eq!((asking.groups, asking.relayed_groups), (0, 0));
    assert_eq!(three.bus.running_groups(), 0, "looking starts no owner");
    // Without links it says what is stored, and who knows more.
    three.cut_links(true);
    let info = three.bus.group("t", "g").await.expect("a group");
    assert_eq!((info.members.len(), info.tail), (0, 10));
    let explained = three.bus.explain("t", "g").await.expect("explained");
    assert_eq!(explained.node.as_deref(), Some("http://one"));
    let sentence = "is served by the node http://one, which does not answer";
    assert!(explained.sentence.contains(sentence), "{explained:?}");
    // It asks again by itself once they can be opened.
    three.cut_links(false);
    until("it is asked again", &knows_all).await;
    for delivery in held {
        delivery.ack_confirmed().await.expect("acknowledged");
    }
}
