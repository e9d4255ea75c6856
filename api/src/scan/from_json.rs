//! How plain values are taken from JSON text. `null` is the same as leaving a field out.

use super::{Fault, Scanner};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What can be taken from JSON text.
pub(crate) trait FromJson<'a>: Sized {
    /// Takes the value that stands here.
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault>;
}

impl<'a> FromJson<'a> for Cow<'a, str> {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        scanner.text()
    }
}

impl<'a> FromJson<'a> for String {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        scanner.text().map(Cow::into_owned)
    }
}

impl<'a> FromJson<'a> for u64 {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        scanner.whole_number()
    }
}

impl<'a> FromJson<'a> for u32 {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        let start = *scanner;
        let number = scanner.whole_number()?;
        number
            .try_into()
            .map_err(|_| start.wrong("a whole number from 0 to 4294967295"))
    }
}

impl<'a> FromJson<'a> for usize {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        u32::from_json(scanner).map(|number| number as usize)
    }
}

impl<'a> FromJson<'a> for bool {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        Ok(!scanner.null() && scanner.flag()?)
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Option<T> {
    #[inline]
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        if scanner.null() {
            return Ok(None);
        }
        T::from_json(scanner).map(Some)
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Vec<T> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        let mut items = Vec::new();
        if scanner.null() {
            return Ok(items);
        }
        scanner.array(|scanner| {
            let item =
                T::from_json(scanner).map_err(|fault| fault.within(&items.len().to_string()))?;
            items.push(item);
            Ok(())
        })?;
        Ok(items)
    }
}

/// An object of strings in its order, names that stand twice included: whoever stores them refuses those.
impl<'a> FromJson<'a> for Vec<(String, String)> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        let mut pairs = Vec::new();
        if scanner.null() {
            return Ok(pairs);
        }
        scanner.object(|scanner, name| {
            pairs.push((name.to_owned(), String::from_json(scanner)?));
            Ok(())
        })?;
        Ok(pairs)
    }
}

impl<'a> FromJson<'a> for BTreeMap<String, String> {
    fn from_json(scanner: &mut Scanner<'a>) -> Result<Self, Fault> {
        let pairs: Vec<(String, String)> = Vec::from_json(scanner)?;
        Ok(pairs.into_iter().collect())
    }
}
