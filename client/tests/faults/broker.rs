//! A small server that keeps what a real one would, and breaks when it is told to.

use futures_core::Stream;
use futures_sink::Sink;
use prombus_api::Code;
use prombus_api::frames::{
    Ack, ClientFrames, DeliveryContext, ErrorDetails, Partitions, PublishedFrame, Request,
    write_ack_published, write_assign, write_error, write_event, write_ok, write_published,
    write_revoke, write_subscribed,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio_websockets::{Limits, Message, ServerBuilder, WebSocketStream};

/// A server on loopback. It ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Broker {
    address: String,
    state: Arc<Mutex<State>>,
}

/// What it keeps.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Payloads in the order of the topic's positions, whatever the topic.
    pub(crate) log: Vec<Stored>,
    ids: BTreeMap<String, usize>,
    /// What steps have published.
    pub(crate) outputs: Vec<Stored>,
    pub(crate) group: Group,
    /// How each connection ends, in their order; those after the last one live.
    pub(crate) faults: VecDeque<Fault>,
    pub(crate) connections: usize,
    /// Tokens as they came.
    pub(crate) tokens: Vec<Option<String>>,
    /// Tokens that are refused, and with which code.
    pub(crate) refused: BTreeMap<String, Code>,
    /// Requests other than publishes, as words.
    pub(crate) seen: Vec<String>,
    pub(crate) messages: usize,
    pub(crate) subscribe_error: Option<Code>,
    /// Whether the one partition is taken back when the client pauses.
    pub(crate) revokes_on_pause: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) id: String,
    pub(crate) payload: String,
}

/// The one group that it has.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// How often each event was settled by an acknowledgement that found it open.
    pub(crate) settled: BTreeMap<usize, u32>,
    pub(crate) attempts: BTreeMap<usize, u32>,
    /// Which connection holds it.
    leases: BTreeMap<usize, usize>,
    pub(crate) nacks: Vec<(String, Option<u64>)>,
    pub(crate) extended: usize,
}

/// How a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Before the upgrade.
    AtOnce,
    /// After this many frames from the client; the last one is not acted on.
    BeforeFrame(usize),
    /// After acting on this many frames, before their replies are sent.
    BeforeReplies(usize),
    /// After sending the replies to this many frames.
    AfterReplies(usize),
    /// Something that is no frame comes instead of the replies.
    Garbage(usize),
    /// Replies `shutting_down` from this frame on, and closes.
    ShuttingDown(usize),
    /// Closes after this many frames with an error that answers none.
    Error(usize, Code),
    /// Nothing more comes after this many frames, not even an answer to a ping.
    Silence(usize),
}

type Socket = WebSocketStream<TcpStream>;

impl Broker {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state: Arc<Mutex<State>> = Arc::default();
        let broker = Self { address, state };
        let serving = broker.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let fault = serving.state().faults.pop_front();
                serving.state().connections += 1;
                let number = serving.state().connections;
                let connection = serving.clone();
                tokio::spawn(async move {
                    // The connection may go away at any time; that is what this is about.
                    let _ = connection.serve(stream, number, fault).await;
                    connection.state().free(number);
                });
            }
        });
        broker
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts events there.
    pub(crate) fn store(&self, count: usize) {
        for number in 0..count {
            let payload = number.to_string();
            self.state().publish(None, &payload);
        }
    }

    /// Waits until something is so.
    pub(crate) async fn until(&self, is_so: impl Fn(&State) -> bool) {
        crate::within(async {
            while !is_so(&self.state()) {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    async fn serve(&self, stream: TcpStream, number: usize, fault: Option<Fault>) -> Option<()> {
        if fault == Some(Fault::AtOnce) {
            return None;
        }
        let limits = Limits::default().max_payload_len(Some(16 << 20));
        let (_, mut socket) = ServerBuilder::new()
            .limits(limits)
            .accept(stream)
            .await
            .ok()?;
        let mut frames = 0;
        let mut subscribed = false;
        let mut room = 0;
        loop {
            let message = next(&mut socket).await?;
            let text = message.as_text()?;
            self.state().messages += 1;
            let mut out = Vec::new();
            for frame in ClientFrames::new(text) {
                frames += 1;
                if matches!(fault, Some(Fault::BeforeFrame(limit)) if frames > limit) {
                    return None;
                }
                let frame = frame.expect("the client writes frames");
                let corr = frame.corr.as_deref();
                separate(&mut out);
                if matches!(fault, Some(Fault::ShuttingDown(limit)) if frames > limit) {
                    write_error(
                        &mut out,
                        Code::ShuttingDown,
                        "going down",
                        corr,
                        ErrorDetails::default(),
                    );
                    continue;
                }
                if let Request::Subscribe(subscribe) = &frame.request {
                    room = subscribe.options.max_in_flight.unwrap_or(100);
                    subscribed = self.state().subscribe_error.is_none();
                }
                self.state().act(number, &frame.request, corr, &mut out);
                if out.last() == Some(&b',') || out.last() == Some(&b'[') {
                    out.pop();
                }
            }
            if matches!(fault, Some(Fault::BeforeReplies(limit)) if frames >= limit) {
                return None;
            }
            if matches!(fault, Some(Fault::Garbage(limit)) if frames >= limit) {
                send(&mut socket, b"[{\"op\":\"OK\",".to_vec()).await;
                continue;
            }
            if matches!(fault, Some(Fault::Silence(limit)) if frames >= limit) {
                std::future::pending::<()>().await;
            }
            if let Some(Fault::Error(limit, code)) = fault
                && frames >= limit
            {
                let mut out = Vec::new();
                write_error(&mut out, code, "it is over", None, ErrorDetails::default());
                send(&mut socket, out).await;
                return None;
            }
            if subscribed {
                self.state().deliver(number, room, &mut out);
            }
            if !out.is_empty() {
                out.push(b']');
                send(&mut socket, out).await;
            }
            let has_ended = match fault {
                Some(Fault::AfterReplies(limit)) => frames >= limit,
                Some(Fault::ShuttingDown(limit)) => frames > limit,
                _ => false,
            };
            if has_ended {
                return None;
            }
        }
    }
}

/// The one partition of the topic, as a member is told of it.
fn only_partition() -> Partitions<'static> {
    Partitions {
        topic: "t".into(),
        group: "g".into(),
        partitions: vec![0],
    }
}

impl State {
    pub(crate) fn payloads(&self) -> Vec<&str> {
        self.log
            .iter()
            .map(|stored| stored.payload.as_str())
            .collect()
    }

    fn publish(&mut self, id: Option<&str>, payload: &str) -> (String, u64, bool) {
        if let Some(&at) = id.and_then(|id| self.ids.get(id)) {
            return (self.log[at].id.clone(), at as u64 + 1, true);
        }
        let at = self.log.len();
        let id = id.map_or_else(|| format!("made-{at}"), str::to_owned);
        self.ids.insert(id.clone(), at);
        let payload = payload.to_owned();
        self.log.push(Stored {
            id: id.clone(),
            payload,
        });
        (id, at as u64 + 1, false)
    }

    fn act(&mut self, number: usize, request: &Request<'_>, corr: Option<&str>, out: &mut Vec<u8>) {
        match request {
            Request::Publish(publish) => {
                let id = publish.options.id.as_deref();
                let (id, seq, duplicate) = self.publish(id, publish.payload);
                write_published(out, &id, (seq, 1), duplicate, corr);
                return;
            }
            Request::Auth(auth) => {
                assert!(auth.batch, "arrays are asked for");
                let token = auth.token.as_deref().map(str::to_owned);
                self.tokens.push(token.clone());
                if let Some(&code) = token.and_then(|token| self.refused.get(&token)) {
                    write_error(out, code, "no", corr, ErrorDetails::default());
                    return;
                }
            }
            Request::Subscribe(subscribe) => {
                let start = subscribe.options.start.clone();
                self.seen.push(format!("SUBSCRIBE {start:?}"));
                match self.subscribe_error {
                    Some(code) => write_error(out, code, "no", corr, ErrorDetails::default()),
                    None => {
                        write_subscribed(out, subscribe.group.as_deref().unwrap_or("made"), corr);
                        if subscribe.options.partitioned == Some(true) {
                            separate(out);
                            write_assign(out, &only_partition());
                        }
                    }
                }
                return;
            }
            Request::Ack(ack) if !ack.publish.is_empty() => {
                return self.step(number, ack, corr, out);
            }
            Request::Ack(ack) => {
                let ids: Vec<&str> = ack.ids.as_slice().iter().map(|id| &**id).collect();
                self.seen.push(format!("ACK {}", ids.len()));
                for id in ids {
                    self.ack(number, id);
                }
            }
            Request::Nack(nack) => {
                for id in nack.ids.as_slice() {
                    self.group.leases.remove(&self.ids[&**id]);
                }
                let reason = nack.reason.clone().unwrap_or_default().into_owned();
                self.group.nacks.push((reason, nack.delay_ms));
            }
            Request::Modack(_) => self.group.extended += 1,
            Request::Pause(_) => {
                self.seen.push("PAUSE".to_owned());
                if self.revokes_on_pause {
                    write_revoke(out, &only_partition());
                    separate(out);
                }
            }
            Request::Resume(_) => self.seen.push("RESUME".to_owned()),
            Request::Revoked(_) => self.seen.push("REVOKED".to_owned()),
            Request::Unsubscribe(_) => self.seen.push("UNSUBSCRIBE".to_owned()),
        }
        if corr.is_some() {
            write_ok(out, corr);
        }
    }

    /// Both or neither: nothing is published for what is settled, or held by another connection.
    fn step(&mut self, number: usize, ack: &Ack<'_>, corr: Option<&str>, out: &mut Vec<u8>) {
        let places: Vec<usize> = ack
            .ids
            .as_slice()
            .iter()
            .map(|id| self.ids[&**id])
            .collect();
        let is_held = |at: &usize| self.group.leases.get(at) == Some(&number);
        if !places.iter().all(is_held) {
            return write_error(
                out,
                Code::LeaseLost,
                "it is not yours",
                corr,
                ErrorDetails::default(),
            );
        }
        for at in places {
            *self.group.settled.entry(at).or_default() += 1;
            self.group.leases.remove(&at);
        }
        let mut published = Vec::new();
        for publish in &ack.publish {
            let seq = self.outputs.len() as u64 + 1;
            let id = publish.options.id.clone();
            let id = id.map_or_else(|| format!("made-{seq}"), Cow::into_owned);
            self.outputs.push(Stored {
                id: id.clone(),
                payload: publish.payload.to_owned(),
            });
            published.push(PublishedFrame {
                topic: publish.topic.clone(),
                id: id.into(),
                seq,
                duplicate: false,
            });
        }
        write_ack_published(out, &published, corr);
    }

    /// Somebody else has settled an event.
    pub(crate) fn settle(&mut self, id: &str) {
        let at = self.ids[id];
        self.group.leases.remove(&at);
        self.group.settled.insert(at, 1);
    }

    /// As the contract has it: it settles unless another connection holds the event.
    fn ack(&mut self, number: usize, id: &str) {
        let at = self.ids[id];
        let is_settled = self.group.settled.contains_key(&at);
        let is_held = self
            .group
            .leases
            .get(&at)
            .is_some_and(|&holder| holder != number);
        if !is_settled && !is_held {
            *self.group.settled.entry(at).or_default() += 1;
            self.group.leases.remove(&at);
        }
    }

    fn deliver(&mut self, number: usize, room: usize, out: &mut Vec<u8>) {
        for at in 0..self.log.len() {
            let held = self
                .group
                .leases
                .values()
                .filter(|&&holder| holder == number);
            if held.count() >= room {
                return;
            }
            if self.group.settled.contains_key(&at) || self.group.leases.contains_key(&at) {
                continue;
            }
            self.group.leases.insert(at, number);
            let attempt = self.group.attempts.entry(at).or_default();
            *attempt += 1;
            let Stored { id, payload } = &self.log[at];
            let seq = at + 1;
            let record = format!(
                r#"{{"id":"{id}","ts":{seq},"topic":"t","seq":{seq},"payload":{payload}}}"#
            );
            let attempt = *attempt;
            separate(out);
            let context = DeliveryContext {
                attempt,
                max_attempts: 5,
                ack_deadline_ms: 300,
                shadow: false,
            };
            write_event(out, "t", "g", record.as_bytes(), context);
        }
    }

    fn free(&mut self, number: usize) {
        self.group.leases.retain(|_, holder| *holder != number);
    }
}

fn separate(out: &mut Vec<u8>) {
    out.push(if out.is_empty() { b'[' } else { b',' });
}

async fn next(socket: &mut Socket) -> Option<Message> {
    loop {
        let message = poll_fn(|context| Pin::new(&mut *socket).poll_next(context)).await?;
        match message {
            Ok(message) if message.is_text() => return Some(message),
            Ok(message) if message.is_close() => return None,
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

async fn send(socket: &mut Socket, text: Vec<u8>) {
    // A client that is gone notices nothing.
    if Pin::new(&mut *socket)
        .start_send(Message::text(text))
        .is_ok()
    {
        let _ = poll_fn(|context| Pin::new(&mut *socket).poll_flush(context)).await;
    }
}
