//! Tables for people: columns as wide as what stands in them.

/// Prints rows under their heads; numbers stand to the right.
pub(crate) fn print(heads: &[&str], rows: &[Vec<String>]) {
    for line in lines(heads, rows) {
        println!("{line}");
    }
}

fn lines(heads: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([heads[at].len()]).max().unwrap_or(0)
    };
    let is_number = |at: usize| {
        let mut cells = rows.iter().map(|row| row[at].as_str());
        cells.all(|cell| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let columns: Vec<(usize, bool)> = (0..heads.len())
        .map(|at| (width(at), is_number(at)))
        .collect();
    let line = |cells: Vec<&str>| {
        let cells = cells.into_iter().zip(&columns);
        let cells = cells.map(|(cell, (width, is_number))| match is_number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head = line(heads.to_vec());
    let rows = rows
        .iter()
        .map(|row| line(row.iter().map(String::as_str).collect()));
    [head].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_to_the_right() {
        let rows = [["a", "5"], ["longer", "123"]].map(|row| row.map(str::to_owned).to_vec());
        let lines = lines(&["topic", "events"], &rows);
        assert_eq!(
            lines,
            ["topic   events", "a            5", "longer     123"]
        );
    }
}
