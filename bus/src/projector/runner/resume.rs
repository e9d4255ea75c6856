//! Where a projector goes on, and with which state.
//!
//! The record and what was emitted were committed together, so mostly the record says where, and the output says with
//! what. Where they do not fit together any more:
//!
//! - **The output is gone**: it was deleted or emptied, or made again and is shorter than it was. Nothing that was
//!   emitted is there, so the projector begins anew, with an empty state at the beginning of the input.
//! - **The record is missing** but not the output, or **the input is another topic** under the same name, seen by its
//!   tail or by the id at the position: what was emitted names the events that caused it. The projector goes on behind
//!   the last of those that the input holds, at its beginning where it holds none. So nothing is emitted twice.

use super::{Checkpoint, Exit, PAGE, Runner};
use crate::projector::record::ProjectorRecord;
use crate::projector::{Projector, Rebuild};
use prombus_interface::EventFields;
use prombus_store::{Find, ReadError, ReadFrom, ReadLimit, StoredEvent, TopicInfo};
use std::borrow::Cow;

impl<P: Projector> Runner<P> {
    pub(super) async fn resume(&self) -> Result<Checkpoint<P::State>, Exit> {
        // First of all: a concurrent commit makes our own commit fail, so that nothing that is read from here
        // on can be of different moments without being noticed.
        let stored = self.core.store.get(&self.key).await.map_err(failed)?;
        let version = stored.as_ref().map(|keyed| keyed.version);
        let record = match &stored {
            Some(keyed) => Some(ProjectorRecord::from_bytes(&keyed.value).map_err(|reason| {
                let key = &self.key;
                Exit::Failed(format!("the record {key} is damaged: {reason}").into())
            })?),
            None => None,
        };
        let output = self.output().await?;
        let record = match record {
            Some(record) if is_lost(&record, &output) => ProjectorRecord {
                position: 0,
                last_id: None,
                ..record
            },
            Some(record) if self.fits_input(&record).await? => record,
            Some(record) => self.resume_from_causes(record).await?,
            None => self.resume_from_causes(ProjectorRecord::default()).await?,
        };
        let record = ProjectorRecord {
            output_tail: output.tail_seq,
            ..record
        };
        let state = match (self.projector.rebuild(), record.position) {
            (Rebuild::FromInput, position) => self.fold_up_to(position).await?,
            (Rebuild::FromOutput, _) => self.restore().await?,
        };
        Ok(Checkpoint {
            state,
            record,
            version,
            next_tick: None,
            moved: false,
        })
    }

    /// The output topic, which is made where there is none.
    async fn output(&self) -> Result<TopicInfo, Exit> {
        let topics = &self.core.topics;
        if self.core.store.topic(&self.output).is_none() {
            let config = self
                .projector
                .output_config(topics.default_config(&self.output));
            if let Err(error) = topics.put(&self.output, &config).await {
                topics.forget(&self.output);
                return Err(Exit::Failed(error.to_string().into()));
            }
        }
        let info = self.core.store.topic(&self.output);
        info.ok_or_else(|| Exit::Failed(format!("topic {} was removed", self.output).into()))
    }

    /// Whether the input still is the topic that the record speaks of, as far as can be seen.
    async fn fits_input(&self, record: &ProjectorRecord) -> Result<bool, Exit> {
        let one = ReadLimit {
            events: 1,
            bytes: 1,
        };
        let from_seq = record.position.max(1);
        match self
            .core
            .store
            .read(&self.input, ReadFrom::Seq(from_seq), one)
            .await
        {
            Ok(page) => Ok(!super::is_another_topic(record, &page)),
            // There is nothing to read; when there is, it will be looked at again.
            Err(ReadError::UnknownTopic(_)) => Ok(true),
            Err(error) => Err(failed(error)),
        }
    }

    /// The place behind the last event of the input that the output names as a cause.
    async fn resume_from_causes(&self, record: ProjectorRecord) -> Result<ProjectorRecord, Exit> {
        let (mut position, mut last_id) = (0, None);
        let mut keys = Keys::default();
        while let Some(latest) = self.next_latest(&mut keys).await? {
            let causes = latest
                .iter()
                .flat_map(|event| EventFields::of(event).caused_by);
            for cause in causes {
                let find = self.core.store.find(&self.input, Find::Id(&cause)).await;
                let found = match find {
                    Ok(found) => found,
                    Err(ReadError::UnknownTopic(_)) => None,
                    Err(error) => return Err(failed(error)),
                };
                if let Some(seq) = found.filter(|&seq| seq > position) {
                    (position, last_id) = (seq, Some(cause));
                }
            }
        }
        Ok(ProjectorRecord {
            position,
            last_id,
            ..record
        })
    }

    /// The state as the output tells it.
    async fn restore(&self) -> Result<P::State, Exit> {
        let mut state = P::State::default();
        let mut keys = Keys::default();
        while let Some(latest) = self.next_latest(&mut keys).await? {
            for event in &latest {
                self.projector.restore(&mut state, event);
            }
        }
        Ok(state)
    }

    /// The state as the input tells it.
    async fn fold_up_to(&self, position: u64) -> Result<P::State, Exit> {
        let mut state = P::State::default();
        let mut next_seq = 1;
        while next_seq <= position {
            let page = match self
                .core
                .store
                .read(&self.input, ReadFrom::Seq(next_seq), PAGE)
                .await
            {
                Ok(page) => page,
                Err(ReadError::UnknownTopic(_)) => break,
                Err(error) => return Err(failed(error)),
            };
            let now_ms = self.core.now_ms();
            let mut emit = self.emitter().await;
            let folded = page.events.iter().filter(|event| event.seq() <= position);
            for event in folded {
                emit.begin(event);
                self.projector.fold(&mut state, event, now_ms, &mut emit);
            }
            if page.next_seq <= next_seq {
                break;
            }
            next_seq = page.next_seq;
            tokio::task::yield_now().await;
        }
        Ok(state)
    }

    /// The latest events of the output's next keys; `None` behind the last one.
    async fn next_latest(&self, keys: &mut Keys) -> Result<Option<Vec<StoredEvent>>, Exit> {
        if keys.done {
            return Ok(None);
        }
        tokio::task::yield_now().await;
        let after = keys.after.as_deref();
        let latest = self
            .core
            .store
            .read(&self.output, ReadFrom::Key(after), PAGE)
            .await;
        let latest = latest.map_err(failed)?.events;
        let last = latest.last().and_then(StoredEvent::key);
        keys.after = last.map(Cow::into_owned);
        keys.done = keys.after.is_none();
        Ok((!keys.done).then_some(latest))
    }
}

/// How far the keys of the output have been read.
#[derive(Default)]
struct Keys {
    after: Option<String>,
    done: bool,
}

/// Whether something was emitted and nothing of it is there. An output that compaction has left empty is not lost:
/// its oldest position stays where it was.
fn is_lost(record: &ProjectorRecord, output: &TopicInfo) -> bool {
    let made_again = output.tail_seq < record.output_tail.max(1);
    let emptied = output.first_seq > output.tail_seq;
    record.emitted > 0 && (made_again || emptied)
}

fn failed(error: ReadError) -> Exit {
    match error {
        ReadError::Failed { cause } => Exit::Failed(cause),
        unknown => Exit::Failed(unknown.to_string().into()),
    }
}
