//! A service's own database, as the commands name it: an SQLite file, or a MongoDB database by its URL.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// What a URL of MongoDB begins with.
const MONGODB: &str = "mongodb://";

/// A service's own database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Database {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database of MongoDB, by a URL that may hold a password.
    Mongo(String),
}

impl FromStr for Database {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text.starts_with(MONGODB) {
            Self::Mongo(text.to_owned())
        } else {
            Self::Sqlite(text.into())
        })
    }
}

impl fmt::Display for Database {
    /// Without credentials and options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(file) => file.display().fmt(f),
            Self::Mongo(url) => {
                let rest = url.strip_prefix(MONGODB).unwrap_or(url);
                let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
                let rest = rest.rsplit_once('@').map_or(rest, |(_, rest)| rest);
                write!(f, "{MONGODB}{rest}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_shown_without_credentials() {
        let shown = |text: &str| {
            text.parse::<Database>()
                .map(|database| database.to_string())
        };
        let url = "mongodb://me:p%40ss@a:1,b:2/shop?replicaSet=rs0";
        assert_eq!(shown(url).as_deref(), Ok("mongodb://a:1,b:2/shop"));
        assert_eq!(shown("data/shop.db").as_deref(), Ok("data/shop.db"));
    }
}
