//! The common name in the subject of a certificate. The certificate was verified before, so this only walks its DER
//! (RFC 5280, 4.1); what it does not understand has no name.

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;
/// The explicit tag of the version, which may be left out.
const VERSION: u8 = 0xA0;
/// UTF8String, PrintableString and IA5String.
const TEXTS: [u8; 3] = [0x0C, 0x13, 0x16];
/// The object id 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// The first common name of a certificate's subject.
pub(super) fn common_name(certificate: &[u8]) -> Option<&str> {
    let (certificate, _) = take(certificate, SEQUENCE)?;
    let (mut fields, _) = take(certificate, SEQUENCE)?;
    if fields.first() == Some(&VERSION) {
        fields = skip(fields)?;
    }
    // Serial number, algorithm, issuer, validity.
    for _ in 0..4 {
        fields = skip(fields)?;
    }
    let (mut names, _) = take(fields, SEQUENCE)?;
    while !names.is_empty() {
        let (mut set, rest) = take(names, SET)?;
        names = rest;
        while !set.is_empty() {
            let (attribute, rest) = take(set, SEQUENCE)?;
            set = rest;
            let (id, value) = take(attribute, OBJECT_ID)?;
            if id == COMMON_NAME {
                let (tag, text, _) = next(value)?;
                let text = std::str::from_utf8(text).ok()?;
                return Some(text).filter(|_| TEXTS.contains(&tag));
            }
        }
    }
    None
}

/// The content of an element with this tag, and what follows it.
fn take(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = next(bytes)?;
    (found == tag).then_some((content, rest))
}

fn skip(bytes: &[u8]) -> Option<&[u8]> {
    next(bytes).map(|(_, _, rest)| rest)
}

/// Tag, content and rest.
fn next(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, bytes) = bytes.split_first()?;
    let (&length, bytes) = bytes.split_first()?;
    let (length, bytes) = match length {
        short @ 0..=0x7F => (usize::from(short), bytes),
        long => {
            let (length, bytes) = bytes.split_at_checked(usize::from(long & 0x7F))?;
            let mut value = 0_usize;
            for &byte in length {
                value = value.checked_mul(256)?.checked_add(usize::from(byte))?;
            }
            (value, bytes)
        }
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::common_name;
    use rcgen::{CertificateParams, DnType, KeyPair};

    #[test]
    fn the_name_of_a_certificate_is_found_and_garbage_has_none() {
        let key = KeyPair::generate().expect("a key");
        for name in ["billing", "Ünïcode 1", ""] {
            let mut params =
                CertificateParams::new(vec!["host.example".to_owned()]).expect("names");
            params
                .distinguished_name
                .push(DnType::OrganizationName, "Example");
            params.distinguished_name.push(DnType::CommonName, name);
            let certificate = params.self_signed(&key).expect("a certificate");
            let der = certificate.der();
            assert_eq!(common_name(der), Some(name));
            for end in 0..der.len() {
                // Whatever is cut off, nothing panics, and no other name is found.
                let found = common_name(&der[..end]);
                assert!(found.is_none() || found == Some(name));
            }
        }
        assert_eq!(common_name(&[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]), None);
        assert_eq!(common_name(&[0x30, 0xFF]), None);
    }
}
