//! How an event is printed for people and for programs.

use crate::output::{self, Format};
use crate::{escape, time};
use prombus_api::Record;

/// Prints an event as it is stored, or on one line: time, topic, seq, key and payload.
pub(super) fn print(record: &str, format: Format) -> anyhow::Result<()> {
    if format.is_json() {
        output::json_text(record)
    } else {
        output::line(one_line(record, false)?)
    }
}

/// The event on one line, with its id where somebody has to name it.
pub(super) fn one_line(record: &str, with_id: bool) -> anyhow::Result<String> {
    let event = Record::parse(record)?;
    let id = if with_id {
        format!("{} ", escape::controls(&event.id))
    } else {
        String::new()
    };
    let key = event.key.map_or(String::new(), |key| {
        format!(" {}", output::yellow(&escape::controls(&key)))
    });
    let time = output::dim(&time::show(event.ts));
    let at = output::bold(&format!("{}/{}", event.topic, event.seq));
    let payload = escape::controls(event.payload);
    Ok(format!("{id}{time} {at}{key} {payload}"))
}

#[cfg(test)]
mod tests {
    use super::one_line;

    #[test]
    fn an_event_is_one_line() {
        let record =
            r#"{"id":"a","ts":1700000000500,"topic":"t","seq":7,"key":"k","payload":{"x":1}}"#;
        let line = one_line(record, false).expect("a line");
        assert_eq!(line, r#"2023-11-14T22:13:20.500Z t/7 k {"x":1}"#);
        let line = one_line(record, true).expect("a line");
        assert!(line.starts_with("a 2023"), "{line}");
        assert!(one_line("{}", false).is_err());
    }

    #[test]
    fn control_characters_are_escaped() {
        let record = "{\"id\":\"a\",\"ts\":1,\"topic\":\"t\",\"seq\":7,\"key\":\"\\u001b[2J\",\"payload\":\"\u{9b}x\"}";
        let line = one_line(record, false).expect("a line");
        assert!(line.is_ascii() && !line.contains('\u{1b}'), "{line:?}");
        assert!(
            line.contains("\\u001b[2J") && line.contains("\\u009bx"),
            "{line:?}"
        );
    }
}
