//! What a server says when it is ready: one line for programs on stdout, and for people what to try next.

use crate::config::Config;
use prombus::Bus;
use prombus_gateway::auth::AuthConfig;
use std::net::SocketAddr;

/// Says where the server is and how to talk to it.
pub(super) fn print(config: &Config, addresses: &[SocketAddr], bus: &Bus) {
    let status = bus.store().status();
    let urls: Vec<String> = addresses
        .iter()
        .map(|address| format!("http://{address}"))
        .collect();
    let auth = auth_in_words(&config.auth);
    println!(
        "prombus ready on {} store {} durability \"{}\" auth {auth}",
        urls.join(" "),
        status.url,
        status.durability,
    );
    let Some(url) = urls.first() else {
        return;
    };
    let header = match config.auth == AuthConfig::default() {
        true => "",
        false => " -H \"Authorization: Bearer $TOKEN\"",
    };
    eprintln!(
        "\nFollow a topic, then publish to it from another shell:\n\n  \
         curl -N '{url}/sse?topic=hello'{header}\n  \
         curl '{url}/publish/hello'{header} -d '{{\"text\":\"hi\"}}'\n\n\
         See what there is: curl '{url}/topics'{header}\n\
         Stop with Ctrl-C.\n"
    );
}

fn auth_in_words(auth: &AuthConfig) -> &'static str {
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
