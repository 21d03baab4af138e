//! Workbooks of Excel 2003 in one XML text (SpreadsheetML). The engines include this file.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

/// The last row and column of Excel.
const ROWS: u32 = 1 << 20;
const COLUMNS: u32 = 1 << 14;

/// What a cell or a row costs besides its text, in bytes.
const CELL: u64 = 64;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    #[default]
    Text,
    Number,
    Boolean,
    Time,
    /// A formula without a saved value: the data is the formula.
    Formula,
}

#[derive(Default)]
pub struct Cell {
    /// From 0, as the column.
    pub row: u32,
    pub column: u32,
    pub kind: Kind,
    pub data: String,
    #[allow(dead_code)] // rows have none
    pub comment: String,
    style: u32,
}

#[derive(Default)]
pub struct Sheet {
    pub name: String,
    #[allow(dead_code)] // rows are the same
    pub is_hidden: bool,
    pub cells: Vec<Cell>,
    row: u32,
    next_row: u32,
    next_column: u32,
}

#[derive(Default)]
pub struct Book {
    pub sheets: Vec<Sheet>,
    #[allow(dead_code)] // the reader of tables leaves these to that of documents
    pub hidden_rows: usize,
    #[allow(dead_code)]
    pub hidden_columns: usize,
    /// The numbers of styles, and their number formats.
    styles: HashMap<String, u32>,
    codes: HashMap<u32, String>,
    style: u32,
    /// What is open.
    cell: Cell,
    formula: Option<String>,
    data: Option<String>,
    is_visible: Option<String>,
    in_comment: bool,
}

/// Reads a workbook. It calls charge with the bytes that each cell takes.
pub fn read<E: From<quick_xml::Error>>(
    content: &str,
    mut charge: impl FnMut(u64) -> Result<(), E>,
) -> Result<Book, E> {
    let mut book = Book::default();
    let mut reader = Reader::from_reader(content.as_bytes());
    loop {
        match reader.read_event()? {
            Event::Start(e) => book.open(&e),
            Event::Empty(e) => {
                book.open(&e);
                charge(book.close(e.local_name().as_ref()))?;
            }
            Event::End(e) => charge(book.close(e.local_name().as_ref()))?,
            Event::Text(t) => book.write(&t.xml10_content()),
            Event::CData(t) => book.write(&t),
            Event::GeneralRef(r) => {
                if let Ok(Some(c)) = r.resolve_char_ref() {
                    book.write(c.encode_utf8(&mut [0; 4]));
                } else if let Some(known) = resolve_predefined_entity(&r) {
                    book.write(known);
                }
            }
            Event::Eof => return Ok(book),
            _ => {}
        }
    }
}

impl Book {
    /// The number format of a cell, None for the general one.
    pub fn code(&self, cell: &Cell) -> Option<&str> {
        self.codes.get(&cell.style).map(String::as_str)
    }

    fn number_style(&mut self, name: String) -> u32 {
        let next = self.styles.len() as u32 + 1;
        *self.styles.entry(name).or_insert(next)
    }

    fn open(&mut self, e: &BytesStart) {
        match e.local_name().as_ref() {
            "Style" => self.style = self.number_style(value(e, "ID").unwrap_or_default()),
            "NumberFormat" => {
                if let Some(code) = value(e, "Format") {
                    self.codes.insert(self.style, spell_out(code));
                }
            }
            "Worksheet" => {
                let name = value(e, "Name").unwrap_or_default();
                self.sheets.push(Sheet { name, ..Sheet::default() });
            }
            "Column" if is_hidden(e) => self.hidden_columns += 1 + span(e),
            "Row" => {
                if is_hidden(e) {
                    self.hidden_rows += 1 + span(e);
                }
                if let Some(sheet) = self.sheets.last_mut() {
                    sheet.row = place(e).unwrap_or(sheet.next_row).min(ROWS);
                    sheet.next_row = sheet.row + 1 + span(e) as u32;
                    sheet.next_column = 0;
                }
            }
            "Cell" => {
                let style = value(e, "StyleID").map_or(0, |name| self.number_style(name));
                self.formula = value(e, "Formula");
                if let Some(sheet) = self.sheets.last_mut() {
                    let (row, column) = (sheet.row, place(e).unwrap_or(sheet.next_column));
                    let column = column.min(COLUMNS);
                    let merged = number(e, "MergeAcross").min(COLUMNS);
                    sheet.next_column = column + 1 + merged;
                    self.cell = Cell { row, column, style, ..Cell::default() };
                }
            }
            "Data" => {
                if !self.in_comment {
                    self.cell.kind = match value(e, "Type").unwrap_or_default().as_str() {
                        "Number" => Kind::Number,
                        "Boolean" => Kind::Boolean,
                        "DateTime" => Kind::Time,
                        _ => Kind::Text,
                    };
                }
                self.data = Some(String::new());
            }
            "Comment" => self.in_comment = true,
            "Visible" => self.is_visible = Some(String::new()),
            _ => {}
        }
    }

    /// Ends an element, and returns what it costs.
    fn close(&mut self, name: &str) -> u64 {
        match name {
            "Data" => {
                let data = self.data.take().unwrap_or_default();
                let cost = data.len() as u64;
                *(if self.in_comment { &mut self.cell.comment } else { &mut self.cell.data }) = data;
                return cost;
            }
            "Comment" => self.in_comment = false,
            "Cell" => {
                let mut cell = std::mem::take(&mut self.cell);
                let formula = self.formula.take().filter(|formula| !formula.is_empty());
                if let Some(formula) = formula.filter(|_| cell.data.is_empty()) {
                    (cell.kind, cell.data) = (Kind::Formula, formula);
                }
                let is_filled = !cell.data.trim().is_empty() || !cell.comment.trim().is_empty();
                if let Some(sheet) = self.sheets.last_mut().filter(|_| is_filled) {
                    sheet.cells.push(cell);
                }
                return CELL;
            }
            "Visible" => {
                let state = self.is_visible.take().unwrap_or_default();
                if let Some(sheet) = self.sheets.last_mut() {
                    sheet.is_hidden = state.trim().starts_with("SheetHidden")
                        || state.trim().starts_with("SheetVeryHidden");
                }
            }
            "Row" => return CELL,
            _ => {}
        }
        0
    }

    fn write(&mut self, text: &str) {
        if let Some(open) = self.data.as_mut().or(self.is_visible.as_mut()) {
            open.push_str(text);
        }
    }
}

/// The date and the time of day of a cell: one of them is empty if it has only the other.
pub fn split_time(data: &str) -> (&str, &str) {
    let (date, time) = data.trim().split_once('T').unwrap_or((data.trim(), ""));
    let time = time.strip_suffix('Z').unwrap_or(time);
    let time = time.strip_suffix(".000").unwrap_or(time);
    match (date, time) {
        ("1899-12-31" | "1899-12-30", "") => ("", "00:00:00"),
        ("1899-12-31" | "1899-12-30", _) => ("", time),
        (_, "00:00:00") => (date, ""),
        _ => (date, time),
    }
}

/// The days that have passed at a time, which is how Excel counts more than 24 hours. None for a
/// time that has a format of the calendar.
pub fn passed_days(data: &str, code: Option<&str>) -> Option<f64> {
    let code = code?.to_ascii_lowercase();
    if !["[h]", "[hh]", "[m]", "[mm]", "[s]", "[ss]"].iter().any(|unit| code.contains(unit)) {
        return None;
    }
    let (date, time) = data.trim().split_once('T')?;
    let numbers = |text: &str, sign| -> Option<Vec<f64>> {
        text.split(sign).map(|part| part.parse().ok()).collect()
    };
    let date = numbers(date, '-')?;
    let time = numbers(time.strip_suffix('Z').unwrap_or(time), ':')?;
    let ([year, month, day], [hour, minute, second]) = (date.as_slice(), time.as_slice()) else {
        return None;
    };
    let days = count_days(*year as i64, *month as i64, *day as i64) - count_days(1899, 12, 31);
    Some(days as f64 + (hour * 3600.0 + minute * 60.0 + second) / 86_400.0)
}

/// The days of the Gregorian calendar since the 1st of March of the year 0.
fn count_days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 1
}

/// The codes of formats that have names.
fn spell_out(code: String) -> String {
    let known = match code.as_str() {
        "Fixed" => "0.00",
        "Standard" => "#,##0.00",
        "Currency" => "$#,##0.00",
        "Percent" => "0.00%",
        "Scientific" => "0.00E+00",
        // Dates say what they are in their cells.
        "Yes/No" | "True/False" | "On/Off" | "Euro Currency" => "General",
        _ if ["General ", "Long ", "Medium ", "Short "]
            .iter()
            .any(|first| code.starts_with(first)) =>
        {
            "General"
        }
        _ => return code,
    };
    known.to_owned()
}

/// The number of a row or of a cell, from 0.
fn place(e: &BytesStart) -> Option<u32> {
    value(e, "Index")?.trim().parse::<u32>().ok()?.checked_sub(1)
}

fn is_hidden(e: &BytesStart) -> bool {
    value(e, "Hidden").is_some_and(|hidden| hidden == "1")
}

/// How many further rows or columns an element stands for.
fn span(e: &BytesStart) -> usize {
    number(e, "Span").min(ROWS) as usize
}

/// The value of an attribute as a number, 0 without it.
fn number(e: &BytesStart, name: &str) -> u32 {
    value(e, name).and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// The value of an attribute, whatever its prefix is.
fn value(e: &BytesStart, name: &str) -> Option<String> {
    let found = e.attributes().flatten().find(|a| a.key.local_name().as_ref() == name)?;
    let raw = found.value.into_owned();
    Some(quick_xml::escape::unescape(&raw).map(|text| text.into_owned()).unwrap_or(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_their_places() {
        let xml = "<Workbook><Styles><Style ID=\"e\"><NumberFormat Format=\"[h]:mm\"/></Style></Styles>\
            <Worksheet Name=\"a &amp; b\"><Table><Column Hidden=\"1\" Span=\"1\"/><Row Index=\"3\" \
            Hidden=\"1\"><Cell MergeAcross=\"2\"><Data Type=\"Number\">5</Data><Comment><Data>why</Data>\
            </Comment></Cell><Cell StyleID=\"e\"><Data Type=\"String\">x<B>y</B>&lt;</Data></Cell></Row>\
            <Row Span=\"1\"/><Row><Cell Index=\"4\" Formula=\"=RC[-1]*2\"/></Row></Table></Worksheet></Workbook>";
        let book = read(xml, |_| Ok::<_, quick_xml::Error>(())).unwrap();
        let sheet = &book.sheets[0];
        let cells = sheet.cells.iter();
        let cells: Vec<_> = cells.map(|c| (c.row, c.column, c.data.as_str(), c.comment.as_str())).collect();
        assert_eq!(sheet.name, "a & b");
        assert_eq!(cells, [(2, 0, "5", "why"), (2, 3, "xy<", ""), (5, 3, "=RC[-1]*2", "")]);
        assert!(sheet.cells[2].kind == Kind::Formula);
        assert_eq!((book.hidden_rows, book.hidden_columns), (1, 2));
        assert_eq!(book.code(&sheet.cells[1]), Some("[h]:mm"));
    }

    #[test]
    fn times_are_exact() {
        for (data, want) in [
            ("2024-03-15T00:00:00.000", ("2024-03-15", "")),
            ("2024-03-15T10:30:00.500", ("2024-03-15", "10:30:00.500")),
            ("1899-12-31T10:30:00.000", ("", "10:30:00")),
            ("1899-12-31T00:00:00.000", ("", "00:00:00")),
            ("2024-03-15", ("2024-03-15", "")),
        ] {
            assert_eq!(split_time(data), want, "{data}");
        }
        assert_eq!(passed_days("1900-01-01T06:30:00.000", Some("[h]:mm")), Some(1.0 + 6.5 / 24.0));
        assert_eq!(passed_days("1899-12-31T12:00:00.000", Some("[h]:mm;@")), Some(0.5));
        for code in [None, Some("h:mm"), Some("[Red]0"), Some("[$-409]d/m/yy")] {
            assert_eq!(passed_days("1900-01-01T06:30:00.000", code), None);
        }
    }
}
