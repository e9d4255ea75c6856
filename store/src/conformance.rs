//! What every store is held to: the obligations of [`Store`] as checks that a store's tests call.
//!
//! A store's test file has a [`Harness`] that opens it, and one line, which makes a test of each check:
//!
//! ```text
//! prombus_store::conformance_suite!(MyHarness::new());
//! ```
//!
//! The checks know nothing of how a store works. They own its clock, never wait for time to pass, call
//! [`Store::maintain`] before they look at what retention and compaction did, and let compaction keep more than it
//! must.

// A check is a test that happens to live in a library.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a check fails by panicking"
)]

pub mod batches;
mod case;
pub mod closing;
pub mod compaction;
mod comparing;
pub mod concurrency;
pub mod duplicates;
pub mod expected;
pub mod finding;
pub mod keyed;
mod oracle;
pub mod order;
pub mod past;
pub mod random;
pub mod random_maintenance;
mod random_numbers;
pub mod reading;
pub mod records;
pub mod retention;
pub mod time;
pub mod topics;
pub mod watching;

pub use random_numbers::Random;

use crate::{ManualClock, Store};
use std::future::Future;
use std::sync::Arc;

/// How the suite gets at a store. Each check makes its own harness, and opens one store with it.
pub trait Harness {
    /// Opens an empty store that lives by `clock`.
    fn open(&self, clock: Arc<ManualClock>) -> impl Future<Output = Arc<dyn Store>>;

    /// Closes a store and opens it again with what it holds. Where nothing outlives the process this is the same
    /// store, untouched.
    fn reopen(
        &self,
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
    ) -> impl Future<Output = Arc<dyn Store>>;

    /// How many seeds the random checks try. A store without a disk or a network can afford more.
    fn seeds(&self) -> u64 {
        12
    }
}

/// Makes a test of each check of the suite, with a [`Harness`](crate::conformance::Harness) made anew for each by the
/// given expression. The crate that calls it needs `tokio` with `macros` and `rt-multi-thread`.
///
/// Where a harness needs servers that are slow to start, `conformance_suite!(name, lab, harness)` makes one test of all
/// checks: `lab` starts the servers, and `harness` makes a harness from a reference to the lab.
#[macro_export]
macro_rules! conformance_suite {
    (@list $how:tt) => {
        $crate::conformance_tests! { $how;
            order {
                positions_have_no_gaps_in_interleaved_topics,
                commits_are_ordered_by_their_calls,
                a_dropped_answer_does_not_undo_the_commit,
                generated_ids_strictly_increase,
                given_times_never_fall,
                times_of_publishers_are_kept_and_bind_nobody,
                ids_positions_and_times_go_on_after_reopening,
            }
            records {
                fields_come_in_the_order_of_the_contract,
                absent_fields_are_left_out,
                payload_text_is_kept,
                awkward_strings_are_spelled_as_json,
                parts_of_a_record_can_be_asked_for,
                what_no_record_can_hold_is_refused,
            }
            duplicates {
                a_client_id_is_stored_once,
                only_the_payload_makes_a_conflict,
                an_id_belongs_to_its_topic,
                a_generated_id_that_is_handed_back_is_a_duplicate,
                duplicates_within_one_batch,
                ids_are_known_after_reopening,
                trimmed_ids_are_free_again,
                ids_of_a_deleted_topic_are_free_again,
                ids_that_look_generated_elsewhere_are_ordinary,
                no_id_is_ever_given_twice,
                thousands_of_client_ids,
            }
            batches {
                a_failed_expectation_refuses_everything,
                an_id_conflict_refuses_an_atomic_batch,
                an_unknown_topic_refuses_an_atomic_batch,
                duplicates_count_as_stored_in_an_atomic_batch,
                events_of_a_plain_batch_are_independent,
                changes_come_before_events,
                atomic_batches_over_events_and_records_survive,
                an_empty_batch_is_fine,
            }
            expected {
                the_last_position_of_a_topic,
                the_last_event_of_a_key,
                a_tombstone_is_the_last_event_for_a_while,
                a_duplicate_is_compared_with_nothing,
                events_of_a_batch_see_those_before_them,
                a_mismatch_refuses_an_atomic_batch,
                a_topic_that_the_batch_makes,
                what_is_gone_does_not_count,
                awkward_keys_are_found,
                positions_are_known_after_reopening,
                one_of_many_has_the_next_position,
                no_update_of_a_key_is_lost,
            }
            keyed {
                versions_grow_with_each_write,
                expectations_are_kept,
                deleting_records,
                writes_of_one_batch_see_each_other,
                records_are_listed_by_prefix_in_order,
                records_survive_reopening,
            }
            topics {
                unknown_topics_are_errors,
                a_new_topic_is_empty,
                putting_an_existing_topic_changes_only_its_options,
                deleting_removes_everything,
                a_topic_made_again_starts_anew,
                topics_are_listed_by_name,
                topics_survive_reopening,
            }
            retention {
                trimming_forgets_what_lies_before,
                trimming_knows_its_bounds,
                trimming_an_unknown_topic_is_refused,
                old_events_are_forgotten,
                young_events_are_kept,
                too_many_events_are_forgotten,
                too_many_bytes_are_forgotten,
                positions_go_on_after_everything_was_forgotten,
                topics_do_not_share_retention,
            }
            compaction {
                the_latest_of_each_key_is_kept,
                every_position_stays_readable,
                tombstones_stay_a_day_and_may_go_then,
                a_tombstone_with_an_older_ts_stays_its_day,
                a_topic_may_be_compacted_to_nothing,
                other_topics_are_left_alone,
                what_is_kept_is_found,
            }
            reading {
                pages_cover_everything_once,
                a_page_has_at_least_one_event,
                a_page_ends_near_its_byte_limit,
                reading_at_and_behind_the_tail,
                reading_over_what_is_gone,
            }
            time {
                events_come_by_time_then_position,
                thousands_share_one_millisecond,
                the_ends_of_a_range_belong_to_it,
                times_are_kept_after_trimming_and_reopening,
                the_first_event_since_a_time,
            }
            finding {
                events_are_found_by_id,
                the_latest_event_of_a_key,
                latest_keys_come_in_order_and_pages,
                trimmed_keys_have_no_latest,
                everything_is_found_after_reopening,
            }
            past {
                the_latest_event_at_a_time,
                what_compaction_took_is_not_guessed,
            }
            watching {
                what_a_watcher_is_told_is_visible,
                a_watcher_starts_at_the_tail,
                a_topic_can_be_watched_before_it_exists,
                a_deleted_topic_has_no_tail,
                changes_of_topics_are_told,
            }
            concurrency {
                many_committers_share_topics,
                one_of_many_stores_an_id,
                compare_and_set_loses_no_update,
                readers_see_whole_prefixes,
                records_come_into_sight_with_their_events,
                a_read_comes_behind_commits_under_way,
            }
            closing {
                a_closed_store_takes_no_commits,
                closing_finishes_what_was_begun,
                a_sound_store_says_so,
            }
            ;
            random::operations_match_the_oracle,
            random_maintenance::what_must_be_kept_is_kept,
        }
    };
    ($harness:expr) => {
        $crate::conformance_suite! { @list (each $harness) }
    };
    ($name:ident, $lab:expr, $harness:expr) => {
        $crate::conformance_suite! { @list (all $name, $lab, $harness) }
    };
}

/// Used by [`conformance_suite!`](crate::conformance_suite).
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ((each $harness:expr); $($area:ident { $($check:ident,)* })* ; $($seeded:ident :: $with_seed:ident,)*) => {
        $(mod $area {
            #[allow(unused_imports, reason = "the harness may be named by a full path")]
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                $crate::conformance::$area::$check(&$harness).await;
            })*
        })*
        mod random {
            #[allow(unused_imports, reason = "the harness may be named by a full path")]
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $with_seed() {
                for seed in 0..$crate::conformance::Harness::seeds(&$harness) {
                    $crate::conformance::$seeded::$with_seed(&$harness, seed).await;
                }
            })*
        }
    };
    ((all $name:ident, $lab:expr, $harness:expr); $($area:ident { $($check:ident,)* })* ; $($seeded:ident :: $with_seed:ident,)*) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[allow(clippy::too_many_lines, clippy::print_stderr, reason = "it is a list of checks")]
        async fn $name() {
            let lab = $lab;
            $($({
                eprintln!(concat!(stringify!($area), "::", stringify!($check)));
                let harness = $harness(&lab);
                Box::pin($crate::conformance::$area::$check(&harness)).await;
            })*)*
            $({
                eprintln!(concat!(stringify!($seeded), "::", stringify!($with_seed)));
                let harness = $harness(&lab);
                for seed in 0..$crate::conformance::Harness::seeds(&harness) {
                    Box::pin($crate::conformance::$seeded::$with_seed(&harness, seed)).await;
                }
            })*
        }
    };
}
