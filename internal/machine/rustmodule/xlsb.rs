//! Cells of binary workbooks (xlsb) that readers skip. The engines include this file.
//!
//! A short cell has no column: it stands right of the one before. SheetJS writes such cells, Excel
//! does not. Readers skip them, and texts with fonts; one also skips the errors of formulas. So
//! these become cells that every reader knows. So do formulas that were never computed, with the
//! value that `formulas.rs` finds. See MS-XLSB, 2.4.

use std::collections::HashMap;
use std::io::{Cursor, Error, ErrorKind, Read, Write};
use std::rc::Rc;

use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::formulas::{Book, Cell, Value};
use crate::tokens;

/// How each sheet begins: with the record BrtBeginSheet.
const BEGIN: [u8; 3] = [0x81, 0x01, 0x00];

// The kinds of records. A short cell has the number of the long one, and SHORTER.
const ROW: u16 = 0;
const BLANK: u16 = 1;
const RATIO: u16 = 2;
const ERROR: u16 = 3;
const BOOLEAN: u16 = 4;
const NUMBER: u16 = 5;
const TEXT: u16 = 6;
const SHARED_TEXT: u16 = 7;
const FORMULA_TEXT: u16 = 8;
const FORMULA_NUMBER: u16 = 9;
const FORMULA_BOOLEAN: u16 = 10;
const FORMULA_ERROR: u16 = 11;
const SHORT_BLANK: u16 = 12;
const SHORT_SHARED_TEXT: u16 = 18;
const ITEM: u16 = 19;
const RICH_TEXT: u16 = 62;
const SHORTER: u16 = SHORT_BLANK - BLANK;
const COLUMNS: u16 = 60;
const COMPUTING: u16 = 157;

/// The errors of cells.
const ERRORS: [(u8, &str); 7] = [
    (0x00, "#NULL!"),
    (0x07, "#DIV/0!"),
    (0x0f, "#VALUE!"),
    (0x17, "#REF!"),
    (0x1d, "#NAME?"),
    (0x24, "#NUM!"),
    (0x2a, "#N/A"),
];

/// Excel's last column, from 0.
const LAST_COLUMN: u32 = (1 << 14) - 1;

/// What a reader of sheets does not see.
#[derive(Default)]
#[allow(dead_code)] // the reader of tables leaves it to that of documents
pub struct Unseen {
    /// Formulas without a saved value, and how many of them have one here.
    pub formulas: usize,
    pub computed: usize,
    /// Hidden rows and columns.
    pub rows: usize,
    pub columns: usize,
}

/// Returns a workbook without such cells: the same bytes if it has none. All sheets may unpack to
/// so many bytes; more is an error of the kind FileTooLarge.
pub fn spell_out(
    mut package: ZipArchive<Cursor<Vec<u8>>>,
    mut most: u64,
) -> ZipResult<(Vec<u8>, Unseen)> {
    let mut unseen = Unseen::default();
    let mut texts = None;
    if awaits_computing(&mut package) {
        texts = Some(read_texts(&mut package, &mut most)?);
    }
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut others = Vec::new();
    for index in 0..package.len() {
        let found = find_sheet(&mut package, index, &mut most, texts.is_some(), &mut unseen)?;
        let Some((name, sheet)) = found else {
            others.push(index);
            continue;
        };
        let mut values = HashMap::new();
        if let Some(texts) = &texts {
            values = compute(&sheet, texts);
        }
        unseen.computed += values.len();
        out.start_file(name, stored)?;
        out.write_all(&spell_out_cells(&sheet, &values))?;
    }
    if others.len() == package.len() {
        return Ok((package.into_inner().into_inner(), unseen));
    }

    for index in others {
        out.raw_copy_file(package.by_index_raw(index)?)?;
    }
    Ok((out.finish()?.into_inner(), unseen))
}

/// Reports whether a workbook asks to be computed when it is opened, or was not computed wholly.
fn awaits_computing(package: &mut ZipArchive<Cursor<Vec<u8>>>) -> bool {
    let Ok(member) = package.by_name("xl/workbook.bin") else { return false };
    let mut workbook = Vec::new();
    if member.take(1 << 22).read_to_end(&mut workbook).is_err() {
        return false;
    }
    let mut rest = workbook.as_slice();
    while let Some(record) = next_record(&mut rest) {
        if record.kind == COMPUTING {
            return record.body.get(24).is_some_and(|flags| flags & 0x11 != 0);
        }
    }
    false
}

/// The texts that cells share. Of a damaged part, those before the damage.
fn read_texts(
    package: &mut ZipArchive<Cursor<Vec<u8>>>,
    most: &mut u64,
) -> ZipResult<Vec<Rc<str>>> {
    let mut texts = Vec::new();
    let Ok(member) = package.by_name("xl/sharedStrings.bin") else { return Ok(texts) };
    let mut data = Vec::new();
    let _ = member.take(most.saturating_add(1)).read_to_end(&mut data);
    *most = most.checked_sub(data.len() as u64).ok_or(Error::from(ErrorKind::FileTooLarge))?;
    let mut rest = data.as_slice();
    while let Some(record) = next_record(&mut rest) {
        if record.kind == ITEM {
            texts.push(record.body.get(1..).and_then(read_text).unwrap_or_else(|| "".into()));
        }
    }
    Ok(texts)
}

/// A text behind its length.
fn read_text(body: &[u8]) -> Option<Rc<str>> {
    let (length, text) = body.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    Some(tokens::decode(text.get(..length.checked_mul(2)?)?).into())
}

/// The name and the records of a member, if it is a sheet that has such cells. In a workbook that
/// is uncomputed, a saved 0 is no value.
fn find_sheet(
    package: &mut ZipArchive<Cursor<Vec<u8>>>,
    index: usize,
    most: &mut u64,
    is_uncomputed: bool,
    unseen: &mut Unseen,
) -> ZipResult<Option<(String, Vec<u8>)>> {
    // A member that cannot be read is left to the reader, who says so.
    let Ok(mut member) = package.by_index(index) else { return Ok(None) };
    let Ok(name) = member.name().map(|name| name.into_owned()) else { return Ok(None) };
    let mut sheet = BEGIN.to_vec();
    let mut head = [0; BEGIN.len()];
    if !name.to_ascii_lowercase().ends_with(".bin")
        || member.read_exact(&mut head).is_err()
        || head != BEGIN
    {
        return Ok(None);
    }

    let end = member.take(most.saturating_add(1)).read_to_end(&mut sheet);
    *most = most.checked_sub(sheet.len() as u64).ok_or(Error::from(ErrorKind::FileTooLarge))?;
    let mut rest = sheet.as_slice();
    let mut is_odd = false;
    while let Some(record) = next_record(&mut rest) {
        let is_unsaved = is_uncomputed && record.is_zero();
        is_odd |=
            is_unsaved || matches!(record.kind, FORMULA_ERROR..=SHORT_SHARED_TEXT | RICH_TEXT);
        unseen.formulas += usize::from(is_unsaved);
        unseen.add(&record);
    }
    if !is_odd {
        return Ok(None);
    }
    end?;
    Ok(Some((name, sheet)))
}

impl Unseen {
    /// Counts what a record hides.
    fn add(&mut self, record: &Record) {
        let number = |at: usize| {
            let bytes = record.body.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes))
        };
        match record.kind {
            ROW if record.body.get(11).is_some_and(|flags| flags & 0x10 != 0) => self.rows += 1,
            COLUMNS if record.body.get(16).is_some_and(|flags| flags & 1 != 0) => {
                // Up to the last column of all, nothing is hidden but the end of the sheet.
                if let (Some(first), Some(last)) = (number(0), number(4))
                    && first <= last
                    && last < LAST_COLUMN
                {
                    self.columns += (last - first) as usize + 1;
                }
            }
            _ => {}
        }
    }
}

/// A row and a column, from 0.
type Place = (u32, u32);

/// The values of the simple formulas of a sheet that have none.
fn compute(sheet: &[u8], texts: &[Rc<str>]) -> HashMap<Place, Value> {
    let mut book = Book::default();
    book.add_sheet("");
    let mut places = Vec::new();
    each_cell(sheet, |record, place| {
        if record.is_zero() {
            let formula = record.formula().and_then(tokens::read);
            book.add(place.0, place.1, Cell::Formula(formula.unwrap_or_default()));
            places.push(place);
        } else if let Some(value) = record.value(texts) {
            book.add(place.0, place.1, Cell::Value(value));
        }
    });
    book.compute();
    let value = |place: Place| Some((place, book.value(0, place.0, place.1)?.clone()));
    places.into_iter().filter_map(value).collect()
}

/// Calls use for each record of a sheet that is a cell, with its place.
fn each_cell(sheet: &[u8], mut call: impl FnMut(&Record, Place)) {
    let mut rest = sheet;
    let (mut row, mut column) = (0, 0);
    while let Some(record) = next_record(&mut rest) {
        if let (ROW, Some(number)) = (record.kind, record.body.first_chunk()) {
            row = u32::from_le_bytes(*number);
        }
        let right = right_of(&record, column);
        if matches!(record.kind, BLANK..=SHORT_SHARED_TEXT | RICH_TEXT) {
            call(&record, (row, right.saturating_sub(1)));
        }
        column = right;
    }
}

/// The record of a value in a cell, which begins with its column and its style.
fn put_value(out: &mut Vec<u8>, cell: &[u8], value: &Value) {
    match value {
        Value::Number(number) => put_record(out, NUMBER, &[cell, &number.to_le_bytes()]),
        Value::Boolean(is) => put_record(out, BOOLEAN, &[cell, &[u8::from(*is)]]),
        Value::Error(text) => {
            let code = ERRORS.iter().find(|(_, name)| name == text).map_or(0x0f, |(code, _)| *code);
            put_record(out, ERROR, &[cell, &[code]]);
        }
        Value::Text(text) => {
            let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            put_record(out, TEXT, &[cell, &(units.len() as u32 / 2).to_le_bytes(), &units]);
        }
        Value::Empty => put_record(out, BLANK, &[cell]),
    }
}

fn spell_out_cells(sheet: &[u8], values: &HashMap<Place, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(sheet.len() + sheet.len() / 2);
    let mut rest = sheet;
    let (mut row, mut column) = (0, 0); // of the next cell
    while let Some(record) = next_record(&mut rest) {
        let Record { kind, body, whole } = record;
        if let (ROW, Some(number)) = (kind, body.first_chunk()) {
            row = u32::from_le_bytes(*number);
        }
        let place = (row, right_of(&record, column).saturating_sub(1));
        let value = values.get(&place).filter(|_| record.is_zero());
        match (value, kind) {
            (Some(value), _) => put_value(&mut out, &body[..8], value),
            (_, SHORT_BLANK..=SHORT_SHARED_TEXT) => {
                put_record(&mut out, kind - SHORTER, &[&column.to_le_bytes(), body]);
            }
            (_, FORMULA_ERROR) => put_record(&mut out, ERROR, &[body]),
            (_, RICH_TEXT) if body.len() > 8 => {
                put_record(&mut out, TEXT, &[&body[..8], &body[9..]]); // without its flags
            }
            _ => out.extend_from_slice(whole),
        }
        column = right_of(&record, column);
    }
    out.extend_from_slice(rest); // a broken record
    out
}

/// The column right of a record, if a short cell there were in this one.
fn right_of(record: &Record, column: u32) -> u32 {
    match (record.kind, record.body.first_chunk()) {
        (ROW, _) => 0,
        (SHORT_BLANK..=SHORT_SHARED_TEXT, _) => column.saturating_add(1),
        (BLANK..=FORMULA_ERROR | RICH_TEXT, Some(at)) => u32::from_le_bytes(*at).saturating_add(1),
        _ => column,
    }
}

struct Record<'a> {
    kind: u16,
    body: &'a [u8],
    whole: &'a [u8],
}

impl Record<'_> {
    /// Reports whether it is a formula whose saved value is 0.
    fn is_zero(&self) -> bool {
        self.kind == FORMULA_NUMBER && self.body.get(8..16) == Some([0; 8].as_slice())
    }

    /// The tokens of a formula with a number, which follow two bytes of flags.
    fn formula(&self) -> Option<&[u8]> {
        let (length, rest) = self.body.get(18..)?.split_first_chunk()?;
        rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)
    }

    /// The value of a cell, None if it is empty.
    fn value(&self, texts: &[Rc<str>]) -> Option<Value> {
        // A short cell has no column.
        let is_short = (SHORT_BLANK..=SHORT_SHARED_TEXT).contains(&self.kind);
        let (kind, head) = if is_short { (self.kind - SHORTER, 4) } else { (self.kind, 8) };
        let body = self.body.get(head..)?;
        let first = || body.first_chunk().copied().map(u32::from_le_bytes);
        Some(match kind {
            RATIO => Value::Number(read_ratio(first()?)),
            NUMBER | FORMULA_NUMBER => Value::Number(f64::from_le_bytes(*body.first_chunk()?)),
            BOOLEAN | FORMULA_BOOLEAN => Value::Boolean(*body.first()? != 0),
            ERROR | FORMULA_ERROR => {
                let name = ERRORS.iter().find(|(code, _)| Some(code) == body.first());
                Value::Error(name.map_or("#N/A", |(_, name)| name).to_owned())
            }
            TEXT | FORMULA_TEXT => Value::Text(read_text(body)?),
            RICH_TEXT => Value::Text(read_text(body.get(1..)?)?),
            SHARED_TEXT => Value::Text(texts.get(first()? as usize)?.clone()),
            _ => return None,
        })
    }
}

/// A number in four bytes: an integer of 30 bits or the upper bits of a double, maybe in
/// hundredths.
fn read_ratio(bits: u32) -> f64 {
    let number = match bits & 2 {
        0 => f64::from_bits(u64::from(bits & !3) << 32),
        _ => f64::from(bits.cast_signed() >> 2),
    };
    if bits & 1 == 0 { number } else { number / 100.0 }
}

/// Takes a record: its kind in one or two bytes, its length in up to four, then its body.
fn next_record<'a>(rest: &mut &'a [u8]) -> Option<Record<'a>> {
    let start = *rest;
    let mut bytes = start.iter();
    let kind = take_number(&mut bytes, 2)?;
    let length = take_number(&mut bytes, 4)?;
    let body = bytes.as_slice().get(..length)?;
    let whole = &start[..start.len() - bytes.len() + length];
    *rest = &start[whole.len()..];
    Some(Record { kind: kind as u16, body, whole })
}

/// Takes a number of 7 bits in each byte. The highest bit says whether there are more.
fn take_number(bytes: &mut std::slice::Iter<u8>, most: u32) -> Option<usize> {
    let mut number = 0;
    for index in 0..most {
        let byte = *bytes.next()?;
        number |= usize::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

/// Appends a record of a kind below 128.
fn put_record(out: &mut Vec<u8>, kind: u16, parts: &[&[u8]]) {
    out.push(kind as u8);
    crate::guest::put_number(out, parts.iter().map(|part| part.len() as u64).sum());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(records: &[(u16, &[u8])]) -> (usize, usize) {
        let mut sheet = Vec::new();
        for (kind, body) in records {
            put_record(&mut sheet, *kind, &[body]);
        }
        let mut unseen = Unseen::default();
        let mut rest = sheet.as_slice();
        while let Some(record) = next_record(&mut rest) {
            unseen.add(&record);
        }
        (unseen.rows, unseen.columns)
    }

    #[test]
    fn what_sheets_do_not_show_is_counted() {
        let row = |flags: u8| [[0; 11].as_slice(), &[flags, 0, 0, 0, 0, 0]].concat();
        let columns = |first: u32, last: u32, flags: u8| {
            let places = [first.to_le_bytes(), last.to_le_bytes()].concat();
            [places.as_slice(), &[0; 8], &[flags, 0]].concat()
        };
        let (hidden, shown) = (row(0x10), row(0x07));
        assert_eq!(count(&[(ROW, &hidden), (ROW, &shown), (ROW, &[0; 3])]), (1, 0));
        let (some, other) = (columns(2, 4, 1), columns(5, 6, 0));
        let (end, wrong) = (columns(9, 16_383, 1), columns(5, 2, 1));
        let all: [&[u8]; 4] = [&some, &other, &end, &wrong];
        assert_eq!(count(&all.map(|body| (COLUMNS, body))), (0, 3));
    }

    #[test]
    fn formulas_without_a_value_are_computed() {
        let cell =
            |column: u32, body: &[u8]| [&column.to_le_bytes(), [0; 4].as_slice(), body].concat();
        let number = |column: u32, value: f64| cell(column, &value.to_le_bytes());
        let formula = |column: u32, value: f64, tokens: &[u8]| {
            let length = (tokens.len() as u32).to_le_bytes();
            cell(
                column,
                &[&value.to_le_bytes(), [0; 2].as_slice(), &length, tokens, &[0; 4]].concat(),
            )
        };
        let area = [0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 1, 0xc0];
        let sum = [area.as_slice(), &[0x19, 0x10, 0, 0]].concat();
        let text = [0x17, 1, 0, b'x', 0];
        let mut sheet = Vec::new();
        put_record(&mut sheet, ROW, &[&[0; 17]]);
        put_record(&mut sheet, NUMBER, &[&number(0, 2.0)]);
        put_record(&mut sheet, SHORT_BLANK + 1, &[&[0; 4], &(40u32 << 2 | 2).to_le_bytes()]);
        put_record(&mut sheet, FORMULA_NUMBER, &[&formula(2, 0.0, &sum)]);
        put_record(&mut sheet, FORMULA_NUMBER, &[&formula(3, 7.0, &sum)]);
        put_record(&mut sheet, FORMULA_NUMBER, &[&formula(4, 0.0, &[0x01, 0, 0, 0, 0])]);
        put_record(&mut sheet, FORMULA_NUMBER, &[&formula(5, 0.0, &text)]);

        let values = compute(&sheet, &[]);
        assert_eq!(values.len(), 2);
        assert_eq!(values[&(0, 2)], Value::Number(42.0));
        assert_eq!(values[&(0, 5)], Value::Text("x".into()));
        let mut found = Vec::new();
        each_cell(&spell_out_cells(&sheet, &values), |record, place| {
            found.push((record.kind, place.1, record.value(&[])));
        });
        let number = |value| Some(Value::Number(value));
        let text = Some(Value::Text("x".into()));
        assert_eq!(
            found,
            [
                (NUMBER, 0, number(2.0)),
                (RATIO, 1, number(40.0)),
                (NUMBER, 2, number(42.0)),
                (FORMULA_NUMBER, 3, number(7.0)),
                (FORMULA_NUMBER, 4, number(0.0)),
                (TEXT, 5, text),
            ]
        );
    }

    #[test]
    fn cells_share_a_text() {
        let texts = [Rc::from("x")];
        let body = [0; 12];
        let cell = Record { kind: SHARED_TEXT, body: &body, whole: &body };
        let found = [cell.value(&texts), cell.value(&texts)];
        assert!(found.iter().all(|value| *value == Some(Value::Text("x".into()))));
        assert_eq!(Rc::strong_count(&texts[0]), 3);
    }
}
