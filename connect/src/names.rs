//! Names of tables, collections, columns and projectors that callers choose.

use crate::error::BadName;

/// The longest name of a table, a column or a projector, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// Checks the name of a column or a projector.
pub fn check_name(name: &str) -> Result<(), BadName> {
    if name.is_empty() {
        return Err(BadName::new(name, "it is empty"));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(BadName::new(name, "it is longer than 128 bytes"));
    }
    if name.chars().any(char::is_control) {
        return Err(BadName::new(name, "it has a control character"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_empty_long_or_have_control_characters_are_refused() {
        for name in ["", "a\0b", "a\nb", &"x".repeat(129)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["orders", "größe", "a b", "select"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }
}
