//! AUTH: who is there, and whether arrays may be sent to it.

use crate::scan::{ScanError, Scanner};
use crate::write::ObjectWriter;
use std::borrow::Cow;
use std::fmt;

/// The first frame of a connection, or a fresh token on a live one.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Auth<'a> {
    /// May be left out where auth is off.
    pub token: Option<Cow<'a, str>>,
    /// Whether the client takes arrays of frames.
    pub batch: bool,
}

/// Appends an AUTH frame.
pub fn write_auth(out: &mut Vec<u8>, auth: &Auth<'_>, corr: Option<&str>) {
    ObjectWriter::new(out)
        .field("op", "AUTH")
        .field("token", &auth.token)
        .field("batch", &auth.batch)
        .field("corr", &corr)
        .end();
}

impl<'a> Auth<'a> {
    pub(super) fn read(
        scanner: &mut Scanner<'a>,
        corr: &mut Option<Cow<'a, str>>,
    ) -> Result<Self, ScanError> {
        let mut auth = Self::default();
        scanner.object(|scanner, name| match name {
            "token" => scanner.fill(&mut auth.token),
            "batch" => scanner.fill(&mut auth.batch),
            "corr" => scanner.fill(corr),
            "op" => scanner.ignore(),
            _ => Err(ScanError::unknown(name, &["token", "batch", "corr"], &[])),
        })?;
        Ok(auth)
    }
}

/// Without the token, which must not get into logs.
impl fmt::Debug for Auth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("has_token", &self.token.is_some())
            .field("batch", &self.batch)
            .finish()
    }
}
