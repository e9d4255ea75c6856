//! The header `traceparent` of W3C Trace Context: version, trace, parent and flags in hexadecimal digits.

/// Which trace an event is part of, and the span that published it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TraceParent {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
}

/// The sampled flag: the trace is recorded.
const SAMPLED: u8 = 1;

impl TraceParent {
    /// Reads the header; `None` where it is not valid or says that nobody records the trace.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = hex::<u8>(parts.next()?, 2)?;
        let trace_id = hex::<u128>(parts.next()?, 32)?;
        let span_id = hex::<u64>(parts.next()?, 16)?;
        let flags = hex::<u8>(parts.next()?, 2)?;
        // Later versions may have more behind the flags, this one has not.
        let is_whole = version != 0 || parts.next().is_none();
        let is_valid = version != u8::MAX && trace_id != 0 && span_id != 0 && is_whole;
        let is_sampled = flags & SAMPLED != 0;
        (is_valid && is_sampled).then_some(Self { trace_id, span_id })
    }
}

/// Exactly so many lower-case hexadecimal digits.
fn hex<N: TryFrom<u128>>(text: &str, digits: usize) -> Option<N> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != digits || !text.bytes().all(is_digit) {
        return None;
    }
    let number = u128::from_str_radix(text, 16).ok()?;
    N::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_parents_are_read() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = TraceParent::parse(text).expect("valid");
        assert_eq!(parent.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(parent.span_id, 0x00f0_67aa_0ba9_02b7);
        let later = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-more";
        assert!(TraceParent::parse(later).is_some());
    }

    #[test]
    fn others_are_not() {
        for text in [
            "",
            "00-a-b-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }
}
