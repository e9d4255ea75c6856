//! A link between two nodes, as messages in both directions. What carries them is given from outside.

use std::pin::Pin;
use tokio::sync::mpsc;

/// How many messages wait in one direction of a link.
const LINK_QUEUE: usize = 256;

/// Opens links to other nodes.
pub trait NodeDialer: Send + Sync + 'static {
    /// Opens a link to the node at a URL, whose bus serves it with
    /// [`Bus::serve_node_link`](crate::Bus::serve_node_link). The secret shows that this node is on the same store.
    fn dial(
        &self,
        url: String,
        secret: String,
    ) -> Pin<Box<dyn Future<Output = Result<NodeLink, String>> + Send>>;
}

/// One end of a link. It is over when either end lets go of it.
#[derive(Debug)]
pub struct NodeLink {
    sender: LinkSender,
    receiver: LinkReceiver,
}

/// The sending half of a link's end.
#[derive(Debug, Clone)]
pub struct LinkSender(mpsc::Sender<Vec<u8>>);

/// The receiving half of a link's end.
#[derive(Debug)]
pub struct LinkReceiver(mpsc::Receiver<Vec<u8>>);

impl NodeLink {
    /// Two ends that are connected: one for the bus, one for what carries the messages.
    pub fn pair() -> (Self, Self) {
        let (one, from_one) = mpsc::channel(LINK_QUEUE);
        let (other, from_other) = mpsc::channel(LINK_QUEUE);
        let end = |sender, receiver| Self {
            sender: LinkSender(sender),
            receiver: LinkReceiver(receiver),
        };
        (end(one, from_other), end(other, from_one))
    }

    /// Both halves.
    pub fn split(self) -> (LinkSender, LinkReceiver) {
        (self.sender, self.receiver)
    }
}

impl LinkSender {
    /// Sends a message as soon as there is room; `false` where the link is over.
    pub async fn send(&self, message: Vec<u8>) -> bool {
        self.0.send(message).await.is_ok()
    }

    /// Waits until there is room for a message; `false` where the link is over.
    pub(crate) async fn ready(&self) -> bool {
        self.0.reserve().await.is_ok()
    }

    /// Whether the other end has let go of the link.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_closed()
    }

    /// Sends a message where there is room, and gives it back where there is none.
    pub(crate) fn try_send(&self, message: Vec<u8>) -> Result<(), Vec<u8>> {
        self.0
            .try_send(message)
            .map_err(mpsc::error::TrySendError::into_inner)
    }
}

impl LinkReceiver {
    /// The next message where one waits.
    pub fn try_recv(&mut self) -> Option<Vec<u8>> {
        self.0.try_recv().ok()
    }

    /// The next message; `None` when the link is over.
    pub async fn recv(&mut self) -> Option<Vec<u8>> {
        self.0.recv().await
    }
}
