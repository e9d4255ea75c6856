//! The table of a changelog: how it is made, and whether one that is there fits.

use super::ChangelogOptions;
use crate::error::{BadColumn, ProjectError, TableMismatch};
use crate::names::{check_table, quoted, quoted_list};
use prombus_connect::{ColumnType, check_name};
use rusqlite::{Connection, OptionalExtension};

/// The column that keeps the version of each row, where versions are compared.
const VERSION_COLUMN: &str = "_version";
/// The most columns of a table, far below what SQLite allows.
const MAX_COLUMNS: usize = 500;

/// A table as it has to be.
#[derive(Debug)]
pub(super) struct Table {
    name: String,
    columns: Vec<TableColumn>,
    indexes: Vec<Vec<String>>,
    is_guarded: bool,
}

/// A column as SQLite tells it.
#[derive(Debug, PartialEq, Eq)]
struct TableColumn {
    name: String,
    declared: String,
    is_key: bool,
}

impl Table {
    /// Checks all names.
    pub(super) fn new(options: &ChangelogOptions) -> Result<Self, ProjectError> {
        check_table(&options.table)?;
        let mut columns = vec![TableColumn::new(&options.key_column, "TEXT", true)];
        for column in options.columns() {
            let declared = declared(column.kind);
            columns.push(TableColumn::new(&column.name, declared, false));
        }
        if options.version.is_some() {
            columns.push(TableColumn::new(VERSION_COLUMN, "", false));
        }
        if columns.len() > MAX_COLUMNS {
            return Err(BadColumn::new(&options.table, "a table has at most 500 columns").into());
        }
        for (at, column) in columns.iter().enumerate() {
            check_name(&column.name)?;
            if columns[..at]
                .iter()
                .any(|other| other.is_named(&column.name))
            {
                return Err(BadColumn::new(&column.name, "two columns have this name").into());
            }
        }
        for name in options.indexes.iter().flatten() {
            if !columns.iter().any(|column| column.is_named(name)) {
                return Err(BadColumn::new(name, "there is no such column to index").into());
            }
        }
        Ok(Self {
            name: options.table.clone(),
            columns,
            indexes: options.indexes.clone(),
            is_guarded: options.version.is_some(),
        })
    }

    /// Whether a table of this name is there.
    pub(super) fn exists(&self, connection: &Connection) -> Result<bool, ProjectError> {
        let find = "SELECT type FROM sqlite_master WHERE name = ?1 COLLATE NOCASE";
        let kind: Option<String> = connection
            .query_row(find, [&self.name], |row| row.get(0))
            .optional()?;
        match kind.as_deref() {
            None => Ok(false),
            Some("table") => Ok(true),
            Some(other) => Err(self.mismatch(format!("it is a {other}"))),
        }
    }

    pub(super) fn make(&self, connection: &Connection) -> rusqlite::Result<()> {
        let columns: Vec<String> = self.columns.iter().map(TableColumn::sql).collect();
        let name = quoted(&self.name);
        connection.execute_batch(&format!("CREATE TABLE {name} ({})", columns.join(", ")))
    }

    /// Compares one that is there with what would have been made.
    pub(super) fn check_shape(&self, connection: &Connection) -> Result<(), ProjectError> {
        let mut list = connection.prepare("SELECT name, type, pk FROM pragma_table_info(?1)")?;
        let found = list.query_map([&self.name], |row| {
            Ok(TableColumn {
                name: row.get(0)?,
                declared: row.get(1)?,
                is_key: row.get::<_, i64>(2)? > 0,
            })
        })?;
        let found: Vec<TableColumn> = found.collect::<Result<_, _>>()?;
        for (at, wanted) in self.columns.iter().enumerate() {
            match found.get(at) {
                None => return Err(self.mismatch(format!("it has no column {}", wanted.name))),
                Some(column) if column != wanted => {
                    let (is, wanted) = (column.describe(), wanted.describe());
                    let why = format!("column {} is {is}, not {wanted}", at + 1);
                    return Err(self.mismatch(why));
                }
                Some(_) => {}
            }
        }
        match found.get(self.columns.len()) {
            Some(more) => Err(self.mismatch(format!("it has one more column, {}", more.name))),
            None => Ok(()),
        }
    }

    /// Whether anything is in it.
    pub(super) fn has_rows(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let any = format!("SELECT EXISTS (SELECT 1 FROM {})", quoted(&self.name));
        connection.query_row(&any, [], |row| row.get(0))
    }

    /// Makes the indexes that are not there yet.
    pub(super) fn make_indexes(&self, connection: &Connection) -> Result<(), ProjectError> {
        for columns in &self.indexes {
            let name = format!("{}_by_{}", self.name, columns.join("_"));
            let make = format!(
                "CREATE INDEX {} ON {} ({})",
                quoted(&name),
                quoted(&self.name),
                quoted_list(columns.iter().map(String::as_str))
            );
            let find = "SELECT sql FROM sqlite_master WHERE name = ?1 COLLATE NOCASE";
            let known: Option<Option<String>> = connection
                .query_row(find, [&name], |row| row.get(0))
                .optional()?;
            match known.flatten() {
                None => connection.execute_batch(&make)?,
                Some(known) if known == make => {}
                Some(known) => {
                    let why = format!("the name of its index is taken by {known}");
                    return Err(self.mismatch(why));
                }
            }
        }
        Ok(())
    }

    /// Writes a row, the key and all columns in their order being the parameters.
    pub(super) fn upsert_sql(&self) -> String {
        let name = quoted(&self.name);
        let names = self.columns.iter().map(|column| column.name.as_str());
        let marks: Vec<String> = (1..=self.columns.len())
            .map(|at| format!("?{at}"))
            .collect();
        let key = quoted(&self.columns[0].name);
        let sets: Vec<String> = self.columns[1..]
            .iter()
            .map(|column| quoted(&column.name))
            .map(|column| format!("{column} = excluded.{column}"))
            .collect();
        let (columns, marks) = (quoted_list(names), marks.join(", "));
        let sets = sets.join(", ");
        let guard = if self.is_guarded {
            let version = quoted(VERSION_COLUMN);
            format!(" WHERE {name}.{version} IS NULL OR excluded.{version} >= {name}.{version}")
        } else {
            String::new()
        };
        format!(
            "INSERT INTO {name} ({columns}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {sets}{guard}"
        )
    }

    /// Removes a row, the key being the parameter.
    pub(super) fn delete_sql(&self) -> String {
        let (name, key) = (quoted(&self.name), quoted(&self.columns[0].name));
        format!("DELETE FROM {name} WHERE {key} = ?1")
    }

    pub(super) fn mismatch(&self, why: String) -> ProjectError {
        let table = self.name.clone();
        TableMismatch { table, why }.into()
    }
}

/// How the table declares a column of this type.
fn declared(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Any => "",
        ColumnType::Text | ColumnType::Json => "TEXT",
        ColumnType::Integer => "INTEGER",
        ColumnType::Real => "REAL",
        ColumnType::Boolean => "BOOLEAN",
    }
}

impl TableColumn {
    fn new(name: &str, declared: &str, is_key: bool) -> Self {
        Self {
            name: name.to_owned(),
            declared: declared.to_owned(),
            is_key,
        }
    }

    /// Names of columns are the same whatever the case of their ASCII letters.
    fn is_named(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn sql(&self) -> String {
        let key = if self.is_key {
            " PRIMARY KEY NOT NULL"
        } else {
            ""
        };
        format!("{} {}{key}", quoted(&self.name), self.declared)
    }

    fn describe(&self) -> String {
        let kind = match self.declared.as_str() {
            "" => "of no type",
            declared => declared,
        };
        let key = if self.is_key { ", the primary key" } else { "" };
        format!("{} ({kind}{key})", self.name)
    }
}
