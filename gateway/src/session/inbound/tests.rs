//! Messages come back as they were sent, however they are cut; what is wrong is found before it is taken in.

use super::*;
use proptest::prelude::*;
use std::task::Waker;

const MASK: [u8; 4] = [7, 0, 255, 128];

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(0x80 | short as u8),
        middle @ 126..=0xFFFF => {
            frame.push(0x80 | 126);
            frame.extend((middle as u16).to_be_bytes());
        }
        long => {
            frame.push(0x80 | 127);
            frame.extend((long as u64).to_be_bytes());
        }
    }
    frame.extend(MASK);
    let masked = payload.iter().zip(MASK.iter().cycle());
    frame.extend(masked.map(|(byte, mask)| byte ^ mask));
    frame
}

fn read(inbound: &mut Inbound, mut bytes: &[u8]) {
    let mut context = Context::from_waker(Waker::noop());
    while !bytes.is_empty() {
        let read = inbound.poll_read(&mut context, &mut bytes);
        assert!(
            matches!(read, Poll::Ready(Ok(1..))),
            "a slice is always ready"
        );
    }
}

/// Everything that is whole, as text.
fn heard(inbound: &mut Inbound, into: &mut Vec<String>) -> Result<(), Violation> {
    while let Some(incoming) = inbound.next()? {
        into.push(match incoming {
            Incoming::Text(text) => text.to_owned(),
            other => format!("{other:?}"),
        });
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever the sizes of messages, of their parts and of what the socket gives at a time.
    #[test]
    fn messages_survive_any_cutting(
        messages in prop::collection::vec((0_usize..3_000, 1_usize..700), 1..12),
        sizes in prop::collection::vec(1_usize..5_000, 1..20),
    ) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (at, (length, part)) in messages.into_iter().enumerate() {
            let text: String = "aä€😀".chars().cycle().skip(at).take(length).collect();
            let mut parts = text.as_bytes().chunks(part).peekable();
            let mut opcode = TEXT;
            while let Some(part) = parts.next() {
                let last = if parts.peek().is_none() { 0x80 } else { 0 };
                bytes.extend(frame(last | opcode, part));
                if last == 0 {
                    bytes.extend(frame(0x80 | PONG, b"in between"));
                    expected.push("Pong".to_owned());
                }
                opcode = CONTINUATION;
            }
            if !text.is_empty() {
                expected.push(text);
            }
        }
        let mut inbound = Inbound::new(&[], 1 << 20);
        let (mut found, mut rest) = (Vec::new(), bytes.as_slice());
        for size in sizes.into_iter().cycle() {
            let (now, later) = rest.split_at(size.min(rest.len()));
            read(&mut inbound, now);
            prop_assert_eq!(heard(&mut inbound, &mut found), Ok(()));
            inbound.shrink();
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found, expected);
        inbound.rest();
        prop_assert_eq!(inbound.buffer.capacity() + inbound.parts.capacity(), 0);
    }

    #[test]
    fn garbage_is_no_trouble(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut inbound = Inbound::new(&bytes, 1_000);
        // Whether it is a violation or makes sense by chance does not matter.
        let _ = heard(&mut inbound, &mut Vec::new());
    }
}

#[test]
fn an_announced_length_is_refused_before_it_is_made_room_for() {
    let mut inbound = Inbound::new(&[0x81, 0xFF, 0, 0, 0, 0, 0, 1, 0, 0], 1_000);
    assert_eq!(inbound.next(), Err(Violation::TooBig { limit: 1_000 }));
    let mut inbound = Inbound::new(&frame(TEXT, &[b' '; 600]), 1_000);
    assert_eq!(inbound.next(), Ok(None));
    read(&mut inbound, &frame(CONTINUATION, &[b' '; 400]));
    assert_eq!(inbound.next(), Ok(None));
    read(&mut inbound, &frame(0x80, b" "));
    assert_eq!(inbound.next(), Err(Violation::TooBig { limit: 1_000 }));
}

#[test]
fn a_large_message_gets_room_as_it_comes_and_gives_it_back() {
    let bytes = frame(0x81, &vec![b'x'; 3 << 20]);
    let mut inbound = Inbound::new(&[], 4 << 20);
    read(&mut inbound, &bytes[..10_000]);
    assert_eq!(inbound.next(), Ok(None));
    assert!(inbound.buffer.len() < 200_000, "{}", inbound.buffer.len());
    read(&mut inbound, &bytes[10_000..]);
    assert!(matches!(inbound.next(), Ok(Some(Incoming::Text(text))) if text.len() == 3 << 20));
    inbound.shrink();
    assert_eq!(inbound.buffer.capacity(), 0);
}

#[test]
fn closes_have_codes_or_none() {
    for (payload, expected) in [
        (&b""[..], Ok(Some(Incoming::Close(None)))),
        (&[0x03, 0xE8], Ok(Some(Incoming::Close(Some(1000))))),
        (&[0x0B, 0xB8, b'x'], Ok(Some(Incoming::Close(Some(3000))))),
        (&[0x03, 0xE8, 0xFF], Err(Violation::NotUtf8)),
        (
            &[0x03, 0xED],
            Err(Violation::Protocol("invalid close code")),
        ),
        (&[0x03], Err(Violation::Protocol("truncated close code"))),
    ] {
        let mut inbound = Inbound::new(&frame(0x88, payload), 1_000);
        assert_eq!(inbound.next(), expected, "{payload:?}");
    }
}
