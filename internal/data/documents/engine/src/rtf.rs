//! RTF: its text, as WordPad, Word and LibreOffice write it.

use encoding_rs::Encoding;

use crate::problem::Problem;
use crate::text::{Text, cell};

/// Groups that lie deeper are an error.
const DEEPEST: usize = 1 << 12;

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

struct Reader<'a> {
    text: &'a mut Text,
    group: Group,
    outer: Vec<Group>,
    paragraph: String,
    /// Bytes of the paragraph that are not decoded yet.
    bytes: Vec<u8>,
    row: Vec<String>,
    /// Whether the paragraph lies in a cell.
    in_cell: bool,
    /// Whether the last row was one of the same table.
    in_table: bool,
    /// How many characters are still to be skipped after \u.
    skip: usize,
    /// The first half of a pair of UTF-16.
    high: Option<u16>,
}

pub fn read(data: &[u8], text: &mut Text) -> Result<(), Problem> {
    let group = Group {
        is_hidden: false,
        encoding: encoding_rs::WINDOWS_1252,
        replacements: 1,
        is_note: false,
    };
    text.describe("RTF document")?;
    let before = text.position();
    let mut reader = Reader {
        text,
        group,
        outer: Vec::new(),
        paragraph: String::new(),
        bytes: Vec::new(),
        row: Vec::new(),
        in_cell: false,
        in_table: false,
        skip: 0,
        high: None,
    };
    reader.read(data)?;
    if reader.text.position() == before {
        return Err(Problem::no_text("it has no text"));
    }
    Ok(())
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
            "cell" | "nestcell" => self.end_cell(),
            "row" | "nestrow" => self.end_row()?,
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
            "pard" => self.in_cell = false,
            "intbl" => self.in_cell = true,
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
        if self.group.is_note || self.in_cell || !self.row.is_empty() {
            self.paragraph.push('\n');
            return Ok(());
        }
        if self.in_table {
            self.text.push("\n")?;
            self.in_table = false;
        }
        let paragraph = std::mem::take(&mut self.paragraph);
        self.text.block(&paragraph)
    }

    fn end_cell(&mut self) {
        self.decode();
        let found = std::mem::take(&mut self.paragraph);
        self.row.push(cell(&found));
    }

    fn end_row(&mut self) -> Result<(), Problem> {
        let row = std::mem::take(&mut self.row);
        if row.is_empty() {
            return Ok(());
        }
        self.text.push(&format!("| {} |\n", row.join(" | ")))?;
        if !self.in_table {
            self.text.push(&format!("{}|\n", "| --- ".repeat(row.len())))?;
        }
        self.in_table = true;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Problem> {
        self.end_row()?;
        self.group.is_hidden = false;
        self.in_cell = false;
        self.end_paragraph()
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
