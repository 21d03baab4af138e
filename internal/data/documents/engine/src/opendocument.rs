//! OpenDocument: texts, spreadsheets and presentations, as LibreOffice writes them.

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use crate::package::{Package, read_member};
use crate::problem::Problem;
use crate::text::{Text, cell, count, find_split};

/// Cells and rows that repeat are written out up to these numbers. Sheets end with repeats that
/// fill them to their last row and column, but those are empty.
const MOST_REPEATED_CELLS: usize = 1 << 10;
const MOST_REPEATED_ROWS: usize = 1 << 14;

/// What a cell of a table costs besides its text, in bytes.
const CELL: usize = size_of::<String>();

/// Elements that lie deeper are an error.
const DEEPEST: usize = 1 << 10;

pub fn read(mut package: Package, kind: &str, text: &mut Text) -> Result<(), Problem> {
    let manifest = read_member(&mut package, "META-INF/manifest.xml", text).unwrap_or_default();
    if String::from_utf8_lossy(&manifest).contains("encryption-data") {
        return Err(Problem::encrypted());
    }
    let content = read_member(&mut package, "content.xml", text)?;
    let (name, noun) = if kind.contains("spreadsheet") {
        ("OpenDocument spreadsheet", "sheet")
    } else if kind.contains("presentation") {
        ("OpenDocument presentation", "slide")
    } else if kind.contains("text") {
        ("OpenDocument text", "")
    } else {
        ("OpenDocument drawing", "page")
    };

    let split = if noun.is_empty() {
        text.describe(name)?;
        find_split(find_levels(&content)?.into_iter())
    } else {
        text.describe(&format!("{name}, {}", count_parts(&content, noun)?))?;
        None
    };
    if split.is_some() {
        text.section("");
    }
    Walker {
        noun,
        split,
        text,
        open: Vec::new(),
        lists: 0,
        tables: Vec::new(),
        headings: Vec::new(),
        links: Vec::new(),
    }
    .walk(&content)
}

/// "2 sheets" or "3 slides".
fn count_parts(content: &[u8], noun: &str) -> Result<String, Problem> {
    let element: &str = if noun == "sheet" { "table:table" } else { "draw:page" };
    let mut reader = Reader::from_reader(content);
    let mut number = 0;
    loop {
        match reader.read_event()? {
            Event::Start(e) | Event::Empty(e) if e.name().as_ref() == element => number += 1,
            Event::Eof => return Ok(count(number, noun)),
            _ => {}
        }
    }
}

/// The levels of all headings.
fn find_levels(content: &[u8]) -> Result<Vec<usize>, Problem> {
    let mut reader = Reader::from_reader(content);
    let mut levels = Vec::new();
    loop {
        match reader.read_event()? {
            Event::Start(e) if e.name().as_ref() == "text:h" => levels.push(heading_level(&e)),
            Event::Eof => return Ok(levels),
            _ => {}
        }
    }
}

fn heading_level(e: &BytesStart) -> usize {
    number(e, "text:outline-level").clamp(1, 6)
}

/// Turns the elements of a content.xml into Markdown.
struct Walker<'a> {
    noun: &'static str,
    /// The level of the headings that begin a part.
    split: Option<usize>,
    text: &'a mut Text,
    /// The text of the paragraphs that are open: notes lie in paragraphs.
    open: Vec<String>,
    /// How many lists are open.
    lists: usize,
    /// The tables that are open: tables may lie in cells.
    tables: Vec<Table>,
    headings: Vec<usize>,
    links: Vec<String>,
}

/// A table whose rows are read.
#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    row: Vec<String>,
    cell: Vec<String>,
    row_repeats: usize,
    cell_repeats: usize,
    empty_rows: usize,
    empty_cells: usize,
}

impl Walker<'_> {
    fn walk(&mut self, content: &[u8]) -> Result<(), Problem> {
        let mut reader = Reader::from_reader(content);
        let mut depth = 0;
        loop {
            match reader.read_event()? {
                Event::Start(e) if skipped(e.name().as_ref()) => {
                    reader.read_to_end(e.name())?;
                }
                Event::Start(e) => {
                    depth += 1;
                    if depth > DEEPEST {
                        return Err(Problem::damaged("its elements lie too deep"));
                    }
                    self.open(&e)?;
                }
                Event::Empty(e) if skipped(e.name().as_ref()) => {}
                Event::Empty(e) => {
                    self.open(&e)?;
                    self.close(e.name().as_ref())?;
                }
                Event::End(e) => {
                    depth -= 1;
                    self.close(e.name().as_ref())?;
                }
                Event::Text(t) => self.write(&collapse(&t.xml10_content())),
                Event::CData(t) => self.write(&t),
                Event::GeneralRef(r) => {
                    if let Ok(Some(c)) = r.resolve_char_ref() {
                        self.write(c.encode_utf8(&mut [0; 4]));
                    } else if let Some(known) = resolve_predefined_entity(&r) {
                        self.write(known);
                    } else {
                        self.text.warn(format!("the entity &{}; is not declared", &*r));
                    }
                }
                Event::Eof => return Ok(()),
                _ => {}
            }
        }
    }

    fn open(&mut self, e: &BytesStart) -> Result<(), Problem> {
        match e.name().as_ref() {
            "text:p" => self.open.push(String::new()),
            "text:h" => {
                self.headings.push(heading_level(e));
                self.open.push(String::new());
            }
            "text:list" => self.lists += 1,
            "text:s" => self.write(&" ".repeat(number(e, "text:c").min(64))),
            "text:tab" => self.write("\t"),
            "text:line-break" => self.write("\n"),
            "text:a" => {
                self.links.push(value(e, "xlink:href"));
                self.write("[");
            }
            "text:note" => self.write(" (note "),
            "office:annotation" => self.write(" (comment: "),
            "presentation:notes" => self.text.block("Notes:")?,
            "draw:page" if self.noun != "sheet" => {
                self.text.part(self.noun, &value(e, "draw:name"))?
            }
            "table:table" => {
                if self.noun == "sheet" && self.tables.is_empty() {
                    self.text.part("sheet", &value(e, "table:name"))?;
                }
                self.tables.push(Table::default());
            }
            "table:table-row" => {
                if let Some(table) = self.tables.last_mut() {
                    table.row_repeats = number(e, "table:number-rows-repeated");
                }
            }
            "table:table-cell" | "table:covered-table-cell" => {
                if let Some(table) = self.tables.last_mut() {
                    table.cell_repeats = number(e, "table:number-columns-repeated");
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), Problem> {
        match name {
            "text:p" => {
                let paragraph = self.open.pop().unwrap_or_default();
                self.finish(paragraph)?;
            }
            "text:h" => {
                let level = self.headings.pop().unwrap_or(1);
                let heading = self.open.pop().unwrap_or_default();
                if !heading.trim().is_empty() {
                    let is_inner = self.lists > 0 || !self.tables.is_empty() || !self.open.is_empty();
                    if self.split == Some(level) && !is_inner {
                        self.text.section(&heading);
                    }
                    self.finish(format!("{} {}", "#".repeat(level), heading.trim()))?;
                }
            }
            "text:list" => {
                self.lists = self.lists.saturating_sub(1);
                if self.lists == 0 && self.tables.is_empty() && self.open.is_empty() {
                    self.text.push("\n")?;
                }
            }
            "text:a" => {
                let target = self.links.pop().unwrap_or_default();
                self.write(&format!("]({target})"));
            }
            "text:note" | "office:annotation" => self.write(")"),
            "table:table-cell" | "table:covered-table-cell" => {
                if let Some(table) = self.tables.last_mut() {
                    table.finish_cell(self.text)?;
                }
            }
            "table:table-row" => {
                if let Some(table) = self.tables.last_mut() {
                    table.finish_row(self.text)?;
                }
            }
            "table:table" => {
                let table = self.tables.pop().unwrap_or_default();
                self.finish(table.render())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        if let Some(paragraph) = self.open.last_mut() {
            paragraph.push_str(text);
        }
    }

    /// Puts a block where it belongs: into a paragraph around it, a cell, or the text.
    fn finish(&mut self, block: String) -> Result<(), Problem> {
        if let Some(paragraph) = self.open.last_mut() {
            paragraph.push_str(&block);
            return Ok(());
        }
        if let Some(table) = self.tables.last_mut() {
            table.cell.push(block);
            return Ok(());
        }
        if self.lists == 0 || block.trim().is_empty() {
            return self.text.block(&block);
        }
        let indent = "  ".repeat(self.lists - 1);
        self.text.push(&format!("{indent}- {}\n", block.trim()))
    }
}

impl Table {
    fn finish_cell(&mut self, text: &mut Text) -> Result<(), Problem> {
        let found = cell(&std::mem::take(&mut self.cell).join("\n"));
        if found.is_empty() {
            self.empty_cells = self.empty_cells.saturating_add(self.cell_repeats);
            return Ok(());
        }
        // Cells behind the last one that is not empty are left out.
        let empty = self.empty_cells.min(MOST_REPEATED_CELLS);
        self.row.extend(std::iter::repeat_n(String::new(), empty));
        self.empty_cells = 0;
        let repeats = self.cell_repeats.min(MOST_REPEATED_CELLS);
        text.charge((repeats.saturating_sub(1) * (found.len() + CELL)) as u64)?;
        self.row.extend(std::iter::repeat_n(found, repeats));
        Ok(())
    }

    fn finish_row(&mut self, text: &mut Text) -> Result<(), Problem> {
        self.empty_cells = 0;
        let row = std::mem::take(&mut self.row);
        if row.is_empty() {
            self.empty_rows = self.empty_rows.saturating_add(self.row_repeats);
            return Ok(());
        }
        let repeats = self.row_repeats;
        if repeats.max(self.empty_rows) > MOST_REPEATED_ROWS {
            text.warn(format!("a row that repeats is shown {MOST_REPEATED_ROWS} times at most"));
        }
        let empty = self.empty_rows.min(MOST_REPEATED_ROWS);
        self.rows.extend(std::iter::repeat_n(Vec::new(), empty));
        self.empty_rows = 0;
        let repeats = repeats.min(MOST_REPEATED_ROWS);
        let length: usize = row.iter().map(|cell| cell.len() + CELL).sum();
        text.charge(repeats.saturating_sub(1) as u64 * length as u64)?;
        self.rows.extend(std::iter::repeat_n(row, repeats));
        Ok(())
    }

    /// The table in Markdown. Its first row is the header.
    fn render(&self) -> String {
        let width = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            for column in 0..width {
                out.push_str("| ");
                out.push_str(row.get(column).map_or("", String::as_str));
                out.push(' ');
            }
            out.push_str("|\n");
            if index == 0 {
                out.push_str(&"| --- ".repeat(width));
                out.push_str("|\n");
            }
        }
        out
    }
}

/// Reports whether an element has no text that a reader sees.
fn skipped(name: &str) -> bool {
    matches!(
        name,
        "office:automatic-styles"
            | "office:font-face-decls"
            | "office:scripts"
            | "text:tracked-changes"
            | "text:sequence-decls"
            | "table:shapes"
            | "svg:title"
            | "svg:desc"
    )
}

/// White space as a reader sees it: one space for each run.
fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let is_space = matches!(c, ' ' | '\t' | '\r' | '\n');
        if !is_space {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

/// The value of an attribute, empty without it.
fn value(e: &BytesStart, name: &str) -> String {
    let found = e.try_get_attribute(name).ok().flatten();
    let raw = found.map(|a| a.value.into_owned()).unwrap_or_default();
    quick_xml::escape::unescape(&raw).map(|text| text.into_owned()).unwrap_or(raw)
}

/// The value of an attribute as a number, 1 without it.
fn number(e: &BytesStart, name: &str) -> usize {
    value(e, name).parse().unwrap_or(1)
}
