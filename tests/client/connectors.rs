//! The outbox and the projector of SQLite against a server, through the client.

use super::*;
use prombus_sqlite::rusqlite::{Connection, Transaction};
use prombus_sqlite::{
    ClientSource, DrainerOptions, Event, Outbox, Runner, Transactional, TransactionalOptions,
};

fn sum_of(path: &Path) -> (i64, i64) {
    let connection = prombus_sqlite::open(path).unwrap();
    let query = "SELECT count(*), coalesce(sum(value), 0) FROM numbers";
    let row = connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?)));
    row.unwrap()
}

fn projector(
    path: &Path,
) -> Transactional<impl FnMut(&Transaction<'_>, &Event) -> Result<(), String> + Send + use<>> {
    let connection = prombus_sqlite::open(path).unwrap();
    let table = "CREATE TABLE IF NOT EXISTS numbers (seq INTEGER PRIMARY KEY, value INTEGER)";
    connection.execute_batch(table).unwrap();
    let mut is_first = true;
    let handler = move |transaction: &Transaction<'_>, event: &Event| {
        let value: i64 = event.value().map_err(|error| error.to_string())?;
        let row = (i64::try_from(event.seq()).unwrap(), value);
        let insert = "INSERT INTO numbers (seq, value) VALUES (?1, ?2)";
        let inserted = transaction.execute(insert, row);
        inserted.map_err(|error| error.to_string())?;
        if value == 7 && std::mem::take(&mut is_first) {
            return Err("after it was written".to_owned());
        }
        Ok(())
    };
    let options = TransactionalOptions::new("sums");
    Transactional::open(connection, "t", options, handler).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outbox_is_drained_to_a_server() {
    on_both(|server| async move {
        let client = server.client().await;
        let connection = Connection::open_in_memory().unwrap();
        Outbox::init(&connection).unwrap();
        for number in 0..50 {
            let row = (format!("id-{number}"), "t", number.to_string());
            let insert = "INSERT INTO prombus_outbox (id, topic, payload) VALUES (?1, ?2, ?3)";
            connection.execute(insert, row).unwrap();
        }
        // An attempt before got this far and no further.
        let own = PublishOptions {
            id: Some("id-0"),
            ..*PLAIN
        };
        within(client.publish_text("t", "0", &own)).await.unwrap();
        let options = DrainerOptions::new("w");
        let mut drainer = Outbox::drainer(connection, options, Arc::new(SystemClock)).unwrap();
        let drained = within(drainer.drain(&client)).await.unwrap();
        assert_eq!((drained.sent, drained.duplicates), (50, 1));
        assert_eq!(within(client.topic("t")).await.unwrap().tail_seq, 50);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projector_catches_up_with_a_server_and_goes_on() {
    on_both(|server| async move {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sums.db");
        let client = server.client().await;
        for number in 0..2_000 {
            drop(client.publish("t", &number, &PLAIN));
        }
        within(client.publish("t", &2_000, &PLAIN)).await.unwrap();
        let mut runner = Runner::new(projector(&path), ClientSource::new(&client, "t"));
        let applied = within(runner.catch_up()).await.unwrap();
        assert_eq!(applied.events, 2_001);
        assert_eq!(sum_of(&path), (2_001, (0..=2_000).sum()));
        drop(runner);
        // From its position on, and at the tail.
        let mut runner = Runner::new(projector(&path), ClientSource::new(&client, "t"));
        let following = tokio::spawn(async move { runner.follow().await.map(drop) });
        within(client.publish("t", &1, &PLAIN)).await.unwrap();
        within(client.publish("t", &1, &PLAIN)).await.unwrap();
        within(async {
            while sum_of(&path).0 < 2_003 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        within(client.close()).await.unwrap();
        assert!(within(following).await.unwrap().is_err());
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_projector_waits_for_its_topic_and_through_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sums.db");
    let data = folder.path().join("data");
    let server = Running::on_file(&data).await;
    let address = server.address;
    let client = server.client().await;
    let mut runner = Runner::new(projector(&path), ClientSource::new(&client, "t"));
    let following = tokio::spawn(async move { runner.follow().await.map(drop) });
    tokio::time::sleep(Duration::from_millis(50)).await;
    within(client.publish("t", &1, &PLAIN)).await.unwrap();
    server.stop().await;
    let store = Arc::new(FileStore::open(&data).unwrap().0);
    let server = Running::start(store, Authenticator::off(), &address.to_string()).await;
    within(client.publish("t", &2, &PLAIN)).await.unwrap();
    within(async {
        while sum_of(&path) != (2, 3) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    following.abort();
    server.stop().await;
}
