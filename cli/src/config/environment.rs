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
const OTHERS: &[&str] = &[
    "PROMBUS_CA",
    "PROMBUS_CLIENT_CERT",
    "PROMBUS_CLIENT_KEY",
    "PROMBUS_CONFIG",
    "PROMBUS_CONTEXT",
    "PROMBUS_URL",
];
/// Variables with the path of a file that holds a secret, as systemd credentials and container secrets are given, and
/// the variable that each stands for.
const SECRET_FILES: &[(&str, &str)] = &[
    ("PROMBUS_TOKEN_FILE", "PROMBUS_TOKEN"),
    ("PROMBUS_JWT_SECRET_FILE", "PROMBUS_JWT_SECRET"),
];
/// Ports to listen on instead of that of `listen`; WebSocket and HTTP share every port.
const PORTS: &[&str] = &["WS_PORT", "HTTP_PORT"];
/// Keys that hold lists; their values are separated by commas.
const LISTS: &[&str] = &["listen", "cors_origins", "allowed_hosts"];

/// All settings in the environment: the variable, the key with dots, and the value.
pub(super) fn settings(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String, Value)> {
    let mut settings: Vec<_> = environment
        .into_iter()
        .filter(|(name, _)| !OTHERS.contains(&name.as_str()))
        .filter(|(name, value)| !is_service_link(name, value))
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

/// Sets the key, creating the tables above it.
pub(super) fn set(tree: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => drop(tree.insert(key.to_owned(), value)),
        Some((table, rest)) => {
            let inner = tree.entry(table).or_insert_with(|| Table::new().into());
            // Any other value is replaced by a table, and reading says what is wrong with it.
            if !inner.is_table() {
                *inner = Table::new().into();
            }
            if let Value::Table(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// The environment with the contents of secret files in place of their paths.
pub(super) fn read_secret_files(
    environment: impl IntoIterator<Item = (String, String)>,
) -> anyhow::Result<Vec<(String, String)>> {
    let read = |(name, value): (String, String)| {
        let Some((_, meant)) = SECRET_FILES.iter().find(|(file, _)| *file == name) else {
            return Ok((name, value));
        };
        let secret = std::fs::read_to_string(&value).map_err(|error| {
            anyhow::anyhow!("environment variable {name}: cannot read {value}: {error}")
        })?;
        // Editors and `echo` end files with a line break.
        let secret = secret.trim_end_matches(['\r', '\n']).to_owned();
        Ok(((*meant).to_owned(), secret))
    };
    environment.into_iter().map(read).collect()
}

/// Sets the ports of `listen` from the environment. `PROMBUS_LISTEN` and `--listen`, which come later, win.
pub(super) fn apply_ports(
    tree: &mut Table,
    environment: &[(String, String)],
) -> anyhow::Result<()> {
    let mut ports = Vec::new();
    for name in PORTS {
        let set = environment.iter().find(|(other, _)| other == name);
        let Some((_, text)) = set.filter(|(name, value)| !is_service_link(name, value)) else {
            continue;
        };
        let port: u16 = text
            .trim()
            .parse()
            .map_err(|_| anyhow::anyhow!("environment variable {name}: invalid port {text:?}"))?;
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    if ports.is_empty() {
        return Ok(());
    }
    let configured = tree.get("listen").and_then(Value::as_array);
    let mut hosts: Vec<&str> = configured
        .into_iter()
        .flatten()
        .filter_map(|address| Some(address.as_str()?.rsplit_once(':')?.0))
        .collect();
    hosts.dedup();
    if hosts.is_empty() {
        hosts.push("127.0.0.1");
    }
    let addresses: Vec<Value> = hosts
        .iter()
        .flat_map(|host| {
            ports
                .iter()
                .map(move |port| format!("{host}:{port}").into())
        })
        .collect();
    tree.insert("listen".to_owned(), addresses.into());
    Ok(())
}

/// Whether Kubernetes set the variable for a service: `PROMBUS_SERVICE_HOST`, `PROMBUS_PORT=tcp://10.0.0.1:8090`,
/// `PROMBUS_PORT_8090_TCP_ADDR` and the like, also for a service like `prombus-web`.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_protocol = |word: &str| matches!(word, "TCP" | "UDP" | "SCTP");
    let is_url = ["tcp://", "udp://", "sctp://"]
        .iter()
        .any(|scheme| value.starts_with(scheme));
    if name.ends_with("_SERVICE_HOST") || name.ends_with("_SERVICE_PORT") {
        return true;
    }
    if name.contains("_SERVICE_PORT_") || (name.ends_with("_PORT") && is_url) {
        return true;
    }
    let Some((_, rest)) = name.split_once("_PORT_") else {
        return false;
    };
    let mut words = rest.split('_');
    let has_number = words.next().is_some_and(|word| word.parse::<u16>().is_ok());
    has_number && words.next().is_some_and(is_protocol)
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
