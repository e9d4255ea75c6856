//! Bodies of requests, as bytes.

use crate::code::Code;
use crate::refusal::Refusal;
use crate::scan::{FromJson, Scanner};
use crate::write::ToJson;

/// The body of a request. Payloads inside are passed on with nothing checked but where they end.
pub trait Body<'a>: Sized {
    /// Reads a body. What is wrong is said with the name of the field.
    fn parse(bytes: &'a [u8]) -> Result<Self, Refusal>;

    /// Writes the body.
    fn to_json(&self) -> Vec<u8>;
}

impl<'a, T: FromJson<'a> + ToJson> Body<'a> for T {
    fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let message = format!("not JSON at byte {}: it is not UTF-8", error.valid_up_to());
            Refusal::new(Code::BadJson, message)
        })?;
        let mut scanner = Scanner::new(text);
        let value = T::from_json(&mut scanner);
        let value = value.and_then(|value| scanner.end().map(|()| value));
        value.map_err(|fault| fault.refusal(text))
    }

    fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write_json(&mut out);
        out
    }
}
