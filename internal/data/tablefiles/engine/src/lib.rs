//! The reader of tables of package tablefiles: Parquet, Arrow and spreadsheets become lines of
//! JSON, in one WebAssembly module.
//!
//! The module reads the file with the host's `seek` and `read`, and writes the rows with `write`.

mod columnar;
#[path = "../../../../machine/rustmodule/formulas.rs"]
mod formulas;
#[path = "../../../../machine/rustmodule/guest.rs"]
mod guest;
mod host;
#[path = "../../../../machine/rustmodule/tokens.rs"]
mod tokens;
mod workbook;
#[path = "../../../../machine/rustmodule/xlsb.rs"]
mod xlsb;
#[path = "../../../../machine/rustmodule/xmlbook.rs"]
mod xmlbook;
mod xmlsheets;

use std::collections::HashSet;
use std::fmt::Display;

use guest::{put_number, put_text};
use host::Input;

/// Lists the tables of a file, or writes the rows of one: see `internal/data/tablefiles/answer.go`.
#[unsafe(no_mangle)]
pub extern "C" fn call(operation: u32) -> u64 {
    let result = answer(operation, &guest::take_request());
    guest::reply(result.unwrap_or_else(|problem| {
        let mut out = vec![1];
        put_text(&mut out, shorten(&problem.0));
        out
    }))
}

/// Why a file has no tables to give.
pub struct Problem(String);

impl<E: Display> From<E> for Problem {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A table and the columns that its rows have.
#[derive(Default)]
pub struct Table {
    pub name: String,
    /// How many rows there are, if the file says so.
    pub rows: Option<u64>,
    /// Names and types.
    pub columns: Vec<(String, String)>,
}

const LIST: u32 = 0;

/// The request has the size of the file, the number of the table, and the kind of the file.
fn answer(operation: u32, request: &[u8]) -> Result<Vec<u8>, Problem> {
    let short = || Problem("the request is short".to_owned());
    let (size, rest) = request.split_first_chunk::<8>().ok_or_else(short)?;
    let (table, kind) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let input = Input::new(u64::from_le_bytes(*size));
    let table = u32::from_le_bytes(*table) as usize;

    if operation == LIST {
        let tables = match kind {
            b"parquet" => columnar::list_parquet(input)?,
            b"arrow" => columnar::list_arrow(input)?,
            b"spreadsheetml" => xmlsheets::list(input)?,
            _ => workbook::list(input)?,
        };
        return Ok(encode(&tables));
    }
    match kind {
        b"parquet" => columnar::write_parquet(input)?,
        b"arrow" => columnar::write_arrow(input)?,
        b"spreadsheetml" => xmlsheets::write(input, table)?,
        _ => workbook::write(input, table)?,
    }
    Ok(vec![0])
}

fn encode(tables: &[Table]) -> Vec<u8> {
    let mut out = vec![0];
    put_number(&mut out, tables.len() as u64);
    for table in tables {
        put_text(&mut out, shorten(&table.name));
        put_number(&mut out, table.rows.map_or(0, |rows| rows.saturating_add(1)));
        put_number(&mut out, table.columns.len() as u64);
        for (name, kind) in &table.columns {
            put_text(&mut out, shorten(name));
            put_text(&mut out, shorten(kind));
        }
    }
    out
}

/// The beginning of a text, as the host bounds it.
fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(1 << 10)]
}

/// Names of which each is unique, as those of columns in CSV: see `internal/data/tables/layout.go`.
pub fn name_columns(given: &[String]) -> Vec<String> {
    let taken: HashSet<&str> = given.iter().map(String::as_str).collect();
    let mut used = HashSet::new();
    let mut names = Vec::with_capacity(given.len());
    for (index, field) in given.iter().enumerate() {
        let base = if field.is_empty() { format!("column_{}", index + 1) } else { field.clone() };
        let mut name = base.clone();
        let mut count = 1;
        while used.contains(&name) || (name != *field && taken.contains(name.as_str())) {
            count += 1;
            name = format!("{base}_{count}");
        }
        used.insert(name.clone());
        names.push(name);
    }
    names
}
