//! What the command line asks for.

use std::path::PathBuf;

/// How to call it.
pub(crate) const USAGE: &str = "\
prombus-bench [TABLE] [--rows A,B] [--quick] [--json FILE] [--dir FOLDER]
prombus-bench peers [--repeat N] [--svg FILE] [--systems A,B] [--prombus PROGRAM] …

  TABLE          log: the log, the stores and the bus in one process
                 server: the server under load, as a process of its own
                 state: atomic steps, tables in SQLite, rebuilding from snapshots, reading keys over HTTP
                 peers: the server beside NATS JetStream and Redis Streams, which are installed where they are missing
  --rows A,B     only these rows; an unknown one lists those there are
  --quick        a smoke run of some seconds, whose figures mean nothing
  --json FILE    also write the figures, with every sample, as JSON
  --dir FOLDER   where the data goes while it is measured, instead of beside the program
  --repeat N     how often each row is measured, 5 times if not told
  --seconds N    how long row l publishes, 60 if not told
  --svg FILE     also draw the ratios
  --systems A,B  only systems whose names begin so: prombus, jetstream, redis, or with a promise: redis always
  --prombus P    the server to measure, instead of the one that is built beside the program";

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
    /// Of the peers.
    pub(crate) repeat: Option<usize>,
    pub(crate) seconds: Option<u64>,
    pub(crate) svg: Option<PathBuf>,
    /// Empty for all.
    pub(crate) systems: Vec<String>,
    pub(crate) prombus: Option<PathBuf>,
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
                "--svg" => arguments.svg = Some(value()?.into()),
                "--systems" => arguments.systems = value()?.split(',').map(str::to_owned).collect(),
                "--prombus" => arguments.prombus = Some(value()?.into()),
                "--repeat" => {
                    let count = value()?.parse().ok().filter(|count| *count > 0);
                    arguments.repeat = Some(count.ok_or("--repeat needs a number")?);
                }
                "--seconds" => {
                    let seconds = value()?.parse().ok().filter(|seconds| *seconds > 0);
                    arguments.seconds = Some(seconds.ok_or("--seconds needs a number")?);
                }
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
            ..Arguments::default()
        };
        let line = "log --rows append,open --quick --json out.json --dir data";
        assert_eq!(parse(line), Ok(Command::Measure(expected)));
        assert_eq!(parse(""), Ok(Command::Measure(Arguments::default())));
        assert_eq!(parse("log --help"), Ok(Command::Help));
        let expected = Arguments {
            table: Some("peers".into()),
            repeat: Some(7),
            seconds: Some(9),
            svg: Some("peers.svg".into()),
            systems: vec!["prombus".into(), "redis".into()],
            prombus: Some("prombus".into()),
            ..Arguments::default()
        };
        let line = "peers --repeat 7 --seconds 9 --svg peers.svg --systems prombus,redis --prombus prombus";
        assert_eq!(parse(line), Ok(Command::Measure(expected)));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(parse("log --rows"), Err("--rows needs a value".into()));
        assert_eq!(parse("--fast"), Err("--fast is unknown".into()));
        assert_eq!(
            parse("peers --repeat 0"),
            Err("--repeat needs a number".into())
        );
        assert_eq!(
            parse("log peers"),
            Err("peers is one table too many".into())
        );
    }
}
