//! The heads of messages of every length, and frames that are sent together.

use super::*;

fn empty() -> Outbound {
    Outbound::new(&budget())
}

fn budget() -> Arc<ByteBudget> {
    let store = prombus_store::memory::MemoryStore::new(Arc::new(prombus::SystemClock));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let bus = prombus::Bus::open(Arc::new(store), prombus::BusOptions::default()).unwrap();
    bus.delivery_memory().clone()
}

/// The payloads of all messages in the buffer.
fn messages(outbound: &mut Outbound) -> Vec<String> {
    outbound.seal();
    let mut rest = outbound.buffer.as_slice();
    let mut found = Vec::new();
    while let [first, second, behind @ ..] = rest {
        assert_eq!(*first, LAST_TEXT);
        let (head, length) = match second {
            126 => (2, usize::from(u16::from_be_bytes([behind[0], behind[1]]))),
            127 => (
                8,
                u64::from_be_bytes(behind[..8].try_into().unwrap()) as usize,
            ),
            short => (0, usize::from(*short)),
        };
        let (payload, behind) = behind[head..].split_at(length);
        found.push(String::from_utf8(payload.to_vec()).unwrap());
        rest = behind;
    }
    found
}

#[test]
fn messages_of_every_length_have_the_right_head() {
    let mut outbound = empty();
    let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 100_000];
    for length in lengths {
        outbound.frame(|out| out.resize(out.len() + length, b'x'));
    }
    let found: Vec<usize> = messages(&mut outbound).iter().map(String::len).collect();
    assert_eq!(found, lengths);
}

#[test]
fn arrays_are_only_for_those_who_asked_and_do_not_grow_without_end() {
    let mut outbound = empty();
    outbound.frame(|out| out.push(b'1'));
    outbound.take_arrays(true);
    for _ in 0..3 {
        outbound.frame(|out| out.push(b'2'));
    }
    outbound.take_arrays(false);
    outbound.frame(|out| out.push(b'3'));
    assert_eq!(messages(&mut outbound), ["1", "[2,2,2]", "3"]);
    let mut outbound = empty();
    outbound.take_arrays(true);
    for _ in 0..10 {
        outbound.frame(|out| out.resize(out.len() + 30_000, b'x'));
    }
    let found = messages(&mut outbound);
    assert_eq!(found.len(), 4);
    assert!(
        found
            .iter()
            .all(|message| message.len() < ARRAY_BYTES + 30_000)
    );
}

#[test]
fn control_frames_end_an_array_and_long_reasons_are_left_out() {
    let mut outbound = empty();
    outbound.take_arrays(true);
    outbound.frame(|out| out.push(b'1'));
    outbound.ping();
    outbound.pong(b"p");
    outbound.close(Some(1001), "bye");
    outbound.close(Some(1001), &"x".repeat(124));
    outbound.close(None, "unsaid");
    let expected = [
        &[LAST_TEXT, 3][..],
        b"[1]",
        &[LAST_PING, 0, LAST_PONG, 1, b'p'],
        &[LAST_CLOSE, 5, 0x03, 0xE9],
        b"bye",
        &[LAST_CLOSE, 2, 0x03, 0xE9, LAST_CLOSE, 0],
    ];
    assert_eq!(outbound.buffer, expected.concat());
    assert_eq!(outbound.waiting(), outbound.buffer.len());
}

#[test]
fn a_large_event_takes_its_own_size_and_is_counted_until_it_is_sent() {
    let memory = budget();
    let mut outbound = Outbound::new(&memory);
    outbound.reserve(300_000);
    outbound.frame(|out| out.resize(out.len() + 300_000, b'x'));
    outbound.reserve(100_000);
    outbound.frame(|out| out.resize(out.len() + 100_000, b'x'));
    outbound.count();
    let used = memory.used_bytes();
    assert!((400_000..410_000).contains(&used), "{used}");
    drop(outbound);
    assert_eq!(memory.used_bytes(), 0);
}
