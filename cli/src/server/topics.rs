//! Topics that the configuration names are there from the start, and as it says.

use crate::config::{Config, TopicEntry};
use anyhow::Context;
use prombus::error::AdminError;
use prombus::{Bus, TopicConfig};
use std::time::Duration;

/// How often it is tried again to declare topics where the store took no writes.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Declares the topics. A store that takes no writes is no reason not to serve what can be read: they are declared as
/// soon as it does.
pub(super) async fn declare(bus: &Bus, config: &Config) -> anyhow::Result<()> {
    let named = config.topics.iter().filter(|topic| topic.is_one());
    let topics: Vec<TopicEntry> = named.cloned().collect();
    match declare_all(bus, &topics).await {
        Err((topic, AdminError::StoreFailed(failure))) => {
            tracing::warn!(topic, %failure, "topics are set up once the store takes writes");
            let bus = bus.clone();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                    match declare_all(&bus, &topics).await {
                        Ok(()) => return,
                        Err((_, AdminError::StoreFailed(_))) => {}
                        Err((topic, error)) => {
                            return tracing::error!(topic, %error, "cannot set up a topic");
                        }
                    }
                }
            });
            Ok(())
        }
        Err((topic, error)) => Err(error).with_context(|| format!("cannot set up topic {topic}")),
        Ok(()) => Ok(()),
    }
}

async fn declare_all(bus: &Bus, topics: &[TopicEntry]) -> Result<(), (String, AdminError)> {
    for topic in topics {
        let mut wanted = topic.config();
        let present = bus.topic(&topic.name);
        if let (None, Ok(info)) = (wanted.schema, &present) {
            // It may have been set when a schema was registered, and the configuration says nothing else.
            wanted.schema = TopicConfig::of(info).schema;
        }
        let declared = match present {
            Ok(info) if TopicConfig::of(&info) == wanted => Ok(()),
            Ok(info) => {
                let present = TopicConfig::of(&info).partitions;
                wanted.partitions = wanted.partitions.or(present);
                bus.configure_topic(&topic.name, &wanted).await
            }
            Err(AdminError::UnknownTopic(_)) => bus.create_topic(&topic.name, &wanted).await,
            Err(error) => Err(error),
        };
        declared.map_err(|error| (topic.name.clone(), error))?;
    }
    Ok(())
}
