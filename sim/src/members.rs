//! Members: they subscribe, settle what they get in every way there is, pause, disconnect and come back.

use crate::spec::{POISON, Spec};
use crate::world::World;
use fastrand::Rng;
use prombus::error::{SettleError, SubscribeError};
use prombus::{Delivery, Subscription, SubscriptionControl};
use std::sync::Arc;
use std::time::Duration;

/// How long a poisoned event waits for its next delivery.
const POISON_DELAY_MS: u64 = 25_000;
/// Within this long a subscribe is answered and what was leased meanwhile received.
const SUBSCRIBED_MS: u64 = 300;
/// Patience of a member that stays.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// A member through one life.
pub(crate) struct Member {
    pub(crate) world: Arc<World>,
    pub(crate) spec: &'static Spec,
    pub(crate) name: String,
    pub(crate) random: Rng,
    /// When the last subscribe was asked for and when it was answered: what is received at that moment may have been
    /// leased at any time between.
    pub(crate) subscribed: (u64, u64),
}

impl Member {
    /// Subscribes again and again until the life ends.
    pub(crate) async fn run(mut self) {
        self.rest(0..30).await;
        while !self.world.is_closing() {
            let options = self.spec.options(&self.name);
            let bus = self.world.bus.clone();
            let asked_ms = self.world.now_ms();
            match bus
                .subscribe(self.spec.topic, self.spec.group, options)
                .await
            {
                Ok(subscription) => {
                    self.note("subscribed");
                    let now_ms = self.world.now_ms();
                    self.subscribed = (asked_ms, now_ms);
                    self.world.model().subscribed(self.spec, now_ms);
                    self.settle_carried(&subscription);
                    self.serve(&subscription).await;
                    self.world.model().left(&self.name);
                }
                Err(SubscribeError::Group(error)) if !self.world.is_closing() => {
                    self.note(&format!("was refused: {error}"));
                    if matches!(error, prombus::error::GroupError::Closed) {
                        self.world
                            .violated("a subscribe says that the bus is closed");
                    }
                }
                Err(error) => self.note(&format!("was refused: {error}")),
            }
            self.rest(0..60).await;
        }
    }

    /// Acknowledges what it held before a restart. No member holds it, so that counts.
    fn settle_carried(&self, subscription: &Subscription) {
        for (topic, id) in self.world.model().take_carried(&self.name) {
            let late = LateAck {
                world: self.world.clone(),
                group: self.spec.group,
                member: self.name.clone(),
                topic,
                id,
            };
            tokio::spawn(late.run(subscription.control()));
        }
    }

    /// Takes deliveries until the subscription ends or the member has had enough.
    async fn serve(&mut self, subscription: &Subscription) {
        loop {
            let patience = if self.world.is_calm() {
                FOR_EVER
            } else {
                Duration::from_millis(self.random.u64(20..2_500))
            };
            tokio::select! {
                biased;
                delivery = subscription.next() => match delivery {
                    Some(delivery) => self.receive(delivery),
                    None => {
                        self.note(&format!("ended: {:?}", subscription.ended()));
                        return;
                    }
                },
                () = tokio::time::sleep(patience) => {
                    if self.world.is_calm() {
                        continue;
                    }
                    if self.random.bool() {
                        self.note("leaves");
                        return;
                    }
                    subscription.pause();
                    self.rest(1..400).await;
                    subscription.resume();
                }
            }
        }
    }

    fn receive(&mut self, delivery: Delivery) {
        let now_ms = self.world.now_ms();
        let (asked_ms, subscribed_ms) = self.subscribed;
        let leased_ms = if now_ms == subscribed_ms {
            asked_ms
        } else {
            now_ms
        };
        let epoch =
            self.world
                .model()
                .received(self.spec, &self.name, &delivery, (leased_ms, now_ms));
        let handling = Handling {
            world: self.world.clone(),
            spec: self.spec,
            member: self.name.clone(),
            random: self.random.fork(),
            epoch,
        };
        tokio::spawn(handling.run(delivery));
    }

    async fn rest(&mut self, ms: std::ops::Range<u64>) {
        let ms = self.random.u64(ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn note(&self, what: &str) {
        let now_ms = self.world.now_ms();
        let line = format!("{} {what}", self.name);
        self.world.model().note(now_ms, &line);
    }
}

/// An acknowledgement of an event that was delivered before a restart.
struct LateAck {
    world: Arc<World>,
    group: &'static str,
    member: String,
    topic: String,
    id: String,
}

impl LateAck {
    async fn run(self, control: SubscriptionControl) {
        let Self { topic, id, .. } = &self;
        // It may be on its way to this very member, and is settled before it arrives.
        self.world.model().acked_late(self.group, id, &self.member);
        let group = (self.group, topic.clone());
        let epoch = self.world.model().epoch(&group);
        let acknowledged = control.ack_ids(topic, &[id]).await;
        // Who holds it has received it by then, also one whose subscribe was not answered yet.
        tokio::time::sleep(Duration::from_millis(SUBSCRIBED_MS)).await;
        let model = self.world.model();
        if let Some(Err(SettleError::LeaseLost(_))) = acknowledged.first() {
            // A seek makes what was delivered before it void, and the end of a life what is known of it.
            let is_void = model.has_moved_back(&group) || model.epoch(&group) != epoch;
            let is_held = model.was_delivered_in_life(self.group, id);
            drop(model);
            if !is_held && !is_void {
                let rule = format!("{} may not acknowledge {topic} {id} late", self.member);
                self.world.violated(&rule);
            }
        }
    }
}

/// One delivery in the hands of a member.
struct Handling {
    world: Arc<World>,
    spec: &'static Spec,
    member: String,
    random: Rng,
    epoch: u64,
}

impl Handling {
    async fn run(mut self, delivery: Delivery) {
        let is_poison = delivery.event.key().as_deref() == Some(POISON);
        if self.world.is_poisoned() && is_poison && self.spec.by_key {
            self.release(&delivery);
            return delivery.nack_after("poison", POISON_DELAY_MS);
        }
        if self.world.is_calm() {
            return self.ack(delivery).await;
        }
        match self.random.u8(0..100) {
            0..45 => self.ack_soon(delivery).await,
            45..60 => self.ack_slowly(delivery).await,
            60..70 => {
                self.release(&delivery);
                delivery.nack("no");
            }
            70..76 => {
                self.release(&delivery);
                delivery.nack_after("later", self.random.u64(0..3_000));
            }
            76..84 => self.extend(delivery).await,
            // The lease runs out, and the acknowledgement comes late.
            84..90 => {
                self.rest(1_400..2_600).await;
                self.ack(delivery).await;
            }
            90..96 => self.ack_and_publish(delivery).await,
            _ => {}
        }
    }

    async fn ack_soon(&mut self, delivery: Delivery) {
        if self.random.bool() {
            self.rest(0..30).await;
        }
        self.ack(delivery).await;
    }

    async fn ack_slowly(&mut self, delivery: Delivery) {
        self.rest(100..1_200).await;
        self.ack(delivery).await;
    }

    async fn extend(&mut self, delivery: Delivery) {
        self.rest(0..800).await;
        let (now_ms, extend_ms) = (self.world.now_ms(), self.random.u64(0..3_000));
        if delivery.extend_confirmed(extend_ms).await.is_ok() {
            let until_ms = now_ms + extend_ms.max(1_000);
            let id = delivery.event.id().into_owned();
            self.world
                .model()
                .extended(self.spec.group, &id, &self.member, until_ms);
        }
        self.rest(0..2_000).await;
        self.ack(delivery).await;
    }

    async fn ack_and_publish(&mut self, delivery: Delivery) {
        let topic = if self.random.bool() { "b.2" } else { "a.y" };
        let began_ms = self.world.now_ms();
        let mut batch = self.world.bus.batch();
        batch.add(topic, "1", &prombus::PublishOptions::default());
        // The next member may have what comes after it before this one hears of the step.
        self.release(&delivery);
        let published = delivery.ack_and_publish(batch).await;
        if let Ok(published) = published {
            for one in published {
                let id = one.id.as_str().to_owned();
                self.world.model().published(topic, &id, began_ms);
            }
        }
    }

    async fn ack(&mut self, delivery: Delivery) {
        self.release(&delivery);
        let event = delivery.event.clone();
        if delivery.ack_confirmed().await.is_ok() {
            self.world.model().acked(self.spec, &event, self.epoch);
        }
    }

    /// The member's lease ends with what it is about to do, unless another one has the event by now.
    fn release(&self, delivery: &Delivery) {
        self.world
            .model()
            .released_by(self.spec.group, &delivery.event.id(), &self.member);
    }

    async fn rest(&mut self, ms: std::ops::Range<u64>) {
        let ms = self.random.u64(ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
