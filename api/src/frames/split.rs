//! Splitting a message into its frames. Each frame of an array is independent: a bad one gives its own error, and
//! the others are read all the same.

use super::{ClientFrame, ServerFrame};
use crate::code::Code;
use crate::error::{FrameError, ParseError};
use crate::scan::{ScanError, Scanner};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The frames of a message that a client sent, read one by one. An array that is not closed is rejected as a whole.
#[derive(Debug, Clone)]
pub struct ClientFrames<'a>(Split<'a, ClientFrame<'a>>);

/// The frames of a message that a server sent, like [`ClientFrames`].
#[derive(Debug, Clone)]
pub struct ServerFrames<'a>(Split<'a, ServerFrame<'a>>);

impl<'a> ClientFrames<'a> {
    /// Begins to read a message.
    pub fn new(message: &'a str) -> Self {
        Self(Split::new(message))
    }
}

impl<'a> ServerFrames<'a> {
    /// Begins to read a message.
    pub fn new(message: &'a str) -> Self {
        Self(Split::new(message))
    }
}

impl<'a> Iterator for ClientFrames<'a> {
    type Item = Result<ClientFrame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl<'a> Iterator for ServerFrames<'a> {
    type Item = Result<ServerFrame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

/// So many frames of an array that has to be closed are read before the first one is given out: if the array ends by then,
/// it need not be searched for its end first, which takes half as long as reading it.
const READ_AHEAD: usize = 256;

/// A kind of frame.
pub(super) trait Frame<'a>: Sized {
    /// Whether an array that is not closed is rejected before its first frame.
    const MUST_BE_CLOSED: bool;

    /// Reads the object at the cursor, whose op is known.
    fn read(scanner: &mut Scanner<'a>, op: &str) -> Result<Self, ScanError>;
}

#[derive(Debug, Clone)]
struct Split<'a, F> {
    scanner: Scanner<'a>,
    state: State,
    /// Frames that were read and not given out, in front of the cursor.
    ahead: std::vec::IntoIter<Result<F, FrameError>>,
    kind: PhantomData<F>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Nothing was read yet.
    Start,
    /// A frame of an array comes next.
    Item,
    /// The array is broken behind the last frame.
    Broken(&'static str),
    Done,
}

impl<'a, F: Frame<'a>> Split<'a, F> {
    fn new(message: &'a str) -> Self {
        Self {
            scanner: Scanner::new(message),
            state: State::Start,
            ahead: Vec::new().into_iter(),
            kind: PhantomData,
        }
    }

    #[inline]
    fn next(&mut self) -> Option<Result<F, FrameError>> {
        if let Some(read) = self.ahead.next() {
            return Some(read);
        }
        match self.state {
            State::Start => {
                let message = self.scanner;
                if !self.scanner.take(b'[') {
                    Some(self.single())
                } else if self.scanner.take(b']') {
                    Some(Err(self.empty()))
                } else if F::MUST_BE_CLOSED {
                    self.read_ahead(message)
                } else {
                    Some(self.item())
                }
            }
            State::Item => Some(self.item()),
            State::Broken(reason) => Some(Err(self.broken(reason))),
            State::Done => None,
        }
    }

    /// Reads the first frames of an array, and makes sure that it is closed: no frame of one that is not may run.
    fn read_ahead(&mut self, array: Scanner<'a>) -> Option<Result<F, FrameError>> {
        self.state = State::Item;
        let mut ahead = Vec::new();
        while matches!(self.state, State::Item) && ahead.len() < READ_AHEAD {
            ahead.push(self.item());
        }
        let is_read = matches!(self.state, State::Done) && ahead.iter().all(Result::is_ok);
        if !is_read && !array.is_closed() {
            self.state = State::Done;
            let error = array.syntax("unclosed bracket");
            return Some(Err(without_corr(error.into())));
        }
        self.ahead = ahead.into_iter();
        self.ahead.next()
    }

    /// The only frame of a message. Nothing may follow it.
    #[inline]
    fn single(&mut self) -> Result<F, FrameError> {
        self.state = State::Done;
        let start = self.scanner;
        let frame = read_frame(&mut self.scanner);
        match frame.and_then(|frame| self.scanner.end().map(|()| frame)) {
            Ok(frame) => Ok(frame),
            Err(error) => Err(frame_error(error, start, start.left())),
        }
    }

    fn item(&mut self) -> Result<F, FrameError> {
        let start = self.scanner;
        match read_frame(&mut self.scanner) {
            Ok(frame) => {
                self.separator();
                Ok(frame)
            }
            Err(error) => Err(self.bad_item(error, start)),
        }
    }

    /// Goes behind a frame that could not be read.
    #[cold]
    fn bad_item(&mut self, error: ScanError, start: Scanner<'a>) -> FrameError {
        self.scanner = start;
        match self.scanner.raw() {
            Ok(text) => {
                self.separator();
                frame_error(error, start, text)
            }
            Err(error) => {
                self.state = State::Done;
                frame_error(error, start, start.left())
            }
        }
    }

    /// Takes what follows a frame of an array.
    fn separator(&mut self) {
        self.state = if self.scanner.take(b',') {
            State::Item
        } else if !self.scanner.take(b']') {
            State::Broken("expected a comma or a closing bracket")
        } else if self.scanner.peek().is_some() {
            State::Broken("unexpected data after the array")
        } else {
            State::Done
        };
    }

    #[cold]
    fn broken(&mut self, reason: &str) -> FrameError {
        self.state = State::Done;
        without_corr(self.scanner.syntax(reason).into())
    }

    #[cold]
    fn empty(&mut self) -> FrameError {
        self.state = State::Done;
        match self.scanner.end() {
            Ok(()) => without_corr(ParseError::new(Code::BadFrame, "empty array of frames")),
            Err(error) => without_corr(error.into()),
        }
    }
}

/// Reads a frame. Its op is mostly the first field; where it is not, it is searched for.
#[inline]
fn read_frame<'a, F: Frame<'a>>(scanner: &mut Scanner<'a>) -> Result<F, ScanError> {
    match scanner.first_field("op") {
        Some(op) => F::read(scanner, op),
        None => F::read(scanner, &search_op(*scanner)?),
    }
}

#[cold]
fn search_op<'a>(mut scanner: Scanner<'a>) -> Result<Cow<'a, str>, ScanError> {
    let mut op = None;
    scanner.object(|scanner, name| match name {
        "op" => scanner.fill(&mut op),
        _ => scanner.raw().map(drop),
    })?;
    super::required(op, "op")
}

/// The error for a frame that begins at `start`, with its corr wherever in the frame that is.
#[cold]
fn frame_error(error: ScanError, mut start: Scanner<'_>, text: &str) -> FrameError {
    let mut corr: Option<String> = None;
    // Whatever is wrong with the frame may be found again on the way; what matters is what was read before.
    let _ = start.object(|scanner, name| match name {
        "corr" => scanner.fill(&mut corr),
        _ => scanner.raw().map(drop),
    });
    let ParseError { code, message } = error.parse_error(text);
    FrameError {
        code,
        message,
        corr,
    }
}

fn without_corr(error: ParseError) -> FrameError {
    let ParseError { code, message } = error;
    FrameError {
        code,
        message,
        corr: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame of an array that is read on the go.
    struct OnTheGo<'a>(ClientFrame<'a>);

    impl<'a> Frame<'a> for OnTheGo<'a> {
        const MUST_BE_CLOSED: bool = false;

        fn read(scanner: &mut Scanner<'a>, op: &str) -> Result<Self, ScanError> {
            ClientFrame::read(scanner, op).map(Self)
        }
    }

    fn read_all(message: &str) -> Vec<Result<ClientFrame<'_>, FrameError>> {
        ClientFrames::new(message).collect()
    }

    fn expected(message: &str) -> Vec<Result<ClientFrame<'_>, FrameError>> {
        let scanner = Scanner::new(message);
        if message.trim_start().starts_with('[') && !scanner.is_closed() {
            let error = scanner.syntax("unclosed bracket");
            return vec![Err(without_corr(error.into()))];
        }
        let mut split = Split::<OnTheGo<'_>>::new(message);
        let frames = std::iter::from_fn(|| split.next());
        frames.map(|read| read.map(|frame| frame.0)).collect()
    }

    fn item() -> impl Strategy<Value = &'static str> {
        prop_oneof![
            20 => Just(r#"{"op":"PAUSE","topic":"t","group":"g"}"#),
            5 => Just(r#"{"op":"PUBLISH","topic":"t","payload":{"a":["]",{}]}}"#),
            1 => Just(r#"{"op":"NOPE"}"#),
            1 => Just(r#"{"op":"PAUSE","topic":"t","topic":"t","group":"]"}"#),
            1 => Just("7"),
            1 => Just(""),
        ]
    }

    proptest! {
        #[test]
        fn arrays_give_what_they_give_on_the_go_unless_they_are_not_closed(
            items in prop::collection::vec(item(), 0..2 * READ_AHEAD),
            blank in prop::bool::ANY,
            cut in prop::option::of(0..200usize),
        ) {
            let blank = if blank { " " } else { "" };
            let mut message = format!("{blank}[{}]{blank}", items.join(","));
            message.truncate(message.len() - cut.unwrap_or(0).min(message.len()));
            prop_assert_eq!(read_all(&message), expected(&message));
        }
    }

    #[test]
    fn no_frame_of_an_array_that_is_not_closed_is_given_out() {
        let frame = r#"{"op":"PAUSE","topic":"t","group":"g"}"#;
        for count in [
            1,
            READ_AHEAD - 1,
            READ_AHEAD,
            READ_AHEAD + 1,
            3 * READ_AHEAD,
        ] {
            let frames = vec![frame; count].join(",");
            assert_eq!(read_all(&format!("[{frames}]")).len(), count);
            for start in ["[", " ["] {
                for end in ["", ",", ",{\"op\":\"PAUSE]"] {
                    let message = format!("{start}{frames}{end}");
                    assert!(matches!(read_all(&message)[..], [Err(_)]), "{count} {end}");
                }
            }
        }
    }
}
