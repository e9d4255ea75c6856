//! What git ignores, as far as the root's .gitignore says it with plain names and paths. Asking git itself would
//! make the rules depend on its presence and on who owns the checkout.

/// The lines of a .gitignore.
#[derive(Debug)]
pub(crate) struct Ignored {
    /// Names that are ignored in every folder.
    names: Vec<String>,
    /// Paths from the root.
    paths: Vec<String>,
}

impl Ignored {
    /// Reads a .gitignore; patterns are refused, because a pattern read wrongly would hide files from every rule.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut ignored = Self {
            names: vec![".git".to_owned()],
            paths: Vec::new(),
        };
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.contains(['*', '?', '[', '!', '\\']) {
                return Err(format!(
                    "{line:?} in .gitignore is not a plain name or path"
                ));
            }
            let entry = line.trim_end_matches('/');
            match entry.strip_prefix('/') {
                Some(path) => ignored.paths.push(path.to_owned()),
                None if entry.contains('/') => ignored.paths.push(entry.to_owned()),
                None => ignored.names.push(entry.to_owned()),
            }
        }
        Ok(ignored)
    }

    /// Whether this path, from the root, is ignored itself; what lies in an ignored folder is never asked for.
    pub(crate) fn covers(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.names.iter().any(|ignored| ignored == name)
            || self.paths.iter().any(|ignored| ignored == path)
    }
}

#[test]
fn names_hold_everywhere_and_paths_only_where_they_are() {
    let ignored = Ignored::parse("# built\n/target\nnode_modules/\nweb/dist/\n").unwrap();
    assert!(ignored.covers("target") && ignored.covers("web/dist") && ignored.covers(".git"));
    assert!(ignored.covers("node_modules") && ignored.covers("web/node_modules"));
    assert!(!ignored.covers("log/target") && !ignored.covers("dist") && !ignored.covers("targets"));
}

#[test]
fn a_pattern_is_refused() {
    let refused = Ignored::parse("*.rs\n").unwrap_err();
    assert!(refused.contains("*.rs"), "{refused}");
}
