//! The command line.

use std::path::PathBuf;

/// How to call it.
pub(crate) const USAGE: &str = "\
prombus-bench-peers [--rows A,B] [--quick] [--json FILE] [--svg FILE] [--dir FOLDER] [--repeat N] …

  --rows A,B     only these rows; an unknown one lists those there are
  --quick        a smoke run of some seconds, whose figures mean nothing
  --json FILE    also write the figures, with every sample, as JSON
  --svg FILE     also draw the ratios
  --dir FOLDER   where the data goes while it is measured, instead of beside the program
  --repeat N     how often each row is measured, 5 times by default
  --seconds N    how long row l publishes, 60 by default
  --systems A,B  only systems whose names begin so: prombus, jetstream, redis, or with a promise: redis always
  --prombus P    the server to measure, instead of the one that is built beside the program
  --before P     an earlier build of the server to measure beside it, as the systems before fsync and before os";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Measure(Arguments),
}

/// What to measure and where to put it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Empty for all rows.
    pub(crate) rows: Vec<String>,
    pub(crate) quick: bool,
    pub(crate) json: Option<PathBuf>,
    pub(crate) svg: Option<PathBuf>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) repeat: Option<usize>,
    pub(crate) seconds: Option<u64>,
    /// Empty for all.
    pub(crate) systems: Vec<String>,
    pub(crate) prombus: Option<PathBuf>,
    pub(crate) before: Option<PathBuf>,
}

impl Arguments {
    /// Reads the command line, without the program's name.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
        let mut arguments = Self::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Ok(Command::Help),
                "--quick" => arguments.quick = true,
                "--rows" => arguments.rows = value()?.split(',').map(str::to_owned).collect(),
                "--json" => arguments.json = Some(value()?.into()),
                "--svg" => arguments.svg = Some(value()?.into()),
                "--dir" => arguments.folder = Some(value()?.into()),
                "--systems" => arguments.systems = value()?.split(',').map(str::to_owned).collect(),
                "--prombus" => arguments.prombus = Some(value()?.into()),
                "--before" => arguments.before = Some(value()?.into()),
                "--repeat" => {
                    let count = value()?.parse().ok().filter(|count| *count > 0);
                    arguments.repeat = Some(count.ok_or("--repeat needs a number")?);
                }
                "--seconds" => {
                    let seconds = value()?.parse().ok().filter(|seconds| *seconds > 0);
                    arguments.seconds = Some(seconds.ok_or("--seconds needs a number")?);
                }
                other => return Err(format!("unknown argument {other}")),
            }
        }
        Ok(Command::Measure(arguments))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn all_flags_are_parsed() {
        let expected = Arguments {
            rows: vec!["a".into(), "d".into()],
            quick: true,
            json: Some("out.json".into()),
            svg: Some("peers.svg".into()),
            folder: Some("data".into()),
            repeat: Some(7),
            seconds: Some(9),
            systems: vec!["prombus".into(), "redis".into()],
            prombus: Some("prombus".into()),
            before: Some("old".into()),
        };
        let line = "--rows a,d --quick --json out.json --svg peers.svg --dir data --repeat 7 --seconds 9 \
                    --systems prombus,redis --prombus prombus --before old";
        assert_eq!(parse(line), Ok(Command::Measure(expected)));
        assert_eq!(parse("--help"), Ok(Command::Help));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(parse("--rows"), Err("--rows needs a value".into()));
        assert_eq!(parse("--fast"), Err("unknown argument --fast".into()));
        assert_eq!(parse("--repeat 0"), Err("--repeat needs a number".into()));
    }
}
