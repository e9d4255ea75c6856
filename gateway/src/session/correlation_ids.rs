//! The `corr` of many frames in one piece of memory, until their replies are written.

/// A list of `corr`, some of which are absent.
#[derive(Debug, Default)]
pub(super) struct CorrelationIds {
    text: String,
    /// Where each ends in the text; absent ones have none.
    ends: Vec<Option<usize>>,
}

impl CorrelationIds {
    pub(super) fn push(&mut self, corr: Option<&str>) {
        self.text.push_str(corr.unwrap_or_default());
        self.ends.push(corr.map(|_| self.text.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&str>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let end = end?;
            let corr = &self.text[start..end];
            start = end;
            Some(corr)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CorrelationIds;

    #[test]
    fn what_was_added_comes_back() {
        let mut correlation_ids = CorrelationIds::default();
        let added = [Some("a"), None, Some(""), Some("bc"), None];
        for corr in added {
            correlation_ids.push(corr);
        }
        assert_eq!(correlation_ids.len(), added.len());
        assert!(correlation_ids.iter().eq(added));
    }
}
