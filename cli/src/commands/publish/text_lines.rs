//! Lines of plain text as lines of JSON strings, while they are read.

use std::io::{BufRead, BufReader, Read};

/// The longest line of text; the largest payload that a server can be configured to take.
const MAX_LINE_BYTES: u64 = 32 << 20;

/// Reads lines of text and gives lines of JSON.
pub(super) struct TextLines<R> {
    lines: BufReader<R>,
    line: String,
    /// The last line as JSON, and how much of it has been read.
    json: Vec<u8>,
    taken: usize,
}

impl<R: Read> TextLines<R> {
    pub(super) fn new(lines: R) -> Self {
        Self {
            lines: BufReader::new(lines),
            line: String::new(),
            json: Vec::new(),
            taken: 0,
        }
    }
}

impl<R: Read> Read for TextLines<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.taken == self.json.len() {
            self.line.clear();
            let mut limited = (&mut self.lines).take(MAX_LINE_BYTES);
            if limited.read_line(&mut self.line)? == 0 {
                return Ok(0);
            }
            let text = self.line.trim_end_matches(['\n', '\r']);
            self.json = serde_json::to_vec(text)?;
            self.json.push(b'\n');
            self.taken = 0;
        }
        let count = into.len().min(self.json.len() - self.taken);
        into[..count].copy_from_slice(&self.json[self.taken..][..count]);
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_text_become_json() {
        let text: &[u8] = b"one\r\nsay \"hi\"\n\nlast";
        let mut json = String::new();
        TextLines::new(text)
            .read_to_string(&mut json)
            .expect("it is read");
        assert_eq!(json, "\"one\"\n\"say \\\"hi\\\"\"\n\"\"\n\"last\"\n");
    }
}
