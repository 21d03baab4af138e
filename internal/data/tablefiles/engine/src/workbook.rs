//! Spreadsheets: each sheet is a table, with the names of its columns in the first row that is
//! not empty.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Cursor, Read, Write};
use std::sync::Arc;

use calamine::{
    DataType, ExcelDateTime, Reader, SheetType, Sheets, open_workbook_auto_from_rs,
};

use zip::ZipArchive;

use crate::host::{Input, Output};
use crate::{Problem, Table, name_columns, xlsb};

/// By so many rows, columns without a name are found.
const SAMPLE: usize = 1_000;

type Book = Sheets<Cursor<Arc<[u8]>>>;

pub fn list(input: Input) -> Result<Vec<Table>, Problem> {
    let mut book = open(input)?;
    let mut tables = Vec::new();
    for name in sheet_names(&book) {
        let mut columns = BTreeMap::new();
        let mut rows = 0;
        read(&mut book, &name, |header, row| {
            rows += 1;
            for column in header.keys().chain(row.iter().map(|(column, _)| column)) {
                let named = || name_column(header, *column);
                columns.entry(*column).or_insert_with(named);
            }
            Ok(rows < SAMPLE)
        })?;
        let columns = columns.into_values().map(|name| (name, String::new())).collect();
        tables.push(Table { name, rows: None, columns });
    }
    Ok(tables)
}

pub fn write(input: Input, table: usize) -> Result<(), Problem> {
    let mut book = open(input)?;
    let names = sheet_names(&book);
    let name = names.get(table).ok_or("there is no such sheet")?;
    let mut out = BufWriter::with_capacity(64 << 10, Output);
    read(&mut book, name, |header, row| {
        out.write_all(&encode(header, row))?;
        Ok(true)
    })?;
    out.flush()?;
    Ok(())
}

fn open(mut input: Input) -> Result<Book, Problem> {
    let mut data = Vec::new();
    data.try_reserve_exact(usize::try_from(input.size())?)?;
    input.read_to_end(&mut data)?;
    if data.starts_with(b"PK") {
        data = xlsb::spell_out(ZipArchive::new(Cursor::new(data))?, u64::MAX)?;
    }
    Ok(open_workbook_auto_from_rs(Cursor::new(data.into()))?)
}

fn sheet_names(book: &Book) -> Vec<String> {
    let is_sheet = |kind| kind == SheetType::WorkSheet;
    let sheets = book.sheets_metadata().iter().filter(|sheet| is_sheet(sheet.typ));
    sheets.map(|sheet| sheet.name.clone()).collect()
}

/// The names of columns by their numbers.
type Header = BTreeMap<u32, String>;

/// The cells of a row that are not empty, in JSON, with the numbers of their columns.
type Row = Vec<(u32, String)>;

/// Calls use for each row below the header, until it returns false.
fn read(
    book: &mut Book,
    name: &str,
    mut take: impl FnMut(&Header, &Row) -> Result<bool, Problem>,
) -> Result<(), Problem> {
    let mut rows = Rows::default();
    if let Sheets::Xlsx(xlsx) = book {
        let mut cells = xlsx.worksheet_cells_reader(name)?;
        while let Some(cell) = cells.next_cell()? {
            let (row, column) = cell.get_position();
            if !rows.add(row, column, cell.get_value(), &mut take)? {
                return Ok(());
            }
        }
    } else {
        let range = book.worksheet_range(name)?;
        let (top, left) = range.start().unwrap_or_default();
        for (row, column, value) in range.used_cells() {
            let (row, column) = (top + row as u32, left + column as u32);
            if !rows.add(row, column, value, &mut take)? {
                return Ok(());
            }
        }
    }
    rows.finish(&mut take)?;
    Ok(())
}

/// Makes rows of cells.
#[derive(Default)]
struct Rows {
    header: Option<Header>,
    number: u32,
    row: Row,
    /// The texts of the row, while it may be the header.
    texts: Vec<(u32, String)>,
}

impl Rows {
    fn add(
        &mut self,
        row: u32,
        column: u32,
        value: &impl DataType,
        take: &mut impl FnMut(&Header, &Row) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        if row != self.number && !self.finish(take)? {
            return Ok(false);
        }
        self.number = row;
        let Some((text, json)) = show(value) else { return Ok(true) };
        if self.header.is_none() {
            self.texts.push((column, text));
        } else {
            self.row.push((column, json));
        }
        Ok(true)
    }

    /// Ends a row.
    fn finish(
        &mut self,
        take: &mut impl FnMut(&Header, &Row) -> Result<bool, Problem>,
    ) -> Result<bool, Problem> {
        let Some(header) = &self.header else {
            if !self.texts.is_empty() {
                self.header = Some(name_all(std::mem::take(&mut self.texts)));
            }
            return Ok(true);
        };
        let row = std::mem::take(&mut self.row);
        if row.is_empty() { Ok(true) } else { take(header, &row) }
    }
}

fn name_all(texts: Vec<(u32, String)>) -> Header {
    let (columns, given): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
    let names = name_columns(&given);
    columns.into_iter().zip(names).collect()
}

/// The name of a column, also of one that has none in the header.
fn name_column(header: &Header, column: u32) -> String {
    if let Some(name) = header.get(&column) {
        return name.clone();
    }
    let mut name = format!("column_{}", column + 1);
    while header.values().any(|taken| *taken == name) {
        name.push('_');
    }
    name
}

/// A line of JSON. A column without a name is there if its cell is not empty.
fn encode(header: &Header, row: &Row) -> Vec<u8> {
    let mut cells: BTreeMap<u32, &str> = header.keys().map(|column| (*column, "null")).collect();
    cells.extend(row.iter().map(|(column, value)| (*column, value.as_str())));
    let mut line = String::from("{");
    for (column, value) in cells {
        if line.len() > 1 {
            line.push(',');
        }
        line.push_str(&quote(&name_column(header, column)));
        line.push(':');
        line.push_str(value);
    }
    line.push_str("}\n");
    line.into_bytes()
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A value as text and as JSON; None for an empty cell.
fn show(value: &impl DataType) -> Option<(String, String)> {
    let plain = |text: String| Some((text.clone(), text));
    if let Some(number) = value.get_int() {
        return plain(number.to_string());
    }
    if let Some(number) = value.get_float() {
        return plain(show_number(number));
    }
    if let Some(is) = value.get_bool() {
        return plain(is.to_string());
    }
    if let Some(time) = value.get_datetime() {
        return show_text(&show_time(&time));
    }
    if let Some(error) = value.get_error() {
        return show_text(&error.to_string());
    }
    let text = value.get_string().or_else(|| value.get_datetime_iso());
    show_text(text.or_else(|| value.get_duration_iso())?)
}

fn show_text(text: &str) -> Option<(String, String)> {
    (!text.is_empty()).then(|| (text.to_owned(), quote(text)))
}

/// Spreadsheets have no integers: a number without a fraction is shown as one.
fn show_number(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return (number as i64).to_string();
    }
    format!("{number:?}")
}

/// A time in ISO 8601: a date, a time of day, both, or hours that have passed.
fn show_time(time: &ExcelDateTime) -> String {
    let days = time.as_f64();
    if time.is_duration() || (0.0..1.0).contains(&days) {
        let seconds = (days.abs() * 86_400.0).round() as u64;
        let sign = if days < 0.0 { "-" } else { "" };
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        return format!("{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60);
    }

    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if (hour, minute, second, milli) != (0, 0, 0, 0) {
        let _ = write!(text, "T{hour:02}:{minute:02}:{second:02}");
    }
    if milli != 0 {
        let _ = write!(text, ".{milli:03}");
    }
    text
}
