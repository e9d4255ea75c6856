//! What the command line asks for.

use std::path::PathBuf;

/// How to call it.
pub(crate) const USAGE: &str = "\
prombus-bench [TABLE] [--rows A,B] [--quick] [--json FILE] [--dir FOLDER]

  TABLE          log: the log, the stores and the bus in one process
                 server: the server under load, as a process of its own
                 state: ack-and-publish transactions, tables in SQLite, rebuilding from snapshots, reading keys over HTTP
                 cluster: nodes on NATS JetStream and MongoDB, beside an event for each message; gets servers from PyPI
  --rows A,B     only these rows; an unknown one lists those there are
  --quick        a smoke run of some seconds, whose figures mean nothing
  --json FILE    also write the figures, with every sample, as JSON
  --dir FOLDER   where the data goes while it is measured, instead of beside the program";

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Measure(Arguments),
    /// Measure one thing in a process of its own and print it; the bench calls itself this way.
    Probe {
        what: String,
        folder: PathBuf,
    },
}

/// What to measure and where to put it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// `None` for the log.
    pub(crate) table: Option<String>,
    /// Empty for all rows.
    pub(crate) rows: Vec<String>,
    pub(crate) quick: bool,
    pub(crate) json: Option<PathBuf>,
    pub(crate) folder: Option<PathBuf>,
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
                "--dir" => arguments.folder = Some(value()?.into()),
                "probe" => {
                    return Ok(Command::Probe {
                        what: value()?,
                        folder: value()?.into(),
                    });
                }
                flag if flag.starts_with('-') => return Err(format!("{flag} is unknown")),
                table if arguments.table.is_none() => arguments.table = Some(table.to_owned()),
                extra => return Err(format!("{extra} is one table too many")),
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
    fn all_flags_are_understood() {
        let expected = Arguments {
            table: Some("log".into()),
            rows: vec!["append".into(), "open".into()],
            quick: true,
            json: Some("out.json".into()),
            folder: Some("data".into()),
        };
        let line = "log --rows append,open --quick --json out.json --dir data";
        assert_eq!(parse(line), Ok(Command::Measure(expected)));
        assert_eq!(parse(""), Ok(Command::Measure(Arguments::default())));
        assert_eq!(parse("log --help"), Ok(Command::Help));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(parse("log --rows"), Err("--rows needs a value".into()));
        assert_eq!(parse("--fast"), Err("--fast is unknown".into()));
        assert_eq!(
            parse("log server"),
            Err("server is one table too many".into())
        );
    }
}
