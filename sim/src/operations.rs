//! What happens around the members: publishing, seeks and their undoing, pauses, topics deleted and made again, groups removed, purges,
//! maintenance, and steps of the wall clock. Each runs as a task of its own, so that they overlap.

use crate::model::GroupKey;
use crate::spec::{KEYS, POISON, SPECS, Spec, TOPICS, WANTED_TAG};
use crate::world::World;
use fastrand::Rng;
use prombus::{PublishOptions, StartAt};
use std::sync::Arc;

/// One operation with what was drawn for it.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Publish {
        topic: &'static str,
        key: Option<&'static str>,
        wanted: bool,
        bytes: usize,
    },
    Seek {
        group: GroupKey,
        place: StartAt,
    },
    DeleteTopic(&'static str),
    Purge(&'static str),
    RemoveGroup(GroupKey),
    Maintain,
    StepClock(i64),
    LookAtCursor(GroupKey),
    Pause(GroupKey),
    Resume(GroupKey),
    Undo(GroupKey),
}

impl Operation {
    /// Draws the next one; the wall clock steps only where `steps_clock` says so.
    pub(crate) fn draw(random: &mut Rng, steps_clock: bool) -> Self {
        let topic = TOPICS[random.usize(..TOPICS.len())];
        match random.u8(0..100) {
            0..66 => Self::publish(topic, random),
            66..71 => Self::Seek {
                group: draw_group(random),
                place: draw_place(random),
            },
            71..76 => Self::DeleteTopic(topic),
            76..78 => Self::Purge(topic),
            78..84 => Self::RemoveGroup(draw_group(random)),
            84..87 => Self::Maintain,
            87..91 if steps_clock => Self::StepClock(draw_step(random)),
            91..93 => Self::Pause(draw_group(random)),
            93..95 => Self::Resume(draw_group(random)),
            95..98 => Self::Undo(draw_group(random)),
            _ => Self::LookAtCursor(draw_group(random)),
        }
    }

    pub(crate) fn publish(topic: &'static str, random: &mut Rng) -> Self {
        let key = match random.usize(0..8) {
            at if at < KEYS.len() => Some(KEYS[at]),
            4 => Some(POISON),
            _ => None,
        };
        Self::Publish {
            topic,
            key,
            wanted: random.bool(),
            bytes: random.usize(0..300),
        }
    }

    pub(crate) async fn run(self, world: Arc<World>) {
        match self {
            Self::Publish {
                topic,
                key,
                wanted,
                bytes,
            } => publish(&world, topic, key, wanted, bytes).await,
            Self::Seek { group, place } => seek(&world, group, place).await,
            Self::DeleteTopic(topic) => {
                world.model().moved_back(topic, None);
                for group in groups_of(topic) {
                    world.model().pauses.ending(&group);
                }
                let deleted = world.bus.delete_topic(topic).await.is_ok();
                for group in groups_of(topic) {
                    world.model().pauses.ended(&group);
                }
                world.model().moved_back(topic, None);
                world.note(&format!("deleted {topic} {deleted}"));
            }
            Self::Purge(topic) => {
                let purged = world.bus.purge_topic(topic).await.is_ok();
                world.note(&format!("purged {topic} {purged}"));
            }
            Self::RemoveGroup((group, topic)) => {
                let key = (group, topic.clone());
                world.model().moved_back(&topic, Some(group));
                world.model().pauses.ending(&key);
                let removed = world.bus.remove_group(&topic, group).await.is_ok();
                world.model().pauses.ended(&key);
                world.model().moved_back(&topic, Some(group));
                world.note(&format!("removed {group} of {topic} {removed}"));
            }
            Self::Maintain => {
                let maintained = world.bus.store().maintain().await.is_ok();
                world.note(&format!("maintained {maintained}"));
            }
            Self::StepClock(by_ms) => {
                world.clock.step(by_ms);
                world.note(&format!("stepped the clock by {by_ms}"));
            }
            Self::LookAtCursor(group) => look_at_cursor(&world, group).await,
            Self::Pause(group) => pause(&world, group).await,
            Self::Resume(group) => resume(&world, &group).await,
            Self::Undo(group) => undo(&world, group).await,
        }
    }
}

async fn pause(world: &World, (group, topic): GroupKey) {
    let key = (group, topic.clone());
    let begun = world.model().pauses.begin(&key);
    if world.bus.pause_group(&topic, group).await.is_ok() {
        world.model().pauses.paused(key, begun);
        world.note(&format!("paused {group} of {topic}"));
    }
}

/// Lets a group go on, where it is.
pub(crate) async fn resume(world: &World, key: &GroupKey) {
    let (group, topic) = key;
    world.model().pauses.ending(key);
    let resumed = world.bus.resume_group(topic, group).await.is_ok();
    world.model().pauses.ended(key);
    if resumed {
        world.note(&format!("resumed {group} of {topic}"));
    }
}

async fn undo(world: &World, key: GroupKey) {
    let (group, topic) = &key;
    let begun = world.model().undoing(&key);
    world.model().moved_back(topic, Some(group));
    let undone = world.bus.undo_seek(topic, group).await;
    world.model().moved_back(topic, Some(group));
    if let Ok(effect) = undone {
        world.model().undone(&key, begun);
        world.note(&format!("undone {group} of {topic} to {}", effect.cursor));
    }
}

/// The groups that follow a topic.
pub(crate) fn groups_of(topic: &str) -> impl Iterator<Item = GroupKey> {
    let following = SPECS.iter().filter(move |spec| spec.follows(topic));
    following.map(move |spec| (spec.group, topic.to_owned()))
}

async fn publish(
    world: &World,
    topic: &str,
    key: Option<&'static str>,
    wanted: bool,
    bytes: usize,
) {
    let tags: Vec<String> = wanted.then(|| WANTED_TAG.to_owned()).into_iter().collect();
    let options = PublishOptions {
        key,
        tags: &tags,
        ..PublishOptions::default()
    };
    let began_ms = world.now_ms();
    let published = world.bus.publish(topic, &"x".repeat(bytes), &options).await;
    match published {
        Ok(published) => {
            world
                .model()
                .published(topic, published.id.as_str(), began_ms);
            world.note(&format!("published {topic} {}", published.seq));
        }
        Err(error) => world.note(&format!("published {topic} not: {error}")),
    }
}

async fn seek(world: &World, (group, topic): GroupKey, place: StartAt) {
    world.model().moved_back(&topic, Some(group));
    world.model().seeking((group, topic.clone()));
    let effect = world.bus.seek(&topic, group, place.clone()).await;
    world.model().moved_back(&topic, Some(group));
    let cursor = effect.ok().map(|effect| effect.cursor);
    if let Some(cursor) = cursor {
        world.note(&format!("sought {group} of {topic} to {cursor}"));
    }
    let now_ms = world.now_ms();
    world.model().sought((group, topic), cursor, now_ms);
}

async fn look_at_cursor(world: &World, group: GroupKey) {
    let epoch = world.model().epoch(&group);
    if let Ok(info) = world.bus.group(&group.1, group.0).await {
        let now_ms = world.now_ms();
        if info.lag > info.tail.saturating_sub(info.cursor) {
            world.violated(&format!("{group:?} has a lag beyond its tail: {info:?}"));
        }
        world.model().cursor(group, epoch, info.cursor, now_ms);
    }
}

fn draw_group(random: &mut Rng) -> GroupKey {
    let spec = &SPECS[random.usize(..SPECS.len())];
    (spec.group, topic_of(spec, random).to_owned())
}

fn topic_of(spec: &Spec, random: &mut Rng) -> &'static str {
    let followed: Vec<&'static str> = TOPICS
        .into_iter()
        .filter(|topic| spec.follows(topic))
        .collect();
    followed[random.usize(..followed.len())]
}

fn draw_place(random: &mut Rng) -> StartAt {
    match random.u8(0..4) {
        0 => StartAt::Earliest,
        1 => StartAt::Latest,
        _ => StartAt::Seq(random.u64(1..60)),
    }
}

fn draw_step(random: &mut Rng) -> i64 {
    let by_ms = if random.bool() {
        random.i64(100..5_000)
    } else {
        random.i64(60_000..7_200_000)
    };
    if random.bool() { by_ms } else { -by_ms }
}
