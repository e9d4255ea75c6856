//! What a row has to measure one system: the running server, and the things that most rows do with it.

use super::payload::Checker;
use super::programs::Programs;
use super::publish::{Numbers, publish};
use super::scale::PeerScale;
use super::systems::{Consumer, Flavour, System};
use crate::Outcome;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Events in flight while a topic is filled.
const FILL_WINDOW: usize = 5_000;
/// How long everything may take to arrive.
const ARRIVE_LIMIT: Duration = Duration::from_secs(300);
/// How long the server may take with the last acknowledgements.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
const SETTLE_PAUSE: Duration = Duration::from_millis(1);

/// One system while a row is measured.
pub(crate) struct Stage {
    pub(crate) flavour: Flavour,
    pub(crate) system: Box<dyn System>,
    pub(crate) folder: PathBuf,
    pub(crate) programs: Programs,
    pub(crate) scale: PeerScale,
}

impl Stage {
    /// Starts the system on an empty folder.
    pub(crate) async fn set(
        flavour: Flavour,
        programs: &Programs,
        scale: &PeerScale,
        folder: PathBuf,
    ) -> Outcome<Self> {
        Ok(Self {
            flavour,
            system: flavour.start(programs, &folder).await?,
            folder,
            programs: programs.clone(),
            scale: scale.clone(),
        })
    }

    /// Stops the server in good order.
    pub(crate) fn stop(&mut self) -> Outcome<()> {
        self.system.process().stop()
    }

    /// Starts it again on what it has stored.
    pub(crate) async fn start(&mut self) -> Outcome<()> {
        self.system = self.flavour.start(&self.programs, &self.folder).await?;
        Ok(())
    }

    /// Starts it again with nothing stored.
    pub(crate) async fn empty(&mut self) -> Outcome<()> {
        self.stop()?;
        std::fs::remove_dir_all(&self.folder)?;
        self.start().await
    }

    /// Fills a new topic with events.
    pub(crate) async fn fill(&self, topic: &str, count: u64) -> Outcome<()> {
        self.system.make_topic(topic).await?;
        let mut publisher = self.system.publisher(topic).await?;
        publish(&mut *publisher, Numbers::up_to(count), FILL_WINDOW).await?;
        self.check_stored(topic, count).await
    }

    /// Fails unless the topic holds so many events.
    pub(crate) async fn check_stored(&self, topic: &str, count: u64) -> Outcome<()> {
        match self.system.stored(topic).await? {
            stored if stored == count => Ok(()),
            stored => Err(format!("{topic} holds {stored} events instead of {count}").into()),
        }
    }

    /// Fails unless the topic holds so many events and each reads as it was sent.
    pub(crate) async fn check_content(&self, topic: &str, count: u64) -> Outcome<()> {
        self.check_stored(topic, count).await?;
        let mut checker = Checker::new(count);
        let mut see = |payload: &[u8]| {
            checker.see(payload);
        };
        self.system.replay(topic, count, &mut see).await?;
        checker.verdict()
    }

    /// Consumes so many events, and waits until the server has settled each of them.
    pub(crate) async fn consume(
        &self,
        topic: &str,
        group: &str,
        mut consumer: Box<dyn Consumer>,
        count: u64,
    ) -> Outcome<()> {
        take_all(&mut *consumer, count).await?;
        consumer.finish().await?;
        self.wait_until_settled(topic, group).await
    }

    /// Waits until the server has settled everything of a group.
    pub(crate) async fn wait_until_settled(&self, topic: &str, group: &str) -> Outcome<()> {
        let until = Instant::now() + SETTLE_LIMIT;
        loop {
            let left = self.system.unsettled(topic, group).await?;
            if left == 0 {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("{left} events of {group} were never settled").into());
            }
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
    }
}

/// Takes deliveries until each of so many events came once.
pub(crate) async fn take_all(consumer: &mut dyn Consumer, count: u64) -> Outcome<()> {
    let mut checker = Checker::new(count);
    let until = Instant::now() + ARRIVE_LIMIT;
    while !checker.is_over() && Instant::now() < until {
        let mut see = |payload: &[u8]| {
            checker.see(payload);
        };
        let taken = consumer.take(&mut see);
        // A system that delivers nothing more is a fault, and not to be waited for.
        tokio::time::timeout(ARRIVE_LIMIT, taken)
            .await
            .map_err(|_| "nothing more was delivered")??;
    }
    checker.verdict()
}
