//! What subscriptions want, turned into frames.

use super::requests::{Request, reply, reply_step};
use super::session::Session;
use super::{Seat, SeatState};
use crate::error::{SettleError, StepError};
use crate::id::Id;
use crate::subscription::shared::Shared;
use crate::subscription::{AckRun, Confirm, Ended, Settle, Settling, Stepping};
use prombus_api::frames::{
    Ack, Ids, Modack, Nack, Subscribe, write_ack, write_modack, write_nack, write_pause,
    write_resume, write_step, write_subscribe, write_unsubscribe,
};
use std::borrow::Cow;
use std::sync::Arc;

/// A message with steps is closed when it has this many bytes, so that the server can begin with one while the next is
/// still written.
const STEPS_BYTES: usize = 48 << 10;

impl Session<'_> {
    /// Turns what subscriptions want into frames, unless the server owes too many answers already.
    pub(super) fn gather(&mut self) {
        if self.link.requests.is_full() {
            return;
        }
        let core = self.link.core.clone();
        core.desk()
            .take(&mut self.touched, &mut self.confirms, &mut self.steps);
        let is_closing = core.is_closing();
        if is_closing && !self.has_begun_to_close {
            self.has_begun_to_close = true;
            let seats = self.link.seats.values();
            self.touched.extend(seats.map(|seat| seat.shared.clone()));
        }
        // Before anything that ends a subscription. A message with many steps is closed when it is large.
        while self.controls.len() < STEPS_BYTES
            && let Some(step) = self.steps.pop_front()
        {
            self.write_step(step);
        }
        for shared in std::mem::take(&mut self.touched) {
            self.serve(&shared, is_closing);
        }
        while let Some(confirm) = self.confirms.pop_front() {
            self.write_confirm(confirm);
        }
    }

    /// A subscription may want something.
    pub(super) fn look_at(&mut self, shared: Arc<Shared>) {
        self.touched.push(shared);
    }

    /// Does what one subscription wants.
    pub(super) fn serve(&mut self, shared: &Arc<Shared>, flush_acks: bool) {
        let seat = self
            .link
            .seats
            .entry(shared.number)
            .or_insert_with(|| Seat {
                shared: shared.clone(),
                state: SeatState::New,
                is_told_paused: false,
                was_open: false,
            });
        match seat.state {
            SeatState::New if shared.is_done() => return self.forget(shared),
            SeatState::New => {
                seat.state = SeatState::Asked;
                shared.seen();
                return self.write_subscribe(shared);
            }
            SeatState::Asked => return shared.seen(),
            SeatState::Open => {}
        }
        let wants = shared.wants(flush_acks);
        let is_told_paused = std::mem::replace(&mut seat.is_told_paused, wants.is_paused);
        let group = shared.group();
        if wants.is_paused != is_told_paused {
            let corr = self.link.requests.add(Request::Settle);
            self.push_control(|out| match wants.is_paused {
                true => write_pause(out, &shared.topic, &group, Some(&corr)),
                false => write_resume(out, &shared.topic, &group, Some(&corr)),
            });
        }
        for settling in &wants.settlings {
            let corr = self.link.requests.add(Request::Settle);
            self.push_control(|out| write_settling(out, &group, settling, Some(&corr)));
        }
        for run in wants.acks {
            self.write_acks(shared, &group, run);
        }
        if wants.has_more_acks {
            let is_same = |other: &Arc<Shared>| Arc::ptr_eq(other, shared);
            if !self.lingering.iter().any(is_same) {
                self.lingering.push(shared.clone());
            }
            self.timers.linger();
        }
        if wants.is_gone {
            let request = Request::Unsubscribe(shared.take_gone());
            let corr = self.link.requests.add(request);
            self.push_control(|out| write_unsubscribe(out, &shared.topic, &group, Some(&corr)));
            self.forget(shared);
        }
    }

    /// The subscription is over.
    pub(super) fn forget(&mut self, shared: &Shared) {
        self.link.seats.remove(&shared.number);
        self.routes.forget();
        shared.end(Ended::Unsubscribed);
    }

    fn write_subscribe(&mut self, shared: &Shared) {
        let corr = self.link.requests.add(Request::Subscribe(shared.number));
        let subscribe = Subscribe {
            topic: Cow::Borrowed(&shared.topic),
            group: shared.named_group.as_deref().map(Cow::Borrowed),
            options: Box::new(shared.options.wire(shared.start())),
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

    fn write_step(&mut self, mut step: Stepping) {
        if step.shared.epoch() != step.epoch {
            return reply_step(step, Err(StepError::ConnectionLost));
        }
        let group = step.shared.group();
        let topic = step.topic.clone();
        let (publish, ids) = (std::mem::take(&mut step.publish), step.ids.clone());
        let corr = self.link.requests.add(Request::Step(step));
        let ids = ids.iter().map(|id| Cow::Borrowed(id.as_str())).collect();
        self.push_control(|out| {
            write_step(out, &topic, &group, &Ids::Many(ids), &publish, Some(&corr));
        });
    }

    fn write_confirm(&mut self, confirm: Confirm) {
        let is_ack = matches!(confirm.settling.what, Settle::Ack);
        if !is_ack && confirm.shared.epoch() != confirm.settling.epoch {
            reply(confirm, Err(SettleError::ConnectionLost));
            return;
        }
        let group = confirm.shared.group();
        let settling = confirm.settling.clone();
        let corr = self.link.requests.add(Request::Confirm(confirm));
        self.push_control(|out| write_settling(out, &group, &settling, Some(&corr)));
    }
}

fn write_settling(out: &mut Vec<u8>, group: &str, settling: &Settling, corr: Option<&str>) {
    let topic = Cow::Borrowed(&*settling.topic);
    let group = Cow::Borrowed(group);
    let ids = Ids::One(Cow::Borrowed(settling.id.as_str()));
    match &settling.what {
        Settle::Ack => {
            let publish = Vec::new();
            let ack = Ack {
                topic,
                group,
                ids,
                publish,
            };
            write_ack(out, &ack, corr);
        }
        Settle::Nack { reason, delay_ms } => {
            let nack = Nack {
                topic,
                group,
                ids,
                reason: Some(Cow::Borrowed(reason)),
                delay_ms: *delay_ms,
            };
            write_nack(out, &nack, corr);
        }
        Settle::Extend { extend_ms } => {
            let extend_ms = Some(*extend_ms);
            let modack = Modack {
                topic,
                group,
                ids,
                extend_ms,
            };
            write_modack(out, &modack, corr);
        }
    }
}
