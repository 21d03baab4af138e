//! Spreadsheets: each sheet is a table, with the names of its columns in the first row that is
//! not empty.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufWriter, Cursor, Read, Write};
use std::sync::Arc;

use calamine::{
    Data, DataType, ExcelDateTime, ExcelDateTimeType, Reader, SheetType, Sheets, Xlsx,
    open_workbook_auto_from_rs,
};

use zip::ZipArchive;

use crate::formulas::{self, Cell, Value};
use crate::host::{Input, Output};
use crate::{Problem, Table, name_columns, xlsb};

/// By so many rows, columns without a name are found.
const SAMPLE: usize = 1_000;

type Bytes = Cursor<Arc<[u8]>>;

struct Book {
    sheets: Sheets<Bytes>,
    data: Arc<[u8]>,
    /// Whether formulas may have a 0 that was never computed.
    is_uncomputed: bool,
    /// The values of formulas that have none in the file, once one was found.
    computed: Option<Computed>,
}

pub fn list(input: Input) -> Result<Vec<Table>, Problem> {
    let mut book = open(input)?;
    let mut tables = Vec::new();
    for (index, name) in sheet_names(&book.sheets).into_iter().enumerate() {
        tables.push(describe(&name, |take| read(&mut book, index, &name, take))?);
    }
    Ok(tables)
}

/// Finds the columns of a sheet in its first rows.
pub fn describe(
    name: &str,
    read: impl FnOnce(Take) -> Result<(), Problem>,
) -> Result<Table, Problem> {
    let mut columns = BTreeMap::new();
    let mut rows = 0;
    read(&mut |header, row| {
        rows += 1;
        for column in header.keys().chain(row.iter().map(|(column, _)| column)) {
            let named = || name_column(header, *column);
            columns.entry(*column).or_insert_with(named);
        }
        Ok(rows < SAMPLE)
    })?;
    let columns = columns.into_values().map(|name| (name, String::new())).collect();
    Ok(Table { name: name.to_owned(), rows: None, columns })
}

pub fn write(input: Input, table: usize) -> Result<(), Problem> {
    let mut book = open(input)?;
    let names = sheet_names(&book.sheets);
    let name = names.get(table).ok_or(NO_SHEET)?;
    write_rows(|take| read(&mut book, table, name, take))
}

/// Writes the rows that a sheet gives.
pub fn write_rows(read: impl FnOnce(Take) -> Result<(), Problem>) -> Result<(), Problem> {
    let mut out = BufWriter::with_capacity(64 << 10, Output);
    read(&mut |header, row| {
        out.write_all(&encode(header, row))?;
        Ok(true)
    })?;
    out.flush()?;
    Ok(())
}

fn open(input: Input) -> Result<Book, Problem> {
    let mut data = input.read_whole()?;
    let mut is_uncomputed = false;
    if data.starts_with(b"PK") {
        let mut package = ZipArchive::new(Cursor::new(data))?;
        let mut workbook = Vec::new();
        if let Ok(member) = package.by_name("xl/workbook.xml") {
            member.take(1 << 22).read_to_end(&mut workbook)?;
        }
        is_uncomputed = formulas::awaits_computing(&workbook);
        (data, _) = xlsb::spell_out(package, u64::MAX)?;
    }
    let data: Arc<[u8]> = data.into();
    let sheets = open_workbook_auto_from_rs(Cursor::new(data.clone()))?;
    Ok(Book { sheets, data, is_uncomputed, computed: None })
}

fn sheet_names(sheets: &Sheets<Bytes>) -> Vec<String> {
    let is_sheet = |kind| kind == SheetType::WorkSheet;
    let sheets = sheets.sheets_metadata().iter().filter(|sheet| is_sheet(sheet.typ));
    sheets.map(|sheet| sheet.name.clone()).collect()
}

/// The names of columns by their numbers.
pub type Header = BTreeMap<u32, String>;

/// The cells of a row that are not empty, in JSON, with the numbers of their columns.
pub type Row = Vec<(u32, String)>;

/// What is called for each row below the header, until it returns false.
pub type Take<'a> = &'a mut dyn FnMut(&Header, &Row) -> Result<bool, Problem>;

/// Why a table cannot be read that is not in the list.
pub const NO_SHEET: &str = "there is no such sheet";

/// Calls take for each row.
fn read(
    book: &mut Book,
    index: usize,
    name: &str,
    take: Take,
) -> Result<(), Problem> {
    let mut rows = Rows::default();
    let Book { sheets, data, is_uncomputed, computed } = book;
    if let Sheets::Xlsx(xlsx) = sheets {
        let mut cells = xlsx.worksheet_cells_reader(name)?;
        while let Some(cell) = cells.next_cell_with_formula_metadata()? {
            let (row, column) = cell.pos;
            let goes_on = if cell.formula.is_some() && is_unsaved(&cell.value, *is_uncomputed) {
                if computed.is_none() {
                    *computed = Some(Computed::new(data, *is_uncomputed)?);
                }
                match computed.as_ref().and_then(|computed| computed.value(index, row, column)) {
                    Some(value) => rows.add(row, column, &value, take)?,
                    None => rows.add(row, column, &cell.value, take)?,
                }
            } else {
                rows.add(row, column, &cell.value, take)?
            };
            if !goes_on {
                return Ok(());
            }
        }
    } else {
        let range = sheets.worksheet_range(name)?;
        let (top, left) = range.start().unwrap_or_default();
        for (row, column, value) in range.used_cells() {
            let (row, column) = (top + row as u32, left + column as u32);
            if !rows.add(row, column, value, take)? {
                return Ok(());
            }
        }
    }
    rows.finish(take)?;
    Ok(())
}

/// Reports whether the value of a formula's cell is missing.
fn is_unsaved(value: &impl DataType, is_uncomputed: bool) -> bool {
    value.is_empty() || (is_uncomputed && value.get_float() == Some(0.0))
}

/// The values of formulas that have none in the file.
struct Computed {
    book: formulas::Book,
    /// The formulas whose cells have the format of a date or a time: see find_dates.
    dates: HashMap<(usize, u32, u32), ExcelDateTimeType>,
    is_1904: bool,
}

impl Computed {
    /// Reads a whole workbook and computes its formulas.
    fn new(data: &Arc<[u8]>, is_uncomputed: bool) -> Result<Self, Problem> {
        let mut sheets = open_workbook_auto_from_rs(Cursor::new(data.clone()))?;
        let names = sheet_names(&sheets);
        let mut made =
            Self { book: formulas::Book::default(), dates: HashMap::new(), is_1904: false };
        let Sheets::Xlsx(xlsx) = &mut sheets else { return Ok(made) };
        made.is_1904 = xlsx.has_1904_epoch();
        for (index, name) in names.iter().enumerate() {
            made.book.add_sheet(name);
            let mut unsaved = HashSet::new();
            let mut cells = xlsx.worksheet_cells_reader(name)?;
            while let Some(cell) = cells.next_cell_with_formula()? {
                let (row, column) = cell.pos;
                let found = match cell.formula {
                    Some(formula) if is_unsaved(&cell.value, is_uncomputed) => {
                        unsaved.insert((row, column));
                        Cell::Formula(formula)
                    }
                    _ => match find_value(&cell.value) {
                        Value::Empty => continue,
                        value => Cell::Value(value),
                    },
                };
                made.book.add(row, column, found);
            }
            drop(cells);
            made.find_dates(xlsx, index, name, &unsaved)?;
        }
        made.book.compute();
        Ok(made)
    }

    /// Finds the formulas whose cells have the format of a date or a time.
    fn find_dates(
        &mut self,
        xlsx: &mut Xlsx<Bytes>,
        index: usize,
        name: &str,
        unsaved: &HashSet<(u32, u32)>,
    ) -> Result<(), Problem> {
        if unsaved.is_empty() {
            return Ok(());
        }
        let mut cells = xlsx.worksheet_cells_reader(name)?;
        while let Some((row, column, style)) = cells.next_style_id()? {
            let format = cells.styles().get(style).and_then(|style| style.number_format.as_ref());
            let kind = format.and_then(|format| find_date(&format.format_code));
            if let Some(kind) = kind.filter(|_| unsaved.contains(&(row, column))) {
                self.dates.insert((index, row, column), kind);
            }
        }
        Ok(())
    }

    fn value(&self, sheet: usize, row: u32, column: u32) -> Option<Data> {
        Some(match self.book.value(sheet, row, column)? {
            Value::Number(number) => match self.dates.get(&(sheet, row, column)) {
                Some(kind) => Data::DateTime(ExcelDateTime::new(*number, *kind, self.is_1904)),
                None => Data::Float(*number),
            },
            Value::Boolean(is) => Data::Bool(*is),
            Value::Text(text) => Data::String(text.to_string()),
            Value::Error(text) => Data::String(text.clone()),
            Value::Empty => return None,
        })
    }
}

fn find_value(value: &impl DataType) -> Value {
    if let Some(time) = value.get_datetime() {
        return Value::Number(time.as_f64());
    }
    if let Some(is) = value.get_bool() {
        return Value::Boolean(is);
    }
    if let Some(error) = value.get_error() {
        return Value::Error(error.to_string());
    }
    if let Some(number) = value.get_float().or_else(|| value.get_int().map(|int| int as f64)) {
        return Value::Number(number);
    }
    let text = value.get_string().or_else(|| value.get_datetime_iso());
    text.map_or(Value::Empty, |text| Value::Text(text.into()))
}

/// Finds the kind of date or time that a code of a number format shows, None for a number.
fn find_date(code: &str) -> Option<ExcelDateTimeType> {
    let mut rest = code.chars();
    while let Some(c) = rest.next() {
        match c.to_ascii_lowercase() {
            ';' => return None,
            '"' => drop(rest.by_ref().find(|c| *c == '"')),
            '\\' | '_' | '*' => drop(rest.next()),
            '[' => {
                let inner: String = rest.by_ref().take_while(|c| *c != ']').collect();
                if matches!(inner.to_ascii_lowercase().as_str(), "h" | "hh" | "m" | "mm" | "s" | "ss") {
                    return Some(ExcelDateTimeType::TimeDelta);
                }
            }
            'y' | 'm' | 'd' | 'h' | 's' => return Some(ExcelDateTimeType::DateTime),
            _ => {}
        }
    }
    None
}

/// Makes rows of cells.
#[derive(Default)]
pub struct Rows {
    header: Option<Header>,
    number: u32,
    row: Row,
    /// The texts of the row, while it may be the header.
    texts: Vec<(u32, String)>,
}

impl Rows {
    pub fn add(
        &mut self,
        row: u32,
        column: u32,
        value: &impl DataType,
        take: Take,
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
    pub fn finish(
        &mut self,
        take: Take,
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
pub fn show(value: &impl DataType) -> Option<(String, String)> {
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
        return match show_time(&time) {
            Some(text) => show_text(&text),
            None => plain(show_number(time.as_f64())),
        };
    }
    if let Some(error) = value.get_error() {
        return show_text(&error.to_string());
    }
    if let Some(passed) = value.get_duration_iso() {
        return show_text(&show_passed(passed).unwrap_or_else(|| passed.to_owned()));
    }
    show_text(value.get_string().or_else(|| value.get_datetime_iso())?)
}

/// A time of OpenDocument, such as `PT30H30M00S`, as those of other workbooks: `30:30:00`.
fn show_passed(text: &str) -> Option<String> {
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |text| ("-", text));
    let (hours, rest) = text.strip_prefix("PT")?.split_once('H')?;
    let (minutes, rest) = rest.split_once('M')?;
    let seconds = rest.strip_suffix('S')?;
    let (seconds, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, ""));
    let [hours, minutes, seconds] = [hours, minutes, seconds].map(|part| part.parse::<u64>().ok());
    let mut shown = format!("{sign}{:02}:{:02}:{:02}", hours?, minutes?, seconds?);
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        fraction.parse::<u64>().ok()?;
        shown += &format!(".{fraction:0<3}");
    }
    Some(shown)
}

fn show_text(text: &str) -> Option<(String, String)> {
    (!text.is_empty()).then(|| (text.to_owned(), quote(text)))
}

/// Spreadsheets have no integers: a number without a fraction is shown as one, up to 64 bits.
fn show_number(number: f64) -> String {
    if !number.is_finite() {
        return "null".to_owned();
    }
    if number.fract() == 0.0 && number.abs() < I64_END {
        return (number as i64).to_string();
    }
    format!("{number:?}")
}

/// The first number beyond 64 bits.
const I64_END: f64 = 9_223_372_036_854_775_808.0;

/// The last days of the calendar, 9999-12-31, from 1900 and from 1904.
const LAST_DAYS: [f64; 2] = [2_958_465.0, 2_957_003.0];

/// More days than this are a number and no time.
const LONGEST_TIME: f64 = 1e7;

/// A time in ISO 8601: a date, a time of day, both, or hours that have passed. None for a number
/// outside the calendar.
fn show_time(time: &ExcelDateTime) -> Option<String> {
    let days = time.as_f64();
    if time.is_duration() || (0.0..1.0).contains(&days) {
        if !days.is_finite() || days.abs() > LONGEST_TIME {
            return None;
        }
        let millis = (days.abs() * 86_400_000.0).round() as u64;
        let sign = if days < 0.0 { "-" } else { "" };
        let (seconds, millis) = (millis / 1000, millis % 1000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        let mut text = format!("{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60);
        if millis != 0 {
            let _ = write!(text, ".{millis:03}");
        }
        return Some(text);
    }

    let (year, month, day, hour, minute, second, milli) = time.to_ymd_hms_milli();
    // Days outside the calendar become its first or its last one.
    let is_last = (year, month, day) == (9999, 12, 31);
    if !(0.0..LONGEST_TIME).contains(&days) || (is_last && !LAST_DAYS.contains(&days.floor())) {
        return None;
    }
    let mut text = format!("{year:04}-{month:02}-{day:02}");
    if (hour, minute, second, milli) != (0, 0, 0, 0) {
        let _ = write!(text, "T{hour:02}:{minute:02}:{second:02}");
    }
    if milli != 0 {
        let _ = write!(text, ".{milli:03}");
    }
    Some(text)
}
