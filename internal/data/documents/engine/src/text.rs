//! The text that a document becomes: Markdown, which goes to the host piece by piece.

use crate::host;
use crate::problem::Problem;

/// Pieces of at least this many bytes go to the host.
const PIECE: usize = 64 << 10;

/// What is longer in a title is cut, in characters.
const LONGEST_TITLE: usize = 200;

/// More parts than this are not listed. Their text is still there.
const MOST_PARTS: usize = 1 << 20;

/// Further sentences on what could not be read are only counted.
const MOST_WARNINGS: usize = 20;

#[derive(Default)]
pub struct Text {
    pending: String,
    written: u64,
    /// How many bytes may still be unpacked in the document or written.
    pub room: u64,
    /// Where the description of the document ends.
    begun: u64,
    /// What the parts are, in the singular: "page", "sheet".
    pub noun: &'static str,
    /// The title and the first byte of each part.
    pub parts: Vec<(String, u64)>,
    pub warnings: Vec<String>,
    pub further_warnings: u64,
}

impl Text {
    /// Takes from the room. Once it has failed, it fails always.
    pub fn charge(&mut self, bytes: u64) -> Result<(), Problem> {
        match self.room.checked_sub(bytes) {
            Some(left) => self.room = left,
            None => {
                self.room = 0;
                return Err(Problem::too_large());
            }
        }
        Ok(())
    }

    /// Appends, without characters that no text has.
    pub fn push(&mut self, text: &str) -> Result<(), Problem> {
        self.charge(text.len() as u64)?;
        self.pending
            .extend(text.chars().filter(|c| *c >= ' ' || matches!(c, '\n' | '\t' | '\u{c}')));
        if self.pending.len() < PIECE {
            return Ok(());
        }
        self.flush()
    }

    /// Appends a block: a paragraph, a table or whatever else stands alone.
    pub fn block(&mut self, text: &str) -> Result<(), Problem> {
        let text = text.trim_end();
        if text.trim().is_empty() {
            return Ok(());
        }
        self.push(text.trim_start_matches(['\n', '\r']))?;
        self.push("\n\n")
    }

    /// Appends what a document is, which comes first: "PDF, 12 pages".
    pub fn describe(&mut self, what: &str) -> Result<(), Problem> {
        self.block(what)?;
        self.begun = self.position();
        Ok(())
    }

    /// Reports whether there is nothing behind the description.
    pub fn is_empty(&self) -> bool {
        self.position() == self.begun
    }

    /// Appends Markdown whose highest headings that are repeated begin parts.
    pub fn sections(&mut self, markdown: &str) -> Result<(), Problem> {
        let mut is_code = false;
        let mut headings = Vec::new(); // levels, starts and titles
        let mut start = 0;
        for line in markdown.split_inclusive('\n') {
            is_code ^= line.starts_with("```");
            let level = line.bytes().take_while(|b| *b == b'#').count();
            if !is_code && level > 0 && line[level..].starts_with(' ') {
                headings.push((level, start, &line[level..]));
            }
            start += line.len();
        }
        let Some(split) = find_split(headings.iter().map(|(level, _, _)| *level)) else {
            return self.block(markdown);
        };

        let mut done = 0;
        self.section("");
        for (level, start, title) in headings {
            if level == split {
                self.block(&markdown[done..start])?;
                self.section(title);
                done = start;
            }
        }
        self.block(&markdown[done..])
    }

    /// Begins a section without writing its heading. A section that is still empty gets the title.
    pub fn section(&mut self, title: &str) {
        let title = shorten(&title.replace(['\\', '*'], ""));
        let here = self.position();
        match self.parts.last_mut() {
            Some((last, start)) if *start == here => *last = title,
            _ => drop(self.mark("section", &title)),
        }
    }

    /// Begins a part with a heading. The heading names it.
    pub fn part(&mut self, noun: &'static str, title: &str) -> Result<(), Problem> {
        let title = shorten(title);
        let number = self.mark(noun, &title) + 1;
        let name = capitalized(noun);
        if title.is_empty() {
            return self.block(&format!("## {name} {number}"));
        }
        self.block(&format!("## {name} {number}: {title}"))
    }

    /// Begins a part without a heading, and returns how many there were before.
    pub fn mark(&mut self, noun: &'static str, title: &str) -> usize {
        self.noun = noun;
        if self.parts.len() < MOST_PARTS {
            self.parts.push((title.to_owned(), self.position()));
        }
        self.parts.len() - 1
    }

    /// The length so far, in bytes.
    pub fn position(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Says what could not be read.
    pub fn warn(&mut self, warning: impl Into<String>) {
        if self.warnings.len() < MOST_WARNINGS {
            self.warnings.push(shorten(&warning.into()));
        } else {
            self.further_warnings += 1;
        }
    }

    pub fn flush(&mut self) -> Result<(), Problem> {
        host::append(self.pending.as_bytes())?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// One line of a title.
pub fn shorten(title: &str) -> String {
    let words = title.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(LONGEST_TITLE) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// The highest level of headings that occurs twice.
pub fn find_split(levels: impl Iterator<Item = usize>) -> Option<usize> {
    let mut counts = [0; 7];
    levels.for_each(|level| counts[level.min(6)] += 1);
    (1..counts.len()).find(|level| counts[*level] > 1)
}

fn capitalized(noun: &str) -> String {
    noun[..1].to_uppercase() + &noun[1..]
}

/// "1 page" or "3 pages".
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A cell of a table in Markdown.
pub fn cell(text: &str) -> String {
    text.trim()
        .replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace("\r\n", "\n")
        .replace('\n', "<br>")
}
