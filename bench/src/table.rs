//! Which tables there are, and how their rows are run.

use crate::arguments::Arguments;
use crate::folder::Folder;
use crate::report::{Line, to_json, to_table};
use crate::scale::Scale;
use crate::{Outcome, cluster, log, log_progress, log_work, print, server, state};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Some figures that belong together and can be measured without the others.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Bench) -> Outcome<Vec<Line>>,
}

/// What a row gets to work with.
pub(crate) struct Bench {
    pub(crate) scale: Scale,
    pub(crate) folder: Folder,
    large_log: Option<PathBuf>,
}

const TABLES: &[(&str, &[Row])] = &[
    ("log", log::ROWS),
    ("server", server::ROWS),
    ("state", state::ROWS),
    ("cluster", cluster::ROWS),
];

/// Measures what is asked for and prints it.
pub(crate) fn measure(arguments: &Arguments) -> Outcome<()> {
    let rows = chosen_rows(arguments)?;
    let scale = if arguments.quick {
        Scale::quick()
    } else {
        Scale::full()
    };
    let mut bench = Bench {
        folder: Folder::make(arguments.folder.as_deref(), scale.disk_bytes)?,
        scale,
        large_log: None,
    };
    let mut lines = Vec::new();
    for row in rows {
        let started = Instant::now();
        let measured = (row.run)(&mut bench)?;
        lines.extend(measured.into_iter().map(|line| Line {
            row: row.name,
            ..line
        }));
        let seconds = started.elapsed().as_secs_f64();
        log_progress(&format!("{} took {seconds:.1} s", row.name));
    }
    print(&to_table(&lines))?;
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&to_json(&lines))?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

impl Bench {
    /// A log with as many events as are stored at most, closed properly. Made when it is first asked for; rows that
    /// add events to it come last.
    pub(crate) fn large_log(&mut self) -> Outcome<&Path> {
        if self.large_log.is_none() {
            let path = self.folder.fresh("large");
            let events = self.scale.large_log_events();
            log_progress("making the large log");
            log_work::make_log(&path, &self.scale, 1, events)?;
            self.large_log = Some(path);
        }
        self.large_log
            .as_deref()
            .ok_or_else(|| "there is no large log".into())
    }
}

fn chosen_rows(arguments: &Arguments) -> Outcome<Vec<&'static Row>> {
    let tables = || {
        TABLES
            .iter()
            .filter(|(name, _)| arguments.table.as_ref().is_none_or(|table| table == name))
    };
    if tables().next().is_none() {
        let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
        let names = names.join(", ");
        return Err(format!("there is no such table; there are: {names}, peers").into());
    }
    let rows: Vec<&Row> = tables().flat_map(|(_, rows)| rows.iter()).collect();
    for wanted in &arguments.rows {
        if !rows.iter().any(|row| row.name == wanted) {
            let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
            return Err(
                format!("there is no row {wanted}; there are: {}", names.join(", ")).into(),
            );
        }
    }
    let is_wanted = |row: &&Row| {
        arguments.rows.is_empty() || arguments.rows.iter().any(|wanted| wanted == row.name)
    };
    Ok(rows.into_iter().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(table: &str, rows: &[&str]) -> Outcome<Vec<&'static str>> {
        let arguments = Arguments {
            table: Some(table.to_owned()),
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
            ..Arguments::default()
        };
        Ok(chosen_rows(&arguments)?
            .iter()
            .map(|row| row.name)
            .collect())
    }

    #[test]
    fn rows_are_chosen_by_name() {
        assert_eq!(
            choose("log", &["open", "append"]).unwrap(),
            ["append", "open"]
        );
        assert_eq!(choose("log", &[]).unwrap().len(), log::ROWS.len());
        let unknown = choose("log", &["opne"]).unwrap_err().to_string();
        assert!(
            unknown.contains("no row opne") && unknown.contains("append"),
            "{unknown}"
        );
        let unknown = choose("lag", &[]).unwrap_err().to_string();
        assert!(
            unknown.ends_with("there are: log, server, state, cluster, peers"),
            "{unknown}"
        );
    }
}
