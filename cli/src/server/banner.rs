//! What a server prints when it is ready: one line for programs on stdout, and for people what to try next.

use crate::config::Config;
use crate::output::{self, Format};
use prombus::Bus;
use prombus_gateway::auth::AuthConfig;
use serde_json::json;
use std::net::SocketAddr;

/// Prints where the server is and how to talk to it. A stdout that nobody reads does not keep it from serving.
pub(super) fn print(config: &Config, addresses: &[SocketAddr], bus: &Bus, format: Format) {
    let status = bus.store().status();
    let scheme = if config.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let urls: Vec<String> = addresses
        .iter()
        .map(|address| format!("{scheme}://{address}"))
        .collect();
    let auth = auth_mode(&config.auth);
    if format.is_json() {
        let _ = output::json(&json!({
            "ready": urls,
            "store": status.url,
            "durability": status.durability,
            "auth": auth,
        }));
        return;
    }
    let _ = output::line(format_args!(
        "prombus ready on {} store {} durability \"{}\" auth {auth}",
        urls.join(" "),
        status.url,
        status.durability,
    ));
    let Some(url) = urls.first() else {
        return;
    };
    let header = if config.has_auth() {
        " -H \"Authorization: Bearer $TOKEN\""
    } else {
        ""
    };
    output::notice(format_args!(
        "\nFollow a topic, then publish to it from another shell:\n\n  \
         curl -N '{url}/sse?topic=hello'{header}\n  \
         curl '{url}/publish/hello'{header} -d '{{\"text\":\"hi\"}}'\n\n\
         List the topics: curl '{url}/topics'{header}\n\
         Stop with Ctrl-C.\n"
    ));
}

fn auth_mode(auth: &AuthConfig) -> &'static str {
    match auth {
        AuthConfig { token: Some(_), .. } => "token",
        AuthConfig {
            jwt_secret: Some(_),
            ..
        } => "jwt",
        AuthConfig {
            jwks_file: None,
            jwks_url: None,
            ..
        } => "off",
        _ => "jwks",
    }
}
