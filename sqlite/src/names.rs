//! Names of tables, columns and indexes: which are taken, and how they stand in SQL.

use crate::error::BadName;

/// The longest name of a table or a column, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// What SQLite and this crate keep for themselves.
const RESERVED: [&str; 2] = ["sqlite_", "prombus_"];

/// Checks the name of a table that a caller chose.
pub(crate) fn check_table(name: &str) -> Result<(), BadName> {
    check(name)?;
    let is_reserved = RESERVED.iter().any(|prefix| {
        let start = name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    });
    match is_reserved {
        true => Err(BadName::new(
            name,
            "names that begin with sqlite_ or prombus_ are taken",
        )),
        false => Ok(()),
    }
}

/// Checks the name of a column, or of a projector.
pub(crate) fn check(name: &str) -> Result<(), BadName> {
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

/// The name as an identifier of SQL, whatever stands in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Several of them, with commas between.
pub(crate) fn quoted_list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(quoted).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_inside_a_name_cannot_end_it() {
        assert_eq!(quoted("plain"), "\"plain\"");
        assert_eq!(quoted(r#"a" (x); DROP"#), r#""a"" (x); DROP""#);
        assert_eq!(quoted_list(["a", "b c"]), r#""a", "b c""#);
    }

    #[test]
    fn names_that_are_none_or_taken_are_refused() {
        for name in ["", "a\0b", "a\nb", &"x".repeat(129)] {
            assert!(check(name).is_err(), "{name:?}");
        }
        for name in ["sqlite_master", "SQLITE_x", "prombus_positions"] {
            assert!(check_table(name).is_err(), "{name}");
        }
        for name in ["orders", "größe", "a b", "sql", "select"] {
            assert_eq!(check_table(name), Ok(()), "{name}");
        }
    }
}
