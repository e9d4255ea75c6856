//! Settings from the environment: `PROMBUS_STORE` is `store`, `PROMBUS_LIMITS__MAX_PAYLOAD_BYTES` is
//! `limits.max_payload_bytes`. A few that are set often have short names too.

use toml::{Table, Value};

const PREFIX: &str = "PROMBUS_";
/// Between the table and the key.
const NESTED: &str = "__";
/// Short names, in the order in which they count: later ones win.
const SHORT: &[(&str, &str)] = &[
    ("WS_TOKEN", "auth.token"),
    ("PROMBUS_TOKEN", "auth.token"),
    ("PROMBUS_JWT_SECRET", "auth.jwt_secret"),
    ("PROMBUS_JWKS_FILE", "auth.jwks_file"),
    ("PROMBUS_JWKS_URL", "auth.jwks_url"),
];
/// Variables of other parts of the binary.
const OTHERS: &[&str] = &["PROMBUS_CONFIG", "PROMBUS_URL"];
/// Keys that hold lists; their values are separated by commas.
const LISTS: &[&str] = &["listen", "cors_origins", "allowed_hosts"];

/// All settings in the environment: the variable, the key with dots, and the value.
pub(super) fn settings(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String, Value)> {
    let mut settings: Vec<_> = environment
        .into_iter()
        .filter(|(name, _)| !OTHERS.contains(&name.as_str()))
        .filter_map(|(name, text)| {
            let key = key_of(&name)?;
            let value = value_of(&key, &text);
            Some((name, key, value))
        })
        .collect();
    // The environment has no order of its own.
    settings.sort_by(|one, other| rank(&one.0).cmp(&rank(&other.0)));
    settings
}

/// Sets the key, making the tables that it lies in.
pub(super) fn set(tree: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => drop(tree.insert(key.to_owned(), value)),
        Some((table, rest)) => {
            let inner = tree.entry(table).or_insert_with(|| Table::new().into());
            // Where something else stands, the table takes its place and reading says what is wrong with it.
            if !inner.is_table() {
                *inner = Table::new().into();
            }
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

fn key_of(name: &str) -> Option<String> {
    if let Some((_, key)) = SHORT.iter().find(|(short, _)| *short == name) {
        return Some((*key).to_owned());
    }
    let key = name.strip_prefix(PREFIX)?;
    Some(key.to_ascii_lowercase().replace(NESTED, "."))
}

fn rank(name: &str) -> (Option<usize>, &str) {
    (SHORT.iter().position(|(short, _)| *short == name), name)
}

/// Numbers, booleans and tables as TOML writes them; everything else is text.
fn value_of(key: &str, text: &str) -> Value {
    if LISTS.contains(&key) {
        let items = text.split(',').map(str::trim);
        let items = items.filter(|item| !item.is_empty());
        return Value::Array(items.map(Value::from).collect());
    }
    // A token of digits is still a token.
    if key.starts_with("auth.") {
        return text.into();
    }
    let parsed = format!("value = {text}").parse::<Table>().ok();
    parsed
        .and_then(|mut table| table.remove("value"))
        .unwrap_or_else(|| text.into())
}
