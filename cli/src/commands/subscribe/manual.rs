//! `sub --ack manual`: a person decides what becomes of each event, with single keys on a terminal or with lines that a
//! program writes.

use super::next_or_interrupt;
use crate::commands::event_format;
use crate::output::{self, Format};
use prombus_client::{Delivery, Subscription};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::collections::HashMap;
use std::io::{BufRead, IsTerminal, stdin};
use tokio::sync::mpsc;

/// Lines or keys that wait to be handled.
const MAX_QUEUED_INPUTS: usize = 64;
/// The reason of a nack that gives none.
const NACK_REASON: &str = "nacked by hand";
/// By how much a lease is extended.
const EXTEND_MS: u64 = 60_000;

/// Prints events with their ids and does what the input says, until `limit` events are settled or the input ends.
pub(super) async fn settle_by_hand(
    subscription: &Subscription,
    limit: u64,
    format: Format,
) -> anyhow::Result<()> {
    if stdin().is_terminal() && !format.is_json() {
        settle_by_keys(subscription, limit).await
    } else {
        settle_by_lines(subscription, limit, format).await
    }
}

/// One event at a time, with a key for each thing that can become of it.
async fn settle_by_keys(subscription: &Subscription, limit: u64) -> anyhow::Result<()> {
    output::notice("keys: a acknowledge, n nack, e extend the lease, s skip for now, q quit");
    let _raw = RawMode::enter()?;
    let mut keys = pressed_keys();
    for _ in 0..limit {
        let delivery = tokio::select! {
            delivery = next_or_interrupt(subscription) => delivery?,
            key = keys.recv() => match key {
                None | Some('q') => return Ok(()),
                // There is nothing to settle.
                Some(_) => continue,
            },
        };
        let Some(delivery) = delivery else {
            return Ok(());
        };
        // Raw mode does not return the carriage by itself.
        let line = event_format::one_line(delivery.event.json(), true)?;
        output::line(format_args!("{line}\r"))?;
        loop {
            match keys.recv().await {
                Some('a') => {
                    delivery.ack();
                    output::notice("acknowledged\r");
                }
                Some('n') => {
                    delivery.nack(NACK_REASON);
                    output::notice("nacked\r");
                }
                Some('e') => {
                    delivery.extend(EXTEND_MS);
                    output::notice("lease extended by 60 s\r");
                    continue;
                }
                Some('s') => output::notice("skipped; it comes back when its lease expires\r"),
                None | Some('q') => return Ok(()),
                Some(_) => continue,
            }
            break;
        }
    }
    Ok(())
}

async fn settle_by_lines(
    subscription: &Subscription,
    limit: u64,
    format: Format,
) -> anyhow::Result<()> {
    let mut lines = stdin_lines();
    let mut unsettled = HashMap::new();
    let mut left = limit;
    let mut stdin_is_open = true;
    while left > 0 || (stdin_is_open && !unsettled.is_empty()) {
        tokio::select! {
            delivery = next_or_interrupt(subscription), if left > 0 => {
                let Some(delivery) = delivery? else {
                    return Ok(());
                };
                if format.is_json() {
                    output::json_text(delivery.event.json())?;
                } else {
                    output::line(event_format::one_line(delivery.event.json(), true)?)?;
                }
                unsettled.insert(delivery.event.id().to_owned(), delivery);
                left -= 1;
            }
            line = lines.recv(), if stdin_is_open => match line {
                Some(line) => settle(&mut unsettled, &line),
                None => stdin_is_open = false,
            },
        }
    }
    Ok(())
}

/// Does what a line says: `ID`, `nack ID REASON` or `extend ID`.
fn settle(unsettled: &mut HashMap<String, Delivery>, line: &str) {
    let mut words = line.trim().splitn(3, ' ');
    let (verb, id) = match (words.next(), words.next()) {
        (Some(verb @ ("ack" | "nack" | "extend")), Some(id)) => (verb, id),
        (Some(""), _) | (None, _) => return,
        (Some(id), _) => ("ack", id),
    };
    if verb == "extend" {
        match unsettled.get(id) {
            Some(delivery) => delivery.extend(EXTEND_MS),
            None => unknown(id),
        }
        return;
    }
    match unsettled.remove(id) {
        Some(delivery) if verb == "nack" => {
            delivery.nack(words.next().unwrap_or(NACK_REASON));
        }
        Some(delivery) => delivery.ack(),
        None => unknown(id),
    }
}

fn unknown(id: &str) {
    let id = crate::escape::controls(id);
    output::notice(format_args!("{id} was not delivered here, or is settled"));
}

/// The lines of stdin, read on a thread that may block.
fn stdin_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(MAX_QUEUED_INPUTS);
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The keys that are pressed, read on a thread that may block. Ctrl-C is `q`, for raw mode makes no signal of it.
fn pressed_keys() -> mpsc::Receiver<char> {
    let (sender, keys) = mpsc::channel(MAX_QUEUED_INPUTS);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            let Event::Key(key) = event else { continue };
            if key.kind != KeyEventKind::Press {
                continue;
            }
            let key = match key.code {
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => 'q',
                KeyCode::Char(key) => key,
                KeyCode::Esc => 'q',
                _ => continue,
            };
            if sender.blocking_send(key).is_err() {
                return;
            }
        }
    });
    keys
}

/// The terminal in raw mode, until this is dropped.
struct RawMode;

impl RawMode {
    fn enter() -> anyhow::Result<Self> {
        enable_raw_mode()?;
        Ok(Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = disable_raw_mode();
    }
}
