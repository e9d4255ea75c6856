//! Damage that the log found. It is never passed over in silence: each finding is typed, has one line of text, and is
//! kept in a note beside the data until an operator removes the note.

mod describe;
mod list;
mod note;

pub(crate) use crate::files::{read_whole, write_whole};
pub(crate) use describe::{describe, read_damage};
pub use list::MAX_FINDINGS;
pub(crate) use list::{DamageList, is_about_damage, keep_copy, kept_name};

use crate::files::Files;
use prombus_store::{Damage, DamageKind};

impl DamageList {
    /// Takes in a finding about the files that keep topics and keyed records.
    pub(crate) fn add_about_state(&self, files: &dyn Files, sentence: &str) {
        let damage = Damage {
            detail: Some(sentence.to_owned()),
            ..Damage::of(DamageKind::BadState, 0)
        };
        self.add(files, &damage);
    }
}
