//! Bodies of requests, as bytes.

use crate::code::Code;
use crate::error::ParseError;
use crate::scan::{FromJson, Scanner};
use crate::write::ToJson;

/// The body of a request. Payloads inside are passed on with nothing checked but where they end.
pub trait Body<'a>: Sized {
    /// Reads a body. What is wrong is said with the name of the field.
    fn parse(bytes: &'a [u8]) -> Result<Self, ParseError>;

    /// Writes the body.
    fn to_json(&self) -> Vec<u8>;
}

impl<'a, T: FromJson<'a> + ToJson> Body<'a> for T {
    fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let message = format!("invalid UTF-8 at byte {}", error.valid_up_to());
            ParseError::new(Code::BadJson, message)
        })?;
        let mut scanner = Scanner::new(text);
        let value = T::from_json(&mut scanner);
        let value = value.and_then(|value| scanner.end().map(|()| value));
        value.map_err(|error| error.parse_error(text))
    }

    fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_json(&mut out);
        out
    }
}
