//! How plain values are taken from JSON text. `null` is the same as leaving a field out.

use super::{ScanError, Scanner, WHOLE_NUMBER_32};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What can be taken from JSON text.
pub(crate) trait FromJson<'a>: Sized {
    /// Takes the value at the cursor.
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError>;

    /// What a field is that was left out, unless it has to be there.
    fn absent(name: &str) -> Result<Self, ScanError> {
        Err(ScanError::missing(name))
    }
}

impl<'a> FromJson<'a> for Cow<'a, str> {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.text()
    }
}

impl<'a> FromJson<'a> for String {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.text().map(Cow::into_owned)
    }
}

impl<'a> FromJson<'a> for u64 {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        scanner.whole_number()
    }
}

impl<'a> FromJson<'a> for u32 {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let start = *scanner;
        let number = scanner.whole_number()?;
        number.try_into().map_err(|_| start.wrong(WHOLE_NUMBER_32))
    }
}

impl<'a> FromJson<'a> for usize {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        u32::from_json(scanner).map(|number| number as usize)
    }
}

impl<'a> FromJson<'a> for bool {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        Ok(!scanner.null() && scanner.flag()?)
    }

    fn absent(_: &str) -> Result<Self, ScanError> {
        Ok(false)
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Option<T> {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        if scanner.null() {
            return Ok(None);
        }
        T::from_json(scanner).map(Some)
    }

    fn absent(_: &str) -> Result<Self, ScanError> {
        Ok(None)
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Vec<T> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut items = Vec::new();
        if scanner.null() {
            return Ok(items);
        }
        scanner.array(|scanner| {
            let item =
                T::from_json(scanner).map_err(|error| error.within(&items.len().to_string()))?;
            items.push(item);
            Ok(())
        })?;
        Ok(items)
    }

    fn absent(_: &str) -> Result<Self, ScanError> {
        Ok(Vec::new())
    }
}

/// An object of strings in its order, duplicates included: the bus rejects those.
impl<'a> FromJson<'a> for Vec<(String, String)> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let mut pairs = Vec::new();
        if scanner.null() {
            return Ok(pairs);
        }
        scanner.members(|scanner, name| {
            let value = String::from_json(scanner).map_err(|error| error.within(&name))?;
            pairs.push((name.into_owned(), value));
            Ok(())
        })?;
        Ok(pairs)
    }
}

impl<'a> FromJson<'a> for BTreeMap<String, String> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let pairs: Vec<(String, String)> = Vec::from_json(scanner)?;
        let mut map = Self::new();
        for (name, value) in pairs {
            if let Some(_duplicate) = map.insert(name.clone(), value) {
                return Err(ScanError::wrong("duplicate field".to_owned()).within(&name));
            }
        }
        Ok(map)
    }

    fn absent(_: &str) -> Result<Self, ScanError> {
        Ok(Self::new())
    }
}
