//! Who gets credit, in which order, and that bytes are conserved.

use super::*;
use proptest::prelude::*;

/// Room for so many events, and for their bytes in any case.
fn credit(limit: usize) -> Arc<Credit> {
    let memory = Arc::new(ByteBudget::new(1 << 30));
    Arc::new(Credit::new(limit, 1 << 30, memory))
}

/// How many events a reservation is for.
fn reserve(credit: &Arc<Credit>, wanted: usize, inbox: &Arc<Inbox>) -> usize {
    credit
        .reserve(wanted, 1, inbox)
        .map_or(0, |(count, _)| count)
}

#[test]
fn the_first_in_the_queue_is_served_first() {
    let credit = credit(3);
    let [busy, quiet] = [Arc::new(Inbox::new(1 << 30)), Arc::new(Inbox::new(1 << 30))];
    assert_eq!(credit.take(5, &busy), 3);
    assert_eq!(credit.take(1, &quiet), 0);

    credit.release(3, &busy);
    assert_eq!(credit.take(1, &quiet), 0, "busy queued first");
    assert_eq!(credit.take(1, &busy), 1);
    assert_eq!(credit.take(2, &busy), 0, "now it is quiet's turn");
    assert_eq!(credit.take(1, &quiet), 1);
    assert_eq!(credit.take(2, &busy), 1);
    assert_eq!(credit.room(), 0);
}

#[test]
fn what_is_left_can_be_set() {
    let credit = credit(1);
    let owner = Arc::new(Inbox::new(1 << 30));
    assert_eq!(credit.take(5, &owner), 1);
    credit.set_free(3);
    assert_eq!(credit.take(5, &owner), 3);
    credit.set_free(0);
    assert_eq!(credit.take(1, &owner), 0);
    assert_eq!(credit.limit(), 4);
}

#[test]
fn what_is_reserved_is_nobody_elses() {
    let credit = credit(5);
    let [first, second] = [Arc::new(Inbox::new(1 << 30)), Arc::new(Inbox::new(1 << 30))];
    assert_eq!(reserve(&credit, 3, &first), 3);
    assert_eq!(credit.room(), 5, "nothing is in flight");
    assert_eq!(reserve(&credit, 9, &second), 2);
    assert_eq!(reserve(&credit, 1, &second), 0);
    assert_eq!(credit.take_reserved(2), 2);
    assert_eq!(credit.room(), 3);
    credit.release_reserved(1, &first);
    assert_eq!(credit.take(5, &first), 0, "second waits");
    assert_eq!(credit.take(5, &second), 1);
}

#[test]
fn what_was_reserved_obeys_a_lower_limit() {
    let credit = credit(5);
    let owner = Arc::new(Inbox::new(1 << 30));
    assert_eq!(reserve(&credit, 5, &owner), 5);
    credit.set_free(2);
    assert_eq!(credit.take_reserved(5), 2);
    credit.release_reserved(3, &owner);
    assert_eq!(credit.take(1, &owner), 0);
    credit.release(2, &owner);
    assert_eq!(credit.take(9, &owner), 2);
}

#[test]
fn whoever_leaves_the_queue_holds_nobody_up() {
    let credit = credit(1);
    let [first, second] = [Arc::new(Inbox::new(1 << 30)), Arc::new(Inbox::new(1 << 30))];
    assert_eq!(credit.take(2, &first), 1);
    assert_eq!(credit.take(1, &second), 0);
    credit.dequeue(&first);
    credit.release(1, &first);
    assert_eq!(credit.take(1, &second), 1);
    credit.release(1, &second);
    drop(second);
    assert_eq!(credit.take(1, &first), 1);
}

#[test]
fn bytes_run_out_for_one_but_the_first_event_always_comes() {
    let memory = Arc::new(ByteBudget::new(1_000));
    let [one, other] = [100, 5_000].map(|limit| Arc::new(Credit::new(9, limit, memory.clone())));
    let owner = Arc::new(Inbox::new(1 << 30));
    let (_, first) = one.reserve(1, 60, &owner).expect("there is room");
    let (_, second) = one.reserve(1, 60, &owner).expect("there is room");
    assert_eq!((first.bytes(), second.bytes()), (60, 40));
    assert!(one.reserve(1, 1, &owner).is_none(), "its own are used up");
    let (_, large) = other.reserve(1, 5_000, &owner).expect("there is room");
    assert_eq!(large.bytes(), 900);
    assert!(other.reserve(1, 1, &owner).is_none());
    drop((first, second));
    let (_, least) = one.reserve(1, 60, &owner).expect("there is room");
    assert_eq!(least.bytes(), 60);
    drop(large);
    let shared = memory.hold(1_000);
    let (_, one_event) = other.reserve(1, 60, &owner).expect("one event comes");
    assert_eq!(one_event.bytes(), 1);
    drop((least, one_event, shared));
    assert_eq!((memory.used_bytes(), owner.bytes.used_bytes()), (0, 0));
}

/// What happens to reservations and to what was read for them.
#[derive(Debug, Clone)]
enum Action {
    Reserve {
        subscription: usize,
        group: usize,
        bytes: usize,
    },
    Split {
        at: usize,
        bytes: usize,
    },
    Release {
        at: usize,
        bytes: usize,
    },
    Drop {
        at: usize,
    },
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let action = prop_oneof![
        (0..3usize, 0..2usize, 1..5_000usize).prop_map(|(subscription, group, bytes)| {
            Action::Reserve {
                subscription,
                group,
                bytes,
            }
        }),
        (0..8usize, 1..9_000usize).prop_map(|(at, bytes)| Action::Split { at, bytes }),
        (0..8usize, 1..9_000usize).prop_map(|(at, bytes)| Action::Release { at, bytes }),
        (0..8usize).prop_map(|at| Action::Drop { at }),
    ];
    proptest::collection::vec(action, 1..60)
}

proptest! {
    /// However reservations are split, given back and dropped, all three budgets count what is held, and nothing else.
    #[test]
    fn bytes_are_conserved(actions in actions()) {
        let memory = Arc::new(ByteBudget::new(10_000));
        let credits = [0; 3].map(|_| Arc::new(Credit::new(1_000, 4_000, memory.clone())));
        let groups = [0; 2].map(|_| Arc::new(Inbox::new(6_000)));
        let mut holds: Vec<(usize, usize, ByteHold)> = Vec::new();
        for action in actions {
            match action {
                Action::Reserve { subscription, group, bytes } => {
                    if let Some((_, hold)) = credits[subscription].reserve(1, bytes, &groups[group]) {
                        prop_assert!((1..=bytes).contains(&hold.bytes()));
                        holds.push((subscription, group, hold));
                    }
                }
                Action::Split { at, bytes } if at < holds.len() => {
                    let (subscription, group, hold) = &mut holds[at];
                    let part = (*subscription, *group, hold.split(bytes));
                    prop_assert_eq!(part.2.bytes(), bytes);
                    holds.push(part);
                }
                Action::Release { at, bytes } if at < holds.len() => holds[at].2.release(bytes),
                Action::Drop { at } if at < holds.len() => drop(holds.remove(at)),
                _ => {}
            }
            let sum = |is_meant: &dyn Fn(usize, usize) -> bool| -> usize {
                let meant = holds.iter().filter(|(one, other, _)| is_meant(*one, *other));
                meant.map(|(.., hold)| hold.bytes()).sum()
            };
            prop_assert_eq!(memory.used_bytes(), sum(&|_, _| true));
            for (at, credit) in credits.iter().enumerate() {
                prop_assert_eq!(credit.bytes.used_bytes(), sum(&|one, _| one == at));
            }
            for (at, group) in groups.iter().enumerate() {
                prop_assert_eq!(group.bytes.used_bytes(), sum(&|_, other| other == at));
            }
        }
        holds.clear();
        prop_assert_eq!(memory.used_bytes(), 0);
    }
}
