//! Sizes as people write them: `1GiB`, `500MB`, `64k`, or bytes.

use serde::{Deserialize, Deserializer};

/// Reads a size in bytes, for the command line and the configuration.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let invalid = || {
        format!(
            "invalid size {text:?}; expected bytes, or a number with kB, MB, GB, KiB, MiB or GiB"
        )
    };
    let text = text.trim();
    let digits_end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(invalid()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(invalid);
    }
    let bytes = number.parse::<f64>().map_err(|_| invalid())? * factor as f64;
    if factor > 1 && bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err(invalid())
    }
}

/// A number of bytes, or a size as text, in the configuration.
pub(crate) fn deserialize_option<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    match Size::deserialize(input)? {
        Size::Bytes(bytes) => Ok(Some(bytes)),
        Size::Text(text) => parse(&text).map(Some).map_err(serde::de::Error::custom),
    }
}

/// A size for people.
pub(crate) fn show(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        for (text, bytes) in [
            ("0", 0),
            ("1048576", 1 << 20),
            ("1GiB", 1 << 30),
            ("1 gib", 1 << 30),
            ("64k", 64 << 10),
            ("500MB", 500_000_000),
            ("1.5MiB", 3 << 19),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for bad in [
            "",
            "x",
            "1.5",
            "-1",
            "1XB",
            "GiB",
            "99999999999TiB",
            "1..5k",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_are_shown_with_one_decimal() {
        assert_eq!(show(1_023), "1023 B");
        assert_eq!(show(1 << 20), "1.0 MiB");
        assert_eq!(show(u64::MAX), "16777216.0 TiB");
    }
}
