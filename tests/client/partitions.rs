//! Consumers that share partitions: hooks around the events of each, and what they keep handed over from one to the next.

use super::*;
use prombus_client::{Consumer, PartitionHooks, TopicConfig};
use std::sync::Mutex;

const PARTITIONS: u32 = 16;
const KEYS: u32 = 40;

/// What is stored of the counts that consumers keep, and who has which partition.
#[derive(Default)]
struct Stored {
    counts: Mutex<BTreeMap<String, u32>>,
    holders: Mutex<BTreeMap<u32, usize>>,
}

/// Counts events by key in memory, loads them with a partition and stores them when it goes.
struct Counting {
    number: usize,
    stored: Arc<Stored>,
    counts: Mutex<BTreeMap<String, u32>>,
}

#[derive(Clone)]
struct Hooks(Arc<Counting>);

impl PartitionHooks for Hooks {
    async fn on_assigned(&self, _topic: &str, partitions: &[u32]) {
        for partition in partitions {
            let before = self
                .0
                .stored
                .holders
                .lock()
                .unwrap()
                .insert(*partition, self.0.number);
            assert_eq!(before, None, "{partition} has two");
        }
        let stored = self.0.stored.counts.lock().unwrap();
        let mut counts = self.0.counts.lock().unwrap();
        for (key, count) in stored.iter() {
            if partitions.contains(&prombus::partition_of(key, PARTITIONS)) {
                counts.insert(key.clone(), *count);
            }
        }
    }

    async fn on_revoked(&self, _topic: &str, partitions: &[u32]) {
        let mut counts = self.0.counts.lock().unwrap();
        let mut stored = self.0.stored.counts.lock().unwrap();
        counts.retain(|key, count| {
            let is_gone = partitions.contains(&prombus::partition_of(key, PARTITIONS));
            if is_gone {
                stored.insert(key.clone(), *count);
            }
            !is_gone
        });
        for partition in partitions {
            let before = self.0.stored.holders.lock().unwrap().remove(partition);
            assert_eq!(before, Some(self.0.number));
        }
    }
}

/// A consumer that counts, and what it keeps.
async fn count(client: &Client, number: usize, stored: &Arc<Stored>) -> (Consumer, Arc<Counting>) {
    let counting = Arc::new(Counting {
        number,
        stored: stored.clone(),
        counts: Mutex::default(),
    });
    let own = counting.clone();
    let handler = move |delivery: Delivery| {
        let counting = own.clone();
        async move {
            tokio::task::yield_now().await;
            let key = delivery.event.key().unwrap().to_owned();
            let partition = delivery.fields().partition.unwrap();
            let holder = counting
                .stored
                .holders
                .lock()
                .unwrap()
                .get(&partition)
                .copied();
            assert_eq!(holder, Some(counting.number), "it is the holder's");
            *counting.counts.lock().unwrap().entry(key).or_default() += 1;
            Ok::<(), String>(())
        }
    };
    let options = SubscribeOptions {
        concurrency: 4,
        ..earliest()
    };
    let hooks = Hooks(counting.clone());
    let consumer = within(client.subscribe_partitioned("t", "g", options, hooks, handler));
    (consumer.await.unwrap(), counting)
}

/// Waits until everything is settled and every partition has a member. Of few partitions a member may by chance get none.
async fn wait_until_settled(client: &Client) {
    within(async {
        loop {
            let group = client.group("t", "g").await.unwrap();
            let held = group.members.iter().map(|member| member.partitions.len());
            if group.lag == 0 && held.sum::<usize>() == PARTITIONS as usize {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn state_by_key_moves_with_its_partition() {
    on_both(|server| async move {
        let client = server.client().await;
        let config = TopicConfig {
            partitions: Some(PARTITIONS),
            ..TopicConfig::default()
        };
        within(client.configure_topic("t", &config)).await.unwrap();
        let stored = Arc::new(Stored::default());
        let mut consumers = Vec::new();
        for number in 0..3 {
            let client = server.client().await;
            let (consumer, counting) = count(&client, number, &stored).await;
            for round in 0..5 {
                for key in 0..KEYS {
                    let key = format!("key-{key}");
                    let options = PublishOptions {
                        key: Some(&key),
                        ..*PLAIN
                    };
                    within(client.publish("t", &round, &options)).await.unwrap();
                }
            }
            consumers.push((client, consumer, counting));
        }
        wait_until_settled(&client).await;
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for (.., counting) in &consumers {
            for (key, count) in counting.counts.lock().unwrap().iter() {
                let before = counts.insert(key.clone(), *count);
                assert_eq!(before, None, "{key} is kept twice");
            }
        }
        assert_eq!(counts.len(), KEYS as usize);
        assert!(counts.values().all(|count| *count == 15), "{counts:?}");
        for (_, consumer, _) in consumers {
            within(consumer.stop()).await;
        }
        server.stop().await;
    })
    .await;
}
