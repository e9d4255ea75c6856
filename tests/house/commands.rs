//! Commands that the papers and the Makefile tell people to run: those of make and cargo must exist here.

use crate::workspace::Package;

/// What a command may refer to.
pub(crate) struct Known<'a> {
    /// The verbs of the Makefile.
    pub(crate) verbs: Vec<&'a str>,
    /// The crates of the workspace.
    pub(crate) packages: &'a [Package],
}

/// Cargo's own subcommands, and nextest, that a paper may name.
const CARGO: &[&str] = &[
    "add", "bench", "build", "check", "clean", "clippy", "doc", "fetch", "fmt", "install",
    "nextest", "run", "test",
];

/// Flags of cargo that name a target, and the kind they name.
const TARGET_FLAGS: &[(&str, &str)] = &[
    ("--example", "example"),
    ("--test", "test"),
    ("--bench", "bench"),
    ("--bin", "bin"),
];

impl Known<'_> {
    /// What is wrong with a line of shell, as far as it calls make or cargo.
    pub(crate) fn complaints(&self, line: &str) -> Vec<String> {
        let code = line.split(" #").next().unwrap_or(line);
        let calls = code
            .split(['&', '|', ';'])
            .filter(|call| !call.trim().is_empty());
        let complaints = calls.flat_map(|call| self.complaints_about_call(call));
        complaints
            .map(|complaint| format!("`{}`: {complaint}", code.trim()))
            .collect()
    }

    fn complaints_about_call(&self, call: &str) -> Vec<String> {
        let words = call
            .split_whitespace()
            .map(|word| word.trim_start_matches('@'));
        let mut words = words.skip_while(|word| !["make", "cargo"].contains(word));
        let tool = words.next();
        let arguments: Vec<&str> = words.collect();
        match tool {
            Some("make") => self.complaints_about_make(&arguments),
            Some("cargo") => self.complaints_about_cargo(&arguments),
            _ => Vec::new(),
        }
    }

    fn complaints_about_make(&self, arguments: &[&str]) -> Vec<String> {
        let verbs = arguments
            .iter()
            .filter(|word| !word.contains(['=', '$']) && !word.starts_with('-'));
        let unknown = verbs.filter(|verb| !self.verbs.contains(verb));
        unknown
            .map(|verb| format!("the Makefile has no {verb}"))
            .collect()
    }

    fn complaints_about_cargo(&self, arguments: &[&str]) -> Vec<String> {
        let mut complaints = Vec::new();
        let subcommand = arguments.first().copied().unwrap_or_default();
        if !CARGO.contains(&subcommand) && !subcommand.starts_with(['-', '$']) {
            complaints.push(format!("cargo has no {subcommand}"));
        }
        let own: Vec<&str> = arguments
            .iter()
            .copied()
            .take_while(|word| *word != "--")
            .collect();
        let after = |flags: &[&str]| {
            own.windows(2)
                .find(|pair| flags.contains(&pair[0]))
                .map(|pair| pair[1])
        };
        let package = after(&["-p", "--package"]);
        if let Some(name) = package
            && !self.packages.iter().any(|package| package.name == name)
        {
            complaints.push(format!("the workspace has no crate {name}"));
        }
        for (flag, kind) in TARGET_FLAGS {
            if let Some(name) = after(&[flag])
                && !self.has_target(package, kind, name)
            {
                complaints.push(format!("there is no {kind} {name}"));
            }
        }
        complaints
    }

    /// Whether the package, or any where none is named, builds this. A name that make fills in is taken on trust.
    fn has_target(&self, package: Option<&str>, kind: &str, name: &str) -> bool {
        let named = self
            .packages
            .iter()
            .filter(|found| package.is_none_or(|package| package == found.name));
        let mut targets = named.flat_map(|package| &package.targets);
        name.contains('$') || targets.any(|target| target.kind == kind && target.name == name)
    }
}

mod tests {
    use super::*;
    use crate::workspace::Target;

    fn complaints(line: &str) -> Vec<String> {
        let example = Target {
            kind: "example".to_owned(),
            name: "heartbeats".to_owned(),
        };
        let packages = [Package {
            name: "prombus".to_owned(),
            targets: vec![example],
            ..Package::default()
        }];
        let known = Known {
            verbs: vec!["test", "crash"],
            packages: &packages,
        };
        known.complaints(line)
    }

    #[test]
    fn what_exists_is_fine() {
        for line in [
            "make test",
            "make crash SEED=17   # one seed",
            "cargo run -p prombus --example heartbeats -- --test none",
            "@RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps && make -s test",
            "cargo --version",
            "prombus serve",
        ] {
            assert_eq!(complaints(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (line, complaint) in [
            ("make tset", "the Makefile has no tset"),
            ("CI=true make test lnit", "the Makefile has no lnit"),
            ("cargo rnu", "cargo has no rnu"),
            (
                "cargo run -p prombus-shed",
                "the workspace has no crate prombus-shed",
            ),
            (
                "make test && cargo run --example heart",
                "there is no example heart",
            ),
            (
                "@cargo test -p prombus --test heartbeats",
                "there is no test heartbeats",
            ),
        ] {
            let found = complaints(line);
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert!(found[0].ends_with(complaint), "{found:?}");
        }
    }
}
