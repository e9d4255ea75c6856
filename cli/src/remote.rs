//! A server that is talked to over HTTP.

use anyhow::{Context, anyhow};
use clap::Args;
use prombus_api::Code;
use prombus_api::http::ErrorBody;
use prombus_client::{Client, ClientOptions, Token, TokenSource};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::Read;
use std::time::Duration;
use ureq::http::{Method, Request, Response};
use ureq::{Agent, AsSendBody, Body, SendBody};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a reply that is not streamed.
const MAX_REPLY_BYTES: u64 = 256 << 20;

/// Which server, and how it knows who calls.
#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// The server
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "PROMBUS_URL",
        default_value = "http://127.0.0.1:8090"
    )]
    pub(crate) url: String,
    /// The token to show
    #[arg(long, global = true, env = "PROMBUS_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

/// The server understood, and said no; its own words, and what to do about it.
#[derive(Debug)]
pub(crate) struct Refused {
    code: Option<Code>,
    text: String,
}

/// A server, ready to be asked.
pub(crate) struct Remote {
    agent: Agent,
    url: String,
    token: Option<String>,
}

impl RemoteArgs {
    /// The server; nothing is sent yet.
    pub(crate) fn remote(&self) -> Remote {
        let agent = Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            // Errors have a body that says more than their status.
            .http_status_as_error(false)
            .build()
            .into();
        Remote {
            agent,
            url: self.url.trim_end_matches('/').to_owned(),
            token: self.token.clone(),
        }
    }
}

impl RemoteArgs {
    /// The server, connected over WebSocket.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let token = self.token.as_ref();
        let options = ClientOptions {
            token: token.map_or(TokenSource::None, |token| {
                TokenSource::Fixed(Token::new(token))
            }),
            name: Some("prombus".to_owned()),
            ..ClientOptions::default()
        };
        Client::connect(&self.url, options).await.with_context(|| {
            format!(
                "cannot connect to {}; `prombus serve` starts a server",
                self.url
            )
        })
    }
}

impl Refused {
    /// The server's code, where an error is a refusal with one that this version knows.
    pub(crate) fn code_of(error: &anyhow::Error) -> Option<Code> {
        error.downcast_ref::<Self>()?.code
    }

    /// Whether the same may succeed later: the server was not there, or asked to come again.
    pub(crate) fn is_passing(error: &anyhow::Error) -> bool {
        match error.downcast_ref::<Self>() {
            Some(refused) => refused.code.is_some_and(Code::is_retryable),
            None => true,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refused {}

impl Remote {
    /// What `GET` gives, as it is.
    pub(crate) fn get_text(&self, path: &str) -> anyhow::Result<String> {
        text_of(self.call(Method::GET, path, &[], ())?)
    }

    /// What `GET` gives, read.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        read(&self.get_text(path)?)
    }

    /// What `GET` gives, as it arrives.
    pub(crate) fn get_stream(&self, path: &str) -> anyhow::Result<impl Read + use<>> {
        let response = self.call(Method::GET, path, &[], ())?;
        Ok(response.into_body().into_reader())
    }

    /// Sends a small JSON body.
    pub(crate) fn send(&self, method: Method, path: &str, body: &[u8]) -> anyhow::Result<String> {
        let headers = [("content-type", "application/json")];
        text_of(self.call(method, path, &headers, body)?)
    }

    /// Asks for something to be removed.
    pub(crate) fn delete(&self, path: &str) -> anyhow::Result<String> {
        text_of(self.call(Method::DELETE, path, &[], ())?)
    }

    /// Sends a body with headers of its own.
    pub(crate) fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> anyhow::Result<String> {
        text_of(self.call(Method::POST, path, headers, body)?)
    }

    /// Sends lines as they come.
    pub(crate) fn post_lines(&self, path: &str, lines: impl Read) -> anyhow::Result<String> {
        let mut lines = lines;
        let headers = [("content-type", "application/x-ndjson")];
        text_of(self.call(
            Method::POST,
            path,
            &headers,
            SendBody::from_reader(&mut lines),
        )?)
    }

    fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsSendBody,
    ) -> anyhow::Result<Response<Body>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request
            .body(body)
            .with_context(|| format!("{} is no address of a server", self.url))?;
        let response = self.agent.run(request).map_err(|error| {
            anyhow!(
                "no answer from {}: {error}. Is a server running there? `prombus serve` starts one; \
                 --url or PROMBUS_URL names another",
                self.url
            )
        })?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(refusal(response)),
        }
    }
}

/// Reads a reply.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text)
        .context("the server's answer is not understood; it may be of another version")
}

fn text_of(response: Response<Body>) -> anyhow::Result<String> {
    let body = response.into_body().into_with_config();
    body.limit(MAX_REPLY_BYTES)
        .read_to_string()
        .context("the answer broke off")
}

/// The server's own words, and what to do about it.
fn refusal(response: Response<Body>) -> anyhow::Error {
    let status = response.status();
    let text = text_of(response).unwrap_or_default();
    let Ok(body) = serde_json::from_str::<ErrorBody>(&text) else {
        return anyhow!("the server answered {status}; is it a prombus?");
    };
    let advice = match body.known_code() {
        Some(Code::Unauthorized | Code::BadToken) => ". Give a token with --token or PROMBUS_TOKEN",
        Some(Code::TokenExpired) => {
            ". Get a fresh token; `prombus token` mints one for development"
        }
        Some(Code::Forbidden) => ". The token's policy has to allow it",
        Some(Code::UnknownTopic) => ". `prombus topic ls` lists what there is",
        Some(Code::UnknownGroup) => ". `prombus group ls TOPIC` lists what there is",
        Some(Code::PublishFailed | Code::ReadFailed) => ". The server's log says more",
        _ => "",
    };
    let text = format!("{} ({}){advice}", body.error, body.code);
    let code = body.known_code();
    anyhow::Error::new(Refused { code, text })
}
