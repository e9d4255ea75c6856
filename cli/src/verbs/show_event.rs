//! How an event is shown to people, and to programs.

use crate::when;
use prombus_api::Record;
use std::io::{Write, stdout};

/// Prints an event as it is stored, or one line of what matters: when, where, key and payload.
pub(super) fn print(record: &str, json: bool) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    match json {
        true => writeln!(out, "{record}")?,
        false => writeln!(out, "{}", pretty(record)?)?,
    }
    Ok(())
}

fn pretty(record: &str) -> anyhow::Result<String> {
    let event = Record::parse(record)?;
    let key = event.key.map_or(String::new(), |key| format!(" {key}"));
    let time = when::show(event.ts);
    Ok(format!(
        "{time} {}/{}{key} {}",
        event.topic, event.seq, event.payload
    ))
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn what_matters_is_on_one_line() {
        let record =
            r#"{"id":"a","ts":1700000000500,"topic":"t","seq":7,"key":"k","payload":{"x":1}}"#;
        let line = pretty(record).expect("a line");
        assert_eq!(line, r#"2023-11-14T22:13:20.500Z t/7 k {"x":1}"#);
        assert!(pretty("{}").is_err());
    }
}
