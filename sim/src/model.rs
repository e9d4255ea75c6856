//! What must hold, checked against what the members of a run see: at most one live lease for an event in a group, order
//! within a key, filters, cursors that only a seek moves back, nothing to a group that is paused, and at the end every
//! event delivered, also what a seek passed over that was undone.

use crate::pauses::Pauses;
use crate::spec::{SPECS, Spec, TOPICS, WANTED_TAG};
use prombus::{Delivery, StoredEvent};
use prombus_store::GeneratedId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A lease's deadline is known to the millisecond; the rest is rounding.
const ROUNDING_MS: u64 = 2;

/// A group of one topic.
pub(crate) type GroupKey = (&'static str, String);

/// What the run has seen so far.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Everything that happened, one line each.
    pub(crate) trace: String,
    /// Rules that were broken.
    pub(crate) violations: Vec<String>,
    /// Leases that nothing has ended yet, by group and event id.
    leases: BTreeMap<(&'static str, String), LiveLease>,
    delivered: BTreeSet<(&'static str, String)>,
    /// What was delivered since the last restart.
    delivered_in_life: BTreeSet<(&'static str, String)>,
    published: BTreeMap<String, Publication>,
    /// Seeks by group: up to which position, and when the seek ended.
    seeks: BTreeMap<GroupKey, Vec<(u64, u64)>>,
    /// How many seeks were asked for, by group.
    seeks_begun: BTreeMap<GroupKey, usize>,
    pub(crate) pauses: Pauses,
    /// Seeks that are not answered yet. If the process ends first, nobody knows whether they happened.
    seeking: Vec<GroupKey>,
    /// The highest acknowledged position of each key, where order matters.
    acked: BTreeMap<(GroupKey, String), u64>,
    cursors: BTreeMap<GroupKey, u64>,
    /// Grows with everything that moves positions back: seeks, removals, restarts.
    epochs: BTreeMap<GroupKey, u64>,
    /// The same when the life began.
    first_epochs: BTreeMap<GroupKey, u64>,
    /// When the first subscription of a group succeeded.
    subscribed_ms: BTreeMap<&'static str, u64>,
    /// Acknowledged by their ids, maybe while they are on their way to the member.
    acked_late: BTreeSet<(&'static str, String)>,
    /// What members held when the last life ended, by member.
    carried: BTreeMap<String, Vec<(String, String)>>,
}

/// A lease that a member holds.
#[derive(Debug, Clone)]
struct LiveLease {
    topic: String,
    member: String,
    key: Option<String>,
    until_ms: u64,
}

/// A publish that was acknowledged.
#[derive(Debug, Clone)]
struct Publication {
    topic: String,
    began_ms: u64,
}

impl Model {
    pub(crate) fn note(&mut self, now_ms: u64, line: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.trace, "{now_ms} {line}");
    }

    pub(crate) fn violated(&mut self, now_ms: u64, rule: &str) {
        self.note(now_ms, &format!("VIOLATED {rule}"));
        self.violations.push(format!("at {now_ms} ms: {rule}"));
    }

    pub(crate) fn published(&mut self, topic: &str, id: &str, began_ms: u64) {
        let topic = topic.to_owned();
        self.published
            .insert(id.to_owned(), Publication { topic, began_ms });
    }

    pub(crate) fn subscribed(&mut self, spec: &Spec, now_ms: u64) {
        self.subscribed_ms.entry(spec.group).or_insert(now_ms);
    }

    /// A member has received an event, which was leased to it no earlier than `leased_ms`. Returns the epoch to
    /// acknowledge it in.
    pub(crate) fn received(
        &mut self,
        spec: &Spec,
        member: &str,
        delivery: &Delivery,
        (leased_ms, now_ms): (u64, u64),
    ) -> u64 {
        let event = &delivery.event;
        let (id, topic) = (event.id().into_owned(), event.topic().to_owned());
        let key = event.key().map(|key| key.into_owned());
        let attempt = delivery.context.attempt;
        self.note(
            now_ms,
            &format!("{member} got {topic} {} attempt {attempt}", event.seq()),
        );
        if let Some(live) = self.leases.get(&(spec.group, id.clone()))
            && now_ms < live.until_ms
        {
            let rule = format!(
                "{member} got {topic} {} while {} holds it until {}",
                event.seq(),
                live.member,
                live.until_ms
            );
            self.violated(now_ms, &rule);
        }
        if self.pauses.is_paused(&(spec.group, topic.clone())) {
            let rule = format!("{member} got {topic} {} of a paused group", event.seq());
            self.violated(now_ms, &rule);
        }
        if spec.filtered && !has_tag(event) {
            let rule = format!("{member} got {topic} {} against its filter", event.seq());
            self.violated(now_ms, &rule);
        }
        if spec.by_key
            && let Some(key) = &key
        {
            self.check_order(spec, &topic, event.seq(), key, now_ms);
        }
        let group = (spec.group, id);
        self.delivered.insert(group.clone());
        self.delivered_in_life.insert(group.clone());
        let until_ms = (leased_ms + delivery.context.ack_deadline_ms).saturating_sub(ROUNDING_MS);
        let epoch = self.epoch(&(spec.group, topic.clone()));
        let member = member.to_owned();
        let live = LiveLease {
            topic,
            member,
            key,
            until_ms,
        };
        // What was acknowledged on its way here is settled, and no lease any more.
        if !self.acked_late.contains(&group) {
            self.leases.insert(group, live);
        }
        epoch
    }

    fn check_order(&mut self, spec: &Spec, topic: &str, seq: u64, key: &str, now_ms: u64) {
        let mut live = self.leases.iter();
        let other = live.find(|((group, _), lease)| {
            *group == spec.group
                && lease.topic == topic
                && lease.key.as_deref() == Some(key)
                && now_ms < lease.until_ms
        });
        if let Some(((_, id), lease)) = other {
            let rule = format!(
                "{topic} {seq} of key {key} came while {} holds {id} of it",
                lease.member
            );
            self.violated(now_ms, &rule);
        }
        let lane = ((spec.group, topic.to_owned()), key.to_owned());
        if let Some(&acked) = self.acked.get(&lane)
            && seq < acked
        {
            let rule = format!("{topic} {seq} of key {key} came after {acked} was acknowledged");
            self.violated(now_ms, &rule);
        }
    }

    /// A member is about to end its lease, unless another one has the event by now.
    pub(crate) fn released_by(&mut self, group: &'static str, id: &str, member: &str) {
        let key = (group, id.to_owned());
        if self
            .leases
            .get(&key)
            .is_some_and(|live| live.member == member)
        {
            self.leases.remove(&key);
        }
    }

    /// A lease was extended at `now_ms`, if the member still holds it.
    pub(crate) fn extended(&mut self, group: &'static str, id: &str, member: &str, until_ms: u64) {
        if let Some(live) = self.leases.get_mut(&(group, id.to_owned()))
            && live.member == member
        {
            live.until_ms = until_ms.saturating_sub(ROUNDING_MS);
        }
    }

    /// An acknowledgement of an event delivered in `epoch` was confirmed.
    pub(crate) fn acked(&mut self, spec: &Spec, event: &StoredEvent, epoch: u64) {
        let group = (spec.group, event.topic().to_owned());
        let Some(key) = event.key().filter(|_| spec.by_key) else {
            return;
        };
        if self.epoch(&group) == epoch {
            let acked = self.acked.entry((group, key.into_owned())).or_default();
            *acked = (*acked).max(event.seq());
        }
    }

    /// A member has acknowledged an event by its id that it was given before a restart.
    pub(crate) fn acked_late(&mut self, group: &'static str, id: &str, member: &str) {
        self.released_by(group, id, member);
        self.acked_late.insert((group, id.to_owned()));
    }

    /// A member is about to let its subscription go.
    pub(crate) fn left(&mut self, member: &str) {
        self.leases.retain(|_, lease| lease.member != member);
    }

    /// Positions of a topic's groups may go back from here on: of one group, or of all.
    pub(crate) fn moved_back(&mut self, topic: &str, group: Option<&str>) {
        for spec in &SPECS {
            if !spec.follows(topic) || group.is_some_and(|group| group != spec.group) {
                continue;
            }
            let key = (spec.group, topic.to_owned());
            *self.epochs.entry(key.clone()).or_default() += 1;
            self.cursors.remove(&key);
            self.acked.retain(|(group, _), _| *group != key);
            self.leases
                .retain(|(group, _), lease| *group != spec.group || lease.topic != topic);
        }
    }

    pub(crate) fn seeking(&mut self, group: GroupKey) {
        *self.seeks_begun.entry(group.clone()).or_default() += 1;
        self.seeking.push(group);
    }

    /// An undo is asked for: how many seeks were before it, where none is under way.
    pub(crate) fn undoing(&self, group: &GroupKey) -> Option<usize> {
        let begun = self.seeks_begun.get(group).copied().unwrap_or_default();
        (!self.seeking.contains(group)).then_some(begun)
    }

    /// The last seek was undone: what it passed over has to be delivered after all.
    pub(crate) fn undone(&mut self, group: &GroupKey, begun: Option<usize>) {
        if begun.is_some_and(|begun| self.undoing(group) == Some(begun))
            && let Some(seeks) = self.seeks.get_mut(group)
        {
            seeks.pop();
        }
    }

    /// A seek was answered, with the cursor that it set if it did.
    pub(crate) fn sought(&mut self, group: GroupKey, cursor: Option<u64>, now_ms: u64) {
        if let Some(at) = self.seeking.iter().position(|one| *one == group) {
            self.seeking.swap_remove(at);
        }
        let sought = cursor.map(|cursor| (cursor, now_ms));
        self.seeks.entry(group).or_default().extend(sought);
    }

    pub(crate) fn epoch(&self, group: &GroupKey) -> u64 {
        self.epochs.get(group).copied().unwrap_or_default()
    }

    /// A cursor was seen; `epoch` is the one from before it was asked for.
    pub(crate) fn cursor(&mut self, group: GroupKey, epoch: u64, cursor: u64, now_ms: u64) {
        if self.epoch(&group) != epoch {
            return;
        }
        let before = self.cursors.insert(group.clone(), cursor);
        if before.is_some_and(|before| cursor < before) {
            let rule = format!("the cursor of {group:?} went from {before:?} back to {cursor}");
            self.violated(now_ms, &rule);
        }
    }

    /// The process ends: leases are free, and what was acknowledged last may come again.
    pub(crate) fn restarting(&mut self, now_ms: u64) {
        for group in std::mem::take(&mut self.seeking) {
            let seeks = self.seeks.entry(group).or_default();
            seeks.push((u64::MAX, now_ms));
        }
        self.pauses.restarting();
        self.carried.clear();
        for ((_, id), lease) in std::mem::take(&mut self.leases) {
            let held = self.carried.entry(lease.member).or_default();
            held.push((lease.topic, id));
        }
        self.delivered_in_life.clear();
        for topic in TOPICS {
            self.moved_back(topic, None);
        }
        self.first_epochs = self.epochs.clone();
    }

    /// Whether a group's positions may have moved back since the life began.
    pub(crate) fn has_moved_back(&self, group: &GroupKey) -> bool {
        self.epochs.get(group) != self.first_epochs.get(group)
    }

    /// What a member held when the last life ended.
    pub(crate) fn take_carried(&mut self, member: &str) -> Vec<(String, String)> {
        self.carried.remove(member).unwrap_or_default()
    }

    pub(crate) fn was_delivered_in_life(&self, group: &'static str, id: &str) -> bool {
        self.delivered_in_life.contains(&(group, id.to_owned()))
    }

    pub(crate) fn was_delivered(&self, group: &'static str, id: &str) -> bool {
        self.delivered.contains(&(group, id.to_owned()))
    }

    /// Whether a group has to see an event that is stored at the end.
    pub(crate) fn is_required(&self, spec: &Spec, event: &StoredEvent) -> bool {
        if spec.filtered && !has_tag(event) {
            return false;
        }
        let group = (spec.group, event.topic().to_owned());
        let began_ms = self.published.get(&*event.id()).map(|one| one.began_ms);
        let mut seeks = self.seeks.get(&group).into_iter().flatten();
        // A seek passes over what was there when it ended, and nothing that came later.
        let is_passed = seeks.any(|&(cursor, ended_ms)| {
            event.seq() <= cursor && began_ms.is_none_or(|began_ms| began_ms <= ended_ms)
        });
        if is_passed {
            return false;
        }
        spec.from_earliest || self.is_after_subscribing(spec, event)
    }

    /// Whether a group that begins at the tail has to see an event: of a pattern, when the topic was made after the
    /// group; of a topic never, because the group may have been made again meanwhile.
    fn is_after_subscribing(&self, spec: &Spec, event: &StoredEvent) -> bool {
        let Some(&subscribed_ms) = self.subscribed_ms.get(spec.group) else {
            return false;
        };
        let tag = |id: &str| GeneratedId::parse(id).map(|made| made.tag);
        let tag_of_topic = tag(&event.id());
        let mut of_topic = self
            .published
            .iter()
            .filter(|(id, one)| one.topic == event.topic() && tag(id) == tag_of_topic);
        spec.is_pattern() && of_topic.all(|(_, one)| one.began_ms > subscribed_ms)
    }
}

fn has_tag(event: &StoredEvent) -> bool {
    let fields = prombus::EventFields::of(event);
    fields.tags.iter().any(|tag| tag == WANTED_TAG)
}
