//! Cells of binary workbooks (xlsb) that readers skip. The engines include this file.
//!
//! A short cell has no column: it stands right of the one before. SheetJS writes such cells, Excel
//! does not. Readers skip them, and texts with fonts; one also skips the errors of formulas. So
//! these become cells that every reader knows. See MS-XLSB, 2.4.

use std::io::{Cursor, Error, ErrorKind, Read, Write};

use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// How each sheet begins: with the record BrtBeginSheet.
const BEGIN: [u8; 3] = [0x81, 0x01, 0x00];

// The kinds of records. A short cell has the number of the long one, and SHORTER.
const ROW: u16 = 0;
const BLANK: u16 = 1;
const ERROR: u16 = 3;
const TEXT: u16 = 6;
const FORMULA_ERROR: u16 = 11;
const SHORT_BLANK: u16 = 12;
const SHORT_SHARED_TEXT: u16 = 18;
const RICH_TEXT: u16 = 62;
const SHORTER: u16 = SHORT_BLANK - BLANK;

/// Returns a workbook without such cells: the same bytes if it has none. All sheets may unpack to
/// so many bytes; more is an error of the kind FileTooLarge.
pub fn spell_out(
    mut package: ZipArchive<Cursor<Vec<u8>>>,
    mut most: u64,
) -> ZipResult<Vec<u8>> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let mut others = Vec::new();
    for index in 0..package.len() {
        let Some((name, sheet)) = find_sheet(&mut package, index, &mut most)? else {
            others.push(index);
            continue;
        };
        out.start_file(name, stored)?;
        out.write_all(&spell_out_cells(&sheet))?;
    }
    if others.len() == package.len() {
        return Ok(package.into_inner().into_inner());
    }

    for index in others {
        out.raw_copy_file(package.by_index_raw(index)?)?;
    }
    Ok(out.finish()?.into_inner())
}

/// The name and the records of a member, if it is a sheet that has such cells.
fn find_sheet(
    package: &mut ZipArchive<Cursor<Vec<u8>>>,
    index: usize,
    most: &mut u64,
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
    while let Some(record) = next_record(&mut rest) {
        if matches!(record.kind, FORMULA_ERROR..=SHORT_SHARED_TEXT | RICH_TEXT) {
            end?;
            return Ok(Some((name, sheet)));
        }
    }
    Ok(None)
}

fn spell_out_cells(sheet: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sheet.len() + sheet.len() / 2);
    let mut rest = sheet;
    let mut column: u32 = 0; // right of the last cell
    while let Some(record) = next_record(&mut rest) {
        let Record { kind, body, whole } = record;
        match kind {
            SHORT_BLANK..=SHORT_SHARED_TEXT => {
                put_record(&mut out, kind - SHORTER, &[&column.to_le_bytes(), body]);
            }
            FORMULA_ERROR => put_record(&mut out, ERROR, &[body]),
            RICH_TEXT if body.len() > 8 => {
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
