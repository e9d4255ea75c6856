//! Where tokens come from: nowhere, a text, or a function that is asked for a fresh one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// A token for AUTH. It never appears in messages.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub(crate) text: String,
    pub(crate) refresh_after: Option<Duration>,
}

/// Where tokens come from.
#[derive(Clone, Default)]
pub enum TokenSource {
    /// The server asks for none.
    #[default]
    None,
    /// One for the whole life of the client. When it expires, the client ends.
    Fixed(Token),
    /// Asked for each connection, and again before a token expires.
    Provider(TokenProvider),
}

/// A function that gives a fresh token.
#[derive(Clone)]
pub struct TokenProvider(Arc<dyn Fn() -> TokenFuture + Send + Sync>);

type TokenFuture = Pin<Box<dyn Future<Output = Result<Token, String>> + Send>>;

impl Token {
    /// A token.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            refresh_after: None,
        }
    }

    /// After how long the provider is asked for the next one, on the live connection: some time before this one
    /// expires.
    #[must_use]
    pub fn refresh_after(mut self, duration: Duration) -> Self {
        self.refresh_after = Some(duration);
        self
    }
}

impl TokenSource {
    /// A source that asks a function for each token.
    pub fn provider<P, F, E>(provide: P) -> Self
    where
        P: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<Token, E>> + Send + 'static,
        E: fmt::Display,
    {
        let provide = move || -> TokenFuture {
            let token = provide();
            Box::pin(async move { token.await.map_err(|error| error.to_string()) })
        };
        Self::Provider(TokenProvider(Arc::new(provide)))
    }

    /// Whether there may be another token than the last one.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self, Self::Provider(_))
    }

    /// The token for the next AUTH, or why the provider gave none.
    pub(crate) async fn token(&self) -> Result<Option<Token>, String> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(token) => Ok(Some(token.clone())),
            Self::Provider(provider) => (provider.0)().await.map(Some),
        }
    }
}

impl From<&str> for TokenSource {
    fn from(text: &str) -> Self {
        Self::Fixed(Token::new(text))
    }
}

impl From<String> for TokenSource {
    fn from(text: String) -> Self {
        Self::Fixed(Token::new(text))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("refresh_after", &self.refresh_after)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TokenProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenProvider")
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Fixed(_) => "Fixed",
            Self::Provider(_) => "Provider",
        })
    }
}
