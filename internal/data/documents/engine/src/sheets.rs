//! Spreadsheets of Excel: each sheet becomes a table that shows what Excel shows.

use std::collections::{HashMap, HashSet};
use std::io::{Cursor, Read};

use office_oxide::cfb::CfbReader;
use office_oxide::ir::{DocumentIR, Element, Metadata, Section};
use office_oxide::limits::Limits;
use office_oxide::options::ParseOptions;
use office_oxide::xls;
use office_oxide::xlsx::worksheet::Row;
use office_oxide::xlsx::{Cell, CellRef, CellValue, HyperlinkTarget, Worksheet, XlsxDocument};
use office_oxide::{Document, DocumentFormat};
use zip::ZipArchive;

use crate::formats::Formats;
use crate::formulas::{self, Book, Value};
use crate::office::{describe, explain};
use crate::problem::Problem;
use crate::text::{Text, cell, count};
use crate::unseen::Unseen;

/// So many empty rows stay between others, so that rows keep their numbers. More are told.
const MOST_EMPTY_ROWS: u32 = 100;

/// Rows are as long as the table is wide, unless it has more cells than this.
const MOST_PADDED: usize = 1 << 22;

/// Longer pieces of a row are written before the row ends.
const LONGEST_PIECE: usize = 64 << 10;

/// Reads workbooks of Excel 2007 and later.
pub fn read_new(data: Vec<u8>, text: &mut Text) -> Result<(), Problem> {
    let is_uncomputed = has_uncomputed_formulas(&data);
    let limits = Limits::current();
    let mut own = limits.clone();
    own.package_bytes = text.room;
    own.part_bytes = text.room;
    own.apply();
    let document = XlsxDocument::from_reader(Cursor::new(data));
    limits.apply();
    let mut document = document.map_err(|error| explain(error.into()))?;
    document.ensure_styles();

    let sheets: Vec<Vec<Row>> =
        document.worksheets.iter_mut().map(|sheet| std::mem::take(&mut sheet.rows)).collect();
    let computed = compute(&document, &sheets, is_uncomputed);
    // The rest of a workbook: comments, pictures, charts, what is damaged.
    let mut rest = document.sheets_ir();
    let sections: Vec<Section> = rest.by_ref().map(|sheet| sheet.section).collect();
    let metadata = rest.metadata();

    begin(&metadata, &sections, text)?;
    let mut formats = Formats::new(document.workbook.date1904);
    for (index, section) in sections.into_iter().enumerate() {
        let section = start(section, text)?;
        if let (Some(sheet), Some(rows)) = (document.worksheets.get(index), sheets.get(index)) {
            let show = Show { document: &document, sheet: index, computed: &computed };
            let links = find_links(sheet);
            let rows = rows.iter().map(|row| {
                let cells = row.cells.iter().filter(|cell| show.is_filled(cell));
                (
                    row.index.saturating_sub(1),
                    cells.map(|cell| (cell.reference.col, cell)).collect(),
                )
            });
            write_table(&sheet.name, rows.collect(), text, |cell| {
                let shown = show.show(cell, &mut formats);
                match links.get(&(cell.reference.row, cell.reference.col)) {
                    Some(target) => add_link(shown, target),
                    None => shown,
                }
            })?;
        }
        finish(&metadata, section, text)?;
    }
    tell_undated(&formats, text);
    computed.tell(text);
    Ok(())
}

/// Reads workbooks of Excel before 2007.
pub fn read_old(data: Vec<u8>, text: &mut Text) -> Result<(), Problem> {
    let records = find_records(&data);
    let codes = Codes::read(&records);
    Unseen::read_old(&records).tell("", text);
    drop(records);
    let mut options = ParseOptions::default();
    options.limits.package_bytes = text.room;
    options.limits.part_bytes = text.room;
    let document = Document::from_reader_with(Cursor::new(data), DocumentFormat::Xls, &options)
        .map_err(explain)?;
    let DocumentIR { metadata, sections } = document.to_ir();
    let sheets = document.as_xls().map(|workbook| workbook.sheets.as_slice()).unwrap_or_default();

    begin(&metadata, &sections, text)?;
    let mut formats = Formats::new(codes.is_1904);
    for (index, section) in sections.into_iter().enumerate() {
        let mut section = start(section, text)?;
        if let Some(sheet) = sheets.get(index) {
            if let Some(table) =
                section.elements.iter().position(|e| matches!(e, Element::Table(_)))
            {
                section.elements.remove(table);
            }
            let is_filled = |value: &xls::CellValue| match value {
                xls::CellValue::Empty => false,
                xls::CellValue::String(text) => !text.trim().is_empty(),
                _ => true,
            };
            let rows = sheet.rows.iter().enumerate().map(|(row, cells)| {
                let cells = cells.iter().enumerate().filter(|(_, value)| is_filled(value));
                (
                    row as u32,
                    cells.map(|(column, value)| (column as u32, (row, column, value))).collect(),
                )
            });
            write_table(&sheet.name, rows.collect(), text, |(row, column, value)| {
                let xf = sheet.xf.get(row).and_then(|row| row.get(column)).copied().unwrap_or(0);
                match value {
                    xls::CellValue::Number(number) => codes.show(*number, xf, &mut formats),
                    other => other.as_text(),
                }
            })?;
        }
        finish(&metadata, section, text)?;
    }
    tell_undated(&formats, text);
    Ok(())
}

/// Writes what a workbook is, and what of it could not be read.
fn begin(metadata: &Metadata, sections: &[Section], text: &mut Text) -> Result<(), Problem> {
    for warning in &metadata.warnings {
        text.warn(warning);
    }
    if metadata.text_truncated {
        text.warn("the end of the text is missing");
    }
    text.describe(&describe(metadata, sections))
}

/// Begins the part of a sheet.
fn start(mut section: Section, text: &mut Text) -> Result<Section, Problem> {
    let title = section.title.take().unwrap_or_default();
    let hidden = if section.hidden { " (hidden)" } else { "" };
    text.part("sheet", &format!("{title}{hidden}"))?;
    Ok(section)
}

/// Writes what a sheet has besides its cells.
fn finish(metadata: &Metadata, section: Section, text: &mut Text) -> Result<(), Problem> {
    let whole = DocumentIR { metadata: metadata.clone(), sections: vec![section] };
    text.block(&unescape(&whole.to_markdown()))
}

pub fn tell_undated(formats: &Formats, text: &mut Text) {
    if formats.undated > 0 {
        text.warn(format!(
            "{} with the format of a date and a number outside the calendar: the number is shown",
            count(formats.undated, "cell")
        ));
    }
}

/// Rows by their numbers, and their cells by their columns, without empty ones.
pub type Rows<C> = Vec<(u32, Vec<(u32, C)>)>;

/// Writes a table whose first row is the header.
pub fn write_table<C: Copy>(
    name: &str,
    mut rows: Rows<C>,
    text: &mut Text,
    mut show: impl FnMut(C) -> String,
) -> Result<(), Problem> {
    rows.retain(|(_, cells)| !cells.is_empty());
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_by_key(|(row, _)| *row);
    let widths = rows.iter().flat_map(|(_, cells)| cells.iter().map(|(column, _)| column + 1));
    let width = widths.max().unwrap_or(0) as usize;
    let gaps = rows.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0).min(MOST_EMPTY_ROWS));
    let height = rows.len().saturating_add(gaps.map(|gap| gap as usize).sum());
    let is_padded = width.saturating_mul(height) <= MOST_PADDED;

    let mut next = None; // the number of the next row
    for (row, mut cells) in rows {
        let empty = next.map_or(0, |next| row.saturating_sub(next));
        if empty > MOST_EMPTY_ROWS {
            text.warn(format!(
                "sheet {name:?}: rows {} to {row} are empty and left out",
                next.unwrap_or_default() + 1
            ));
        } else {
            let line = if is_padded { "|  ".repeat(width) + "|\n" } else { "|  |\n".to_owned() };
            text.push(&line.repeat(empty as usize))?;
        }

        cells.sort_by_key(|(column, _)| *column);
        let mut line = String::new();
        let mut filled = 0;
        for (column, found) in cells {
            let column = column as usize;
            if column < filled {
                continue; // a second cell of the same place
            }
            if line.len() > LONGEST_PIECE {
                text.push(&std::mem::take(&mut line))?; // which bounds it
            }
            line.push_str(&"|  ".repeat(column - filled));
            line.push_str("| ");
            line.push_str(&cell(&show(found)));
            line.push(' ');
            filled = column + 1;
        }
        if is_padded || next.is_none() {
            line.push_str(&"|  ".repeat(width - filled));
        }
        line.push_str("|\n");
        if next.is_none() {
            line.push_str(&("| --- ".repeat(width) + "|\n"));
        }
        text.push(&line)?;
        next = Some(row.saturating_add(1));
    }
    text.push("\n")
}

/// The targets of links by row and column.
fn find_links(sheet: &Worksheet) -> HashMap<(u32, u32), &HyperlinkTarget> {
    let places = sheet.hyperlinks.iter().filter_map(|link| {
        let cell = CellRef::parse(&link.cell_ref)?;
        Some(((cell.row, cell.col), &link.target))
    });
    places.collect()
}

/// Adds the target of a link to what its cell shows.
fn add_link(shown: String, target: &HyperlinkTarget) -> String {
    match target {
        HyperlinkTarget::External(target) if **target != *shown => format!("[{shown}]({target})"),
        HyperlinkTarget::Internal(place) if !place.is_empty() => format!("[{shown}](#{place})"),
        _ => shown,
    }
}

/// Shows the cells of a sheet.
struct Show<'a> {
    document: &'a XlsxDocument,
    sheet: usize,
    computed: &'a Computed,
}

impl Show<'_> {
    fn is_filled(&self, cell: &Cell) -> bool {
        match &cell.value {
            CellValue::Empty => cell.formula().is_some(),
            CellValue::String(text) => {
                !text.trim().is_empty() || self.computed.has(self.sheet, cell)
            }
            CellValue::SharedString(index) => {
                self.document.shared_strings.get(*index).is_some_and(|text| !text.trim().is_empty())
            }
            _ => true,
        }
    }

    fn show(&self, cell: &Cell, formats: &mut Formats) -> String {
        if self.computed.has(self.sheet, cell) {
            match self.computed.value(self.sheet, cell) {
                Some(Value::Number(number)) => return self.number(cell, *number, formats),
                Some(Value::Text(text)) => return text.to_string(),
                Some(Value::Error(text)) => return text.clone(),
                Some(Value::Boolean(is)) => return if *is { "TRUE" } else { "FALSE" }.to_owned(),
                _ => {}
            }
        }
        match &cell.value {
            CellValue::Number(number) => self.number(cell, *number, formats),
            CellValue::String(text) if !text.is_empty() => unescape(text),
            CellValue::Empty | CellValue::String(_) => {
                cell.formula().map(|formula| format!("={formula}")).unwrap_or_default()
            }
            CellValue::SharedString(index) => {
                unescape(self.document.shared_strings.get(*index).unwrap_or_default())
            }
            CellValue::Boolean(is) => if *is { "TRUE" } else { "FALSE" }.to_owned(),
            CellValue::Error(error) => error.clone(),
            CellValue::Date(date) => date.to_string(),
        }
    }

    fn number(&self, cell: &Cell, number: f64, formats: &mut Formats) -> String {
        let styles = self.document.styles.as_ref();
        let Some((styles, style)) = styles.zip(cell.style_index) else {
            return crate::formats::plain(number);
        };
        let id = styles.number_format_id_for(style).unwrap_or(0);
        formats.show(number, id, styles.number_format_override_for(style))
    }
}

/// The formulas without a saved value, and the values of those that are simple.
#[derive(Default)]
struct Computed {
    book: Book,
    formulas: HashMap<usize, HashSet<(u32, u32)>>,
}

impl Computed {
    fn has(&self, sheet: usize, cell: &Cell) -> bool {
        let place = (cell.reference.row, cell.reference.col);
        self.formulas.get(&sheet).is_some_and(|places| places.contains(&place))
    }

    fn value(&self, sheet: usize, cell: &Cell) -> Option<&Value> {
        self.book.value(sheet, cell.reference.row, cell.reference.col)
    }

    /// Says how many formulas there are, and what their cells show.
    fn tell(&self, text: &mut Text) {
        let all: usize = self.formulas.values().map(|places| places.len()).sum();
        let places = self
            .formulas
            .iter()
            .flat_map(|(sheet, places)| places.iter().map(|(row, column)| (*sheet, *row, *column)));
        let computed = places
            .filter(|(sheet, row, column)| self.book.value(*sheet, *row, *column).is_some())
            .count();
        if all > 0 {
            text.warn(format!(
                "{} without a saved value: {computed} computed here, {} not simple enough, whose \
                 cells show what is in the file",
                count(all, "formula"),
                all - computed
            ));
        }
    }
}

/// Finds the formulas without a saved value and computes them. In a workbook that is uncomputed, a
/// saved 0 is no value, either.
fn compute(document: &XlsxDocument, sheets: &[Vec<Row>], is_uncomputed: bool) -> Computed {
    let mut computed = Computed::default();
    for (index, rows) in sheets.iter().enumerate() {
        let formulas =
            || rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.formula().is_some());
        let is_blank =
            |cell: &Cell| matches!(&cell.value, CellValue::String(text) if text.is_empty());
        // An empty text is a value where other formulas have values.
        let has_values =
            formulas().any(|cell| !is_blank(cell) && !matches!(cell.value, CellValue::Empty));
        let is_unsaved = |cell: &&Cell| match &cell.value {
            CellValue::Empty => true,
            CellValue::Number(number) => is_uncomputed && *number == 0.0,
            _ => is_blank(cell) && !has_values,
        };
        let places = formulas().filter(is_unsaved);
        let places: HashSet<_> =
            places.map(|cell| (cell.reference.row, cell.reference.col)).collect();
        if !places.is_empty() {
            computed.formulas.insert(index, places);
        }
    }
    if computed.formulas.is_empty() {
        return computed;
    }

    for (index, rows) in sheets.iter().enumerate() {
        computed.book.add_sheet(&document.worksheets[index].name);
        let places = computed.formulas.get(&index);
        for cell in rows.iter().flat_map(|row| &row.cells) {
            let place = (cell.reference.row, cell.reference.col);
            let is_unsaved = places.is_some_and(|places| places.contains(&place));
            let found = match (is_unsaved, cell.formula(), &cell.value) {
                (true, Some(formula), _) => formulas::Cell::Formula(formula.to_owned()),
                (_, _, CellValue::Empty) => continue,
                (_, _, CellValue::Number(number)) => formulas::Cell::Value(Value::Number(*number)),
                (_, _, CellValue::Boolean(is)) => formulas::Cell::Value(Value::Boolean(*is)),
                (_, _, CellValue::Error(error)) => {
                    formulas::Cell::Value(Value::Error(error.clone()))
                }
                (_, _, CellValue::String(text)) => {
                    formulas::Cell::Value(Value::Text(unescape(text).into()))
                }
                (_, _, CellValue::SharedString(index)) => {
                    let text = document.shared_strings.get(*index).unwrap_or_default();
                    formulas::Cell::Value(Value::Text(unescape(text).into()))
                }
                // Its number is not known.
                (_, _, CellValue::Date(_)) => formulas::Cell::Formula(String::new()),
            };
            computed.book.add(place.0, place.1, found);
        }
    }
    computed.book.compute();
    computed
}

/// Reports whether formulas of a workbook may have a 0 that was never computed.
fn has_uncomputed_formulas(data: &[u8]) -> bool {
    let Ok(mut package) = ZipArchive::new(Cursor::new(data)) else { return false };
    let Ok(member) = package.by_name("xl/workbook.xml") else { return false };
    let mut workbook = Vec::new();
    let end = member.take(1 << 22).read_to_end(&mut workbook);
    end.is_ok() && formulas::awaits_computing(&workbook)
}

/// A text without the escapes of workbooks, such as `_x000D_` for a carriage return.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("_x") {
        let (before, after) = rest.split_at(start);
        let unit = after.get(2..6).zip(after.get(6..7)).filter(|(_, end)| *end == "_");
        let unit = unit.filter(|(digits, _)| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        if !before.is_empty() || unit.is_none() {
            flush(&mut units, &mut out);
        }
        out.push_str(before);
        match unit.and_then(|(digits, _)| u16::from_str_radix(digits, 16).ok()) {
            Some(unit) => {
                units.push(unit);
                rest = &after[7..];
            }
            None => {
                out.push_str(&after[..2]);
                rest = &after[2..];
            }
        }
    }
    flush(&mut units, &mut out);
    out.push_str(rest);
    if out.contains('\r') { out.replace("\r\n", "\n").replace('\r', "\n") } else { out }
}

/// Appends units of UTF-16, of which two may be one character.
fn flush(units: &mut Vec<u16>, out: &mut String) {
    out.push_str(&String::from_utf16_lossy(units));
    units.clear();
}

/// The records of a workbook before 2007, none if it cannot be read.
fn find_records(data: &[u8]) -> Vec<u8> {
    let Ok(mut file) = CfbReader::new(Cursor::new(data)) else { return Vec::new() };
    let streams = ["Workbook", "Book"];
    streams.iter().find_map(|name| file.open_stream_by_path(name).ok()).unwrap_or_default()
}

/// The number formats of a workbook before 2007. See MS-XLS, 2.4.126 and 2.4.353.
#[derive(Default)]
struct Codes {
    codes: HashMap<u16, String>,
    /// The number of the format of each style.
    styles: Vec<u16>,
    is_1904: bool,
}

impl Codes {
    /// Reads the records before the first sheet.
    fn read(records: &[u8]) -> Self {
        const BEGIN: u16 = 0x0809;
        const FORMAT: u16 = 0x041e;
        const OLD_FORMAT: u16 = 0x001e;
        const STYLE: u16 = 0x00e0;
        const IS_1904: u16 = 0x0022;
        const END: u16 = 0x000a;
        const ENCRYPTED: u16 = 0x002f;

        let mut codes = Self::default();
        let mut rest = records;
        let mut is_97 = false;
        while let Some((head, after)) = rest.split_first_chunk::<4>() {
            let kind = u16::from_le_bytes([head[0], head[1]]);
            let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
            let Some((body, after)) = after.split_at_checked(length) else { break };
            rest = after;
            match kind {
                BEGIN => is_97 = body.starts_with(&[0x00, 0x06]),
                FORMAT if is_97 => codes.add_code(body),
                FORMAT => codes.add_old_code(body),
                STYLE if body.len() >= 4 => {
                    codes.styles.push(u16::from_le_bytes([body[2], body[3]]));
                }
                IS_1904 => codes.is_1904 = body.first() == Some(&1),
                OLD_FORMAT | ENCRYPTED => {
                    return Self { is_1904: codes.is_1904, ..Self::default() };
                }
                END => break,
                _ => {}
            }
        }
        codes
    }

    /// Adds a code of Excel 95: its number, its length in one byte, and the text.
    fn add_old_code(&mut self, body: &[u8]) {
        let Some((head, text)) = body.split_first_chunk::<3>() else { return };
        if let Some(text) = text.get(..usize::from(head[2])) {
            let code = text.iter().map(|b| char::from(*b)).collect();
            self.codes.insert(u16::from_le_bytes([head[0], head[1]]), code);
        }
    }

    /// Adds a code: its number, its length, its flags, and the text in one or two bytes each.
    fn add_code(&mut self, body: &[u8]) {
        let Some((head, text)) = body.split_first_chunk::<5>() else { return };
        let id = u16::from_le_bytes([head[0], head[1]]);
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let code = if head[4] & 1 == 0 {
            text.get(..length).map(|text| text.iter().map(|b| char::from(*b)).collect())
        } else {
            let units = text.get(..2 * length).map(|text| {
                text.chunks_exact(2)
                    .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
                    .collect::<Vec<_>>()
            });
            units.map(|units| String::from_utf16_lossy(&units))
        };
        if let Some(code) = code {
            self.codes.insert(id, code);
        }
    }

    fn show(&self, number: f64, style: u16, formats: &mut Formats) -> String {
        let id = self.styles.get(usize::from(style)).copied().unwrap_or(0);
        formats.show(number, u32::from(id), self.codes.get(&id).map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_characters() {
        for (text, want) in [
            ("a_x000D_b", "a\nb"),
            ("a_x000D_\nb", "a\nb"),
            ("_x005F_x0041_", "_x0041_"),
            ("_x0041__x0042_", "AB"),
            ("_xD83D__xDE00_!", "😀!"),
            ("_xD83D_", "\u{fffd}"),
            ("_x00_ _xyz", "_x00_ _xyz"),
            ("_x", "_x"),
            ("_x004é_", "_x004é_"),
            ("max_x", "max_x"),
        ] {
            assert_eq!(unescape(text), want, "{text}");
        }
    }
}
