//! What a publisher may say about an event.

/// What a publisher may say about an event. Borrowed, so that publishing in a loop allocates nothing for it.
#[derive(Debug, Clone, Copy, Default)]
pub struct PublishOptions<'a, X = ()> {
    /// The publisher's own id, 1 to 64 printable ASCII characters. Publishing it again stores nothing.
    pub id: Option<&'a str>,
    /// The publisher's own time in epoch milliseconds.
    pub ts: Option<u64>,
    /// For compaction, ordering and partitioning.
    pub key: Option<&'a str>,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// Free labels.
    pub tags: &'a [String],
    /// Ids of the events that caused this one.
    pub caused_by: &'a [String],
    /// Boot or session id of the publisher.
    pub sid: Option<&'a str>,
    /// Publish only if this is the topic's last position; 0 where it has never had an event. Else it is refused as a
    /// `SeqMismatch`, which a server calls `seq_mismatch`. A duplicate is one whatever is expected.
    pub expect_seq: Option<u64>,
    /// Publish only if the last event of the key is at this position; 0 where there is none.
    pub expect_key_seq: Option<u64>,
    /// What only this kind of bus takes: nothing in process, where scheduling is a call of its own.
    pub extras: X,
}

/// When an event is to be published.
#[derive(Debug, Clone, Copy, Default)]
pub struct Schedule<'a> {
    /// At this time, in epoch milliseconds. One that has passed means now.
    pub deliver_at: Option<u64>,
    /// After so many milliseconds. Not together with `deliver_at`.
    pub delay_ms: Option<u64>,
    /// Again and again: an interval (`30s`, `5m`, `12h`) or a cron line with an optional time zone behind it
    /// (`0 9 * * 1-5 Europe/Berlin`; UTC where there is none). The first time is the first one at or after `deliver_at`
    /// or the delay; without them an interval passes first.
    pub every: Option<&'a str>,
    /// Whether a repeated one is published for each time that was missed while the server was down, and not only for
    /// the last of them.
    pub catch_up: bool,
}

impl Schedule<'_> {
    /// Once, at a time in epoch milliseconds.
    pub fn at(deliver_at: u64) -> Self {
        Self {
            deliver_at: Some(deliver_at),
            ..Self::default()
        }
    }

    /// Once, after so many milliseconds.
    pub fn after(delay_ms: u64) -> Self {
        Self {
            delay_ms: Some(delay_ms),
            ..Self::default()
        }
    }
}
