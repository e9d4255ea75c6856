//! The client side of the server's HTTP interface, and which server is meant.

use crate::contexts::{Contexts, Server};
use crate::server_url;
use anyhow::{Context, anyhow};
use clap::Args;
use prombus_api::Code;
use prombus_api::http::ErrorBody;
use prombus_client::{Client, ClientOptions, TlsOptions, Token, TokenSource};
use serde::de::DeserializeOwned;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use ureq::http::{Method, Request, Response};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, AsSendBody, Body, SendBody};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a reply that is not streamed.
const MAX_REPLY_BYTES: u64 = 256 << 20;

/// Which server, and how it knows who calls.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArgs {
    /// The server, e.g. localhost:8090 or `https://bus.example` [default: that of the context, or http://127.0.0.1:8090]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "PROMBUS_URL",
        value_parser = server_url::parse,
        help_heading = "Server"
    )]
    pub(crate) url: Option<String>,
    /// The context to use instead of the current one; see `prombus context`
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "PROMBUS_CONTEXT",
        conflicts_with = "url",
        help_heading = "Server",
        add = clap_complete::ArgValueCandidates::new(crate::completion::contexts)
    )]
    pub(crate) context: Option<String>,
    /// The token to send
    #[arg(
        long,
        global = true,
        env = "PROMBUS_TOKEN",
        hide_env_values = true,
        help_heading = "Server"
    )]
    pub(crate) token: Option<String>,
    /// Authorities to trust over TLS instead of the system's, as PEM
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "PROMBUS_CA",
        help_heading = "Server"
    )]
    pub(crate) ca: Option<PathBuf>,
    /// The certificate to present over TLS as PEM, with --client-key
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "PROMBUS_CLIENT_CERT",
        help_heading = "Server",
        requires = "client_key"
    )]
    pub(crate) client_cert: Option<PathBuf>,
    /// The private key of --client-cert as PEM
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "PROMBUS_CLIENT_KEY",
        help_heading = "Server",
        requires = "client_cert"
    )]
    pub(crate) client_key: Option<PathBuf>,
}

/// No reply came; what to look at depends on why.
fn unreachable(url: &str, error: &str) -> anyhow::Error {
    let advice = if error.contains("UnknownIssuer") {
        "Its certificate is of an authority that this machine does not trust; --ca or PROMBUS_CA names a file with it"
    } else if error.contains("CaUsedAsEndEntity") {
        "Its certificate is one of an authority, which signs certificates of servers but is none; make the server's own with \
         basicConstraints=CA:FALSE"
    } else if error.contains("invalid peer certificate") {
        "A server is there, but not with a certificate for this name and time"
    } else {
        "Is a server running there? `prombus serve` starts one; --url or PROMBUS_URL names another"
    };
    anyhow!("no reply from {url}: {error}. {advice}")
}

/// An error reply of the server, with advice.
#[derive(Debug)]
pub(crate) struct ApiError {
    /// As the server wrote it; it may be one that this version does not know.
    code: String,
    text: String,
}

/// A server over HTTP.
pub(crate) struct Remote {
    agent: Agent,
    url: String,
    token: Option<String>,
}

impl RemoteArgs {
    /// The server that is meant. A token of a context is never sent to a server that was named by its URL.
    pub(crate) fn server(&self) -> anyhow::Result<Server> {
        let mut server = if let Some(url) = &self.url {
            let url = url.clone();
            Server { url, token: None }
        } else {
            let contexts = Contexts::load()?;
            let chosen = match &self.context {
                Some(name) => Some(contexts.get(name)?),
                None => contexts.current()?,
            };
            chosen.cloned().unwrap_or_else(|| Server {
                url: server_url::DEFAULT.to_owned(),
                token: None,
            })
        };
        if self.token.is_some() {
            server.token.clone_from(&self.token);
        }
        Ok(server)
    }

    /// The server over HTTP; nothing is sent yet.
    pub(crate) fn remote(&self) -> anyhow::Result<Remote> {
        self.remote_within(None)
    }

    /// The same, with a limit on each whole request.
    pub(crate) fn remote_within(&self, timeout: Option<Duration>) -> anyhow::Result<Remote> {
        let Server { url, token } = self.server()?;
        let agent = self.agent(timeout)?;
        Ok(Remote { agent, url, token })
    }

    fn agent(&self, timeout: Option<Duration>) -> anyhow::Result<Agent> {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(timeout)
            // Errors have a body that says more than their status.
            .http_status_as_error(false)
            .tls_config(self.tls_config()?);
        Ok(config.build().into())
    }

    /// The server, connected over WebSocket.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let Server { url, token } = self.server()?;
        let options = ClientOptions {
            token: token.map_or(TokenSource::None, |token| {
                TokenSource::Fixed(Token::new(token))
            }),
            name: Some("prombus".to_owned()),
            tls: TlsOptions {
                ca_pem: self.ca.as_deref().map(read_file).transpose()?,
                identity_pem: self.identity()?,
            },
            ..ClientOptions::default()
        };
        Client::connect(&url, options)
            .await
            .with_context(|| format!("cannot connect to {url}; `prombus serve` starts a server"))
    }

    /// The certificate and its key, as PEM.
    fn identity(&self) -> anyhow::Result<Option<(Vec<u8>, Vec<u8>)>> {
        match (&self.client_cert, &self.client_key) {
            (Some(cert), Some(key)) => Ok(Some((read_file(cert)?, read_file(key)?))),
            _ => Ok(None),
        }
    }

    fn tls_config(&self) -> anyhow::Result<TlsConfig> {
        let mut config = TlsConfig::builder();
        if let Some(path) = &self.ca {
            config = config.root_certs(RootCerts::new_with_certs(&certificates(path)?));
        }
        if let (Some(cert), Some(key)) = (&self.client_cert, &self.client_key) {
            let chain = certificates(cert)?;
            let key = PrivateKey::from_pem(&read_file(key)?)?;
            config = config.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
        }
        Ok(config.build())
    }
}

fn certificates(path: &Path) -> anyhow::Result<Vec<Certificate<'static>>> {
    let mut certificates = Vec::new();
    for item in ureq::tls::parse_pem(&read_file(path)?) {
        if let PemItem::Certificate(certificate) = item? {
            certificates.push(certificate);
        }
    }
    anyhow::ensure!(
        !certificates.is_empty(),
        "no certificate in {}",
        path.display()
    );
    Ok(certificates)
}

fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

impl ApiError {
    /// The server's code, where the error is one that this version knows.
    pub(crate) fn code_of(error: &anyhow::Error) -> Option<Code> {
        Code::parse(&error.downcast_ref::<Self>()?.code)
    }

    /// The server's code as it wrote it.
    pub(crate) fn code_text(error: &anyhow::Error) -> Option<&str> {
        Some(&error.downcast_ref::<Self>()?.code)
    }

    /// Whether the same request may succeed later: the server was not reached, or its error is transient.
    pub(crate) fn is_retryable(error: &anyhow::Error) -> bool {
        match error.downcast_ref::<Self>() {
            Some(reply) => Code::parse(&reply.code).is_some_and(Code::is_retryable),
            None => true,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ApiError {}

impl Remote {
    /// Its URL, for messages.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

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
            .with_context(|| format!("invalid server URL {}", self.url))?;
        let response = self.agent.run(request);
        let response = response.map_err(|error| unreachable(&self.url, &error.to_string()))?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(error_of(response))
        }
    }
}

/// Reads a reply.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).context("unexpected reply; the server may be of another version")
}

fn text_of(response: Response<Body>) -> anyhow::Result<String> {
    let body = response.into_body().into_with_config();
    body.limit(MAX_REPLY_BYTES)
        .read_to_string()
        .context("the reply broke off")
}

/// The server's error, with advice.
fn error_of(response: Response<Body>) -> anyhow::Error {
    let status = response.status();
    let text = text_of(response).unwrap_or_default();
    let Ok(body) = serde_json::from_str::<ErrorBody>(&text) else {
        return anyhow!("unexpected reply with status {status}; is this a prombus server?");
    };
    let advice = match body.known_code() {
        Some(Code::Unauthorized | Code::BadToken) => ". Pass a token with --token or PROMBUS_TOKEN",
        Some(Code::TokenExpired) => {
            ". Get a fresh token; `prombus token` mints one for development"
        }
        Some(Code::Forbidden) => ". The token's policy has to allow it",
        Some(Code::UnknownTopic) => ". `prombus topic ls` lists the topics",
        Some(Code::UnknownGroup) => ". `prombus group ls TOPIC` lists the groups",
        Some(Code::PublishFailed | Code::ReadFailed) => ". The server's log says more",
        _ => "",
    };
    let text = format!("{} ({}){advice}", body.error, body.code);
    let code = body.code;
    anyhow::Error::new(ApiError { code, text })
}
