//! `GET /nodes`: the servers that share the store.

use super::call::Call;
use super::message::Response;
use super::reply;
use super::status::allow_everything;
use crate::api_error::ApiError;
use prombus::NodeInfo;
use prombus_api::http::{Node, NodeList};

pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    allow_everything(&call, "looking at nodes")?;
    let gateway = call.gateway();
    let nodes = gateway.bus.nodes().await?;
    Ok(reply::json(&NodeList {
        now_ms: gateway.now_ms(),
        nodes: nodes.into_iter().map(wire_node).collect(),
    }))
}

fn wire_node(info: NodeInfo) -> Node {
    Node {
        node: info.node,
        url: info.url,
        is_this: info.is_asked,
        beat_ms: info.beat_ms,
        groups: info.groups,
        relayed_groups: info.relayed_groups,
        applied: info.applied,
        lag: info.lag,
    }
}
