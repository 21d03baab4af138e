//! RTF: its text, as WordPad, Word and LibreOffice write it.

use encoding_rs::Encoding;

use crate::grid::Grid;
use crate::problem::Problem;
use crate::text::Text;

/// Groups that lie deeper are an error.
const DEEPEST: usize = 1 << 12;

/// Tables that lie deeper in cells of others belong to these.
const DEEPEST_TABLE: usize = 16;

/// Edges of cells this close are the same, in twips: 6 points. Word moves them a little.
const SAME_EDGE: i64 = 120;

/// How far apart cells are whose edges the file does not give, in twips.
const NO_EDGE: i64 = 1_440;

/// Destinations whose content is no text that a reader sees.
const HIDDEN: &[&str] = &[
    "fonttbl",
    "colortbl",
    "stylesheet",
    "info",
    "pict",
    "object",
    "themedata",
    "datastore",
    "colorschememapping",
    "latentstyles",
    "listtable",
    "listoverridetable",
    "rsidtbl",
    "generator",
    "xmlnstbl",
    "filetbl",
    "revtbl",
    "mmathPr",
    "fldinst",
    "bkmkstart",
    "bkmkend",
    "pntext",
    "listtext",
    "nonshppict",
    "shpinst",
    "sp",
    "pgptbl",
    "wgrffmtfilter",
    "footer",
    "header",
    "headerl",
    "headerr",
    "headerf",
    "footerl",
    "footerr",
    "footerf",
    "ftnsep",
    "ftnsepc",
    "aftnsep",
    "nonesttables",
];

/// What holds within a group.
#[derive(Clone, Copy)]
struct Group {
    is_hidden: bool,
    encoding: &'static Encoding,
    /// How many characters follow \u for programs that do not know it.
    replacements: usize,
    /// Whether a bracket ends with the group.
    is_note: bool,
}

#[derive(Default)]
struct Table {
    /// The text of the cell that is open.
    cell: String,
    row: Vec<String>,
    /// The cells with their left edges, in twips.
    rows: Vec<Vec<(i64, String)>>,
}

/// Where the cells of a row lie.
#[derive(Default)]
struct Layout {
    left: i64,
    /// The right edges, and whether the cells only continue the ones before or above.
    cells: Vec<(i64, bool)>,
    is_continued: bool,
}

struct Reader<'a> {
    text: &'a mut Text,
    group: Group,
    outer: Vec<Group>,
    paragraph: String,
    /// Bytes of the paragraph that are not decoded yet.
    bytes: Vec<u8>,
    /// The tables that are open, each in a cell of the one before.
    tables: Vec<Table>,
    /// Where cells lie in the rows that follow: of the outer table, and of those in its cells.
    layout: Layout,
    inner_layout: Layout,
    is_layout_inner: bool,
    /// Whether the paragraph lies in a cell, and in how many tables.
    in_cell: bool,
    depth: usize,
    /// How many characters are still to be skipped after \u.
    skip: usize,
    /// The first half of a pair of UTF-16.
    high: Option<u16>,
}

pub fn read(data: &[u8], text: &mut Text) -> Result<(), Problem> {
    text.describe("RTF document")?;
    let before = text.position();
    append(data, text)?;
    if text.position() == before {
        return Err(Problem::no_text("it has no text"));
    }
    Ok(())
}

/// Appends the text of RTF that lies in a document.
pub fn append(data: &[u8], text: &mut Text) -> Result<(), Problem> {
    let group = Group {
        is_hidden: false,
        encoding: encoding_rs::WINDOWS_1252,
        replacements: 1,
        is_note: false,
    };
    let mut reader = Reader {
        text,
        group,
        outer: Vec::new(),
        paragraph: String::new(),
        bytes: Vec::new(),
        tables: Vec::new(),
        layout: Layout::default(),
        inner_layout: Layout::default(),
        is_layout_inner: false,
        in_cell: false,
        depth: 0,
        skip: 0,
        high: None,
    };
    reader.read(data)
}

impl Reader<'_> {
    fn read(&mut self, data: &[u8]) -> Result<(), Problem> {
        let mut rest = data;
        while let Some((&first, tail)) = rest.split_first() {
            rest = match first {
                b'{' => {
                    self.decode();
                    self.outer.push(self.group);
                    self.group.is_note = false;
                    if self.outer.len() > DEEPEST {
                        return Err(Problem::damaged("its groups lie too deep"));
                    }
                    tail
                }
                b'}' => {
                    self.decode();
                    self.skip = 0;
                    if self.group.is_note {
                        self.write(")");
                    }
                    match self.outer.pop() {
                        Some(group) => self.group = group,
                        None => return self.finish(),
                    }
                    if self.outer.is_empty() {
                        return self.finish();
                    }
                    tail
                }
                b'\\' => self.control(tail)?,
                b'\r' | b'\n' => tail,
                _ => {
                    self.byte(first);
                    tail
                }
            };
        }
        self.text.warn("it is cut short");
        self.finish()
    }

    /// Reads a control word or symbol, and returns what follows.
    fn control<'b>(&mut self, rest: &'b [u8]) -> Result<&'b [u8], Problem> {
        let length = rest.iter().take_while(|c| c.is_ascii_alphabetic()).count();
        let Some(&symbol) = rest.first() else { return Ok(rest) };
        if length == 0 {
            return self.symbol(symbol, &rest[1..]);
        }

        let (word, mut tail) = rest.split_at(length);
        let word = std::str::from_utf8(word).unwrap_or_default();
        let is_negative = tail.first() == Some(&b'-');
        let digits = &tail[usize::from(is_negative)..];
        let length = digits.iter().take_while(|c| c.is_ascii_digit()).count();
        let mut number = None;
        if length > 0 {
            let magnitude: i64 =
                digits[..length.min(10)].iter().fold(0, |n, d| n * 10 + i64::from(d - b'0'));
            number = Some(if is_negative { -magnitude } else { magnitude });
            tail = &digits[length..];
        }
        tail = tail.strip_prefix(b" ").unwrap_or(tail);
        if word == "bin" {
            let length = usize::try_from(number.unwrap_or(0)).unwrap_or(0);
            return Ok(&tail[length.min(tail.len())..]);
        }
        self.word(word, number)?;
        Ok(tail)
    }

    fn symbol<'b>(&mut self, symbol: u8, rest: &'b [u8]) -> Result<&'b [u8], Problem> {
        match symbol {
            b'\'' => {
                let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
                let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
                    return Ok(rest);
                };
                self.byte(byte);
                return Ok(&rest[2..]);
            }
            b'*' => self.group.is_hidden = true,
            b'~' => self.write("\u{a0}"),
            b'_' => self.write("-"),
            b'\\' | b'{' | b'}' => self.byte(symbol),
            b'\r' | b'\n' => self.end_paragraph()?,
            _ => {}
        }
        Ok(rest)
    }

    fn word(&mut self, word: &str, number: Option<i64>) -> Result<(), Problem> {
        match word {
            "u" => self.unicode(number.unwrap_or(0)),
            "uc" => self.group.replacements = number.unwrap_or(1).clamp(0, 64) as usize,
            "ansicpg" => self.group.encoding = find_encoding(number.unwrap_or(1252)),
            "mac" => self.group.encoding = encoding_rs::MACINTOSH,
            "par" | "sect" | "page" => self.end_paragraph()?,
            "line" => self.write("\n"),
            "tab" => self.write("\t"),
            "cell" => self.end_cell(1),
            "nestcell" => self.end_cell(self.depth.max(2)),
            "row" => self.end_row(1),
            "nestrow" => {
                self.end_row(self.depth.max(2));
                self.is_layout_inner = false;
            }
            "nesttableprops" => {
                self.group.is_hidden = true;
                self.is_layout_inner = true;
            }
            "trowd" | "trleft" | "clmrg" | "clvmrg" | "cellx" => {
                let is_inner = self.is_layout_inner;
                let layout = if is_inner { &mut self.inner_layout } else { &mut self.layout };
                layout.read(word, number.unwrap_or(0));
            }
            "emdash" => self.write("—"),
            "endash" => self.write("–"),
            "lquote" => self.write("‘"),
            "rquote" => self.write("’"),
            "ldblquote" => self.write("“"),
            "rdblquote" => self.write("”"),
            "bullet" => self.write("•"),
            "emspace" | "enspace" => self.write(" "),
            "footnote" => {
                self.write(" (note: ");
                self.group.is_note = true;
            }
            "pard" => {
                self.in_cell = false;
                self.depth = 0;
            }
            "intbl" => self.in_cell = true,
            "itap" => self.depth = number.unwrap_or(0).clamp(0, DEEPEST_TABLE as i64) as usize,
            "v" => self.group.is_hidden |= number != Some(0),
            "deleted" => self.group.is_hidden = true,
            _ if HIDDEN.contains(&word) => self.group.is_hidden = true,
            _ => {}
        }
        Ok(())
    }

    /// A byte of the text, in the encoding of the document.
    fn byte(&mut self, byte: u8) {
        if self.skip > 0 {
            self.skip -= 1;
        } else if !self.group.is_hidden {
            self.bytes.push(byte);
        }
    }

    fn decode(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.paragraph += &self.group.encoding.decode_without_bom_handling(&bytes).0;
        }
    }

    fn write(&mut self, text: &str) {
        self.decode();
        if !self.group.is_hidden {
            self.paragraph += text;
        }
    }

    /// A number of UTF-16, which old programs write as a negative one above 32,767.
    fn unicode(&mut self, number: i64) {
        self.skip = self.group.replacements;
        let unit = number as u16;
        let pair = self.high.take().map(|high| [high, unit]);
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
            return;
        }
        let units = pair.map_or(vec![unit], |pair| pair.to_vec());
        let text = String::from_utf16_lossy(&units);
        self.write(&text);
    }

    fn end_paragraph(&mut self) -> Result<(), Problem> {
        if self.group.is_hidden {
            return Ok(());
        }
        self.decode();
        if self.group.is_note {
            self.paragraph.push('\n');
            return Ok(());
        }
        let is_in_row = self.tables.iter().any(|table| !table.row.is_empty());
        if self.in_cell || is_in_row {
            let depth = self.depth.max(1);
            self.paragraph.push('\n');
            self.end_text(depth);
            return Ok(());
        }
        self.end_tables()?;
        let paragraph = std::mem::take(&mut self.paragraph);
        self.text.block(&paragraph)
    }

    /// Ends a text in a cell of the table that lies in so many others.
    fn end_text(&mut self, depth: usize) {
        self.decode();
        let depth = depth.min(DEEPEST_TABLE);
        while self.tables.len() > depth {
            self.end_inner();
        }
        while self.tables.len() < depth {
            self.tables.push(Table::default());
        }
        let text = std::mem::take(&mut self.paragraph);
        if let Some(table) = self.tables.last_mut() {
            table.cell += &text.replace('\\', "\\\\");
        }
    }

    fn end_cell(&mut self, depth: usize) {
        self.end_text(depth);
        if let Some(table) = self.tables.last_mut() {
            let cell = std::mem::take(&mut table.cell);
            table.row.push(cell);
        }
    }

    fn end_row(&mut self, depth: usize) {
        while self.tables.len() > depth {
            self.end_inner();
        }
        let layout = if depth > 1 { &self.inner_layout } else { &self.layout };
        if let Some(table) = self.tables.get_mut(depth - 1) {
            table.end_row(layout);
        }
    }

    /// Ends a table that lies in a cell: it becomes lines of it.
    fn end_inner(&mut self) {
        let Some(mut inner) = self.tables.pop() else { return };
        inner.end_row(&self.inner_layout);
        let Some(around) = self.tables.last_mut() else { return };
        if !around.cell.is_empty() && !around.cell.ends_with('\n') {
            around.cell.push('\n');
        }
        around.cell += &inner.to_grid().to_lines();
        around.cell.push('\n');
    }

    fn end_tables(&mut self) -> Result<(), Problem> {
        while self.tables.len() > 1 {
            self.end_inner();
        }
        let Some(mut table) = self.tables.pop() else { return Ok(()) };
        table.end_row(&self.layout);
        let grid = table.to_grid();
        if grid.is_blank() { Ok(()) } else { self.text.block(&grid.to_markdown()) }
    }

    fn finish(&mut self) -> Result<(), Problem> {
        self.group.is_hidden = false;
        self.decode();
        let rest = std::mem::take(&mut self.paragraph);
        self.end_tables()?;
        self.text.block(&rest)
    }
}

impl Layout {
    fn read(&mut self, word: &str, number: i64) {
        match word {
            "trowd" => *self = Self::default(),
            "trleft" => self.left = number,
            "cellx" => self.cells.push((number, std::mem::take(&mut self.is_continued))),
            _ => self.is_continued = true,
        }
    }
}

impl Table {
    /// Ends a row. Cells that only continue others have no text.
    fn end_row(&mut self, layout: &Layout) {
        if !self.cell.trim().is_empty() {
            self.row.push(std::mem::take(&mut self.cell)); // the file has lost its end
        }
        let mut row = Vec::new();
        let mut left = layout.left;
        for (index, text) in std::mem::take(&mut self.row).into_iter().enumerate() {
            let known = layout.cells.get(index).filter(|(right, _)| *right > left);
            let (right, is_continued) = known.copied().unwrap_or((left + NO_EDGE, false));
            if !is_continued || !text.trim().is_empty() {
                row.push((left, text));
            }
            left = right;
        }
        if !row.is_empty() {
            self.rows.push(row);
        }
    }

    fn to_grid(&self) -> Grid {
        let mut edges: Vec<i64> = self.rows.iter().flatten().map(|(left, _)| *left).collect();
        edges.sort_unstable();
        edges.dedup_by(|edge, before| *edge - *before < SAME_EDGE);
        let mut grid = Grid::default();
        for row in &self.rows {
            grid.begin_row();
            let mut next = 0;
            for (left, text) in row {
                let column = edges.partition_point(|edge| edge <= left).saturating_sub(1).max(next);
                grid.put(text, column);
                next = column + 1;
            }
        }
        grid.drop_blank_rows();
        grid
    }
}

/// The encoding of a code page of Windows.
fn find_encoding(page: i64) -> &'static Encoding {
    let label = match page {
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        65001 => "utf-8".to_owned(),
        874 | 1250..=1258 => format!("windows-{page}"),
        10000 => "macintosh".to_owned(),
        _ => "windows-1252".to_owned(),
    };
    Encoding::for_label(label.as_bytes()).unwrap_or(encoding_rs::WINDOWS_1252)
}
