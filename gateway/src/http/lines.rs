//! Lines of a body, whatever pieces it arrives in. Only a line that goes on in the next piece is copied.

use std::borrow::Cow;

/// Takes pieces apart at their line breaks.
pub(super) struct Lines {
    /// The beginning of a line whose end is yet to come.
    begun: Vec<u8>,
    /// Such a line is too long and is skipped to its end.
    is_passing_over: bool,
    max_line_bytes: usize,
}

/// A line without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Text(Cow<'a, [u8]>),
    /// It has more bytes than are allowed.
    TooLong,
}

impl Lines {
    pub(super) fn new(max_line_bytes: usize) -> Self {
        Self {
            begun: Vec::new(),
            is_passing_over: false,
            max_line_bytes,
        }
    }

    /// Takes the next line off the front of `piece`; `None` where the rest of it has begun a line.
    pub(super) fn next<'a>(&mut self, piece: &mut &'a [u8]) -> Option<Line<'a>> {
        let Some(end) = line_end(piece) else {
            self.begin(piece);
            *piece = &[];
            return None;
        };
        let (line, rest) = piece.split_at(end);
        *piece = &rest[1..];
        if self.begun.is_empty() && !self.is_passing_over {
            return Some(self.whole(Cow::Borrowed(line)));
        }
        self.begin(line);
        self.finish()
    }

    /// The last line, which no line break ends.
    pub(super) fn finish(&mut self) -> Option<Line<'static>> {
        if std::mem::take(&mut self.is_passing_over) {
            return Some(Line::TooLong);
        }
        let begun = std::mem::take(&mut self.begun);
        (!begun.is_empty()).then(|| self.whole(Cow::Owned(begun)))
    }

    fn begin(&mut self, part: &[u8]) {
        // One byte more, which may be the CR of a CRLF.
        if self.begun.len() + part.len() > self.max_line_bytes + 1 {
            self.is_passing_over = true;
            self.begun = Vec::new();
        }
        if !self.is_passing_over {
            self.begun.extend_from_slice(part);
        }
    }

    fn whole<'a>(&self, line: Cow<'a, [u8]>) -> Line<'a> {
        let line = without_cr(line);
        if line.len() > self.max_line_bytes {
            Line::TooLong
        } else {
            Line::Text(line)
        }
    }
}

fn without_cr(line: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match line {
        Cow::Borrowed([text @ .., b'\r']) => Cow::Borrowed(text),
        Cow::Owned(mut text) if text.last() == Some(&b'\r') => {
            text.pop();
            Cow::Owned(text)
        }
        line => line,
    }
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the lines are, whichever way the text is cut.
    fn lines(text: &[u8], cuts: &[usize], limit: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        let mut add = |line: Line<'_>| {
            found.push(match line {
                Line::Text(text) => Some(text.into_owned()),
                Line::TooLong => None,
            });
        };
        let mut rest = text;
        for cut in cuts.iter().copied().chain([text.len()]) {
            let (mut piece, behind) = rest.split_at(cut.min(rest.len()));
            rest = behind;
            while let Some(line) = lines.next(&mut piece) {
                add(line);
            }
        }
        if let Some(line) = lines.finish() {
            add(line);
        }
        found
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            text in prop::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), Just(b'b')],
                0..80,
            ),
            cuts in prop::collection::vec(0_usize..12, 0..12),
            limit in 1_usize..9,
        ) {
            let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            if expected.last().is_some_and(|last| last.is_empty()) {
                expected.pop();
            }
            let expected: Vec<_> = expected
                .iter()
                .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
                .map(|line| (line.len() <= limit).then(|| line.to_vec()))
                .collect();
            prop_assert_eq!(lines(&text, &cuts, limit), expected);
        }
    }

    #[test]
    fn a_line_that_is_too_long_takes_no_room() {
        let mut lines = Lines::new(10);
        for _ in 0..1_000 {
            let mut piece: &[u8] = &[b'x'; 100];
            assert_eq!(lines.next(&mut piece), None);
            assert!(lines.begun.capacity() <= 16);
        }
        let mut piece: &[u8] = b"x\nok\n";
        assert_eq!(lines.next(&mut piece), Some(Line::TooLong));
        let ok = Line::Text(Cow::Borrowed(&b"ok"[..]));
        assert_eq!(lines.next(&mut piece), Some(ok));
    }
}
