//! Names on the command line. They are checked before anything is sent, so that a slip of the hand (`orders#old`) cannot
//! become part of a URL and reach another topic.

/// A topic's name.
pub(crate) fn topic(text: &str) -> Result<String, String> {
    let checked = prombus::check_topic(text).map_err(|error| error.to_string());
    checked.map(|()| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_path_is_no_topic() {
        for bad in ["victim#old", "a?b", "a/b", "a%2e", "", "a b", "..", "a..b"] {
            assert!(topic(bad).is_err(), "{bad}");
        }
        assert_eq!(topic("orders.made"), Ok("orders.made".to_owned()));
    }
}
