//! Tables for people: columns as wide as their cells, headings in bold on a terminal.

use crate::{escape, output};

/// Prints rows under their headings; numbers are aligned to the right. Cells may hold anything, also control
/// characters.
pub(crate) fn print(headings: &[&str], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let mut lines = lines(headings, rows).into_iter();
    if let Some(heading) = lines.next() {
        output::line(output::bold(&heading))?;
    }
    for line in lines {
        output::line(line)?;
    }
    Ok(())
}

fn lines(headings: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let escaped = |row: &Vec<String>| -> Vec<String> {
        row.iter()
            .map(|cell| escape::controls(cell).into_owned())
            .collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(escaped).collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([headings[at].len()]).max().unwrap_or(0)
    };
    let is_number = |at: usize| {
        let mut cells = rows.iter().map(|row| row[at].as_str());
        cells.all(|cell| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let columns: Vec<(usize, bool)> = (0..headings.len())
        .map(|at| (width(at), is_number(at)))
        .collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.into_iter().zip(&columns);
        let cells = cells.map(|(cell, (width, is_number))| {
            if *is_number {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heading = line(headings.to_vec());
    let rows = rows
        .iter()
        .map(|row| line(row.iter().map(String::as_str).collect()));
    [heading].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_numbers_to_the_right() {
        let rows = [["a", "5"], ["longer", "123"]].map(|row| row.map(str::to_owned).to_vec());
        let lines = lines(&["topic", "events"], &rows);
        assert_eq!(
            lines,
            ["topic   events", "a            5", "longer     123"]
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let rows = [vec!["\u{1b}[2J".to_owned()]];
        assert_eq!(lines(&["key"], &rows)[1], "\\u001b[2J");
    }
}
