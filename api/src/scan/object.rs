//! Objects and words that are declared once: the type, its names on the wire, how it is read and written, and its schema.

use super::{FromJson, ScanError, Scanner};
use crate::write::{ObjectWriter, ToJson};

/// What a field of an object is: a value under the field's name, or several fields that are one value together.
pub(crate) trait Member<'a>: Sized {
    /// What was read of it so far.
    type Slot: Default;

    /// The fields that it is made of, where it is not a value under its own name.
    const FIELDS: &'static [&'static str] = &[];

    /// Takes the value of `name` if that belongs to it; otherwise `None`, and nothing was taken.
    fn take(
        slot: &mut Self::Slot,
        scanner: &mut Scanner<'a>,
        own: &str,
        name: &str,
    ) -> Option<Result<(), ScanError>>;

    /// What it comes to when the object ends.
    fn finish(slot: Self::Slot, own: &str) -> Result<Self, ScanError>;

    /// Writes it as a field, or leaves it out where there is nothing to say.
    fn write(&self, object: &mut ObjectWriter<'_>, own: &str);
}

impl<'a, T: FromJson<'a> + ToJson> Member<'a> for T {
    type Slot = Option<T>;

    fn take(
        slot: &mut Option<T>,
        scanner: &mut Scanner<'a>,
        own: &str,
        name: &str,
    ) -> Option<Result<(), ScanError>> {
        (name == own).then(|| scanner.fill(slot))
    }

    fn finish(slot: Option<T>, own: &str) -> Result<Self, ScanError> {
        slot.map_or_else(|| T::absent(own), Ok)
    }

    fn write(&self, object: &mut ObjectWriter<'_>, own: &str) {
        object.field(own, self);
    }
}

/// Declares a struct that is an object on the wire, for all that is not read or written for each event. A field has
/// its Rust name there unless `as` gives another. No other field is taken.
macro_rules! object {
    ($(#[$meta:meta])* pub struct $type:ident {
        $($(#[$field_meta:meta])* pub $field:ident: $kind:ty $(as $name:literal)?,)+
    }) => {
        $(#[$meta])*
        pub struct $type {
            $($(#[$field_meta])* $(#[schemars(rename = $name)])? pub $field: $kind,)+
        }

        impl<'a> $crate::scan::FromJson<'a> for $type {
            fn from_json(
                scanner: &mut $crate::scan::Scanner<'a>,
            ) -> Result<Self, $crate::scan::ScanError> {
                use $crate::scan::Member;
                $(let mut $field = <$kind as Member>::Slot::default();)+
                scanner.object(|scanner, name| {
                    $(
                        let own = $crate::scan::name_of!($field $($name)?);
                        if let Some(taken) = <$kind as Member>::take(&mut $field, scanner, own, name) {
                            return taken;
                        }
                    )+
                    let own = [$($crate::scan::name_of!($field $($name)?)),+];
                    let parts = [$(<$kind as Member>::FIELDS),+];
                    Err($crate::scan::unknown_member(name, &own, &parts))
                })?;
                Ok(Self {
                    $($field: Member::finish($field, $crate::scan::name_of!($field $($name)?))?,)+
                })
            }
        }

        impl $crate::write::ToJson for $type {
            fn write_json(&self, out: &mut Vec<u8>) {
                let mut object = $crate::write::ObjectWriter::new(out);
                $(
                    let own = $crate::scan::name_of!($field $($name)?);
                    $crate::scan::Member::write(&self.$field, &mut object, own);
                )+
                object.end();
            }
        }
    };
}

/// The name of a field on the wire.
macro_rules! name_of {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// Reads and writes an enum as words; the default where it is left out. `wire` is for a type of another crate.
macro_rules! words {
    ($type:ident: $($words:tt)+) => {
        impl $type {
            /// Its name on the wire.
            pub fn as_str(self) -> &'static str {
                $crate::scan::words!(word_of self, $($words)+)
            }
        }

        $crate::scan::words!(wire $type: $($words)+);
    };
    (word_of $value:ident, $($variant:ident $word:literal),+; $expected:literal) => {
        match $value { $(Self::$variant => $word),+ }
    };
    (wire $type:ident: $($variant:ident $word:literal),+; $expected:literal) => {
        impl<'a> $crate::scan::FromJson<'a> for $type {
            fn from_json(
                scanner: &mut $crate::scan::Scanner<'a>,
            ) -> Result<Self, $crate::scan::ScanError> {
                match &*scanner.text()? {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::scan::ScanError::wrong(concat!("expected ", $expected).to_owned())),
                }
            }

            fn absent(_: &str) -> Result<Self, $crate::scan::ScanError> {
                Ok(Self::default())
            }
        }

        impl $crate::write::ToJson for $type {
            fn write_json(&self, out: &mut Vec<u8>) {
                $crate::write::write_text(out, $crate::scan::words!(word_of self, $($variant $word),+; $expected));
            }
        }
    };
}

pub(crate) use {name_of, object, words};

/// A field that the object does not have. Those that are one value together are named last.
#[cold]
pub(crate) fn unknown_member(name: &str, own: &[&str], parts: &[&[&str]]) -> ScanError {
    let values = own.iter().zip(parts).filter(|(_, parts)| parts.is_empty());
    let mut known: Vec<&str> = values.map(|(own, _)| *own).collect();
    known.extend(parts.iter().copied().flatten());
    ScanError::unknown(name, &known, &[])
}
