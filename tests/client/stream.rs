//! A subscription as a stream.

use super::*;
use futures_util::StreamExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_is_a_stream() {
    on_both(|server| async move {
        let client = server.client().await;
        let numbers = within(client.subscribe("numbers", "g", earliest()))
            .await
            .unwrap();
        // Nothing is there yet when the stream is polled first.
        let mut stream = numbers.take(5);
        let collecting = tokio::spawn(async move {
            let mut seqs = Vec::new();
            while let Some(delivery) = stream.next().await {
                seqs.push(delivery.event.seq());
                delivery.ack();
            }
            seqs
        });
        for number in 0..5 {
            within(client.publish("numbers", &number, &PLAIN))
                .await
                .unwrap();
        }
        assert_eq!(within(collecting).await.unwrap(), [1, 2, 3, 4, 5]);
        within(client.close()).await.unwrap();
        server.stop().await;
    })
    .await;
}
