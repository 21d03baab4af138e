//! SpreadsheetML 2003: a workbook as one XML text, often named .xls.

use crate::formats::{Formats, plain};
use crate::html;
use crate::problem::Problem;
use crate::sheets::{tell_undated, write_table};
use crate::text::{Text, count};
use crate::unseen::Unseen;
use crate::xmlbook::{self, Book, Cell, Kind};

pub fn read(data: &[u8], text: &mut Text) -> Result<(), Problem> {
    let content = html::decode(data);
    let book = xmlbook::read(&content, |bytes| text.charge(bytes))?;
    let names: Vec<_> = book.sheets.iter().take(50).map(|sheet| sheet.name.as_str()).collect();
    let sheets = count(book.sheets.len(), "sheet");
    text.describe(&format!("Excel workbook in XML, {sheets} ({})", names.join(", ")))?;

    let mut formats = Formats::default();
    for sheet in &book.sheets {
        let hidden = if sheet.is_hidden { " (hidden)" } else { "" };
        text.part("sheet", &format!("{}{hidden}", sheet.name))?;
        let rows = sheet.cells.chunk_by(|a, b| a.row == b.row);
        let rows = rows.map(|row| (row[0].row, row.iter().map(|cell| (cell.column, cell)).collect()));
        write_table(&sheet.name, rows.collect(), text, |cell| show(&book, cell, &mut formats))?;
    }
    tell_undated(&formats, text);
    let all = book.sheets.iter().flat_map(|sheet| &sheet.cells);
    let unseen = Unseen {
        formulas: all.filter(|cell| cell.kind == Kind::Formula).count(),
        rows: book.hidden_rows,
        columns: book.hidden_columns,
        ..Unseen::default()
    };
    unseen.tell(", shown instead of it", text);
    Ok(())
}

fn show(book: &Book, cell: &Cell, formats: &mut Formats) -> String {
    let shown = show_value(book, cell, formats);
    if cell.comment.trim().is_empty() {
        return shown;
    }
    format!("{shown} (comment: {})", cell.comment.trim()).trim().to_owned()
}

fn show_value(book: &Book, cell: &Cell, formats: &mut Formats) -> String {
    let data = &cell.data;
    let code = book.code(cell);
    match cell.kind {
        Kind::Number => match (data.trim().parse::<f64>(), code) {
            (Ok(number), Some(code)) => formats.show(number, 0, Some(code)),
            (Ok(number), None) => plain(number),
            _ => data.to_owned(),
        },
        Kind::Boolean => if data.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned(),
        Kind::Time => match xmlbook::passed_days(data, code) {
            Some(days) => formats.show(days, 0, code),
            None => {
                let (date, time) = xmlbook::split_time(data);
                format!("{date} {time}").trim().to_owned()
            }
        },
        Kind::Text | Kind::Formula => data.to_owned(),
    }
}
