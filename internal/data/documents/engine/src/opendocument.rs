//! OpenDocument: texts, spreadsheets and presentations, as LibreOffice writes them.

use std::collections::HashSet;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use crate::grid::Grid;
use crate::package::{Package, read_member};
use crate::problem::Problem;
use crate::sheets::write_table;
use crate::text::{Text, count, find_split};
use crate::unseen::Unseen;

/// Cells and rows that repeat are written out up to these numbers. Sheets end with repeats that
/// fill them to their last row and column, but those are empty.
const MOST_REPEATED_CELLS: usize = 1 << 14;
const MOST_REPEATED_ROWS: usize = 1 << 14;

/// More columns that are hidden at once are the end of the sheet.
const MOST_HIDDEN_COLUMNS: usize = 1 << 10;

/// What a cell of a table costs besides its text, in bytes.
const CELL: usize = 2 * size_of::<String>();

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

    let mut hidden = HashSet::new();
    let split = if noun.is_empty() {
        text.describe(name)?;
        find_split(find_levels(&content)?.into_iter())
    } else {
        let (number, found) = count_parts(&content, noun)?;
        hidden = found;
        text.describe(&format!("{name}, {}", count(number, noun)))?;
        None
    };
    if split.is_some() {
        text.section("");
    }
    let mut walker = Walker {
        noun,
        split,
        text,
        hidden,
        unseen: Unseen::default(),
        open: Vec::new(),
        lists: 0,
        tables: Vec::new(),
        headings: Vec::new(),
        links: Vec::new(),
    };
    walker.walk(&content)?;
    walker.unseen.tell(", shown instead of it", walker.text);
    Ok(())
}

/// The number of sheets or slides, and the styles of sheets that are hidden.
fn count_parts(content: &[u8], noun: &str) -> Result<(usize, HashSet<String>), Problem> {
    let element: &str = if noun == "sheet" { "table:table" } else { "draw:page" };
    let mut reader = Reader::from_reader(content);
    let mut number = 0;
    let mut style = String::new();
    let mut hidden = HashSet::new();
    loop {
        match reader.read_event()? {
            Event::Start(e) | Event::Empty(e) => match e.name().as_ref() {
                name if name == element => number += 1,
                "style:style" => style = value(&e, "style:name"),
                "style:table-properties" if value(&e, "table:display") == "false" => {
                    hidden.insert(style.clone());
                }
                _ => {}
            },
            Event::Eof => return Ok((number, hidden)),
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
    /// The styles of hidden sheets.
    hidden: HashSet<String>,
    unseen: Unseen,
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
    name: String,
    /// How many paragraphs are open around it.
    around: usize,
    /// Whether it is a sheet, whose rows and columns keep their numbers.
    is_sheet: bool,
    /// The rows by their numbers, and their cells by their columns.
    rows: Vec<(usize, Vec<(usize, String)>)>,
    next_row: usize,
    row: Vec<(usize, String)>,
    next_column: usize,
    cell: Vec<String>,
    /// The value of the cell, for programs that save no text beside it.
    value: String,
    /// Whether a cell that spans several lies over this one.
    is_covered: bool,
    is_row_hidden: bool,
    row_repeats: usize,
    cell_repeats: usize,
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
                let is_sheet = self.noun == "sheet" && self.tables.is_empty();
                let name = value(e, "table:name");
                if is_sheet {
                    let is_hidden = self.hidden.contains(&value(e, "table:style-name"));
                    let hidden = if is_hidden { " (hidden)" } else { "" };
                    self.text.part("sheet", &format!("{name}{hidden}"))?;
                }
                let around = self.open.len();
                self.tables.push(Table { name, around, is_sheet, ..Table::default() });
            }
            "table:table-row" => {
                if let Some(table) = self.tables.last_mut() {
                    table.row_repeats = number(e, "table:number-rows-repeated");
                    table.is_row_hidden = is_hidden(e);
                }
            }
            // Up to the last column of all, nothing is hidden but the end of the sheet.
            "table:table-column" if is_hidden(e) => {
                let repeats = number(e, "table:number-columns-repeated");
                if repeats < MOST_HIDDEN_COLUMNS {
                    self.unseen.columns += repeats;
                }
            }
            name @ ("table:table-cell" | "table:covered-table-cell") => {
                if let Some(table) = self.tables.last_mut() {
                    table.is_covered = name == "table:covered-table-cell";
                    table.cell_repeats = number(e, "table:number-columns-repeated");
                    table.value = find_value(e);
                    let formula = value(e, "table:formula");
                    if !formula.is_empty() && value(e, "office:value-type").is_empty() {
                        self.unseen.formulas += 1;
                        table.value = formula;
                    }
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
                    let is_filled = table.row.iter().any(|(_, text)| !text.is_empty());
                    if table.is_row_hidden && is_filled {
                        self.unseen.rows = self.unseen.rows.saturating_add(table.row_repeats);
                    }
                    table.finish_row(self.text)?;
                }
            }
            "table:table" => {
                let table = self.tables.pop().unwrap_or_default();
                self.finish_table(table)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn write(&mut self, text: &str) {
        if let Some(paragraph) = self.find_paragraph() {
            paragraph.push_str(text);
        }
    }

    /// Puts a table where it belongs. A cell holds no table in Markdown, but lines.
    fn finish_table(&mut self, table: Table) -> Result<(), Problem> {
        if table.is_sheet {
            return table.write(self.text);
        }
        let grid = table.to_grid();
        if grid.is_blank() {
            return Ok(());
        }
        let is_inner = !self.tables.is_empty();
        if let Some(paragraph) = self.find_paragraph() {
            // A frame in a paragraph has a table.
            let (end, lines) =
                if is_inner { ("\n", grid.to_lines()) } else { ("\n\n", grid.to_markdown()) };
            *paragraph += &format!("{end}{lines}{end}");
            return Ok(());
        }
        match self.tables.last_mut() {
            Some(around) => around.cell.push(grid.to_lines()),
            None => self.text.block(&grid.to_markdown())?,
        }
        Ok(())
    }

    /// The paragraph that is open, within the cell if one is open.
    fn find_paragraph(&mut self) -> Option<&mut String> {
        let around = self.tables.last().map_or(0, |table| table.around);
        self.open.get_mut(around..)?.last_mut()
    }

    /// Puts a block where it belongs: into a paragraph around it, a cell, or the text.
    fn finish(&mut self, block: String) -> Result<(), Problem> {
        if let Some(paragraph) = self.find_paragraph() {
            paragraph.push_str(&block);
            return Ok(());
        }
        if let Some(table) = self.tables.last_mut() {
            // The cells of a sheet are escaped when it is written.
            table.cell.push(if table.is_sheet { block } else { block.replace('\\', "\\\\") });
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
        let mut found = std::mem::take(&mut self.cell).join("\n");
        let value = std::mem::take(&mut self.value);
        if found.trim().is_empty() {
            found = value;
        }
        let column = self.next_column;
        self.next_column = column.saturating_add(self.cell_repeats);
        if found.trim().is_empty() && (self.is_sheet || self.is_covered) {
            return Ok(());
        }
        if column >= MOST_REPEATED_CELLS {
            text.warn(format!("cells right of column {MOST_REPEATED_CELLS} are left out"));
            return Ok(());
        }
        let repeats = self.cell_repeats.min(MOST_REPEATED_CELLS - column);
        text.charge((repeats.saturating_sub(1) * (found.len() + CELL)) as u64)?;
        self.row.extend((column..column + repeats).map(|column| (column, found.clone())));
        Ok(())
    }

    fn finish_row(&mut self, text: &mut Text) -> Result<(), Problem> {
        let number = self.next_row;
        self.next_row = number.saturating_add(self.row_repeats);
        self.next_column = 0;
        let row = std::mem::take(&mut self.row);
        if row.iter().all(|(_, text)| text.is_empty()) {
            return Ok(());
        }
        if self.row_repeats > MOST_REPEATED_ROWS {
            text.warn(format!("a row that repeats is shown {MOST_REPEATED_ROWS} times at most"));
        }
        let repeats = self.row_repeats.min(MOST_REPEATED_ROWS);
        let length: usize = row.iter().map(|(_, cell)| cell.len() + CELL).sum();
        text.charge(repeats.saturating_sub(1) as u64 * length as u64)?;
        self.rows.extend((0..repeats).map(|index| (number.saturating_add(index), row.clone())));
        Ok(())
    }

    fn to_grid(&self) -> Grid {
        let mut grid = Grid::default();
        for (_, row) in &self.rows {
            grid.begin_row();
            row.iter().for_each(|(column, text)| grid.put(text, *column));
        }
        grid.drop_blank_rows();
        grid
    }

    /// Writes a sheet.
    fn write(&self, text: &mut Text) -> Result<(), Problem> {
        let rows = self.rows.iter().map(|(row, cells)| {
            let cells = cells.iter().map(|(column, shown)| (*column as u32, shown.as_str()));
            (u32::try_from(*row).unwrap_or(u32::MAX), cells.collect())
        });
        write_table(&self.name, rows.collect(), text, str::to_owned)
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

/// The saved value of a cell, empty without it.
fn find_value(e: &BytesStart) -> String {
    let name = match value(e, "office:value-type").as_str() {
        "float" | "percentage" | "currency" => "office:value",
        "date" => "office:date-value",
        "time" => "office:time-value",
        "boolean" => "office:boolean-value",
        "string" => "office:string-value",
        _ => return String::new(),
    };
    value(e, name)
}

fn is_hidden(e: &BytesStart) -> bool {
    matches!(value(e, "table:visibility").as_str(), "collapse" | "filter")
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
