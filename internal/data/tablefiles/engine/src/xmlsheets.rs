//! Rows of workbooks of Excel 2003 in one XML text.

use calamine::Data;
use encoding_rs::{Encoding, WINDOWS_1252};

use crate::host::Input;
use crate::workbook::{NO_SHEET, Rows, Take, describe, write_rows};
use crate::xmlbook::{self, Book, Cell, Kind, Sheet};
use crate::{Problem, Table};

pub fn list(input: Input) -> Result<Vec<Table>, Problem> {
    let book = open(input)?;
    let tables = book.sheets.iter();
    tables.map(|sheet| describe(&sheet.name, |take| read(&book, sheet, take))).collect()
}

pub fn write(input: Input, table: usize) -> Result<(), Problem> {
    let book = open(input)?;
    let sheet = book.sheets.get(table).ok_or(NO_SHEET)?;
    write_rows(|take| read(&book, sheet, take))
}

fn open(input: Input) -> Result<Book, Problem> {
    let data = input.read_whole()?;
    let mut book = xmlbook::read(&decode(data), |_| Ok::<_, Problem>(()))?;
    for sheet in &mut book.sheets {
        sheet.cells.sort_by_key(|cell| (cell.row, cell.column));
    }
    Ok(book)
}

/// Decodes a text: by its mark of the byte order, as UTF-8, or by the name of its encoding.
fn decode(data: Vec<u8>) -> String {
    let data = match String::from_utf8(data) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let head = String::from_utf8_lossy(&data[..data.len().min(256)]).into_owned();
    let label = head.split_once("encoding=").and_then(|(_, rest)| rest.split(['"', '\'']).nth(1));
    let named = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    named.unwrap_or(WINDOWS_1252).decode(&data).0.into_owned()
}

fn read(book: &Book, sheet: &Sheet, take: Take) -> Result<(), Problem> {
    let mut rows = Rows::default();
    let mut last = None;
    for cell in &sheet.cells {
        let place = Some((cell.row, cell.column));
        if std::mem::replace(&mut last, place) == place {
            continue; // a second cell of the same place
        }
        if !rows.add(cell.row, cell.column, &find_value(book, cell), take)? {
            return Ok(());
        }
    }
    rows.finish(take)?;
    Ok(())
}

fn find_value(book: &Book, cell: &Cell) -> Data {
    let data = cell.data.trim();
    match cell.kind {
        Kind::Number => match (data.parse(), data.parse()) {
            (Ok(whole), _) => Data::Int(whole),
            (_, Ok(number)) => Data::Float(number),
            _ => Data::String(data.to_owned()),
        },
        Kind::Boolean => Data::Bool(data == "1"),
        Kind::Time => match xmlbook::passed_days(data, book.code(cell)) {
            Some(days) => Data::DurationIso(show_passed(days)),
            None => {
                let (date, time) = xmlbook::split_time(data);
                let middle = if date.is_empty() || time.is_empty() { "" } else { "T" };
                Data::DateTimeIso(format!("{date}{middle}{time}"))
            }
        },
        Kind::Text if data.is_empty() => Data::Empty,
        Kind::Text => Data::String(cell.data.clone()),
        Kind::Formula => Data::Empty,
    }
}

/// Hours that have passed, as those of other workbooks: `30:30:00`.
fn show_passed(days: f64) -> String {
    let millis = (days * 86_400_000.0).round().max(0.0) as u64;
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let time = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if millis == 0 { time } else { format!("{time}.{millis:03}") }
}
