//! What subscriptions want, turned into frames.

use super::requests::{Request, reply, reply_ack_publish};
use super::session::Session;
use super::{EntryState, SubscriptionEntry};
use crate::error::{AckPublishError, SettleError};
use crate::id::Id;
use crate::subscription::shared::Shared;
use crate::subscription::{AckPublish, AckRun, Confirm, Ended, PendingSettle, to_wire};
use prombus_api::frames::{
    Ack, Ids, Modack, Nack, Partitions, Subscribe, write_ack, write_ack_publish, write_modack,
    write_nack, write_pause, write_resume, write_revoked, write_subscribe, write_unsubscribe,
};
use prombus_interface::SettleOp;
use std::borrow::Cow;
use std::sync::Arc;

/// A message with ack-and-publish frames is closed when it has this many bytes, so that the server can begin with one while the next is
/// still written.
const MAX_ACK_PUBLISH_MESSAGE_BYTES: usize = 48 << 10;

impl Session<'_> {
    /// Turns what subscriptions want into frames, unless the server owes too many answers already.
    pub(super) fn collect_frames(&mut self) {
        if self.link.requests.is_full() {
            return;
        }
        let core = self.link.core.clone();
        core.pending_ops()
            .take(&mut self.dirty, &mut self.confirms, &mut self.ack_publishes);
        let is_closing = core.is_closing();
        if is_closing && !self.has_begun_to_close {
            self.has_begun_to_close = true;
            let subscriptions = self.link.subscriptions.values();
            self.dirty
                .extend(subscriptions.map(|entry| entry.shared.clone()));
        }
        // Before anything that ends a subscription. A message with many of them is closed when it is large.
        while self.controls.len() < MAX_ACK_PUBLISH_MESSAGE_BYTES
            && let Some(op) = self.ack_publishes.pop_front()
        {
            self.write_ack_publish(op);
        }
        for shared in std::mem::take(&mut self.dirty) {
            self.serve(&shared, is_closing);
        }
        while let Some(confirm) = self.confirms.pop_front() {
            self.write_confirm(confirm);
        }
    }

    /// A subscription may want something.
    pub(super) fn mark_dirty(&mut self, shared: Arc<Shared>) {
        self.dirty.push(shared);
    }

    /// Does what one subscription wants.
    pub(super) fn serve(&mut self, shared: &Arc<Shared>, flush_acks: bool) {
        let entry = self
            .link
            .subscriptions
            .entry(shared.number)
            .or_insert_with(|| SubscriptionEntry {
                shared: shared.clone(),
                state: EntryState::New,
                server_is_paused: false,
                was_open: false,
            });
        match entry.state {
            EntryState::New if shared.is_done() => return self.forget(shared),
            EntryState::New => {
                entry.state = EntryState::Subscribing;
                shared.clear_dirty();
                return self.write_subscribe(shared);
            }
            EntryState::Subscribing => return shared.clear_dirty(),
            EntryState::Open => {}
        }
        let work = shared.take_work(flush_acks);
        let server_is_paused = std::mem::replace(&mut entry.server_is_paused, work.is_paused);
        let group = shared.group();
        if work.is_paused != server_is_paused {
            let corr = self.link.requests.add(Request::Settle);
            self.push_control(|out| {
                if work.is_paused {
                    write_pause(out, &shared.topic, &group, Some(&corr))
                } else {
                    write_resume(out, &shared.topic, &group, Some(&corr))
                }
            });
        }
        for settle in &work.settles {
            let corr = self.link.requests.add(Request::Settle);
            self.push_control(|out| write_settle(out, &group, settle, Some(&corr)));
        }
        for run in work.acks {
            self.write_acks(shared, &group, run);
        }
        // After what was settled of them.
        for (topic, partitions) in work.revoked {
            let corr = self.link.requests.add(Request::Settle);
            let revoked = Partitions {
                topic: Cow::Borrowed(&topic),
                group: Cow::Borrowed(&group),
                partitions,
            };
            self.push_control(|out| write_revoked(out, &revoked, Some(&corr)));
        }
        if work.has_more_acks {
            let is_same = |other: &Arc<Shared>| Arc::ptr_eq(other, shared);
            if !self.lingering.iter().any(is_same) {
                self.lingering.push(shared.clone());
            }
            self.timers.linger();
        }
        if work.is_gone {
            let request = Request::Unsubscribe(shared.take_gone());
            let corr = self.link.requests.add(request);
            self.push_control(|out| write_unsubscribe(out, &shared.topic, &group, Some(&corr)));
            self.forget(shared);
        }
    }

    /// The subscription is over.
    pub(super) fn forget(&mut self, shared: &Shared) {
        self.link.subscriptions.remove(&shared.number);
        self.routes.forget();
        shared.end(Ended::Unsubscribed);
    }

    fn write_subscribe(&mut self, shared: &Shared) {
        let corr = self.link.requests.add(Request::Subscribe(shared.number));
        let subscribe = Subscribe {
            topic: Cow::Borrowed(&shared.topic),
            group: shared.named_group.as_deref().map(Cow::Borrowed),
            options: Box::new(to_wire(&shared.options, shared.start())),
        };
        self.push_control(|out| write_subscribe(out, &subscribe, Some(&corr)));
    }

    fn write_acks(&mut self, shared: &Arc<Shared>, group: &str, run: AckRun) {
        let topic = run.topic.clone();
        let ids: Vec<Id> = run.ids.clone();
        let corr = self.link.requests.add(Request::Acks(shared.clone(), run));
        let ack = Ack {
            topic: Cow::Borrowed(&topic),
            group: Cow::Borrowed(group),
            ids: Ids::Many(ids.iter().map(|id| Cow::Borrowed(id.as_str())).collect()),
            publish: Vec::new(),
        };
        self.push_control(|out| write_ack(out, &ack, Some(&corr)));
    }

    fn write_ack_publish(&mut self, mut op: AckPublish) {
        if op.shared.epoch() != op.epoch {
            return reply_ack_publish(op, Err(AckPublishError::ConnectionLost));
        }
        let group = op.shared.group();
        let topic = op.topic.clone();
        let (publish, ids) = (std::mem::take(&mut op.publish), op.ids.clone());
        let corr = self.link.requests.add(Request::AckPublish(op));
        let ids = ids.iter().map(|id| Cow::Borrowed(id.as_str())).collect();
        self.push_control(|out| {
            write_ack_publish(out, &topic, &group, &Ids::Many(ids), &publish, Some(&corr));
        });
    }

    fn write_confirm(&mut self, confirm: Confirm) {
        let is_ack = matches!(confirm.settle.op, SettleOp::Ack);
        if !is_ack && confirm.shared.epoch() != confirm.settle.epoch {
            reply(confirm, Err(SettleError::ConnectionLost));
            return;
        }
        let group = confirm.shared.group();
        let settle = confirm.settle.clone();
        let corr = self.link.requests.add(Request::Confirm(confirm));
        self.push_control(|out| write_settle(out, &group, &settle, Some(&corr)));
    }
}

fn write_settle(out: &mut Vec<u8>, group: &str, settle: &PendingSettle, corr: Option<&str>) {
    let topic = Cow::Borrowed(&*settle.topic);
    let group = Cow::Borrowed(group);
    let ids = Ids::One(Cow::Borrowed(settle.id.as_str()));
    match &settle.op {
        SettleOp::Ack => {
            let publish = Vec::new();
            let ack = Ack {
                topic,
                group,
                ids,
                publish,
            };
            write_ack(out, &ack, corr);
        }
        SettleOp::Nack(nack) => {
            let nack = Nack {
                topic,
                group,
                ids,
                reason: Some(Cow::Borrowed(&nack.reason)),
                delay_ms: nack.delay_ms(),
            };
            write_nack(out, &nack, corr);
        }
        SettleOp::Extend { extend_ms } => {
            let modack = Modack {
                topic,
                group,
                ids,
                extend_ms: *extend_ms,
            };
            write_modack(out, &modack, corr);
        }
    }
}
