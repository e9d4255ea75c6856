//! Names of tables, columns and indexes: which are taken, and how they are quoted in SQL.

use crate::error::BadName;
use prombus_connect::check_name;

/// What SQLite and this crate keep for themselves.
const RESERVED: [&str; 2] = ["sqlite_", "prombus_"];

/// Checks the name of a table that a caller chose.
pub(crate) fn check_table(name: &str) -> Result<(), BadName> {
    check_name(name)?;
    let is_reserved = RESERVED.iter().any(|prefix| {
        let start = name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    });
    if is_reserved {
        Err(BadName::new(
            name,
            "names that begin with sqlite_ or prombus_ are taken",
        ))
    } else {
        Ok(())
    }
}

/// The name as a quoted identifier of SQL.
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
        for name in ["", "sqlite_master", "SQLITE_x", "prombus_positions"] {
            assert!(check_table(name).is_err(), "{name}");
        }
        for name in ["orders", "größe", "a b", "sql", "select"] {
            assert_eq!(check_table(name), Ok(()), "{name}");
        }
    }
}
