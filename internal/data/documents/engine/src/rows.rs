//! Tables of PDF pages without lines around their cells.
//!
//! pdf_oxide reads a page of several columns column by column, and sometimes a table without lines,
//! too. Then its numbers stand far from what they count. This finds such tables by the gaps between
//! their cells, and reads them row by row. Texts in columns stay as they are.

use std::cmp::Ordering;
use std::collections::HashMap;

use pdf_oxide::PdfDocument;
use pdf_oxide::converters::ConversionOptions;
use pdf_oxide::geometry::Rect;
use pdf_oxide::layout::{RectFilterMode, TextSpan};

/// Pages with more pieces of text stay as they are.
const MOST_SPANS: usize = 20_000;

/// A table has at least so many rows of several cells, and as many of its lines are rows.
const FEWEST_ROWS: usize = 4;
const ROWS_OF_LINES: f32 = 0.6;

/// Of a table of three columns and more, at least one of so many cells is a number.
const NUMBERS_OF_CELLS: usize = 5;

/// The lines of a text have at least so many words and characters. Longer ones are no names.
const WORDS_OF_TEXT: usize = 5;
const LETTERS_OF_TEXT: usize = 28;
const LONG_LINE: usize = 36;

/// Gaps between columns are at least this wide, in points and in sizes of the font.
const GUTTER: f32 = 6.0;
const GAP: f32 = 0.9;

/// Lines farther apart do not belong together, in sizes of the font.
const APART: f32 = 3.0;

struct Cell {
    left: f32,
    right: f32,
    text: String,
}

struct Line {
    base: f32,
    size: f32,
    cells: Vec<Cell>,
}

/// A table: its first line and the one behind its last, and the gaps between its columns.
struct Area {
    first: usize,
    end: usize,
    gutters: Vec<(f32, f32)>,
}

/// The text of a page with its tables in rows, None if it may stay as it is.
pub fn read(
    document: &PdfDocument,
    index: usize,
    page: &str,
    spans: &[TextSpan],
) -> Option<String> {
    let is_odd = |span: &TextSpan| {
        let b = &span.bbox;
        let is_finite = [b.x, b.y, b.width, b.height, span.font_size].iter().all(|n| n.is_finite());
        !is_finite || span.rotation_degrees != 0.0 || span.text.chars().any(is_from_right)
    };
    let spans: Vec<_> = spans.iter().filter(|span| !span.text.trim().is_empty()).collect();
    if spans.len() > MOST_SPANS || spans.iter().any(|span| is_odd(span)) {
        return None;
    }

    let lines = find_lines(&spans);
    let mut areas = find_areas(&lines);
    areas.retain(|area| is_table(&lines[area.first..area.end], &area.gutters));
    areas.retain(|area| !has_rows(page, &lines[area.first..area.end]));
    if areas.is_empty() {
        return None;
    }

    let mut pieces = Vec::new();
    let mut top = f32::MAX;
    for area in &areas {
        let (start, end) = (cut(&lines, area.first), cut(&lines, area.end));
        pieces.push(read_band(document, index, start, top)?);
        pieces.push(write_rows(&lines[area.first..area.end], &area.gutters));
        top = end;
    }
    pieces.push(read_band(document, index, f32::MIN, top)?);
    pieces.retain(|piece| !piece.trim().is_empty());
    let text = pieces.iter().map(|piece| piece.trim_matches('\n')).collect::<Vec<_>>().join("\n\n");
    // Fields of forms, for one, are in each band. Nothing may be lost or be there twice.
    (count_letters(&text) == count_letters(page)).then_some(text)
}

/// Reports whether a character is one of a script that is written from right to left.
fn is_from_right(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}')
}

fn count_letters(text: &str) -> HashMap<char, usize> {
    let mut counts = HashMap::new();
    for c in text.chars().filter(|c| !c.is_whitespace()) {
        *counts.entry(c).or_insert(0) += 1;
    }
    counts
}

/// The height between a line and the one above it.
fn cut(lines: &[Line], below: usize) -> f32 {
    match (below.checked_sub(1).and_then(|above| lines.get(above)), lines.get(below)) {
        (_, None) => f32::MIN,
        (None, Some(below)) => below.base + below.size,
        (Some(above), Some(below)) => (above.base + below.base + 0.7 * below.size) / 2.0,
    }
}

/// The text between two heights, as pdf_oxide reads it.
fn read_band(document: &PdfDocument, index: usize, bottom: f32, top: f32) -> Option<String> {
    const FAR: f32 = 1e5;
    let (bottom, top) = (bottom.max(-FAR), top.min(FAR));
    let band = Rect { x: -FAR, y: bottom, width: 2.0 * FAR, height: (top - bottom).max(0.0) };
    let options = ConversionOptions {
        extract_tables: true,
        include_region: Some((band, RectFilterMode::MinOverlap(0.5))),
        ..ConversionOptions::default()
    };
    document.extract_text_with_options(index, &options).ok()
}

/// The lines of a page from its top, with the pieces that stand close to each other as one cell.
fn find_lines(spans: &[&TextSpan]) -> Vec<Line> {
    let mut sorted = spans.to_vec();
    let order = |a: f32, b: f32| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    sorted.sort_by(|a, b| order(b.bbox.y, a.bbox.y));
    let same_line = |a: &&TextSpan, b: &&TextSpan| {
        (a.bbox.y - b.bbox.y).abs() <= 0.2 * a.font_size.min(b.font_size).max(1.0)
    };
    let lines = sorted.chunk_by(same_line).map(|line| {
        let mut line = line.to_vec();
        line.sort_by(|a, b| order(a.bbox.x, b.bbox.x));
        let size = line.iter().map(|span| span.font_size).fold(1.0, f32::max);
        let mut cells: Vec<Cell> = Vec::new();
        for span in line.iter() {
            let (left, right) = (span.bbox.x, span.bbox.x + span.bbox.width);
            match cells.last_mut() {
                Some(last) if left - last.right < GAP * size => {
                    let is_word = left - last.right > 0.15 * size;
                    if is_word && !last.text.ends_with(' ') && !span.text.starts_with(' ') {
                        last.text.push(' ');
                    }
                    last.text += &span.text;
                    last.right = last.right.max(right);
                }
                _ => cells.push(Cell { left, right, text: span.text.clone() }),
            }
        }
        Line { base: line[0].bbox.y, size, cells }
    });
    lines.collect()
}

/// Finds lines below each other with gaps at the same places.
fn find_areas(lines: &[Line]) -> Vec<Area> {
    let mut areas = Vec::new();
    let mut first = 0;
    while first < lines.len() {
        let mut gutters: Vec<_> =
            lines[first].cells.windows(2).map(|pair| (pair[0].right, pair[1].left)).collect();
        let mut end = first + 1;
        while let Some(line) = lines.get(end).filter(|_| !gutters.is_empty()) {
            let above = &lines[end - 1];
            let left = free(&gutters, line);
            if above.base - line.base > APART * above.size.max(line.size) || left.is_empty() {
                break;
            }
            gutters = left;
            end += 1;
        }
        let next = end;
        while end > first && lines[end - 1].cells.len() < 2 {
            end -= 1;
        }
        if !gutters.is_empty() && end > first {
            areas.push(Area { first, end, gutters });
        }
        first = next;
    }
    areas
}

/// What a line leaves free of gaps.
fn free(gutters: &[(f32, f32)], line: &Line) -> Vec<(f32, f32)> {
    let mut left = gutters.to_vec();
    for cell in &line.cells {
        let around = |(from, to): (f32, f32)| {
            if cell.right <= from || cell.left >= to {
                return vec![(from, to)];
            }
            vec![(from, cell.left), (cell.right, to)]
        };
        left = left.into_iter().flat_map(around).filter(|(from, to)| to - from >= GUTTER).collect();
    }
    left
}

fn find_column(cell: &Cell, gutters: &[(f32, f32)]) -> usize {
    let middle = (cell.left + cell.right) / 2.0;
    gutters.iter().filter(|(from, to)| (from + to) / 2.0 < middle).count()
}

/// The texts of the columns of a line, with their widths.
fn split_line<'a>(line: &'a Line, gutters: &[(f32, f32)]) -> Vec<Vec<&'a Cell>> {
    let mut columns = vec![Vec::new(); gutters.len() + 1];
    for cell in &line.cells {
        columns[find_column(cell, gutters)].push(cell);
    }
    columns
}

/// Reports whether lines are a table: with a column of numbers or of labels, and not texts beside
/// each other.
fn is_table(lines: &[Line], gutters: &[(f32, f32)]) -> bool {
    let rows: Vec<_> = lines.iter().map(|line| split_line(line, gutters)).collect();
    let is_row = |row: &&Vec<Vec<&Cell>>| row.iter().filter(|cells| !cells.is_empty()).count() > 1;
    let filled = rows.iter().filter(is_row).count();
    if filled < FEWEST_ROWS || (filled as f32) < ROWS_OF_LINES * rows.len() as f32 {
        return false;
    }

    let columns: Vec<_> = (0..=gutters.len()).map(|column| Column::new(&rows, column)).collect();
    let texts = columns.iter().filter(|column| column.is_prose).count();
    if texts > 1 || columns.iter().any(|column| column.goes_on) {
        return false;
    }
    // A list of names and numbers may stand in two columns.
    let (first, second) = columns.split_at(columns.len() / 2);
    let is_doubled = first.len() == second.len()
        && first.iter().zip(second).all(|(a, b)| a.is_numeric == b.is_numeric)
        && first.iter().any(|column| column.is_numeric)
        && first.iter().any(|column| !column.is_numeric);
    let has_labels = columns[0].is_label && columns.len() == 2;
    let numbers: usize = columns.iter().map(|column| column.numbers).sum();
    let cells: usize = columns.iter().map(|column| column.cells).sum();
    let has_numbers = columns.iter().any(|column| column.is_numeric)
        || (columns.len() > 2 && NUMBERS_OF_CELLS * numbers >= cells);
    !is_doubled && (has_labels || has_numbers)
}

struct Column {
    cells: usize,
    numbers: usize,
    is_numeric: bool,
    /// Whether most of its cells end with a colon.
    is_label: bool,
    /// Whether its lines are those of a text, as wide as the column.
    is_prose: bool,
    /// Whether its sentences go on in rows that have other cells, too: it is a text beside a table.
    goes_on: bool,
}

impl Column {
    fn new(rows: &[Vec<Vec<&Cell>>], column: usize) -> Self {
        let (mut cells, mut numbers, mut labels) = (0, 0, 0);
        let (mut words, mut letters) = (0, 0);
        let (mut small, mut beside) = (0, 0);
        let mut widths = Vec::new();
        for row in rows {
            let (Some(first), Some(last)) = (row[column].first(), row[column].last()) else {
                continue;
            };
            let text: String = row[column].iter().map(|cell| cell.text.as_str()).collect();
            cells += 1;
            numbers += usize::from(is_number(&text));
            letters += text.chars().count();
            labels += usize::from(text.trim_end().ends_with(':'));
            words += row[column].iter().flat_map(|cell| cell.text.split_whitespace()).count();
            widths.push(last.right - first.left);
            if text.trim_start().starts_with(char::is_lowercase) {
                small += 1;
                let others = row.iter().enumerate().filter(|(at, _)| *at != column);
                beside += usize::from(others.map(|(_, cells)| cells.len()).sum::<usize>() > 0);
            }
        }
        let widest = widths.iter().copied().fold(0.0, f32::max);
        let wide = widths.iter().filter(|width| **width > 0.75 * widest).count();
        let is_prose = cells >= FEWEST_ROWS
            && words >= WORDS_OF_TEXT * cells
            && letters >= LETTERS_OF_TEXT * cells
            && 5 * wide >= 3 * cells;
        // Names in small letters alone are no sentences, unless they are as long.
        let is_mixed = 20 * small < 19 * cells || letters >= LONG_LINE * cells;
        Self {
            cells,
            numbers,
            is_numeric: cells >= 3 && 10 * numbers >= 7 * cells,
            is_label: cells > 0 && 10 * labels >= 6 * cells,
            is_prose,
            goes_on: is_prose && is_mixed && 10 * small > 3 * cells && 2 * beside > small,
        }
    }
}

/// Reports whether a cell holds a number, maybe with a sign, a currency or a unit.
fn is_number(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let is_blank = matches!(text.trim(), "-" | "–" | "—");
    is_blank || (digits > 0 && digits >= letters && text.trim().chars().count() <= 24)
}

/// Reports whether a page has most rows in one line each.
fn has_rows(page: &str, lines: &[Line]) -> bool {
    let squeeze = |text: &str| text.split_whitespace().collect::<String>();
    let all: Vec<_> = page.lines().map(squeeze).collect();
    let rows: Vec<_> = lines.iter().filter(|line| line.cells.len() > 1).collect();
    let kept = rows.iter().filter(|line| {
        let cells: Vec<_> = line.cells.iter().map(|cell| squeeze(&cell.text)).collect();
        all.iter().any(|found| cells.iter().all(|cell| found.contains(cell)))
    });
    2 * kept.count() >= rows.len()
}

/// The rows of a table in lines, with spaces between the columns.
fn write_rows(lines: &[Line], gutters: &[(f32, f32)]) -> String {
    let join = |cells: &Vec<&Cell>| {
        cells.iter().map(|cell| cell.text.trim()).collect::<Vec<_>>().join("  ")
    };
    let rows: Vec<Vec<String>> =
        lines.iter().map(|line| split_line(line, gutters).iter().map(join).collect()).collect();
    let widths = (0..=gutters.len()).map(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let widths: Vec<usize> = widths.collect();
    let mut out = String::new();
    for row in &rows {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out += padded.collect::<Vec<_>>().join("  ").trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(base: f32, cells: &[(f32, f32, &str)]) -> Line {
        let cells = cells.iter().map(|(left, right, text)| Cell {
            left: *left,
            right: *right,
            text: (*text).to_owned(),
        });
        Line { base, size: 10.0, cells: cells.collect() }
    }

    fn tables(lines: &[Line]) -> Vec<String> {
        let mut areas = find_areas(lines);
        areas.retain(|area| is_table(&lines[area.first..area.end], &area.gutters));
        areas.iter().map(|area| write_rows(&lines[area.first..area.end], &area.gutters)).collect()
    }

    #[test]
    fn tables_become_rows() {
        let mut lines = vec![line(700.0, &[(60.0, 300.0, "a heading over the table")])];
        for (at, (name, count, sum)) in
            [("nut", "2", "1.50"), ("nail", "30", "12.00"), ("saw", "", "9.00"), ("oil", "1", "3.25")]
                .into_iter()
                .enumerate()
        {
            let mut cells = vec![(60.0, 100.0, name)];
            if !count.is_empty() {
                cells.push((200.0, 210.0, count));
            }
            cells.push((300.0, 330.0, sum));
            lines.push(line(680.0 - 14.0 * at as f32, &cells));
        }
        lines.push(line(600.0, &[(60.0, 500.0, "a text below the table, as wide as the page")]));
        assert_eq!(
            tables(&lines),
            ["nut   2   1.50\nnail  30  12.00\nsaw       9.00\noil   1   3.25\n"]
        );
    }

    #[test]
    fn forms_become_rows() {
        let labels = ["Name:", "Born:", "City and country:", "Phone:"];
        let cells = |label| [(60.0, 150.0, label), (300.0, 350.0, "x y")];
        let labels = labels.iter().enumerate();
        let lines: Vec<_> =
            labels.map(|(at, label)| line(700.0 - 14.0 * at as f32, &cells(*label))).collect();
        assert_eq!(tables(&lines).len(), 1);
    }

    #[test]
    fn tables_may_have_mixed_columns() {
        let cells = |at: usize| match at % 2 {
            0 => vec![(60.0, 90.0, "5"), (160.0, 200.0, "name"), (260.0, 300.0, "1,234.50")],
            _ => vec![(60.0, 90.0, "a|b"), (160.0, 200.0, ".5"), (260.0, 300.0, "Invoice")],
        };
        let lines: Vec<_> = (0..6).map(|at| line(700.0 - 12.0 * at as f32, &cells(at))).collect();
        assert_eq!(tables(&lines).len(), 1);
    }

    #[test]
    fn texts_in_columns_stay() {
        let text = "a line of a text that goes on and on";
        let list = "a name";
        for cells in [
            vec![(60.0, 280.0, text), (310.0, 530.0, text)],
            vec![(60.0, 200.0, text), (230.0, 370.0, text), (400.0, 530.0, text)],
            vec![(60.0, 100.0, list), (310.0, 360.0, list)],
            vec![(60.0, 100.0, list), (200.0, 250.0, list), (310.0, 360.0, list)],
            // names and numbers in two columns, and a table beside a text
            vec![(60.0, 90.0, list), (250.0, 260.0, "5"), (310.0, 350.0, list), (500.0, 510.0, "9")],
            vec![(60.0, 90.0, list), (250.0, 260.0, "5"), (310.0, 530.0, text)],
            // numbers of lines between the columns
            vec![(60.0, 280.0, text), (295.0, 300.0, "5"), (315.0, 530.0, text)],
        ] {
            let lines: Vec<_> = (0..10).map(|at| line(700.0 - 12.0 * at as f32, &cells)).collect();
            assert!(tables(&lines).is_empty(), "{cells:?}");
        }
    }
}
