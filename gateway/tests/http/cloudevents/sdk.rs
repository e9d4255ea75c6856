//! The CloudEvents SDK for Rust on the other side: what it sends is what it gets back.

use super::{ACCEPT, BATCHED, STRUCTURED};
use crate::client::Client;
use crate::server::Running;
use cloudevents::event::SpecVersion;
use cloudevents::message::{
    BinaryDeserializer, BinarySerializer, MessageAttributeValue, Result as MessageResult,
};
use cloudevents::{Data, Event, EventBuilder, EventBuilderV10};
use serde_json::json;

/// An event in the binary mode: headers and body.
#[derive(Default)]
struct Message {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl BinarySerializer<Message> for Message {
    fn set_spec_version(mut self, version: SpecVersion) -> MessageResult<Self> {
        let header = ("ce-specversion".to_owned(), version.to_string());
        self.headers.push(header);
        Ok(self)
    }

    fn set_attribute(mut self, name: &str, value: MessageAttributeValue) -> MessageResult<Self> {
        let name = match name {
            "datacontenttype" => "content-type".to_owned(),
            name => format!("ce-{name}"),
        };
        self.headers.push((name, value.to_string()));
        Ok(self)
    }

    fn set_extension(self, name: &str, value: MessageAttributeValue) -> MessageResult<Self> {
        self.set_attribute(name, value)
    }

    fn end_with_data(mut self, bytes: Vec<u8>) -> MessageResult<Message> {
        self.body = bytes;
        Ok(self)
    }

    fn end(self) -> MessageResult<Message> {
        Ok(self)
    }
}

fn builder(id: &str) -> EventBuilderV10 {
    EventBuilderV10::new()
        .id(id)
        .source("https://example.com/orders")
        .ty("order.created")
        .subject("order/7")
        .time("2018-04-05T17:31:00.250+00:00")
        .extension("tenant", "acme")
}

fn events() -> Vec<Event> {
    let built = [
        builder("json").data("application/json", json!({"total": 12.5, "lines": []})),
        builder("text").data("text/plain", "hällo"),
        builder("bytes").data("application/octet-stream", vec![0_u8, 255]),
        builder("none"),
    ];
    built
        .into_iter()
        .map(|builder| builder.build().expect("an event"))
        .collect()
}

async fn replayed(client: &mut Client) -> Vec<Event> {
    let page = client
        .request("GET", "/replay?topic=t", &[ACCEPT], b"")
        .await;
    serde_json::from_slice(&page.body).expect("CloudEvents")
}

#[tokio::test]
async fn the_sdk_reads_back_what_it_sent_structured() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for event in events() {
        let body = serde_json::to_vec(&event).expect("JSON");
        let reply = client.request("POST", "/publish/t", &[STRUCTURED], &body);
        reply.await.ok();
    }
    assert_eq!(replayed(&mut client).await, events());
}

#[tokio::test]
async fn the_sdk_reads_back_what_it_sent_batched() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let body = serde_json::to_vec(&events()).expect("JSON");
    let reply = client.request("POST", "/publish/t", &[BATCHED], &body);
    reply.await.ok();
    assert_eq!(replayed(&mut client).await, events());
}

#[tokio::test]
async fn the_sdk_reads_back_what_it_sent_binary() {
    let server = Running::start().await;
    let mut client = server.client().await;
    for event in events() {
        let message = event.deserialize_binary(Message::default());
        let message = message.expect("a message");
        let headers: Vec<(&str, &str)> = message
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let reply = client.request("POST", "/publish/t", &headers, &message.body);
        reply.await.ok();
    }
    let back = replayed(&mut client).await;
    assert_eq!(back.len(), 4);
    for (back, sent) in back.iter().zip(events()) {
        // The binary mode says nothing of types, so JSON comes back as a value and anything else as text or bytes.
        assert_eq!(back.data().map(bytes), sent.data().map(bytes));
        assert_eq!(
            back.iter_attributes().collect::<Vec<_>>(),
            sent.iter_attributes().collect::<Vec<_>>()
        );
        assert_eq!(back.extension("tenant"), sent.extension("tenant"));
    }
}

fn bytes(data: &Data) -> Vec<u8> {
    match data {
        Data::Binary(bytes) => bytes.clone(),
        Data::String(text) => text.clone().into_bytes(),
        Data::Json(value) => value.to_string().into_bytes(),
    }
}
