//! `mongodb://[user:password@]host:port,host:port/DATABASE?copy=FOLDER&readable=no` and whatever options MongoDB's own
//! connection strings have.

use crate::UrlOptions;
use std::path::PathBuf;

/// The database where the URL names none.
const DEFAULT_DATABASE: &str = "prombus";

/// A store in MongoDB, as its URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MongoUrl {
    /// The connection string for MongoDB's drivers; it may hold a password, and always names a database.
    pub connection: String,
    /// The database.
    pub database: String,
    /// Where the node's copy is.
    pub copy: Option<PathBuf>,
    /// Whether the events and cursors are kept as readable collections too.
    pub readable: bool,
    /// What every shared store's URL may say.
    pub options: UrlOptions,
}

/// Why a text is no such URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid store URL: {cause}; expected mongodb://HOST:PORT[,HOST:PORT]/DATABASE[?replicaSet=NAME&copy=FOLDER&readable=no&snapshot_bytes=256MiB&absent=60&wait=30]"
)]
pub struct InvalidUrl {
    cause: String,
}

impl MongoUrl {
    /// Reads a URL. What its options of MongoDB mean is for the driver to say.
    pub fn parse(url: &str) -> Result<Self, InvalidUrl> {
        let invalid = |cause: &str| InvalidUrl {
            cause: cause.to_owned(),
        };
        let rest = url
            .strip_prefix("mongodb://")
            .ok_or_else(|| invalid("it does not begin with mongodb://"))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.is_empty() {
            return Err(invalid("the host is missing"));
        }
        let database = match database {
            "" => DEFAULT_DATABASE,
            named => named,
        };
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if database.len() > 63 || !database.bytes().all(is_name) {
            let cause = "a database's name has 1 to 63 letters, digits, - and _";
            return Err(invalid(cause));
        }
        let mut parsed = Self {
            connection: String::new(),
            database: database.to_owned(),
            copy: None,
            readable: true,
            options: UrlOptions::default(),
        };
        let mut options = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("copy", folder)) if !folder.is_empty() => parsed.copy = Some(folder.into()),
                Some(("readable", "yes")) => parsed.readable = true,
                Some(("readable", "no")) => parsed.readable = false,
                Some(("copy" | "readable", _)) => {
                    return Err(invalid("copy names a folder, and readable is yes or no"));
                }
                Some((name, value)) => {
                    let is_ours = parsed.options.set(name, value);
                    if !is_ours.map_err(|cause| invalid(&cause))? {
                        options.push(option);
                    }
                }
                None => options.push(option),
            }
        }
        let options = if options.is_empty() {
            String::new()
        } else {
            format!("?{}", options.join("&"))
        };
        parsed.connection = format!("mongodb://{authority}/{database}{options}");
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_options_are_taken_out_of_the_connection_string() {
        let url =
            "mongodb://me:secret@a:1,b:2/orders?replicaSet=rs0&copy=here&readable=no&absent=99&w=1";
        let parsed = MongoUrl::parse(url).expect("a URL");
        assert_eq!(
            parsed.connection,
            "mongodb://me:secret@a:1,b:2/orders?replicaSet=rs0&w=1"
        );
        assert_eq!(parsed.copy, Some("here".into()));
        assert!(!parsed.readable);
        let plain = MongoUrl::parse("mongodb://a:1").expect("a URL");
        assert_eq!(plain.connection, "mongodb://a:1/prombus");
        assert!(plain.readable && plain.copy.is_none());
    }

    #[test]
    fn what_is_no_url_is_refused_without_repeating_it() {
        for url in [
            "mongodb+srv://a/b",
            "mongodb:///b",
            "mongodb://u:secret@a/b c",
            "mongodb://u:secret@a/b?readable=perhaps",
            "mongodb://u:secret@a/b?copy=",
            "mongodb://u:secret@a/b?absent=1",
        ] {
            let error = MongoUrl::parse(url).expect_err(url).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
