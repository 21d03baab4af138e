//! Word and PowerPoint files, with what office_oxide loses spelled out before it reads them:
//! formulas become one line, ruby its word and its reading, rows that begin further right get
//! empty cells, and the shapes of a slide the order in which they are read.

use std::io::{Cursor, Read, Write};

use quick_xml::Reader;
use quick_xml::escape::{escape, resolve_predefined_entity};
use quick_xml::events::{BytesStart, Event};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::math::{self, Element};
use crate::package::{Package, explain};
use crate::problem::Problem;
use crate::slides::Slides;

/// The folder of slides.
const SLIDES: &str = "ppt/slides/";

/// Formulas that lie deeper are an error.
const DEEPEST: usize = 256;

/// Word's tables have no more columns.
const MOST_COLUMNS: usize = 63;

/// Returns a file without such elements: the same bytes if it has none. All its parts may unpack to
/// so many bytes.
pub fn spell_out(mut package: Package, mut room: u64) -> Result<Vec<u8>, Problem> {
    let mut changed = Vec::new();
    let mut slides = Slides::default();
    for index in 0..package.len() {
        // A member that cannot be read is left to the reader, who says so.
        let Ok(member) = package.by_index(index) else { continue };
        let Ok(name) = member.name().map(|name| name.into_owned()) else { continue };
        if !may_have_text(&name) {
            continue;
        }
        let mut xml = Vec::new();
        if member.take(room.saturating_add(1)).read_to_end(&mut xml).is_err() {
            continue;
        }
        room = room.checked_sub(xml.len() as u64).ok_or_else(Problem::too_large)?;
        let mut ordered = None;
        if name.starts_with(SLIDES) {
            ordered = slides.order(&name, &xml, &mut package, &mut room)?;
        }
        let part = ordered.as_deref().unwrap_or(&xml);
        let is_odd = ["oMath", "ruby", "gridBefore"].iter().any(|name| find(part, name).is_some());
        // A part that is no XML is left to the reader, too.
        let spelled = is_odd.then(|| rewrite(part).ok()).flatten();
        if let Some(part) = spelled.or(ordered) {
            changed.push((index, name, part));
        }
    }
    if changed.is_empty() {
        return Ok(package.into_inner().into_inner());
    }

    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for index in 0..package.len() {
        match changed.iter().find(|(found, _, _)| *found == index) {
            Some((_, name, xml)) => {
                out.start_file(name.as_str(), stored).map_err(explain)?;
                out.write_all(xml)?;
            }
            None => out
                .raw_copy_file(package.by_index_raw(index).map_err(explain)?)
                .map_err(explain)?,
        }
    }
    Ok(out.finish().map_err(explain)?.into_inner())
}

fn may_have_text(name: &str) -> bool {
    let is_xml = name.ends_with(".xml");
    let folders = ["word/", SLIDES, "ppt/notesSlides/"];
    is_xml && folders.iter().any(|folder| name.starts_with(folder))
}

fn find(xml: &[u8], name: &str) -> Option<usize> {
    xml.windows(name.len()).position(|found| found == name.as_bytes())
}

fn rewrite(xml: &[u8]) -> Result<Vec<u8>, Problem> {
    let mut reader = Reader::from_reader(xml);
    let mut out = Vec::with_capacity(xml.len());
    let mut last = ' '; // the last character of the paragraph
    let mut in_text = false;
    let mut free = 0; // columns before the first cell of a row
    let mut reading = Reading::default();
    loop {
        let start = reader.buffer_position() as usize;
        let event = reader.read_event()?;
        if ends_word(&event) {
            reading.insert(&mut out);
        }
        match &event {
            Event::Start(e) => match e.local_name().as_ref() {
                "oMath" | "oMathPara" => {
                    let prefix = find_prefix(e);
                    let line = read_formula(&mut reader, e)?;
                    let space = needs_space(last, &line);
                    last = line.chars().next_back().unwrap_or(last);
                    let line = escape(&line);
                    let run = format!("{prefix}r><{prefix}t>{space}{line}</{prefix}t></{prefix}r");
                    write!(out, "<{prefix}oMath><{run}></{prefix}oMath>")?;
                    continue;
                }
                "ruby" => {
                    let prefix = find_prefix(e);
                    let ruby = read_element(&mut reader, e, 0)?;
                    let part = |name| ruby.children.iter().find(|c| c.name == name).map(all_text);
                    let word = escape(part("rubyBase").unwrap_or_default()).into_owned();
                    write!(out, "<{prefix}t>{word}</{prefix}t>")?;
                    reading.prefix = prefix;
                    reading.text += part("rt").unwrap_or_default().trim();
                    reading.at = out.len();
                    continue;
                }
                "t" => in_text = true,
                "p" => last = ' ',
                "tr" => free = 0,
                _ => {}
            },
            Event::Empty(e) if e.local_name().as_ref() == "gridBefore" => free = find_columns(e),
            Event::Empty(e) if matches!(e.local_name().as_ref(), "br" | "tab" | "cr") => last = ' ',
            Event::Text(t) if in_text => last = t.xml10_content().chars().next_back().unwrap_or(last),
            Event::End(e) if e.local_name().as_ref() == "t" => in_text = false,
            Event::End(e) if e.local_name().as_ref() == "trPr" && free > 0 => {
                let name = e.name();
                let w = name.as_ref().strip_suffix("trPr").unwrap_or_default();
                out.extend_from_slice(&xml[start..reader.buffer_position() as usize]);
                let span = format!("<{w}tcPr><{w}gridSpan {w}val=\"{free}\"/></{w}tcPr>");
                write!(out, "<{w}tc>{span}<{w}p/></{w}tc>")?;
                free = 0;
                continue;
            }
            Event::Eof => break,
            _ => {}
        }
        out.extend_from_slice(&xml[start..reader.buffer_position() as usize]);
    }
    Ok(out)
}

/// How the word that ends at a place is read. Ruby often has one element for each character of it.
#[derive(Default)]
struct Reading {
    text: String,
    at: usize,
    prefix: String,
}

impl Reading {
    fn insert(&mut self, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            let w = &self.prefix;
            let run = format!("<{w}t>({})</{w}t>", escape(&text));
            out.splice(self.at..self.at, run.into_bytes());
        }
    }
}

/// Reports whether something else than ruby begins, or a paragraph ends.
fn ends_word(event: &Event) -> bool {
    const OTHERS: [&str; 7] = ["t", "oMath", "oMathPara", "br", "cr", "tab", "drawing"];
    match event {
        Event::Start(e) | Event::Empty(e) => OTHERS.contains(&e.local_name().as_ref()),
        Event::End(e) => e.local_name().as_ref() == "p",
        event => matches!(event, Event::Eof),
    }
}

/// "m:" of "m:oMath".
fn find_prefix(e: &BytesStart) -> String {
    let name = e.name();
    let name: &str = name.as_ref();
    name.rfind(':').map(|at| name[..=at].to_owned()).unwrap_or_default()
}

fn find_columns(e: &BytesStart) -> usize {
    let mut values = e.attributes().flatten();
    let value = values.find(|a| a.key.local_name().as_ref() == "val");
    value.and_then(|a| a.value.parse().ok()).unwrap_or(0).min(MOST_COLUMNS)
}

/// A number before a fraction is no part of it.
fn needs_space(last: char, line: &str) -> &'static str {
    let is_number = last.is_alphanumeric() && line.starts_with(char::is_alphanumeric);
    if is_number && line.contains('/') { " " } else { "" }
}

fn read_formula(reader: &mut Reader<&[u8]>, e: &BytesStart) -> Result<String, Problem> {
    let formula = read_element(reader, e, 0)?;
    if formula.name == "oMath" {
        return Ok(math::linear(&formula));
    }
    let lines = formula.children.iter().filter(|child| child.name == "oMath").map(math::linear);
    Ok(lines.collect::<Vec<_>>().join(" "))
}

/// Reads an element up to its end.
fn read_element(
    reader: &mut Reader<&[u8]>,
    e: &BytesStart,
    depth: usize,
) -> Result<Element, Problem> {
    if depth > DEEPEST {
        return Err(Problem::damaged("its formulas lie too deep"));
    }
    let mut element = begin(e);
    loop {
        match reader.read_event()? {
            Event::Start(e) => element.children.push(read_element(reader, &e, depth + 1)?),
            Event::Empty(e) => element.children.push(begin(&e)),
            Event::Text(t) => element.text += &t.xml10_content(),
            Event::CData(t) => element.text += &t,
            Event::GeneralRef(r) => {
                if let Ok(Some(c)) = r.resolve_char_ref() {
                    element.text.push(c);
                } else {
                    element.text += resolve_predefined_entity(&r).unwrap_or_default();
                }
            }
            Event::End(_) => return Ok(element),
            Event::Eof => return Err(Problem::damaged("a formula is cut short")),
            _ => {}
        }
    }
}

fn begin(e: &BytesStart) -> Element {
    let attributes = e.attributes().flatten().map(|a| {
        let value = quick_xml::escape::unescape(&a.value).map(|text| text.into_owned());
        (a.key.local_name().as_ref().to_owned(), value.unwrap_or_else(|_| a.value.to_string()))
    });
    Element {
        name: e.local_name().as_ref().to_owned(),
        attributes: attributes.collect(),
        ..Element::default()
    }
}

/// The text of all runs in an element.
fn all_text(element: &Element) -> String {
    if element.name == "t" {
        return element.text.clone();
    }
    element.children.iter().map(all_text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spell(xml: &str) -> String {
        String::from_utf8(rewrite(xml.as_bytes()).ok().unwrap()).unwrap()
    }

    #[test]
    fn formulas_become_lines() {
        let xml = "<w:p><w:r><w:t>is 3</w:t></w:r><m:oMath><m:f><m:fPr/><m:num><m:r><m:t>1</m:t></m:r></m:num>\
            <m:den><m:r><m:t>250</m:t></m:r></m:den></m:f></m:oMath></w:p>";
        let want = "<w:p><w:r><w:t>is 3</w:t></w:r><m:oMath><m:r><m:t> 1/250</m:t></m:r></m:oMath></w:p>";
        assert_eq!(spell(xml), want);
        let sum = "<m:oMath><m:nary><m:naryPr><m:chr m:val=\"∑\"/></m:naryPr><m:sub><m:r><m:t>i=1</m:t>\
            </m:r></m:sub><m:sup><m:r><m:t>n</m:t></m:r></m:sup><m:e><m:rad><m:radPr/><m:deg/><m:e><m:r>\
            <m:t>x&lt;</m:t></m:r></m:e></m:rad></m:e></m:nary></m:oMath>";
        assert_eq!(spell(sum), "<m:oMath><m:r><m:t>∑_(i=1)^n √(x&lt;)</m:t></m:r></m:oMath>");
    }

    #[test]
    fn ruby_keeps_its_word() {
        let ruby = |reading, word| {
            format!(
                "<w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>{reading}</w:t></w:r></w:rt><w:rubyBase><w:r>\
                <w:t>{word}</w:t></w:r></w:rubyBase></w:ruby></w:r>"
            )
        };
        let xml = format!("{}{}<w:r><w:t>で</w:t></w:r>", ruby("とう", "東"), ruby("きょう", "京"));
        let want = "<w:r><w:t>東</w:t></w:r><w:r><w:t>京</w:t><w:t>(とうきょう)</w:t></w:r>\
            <w:r><w:t>で</w:t></w:r>";
        assert_eq!(spell(&xml), want);
    }

    #[test]
    fn rows_begin_further_right() {
        let xml = "<w:tr><w:trPr><w:gridBefore w:val=\"2\"/></w:trPr><w:tc/></w:tr>";
        let want = "<w:tr><w:trPr><w:gridBefore w:val=\"2\"/></w:trPr><w:tc><w:tcPr>\
            <w:gridSpan w:val=\"2\"/></w:tcPr><w:p/></w:tc><w:tc/></w:tr>";
        assert_eq!(spell(xml), want);
    }

    #[test]
    fn damaged_parts_are_left_alone() {
        for xml in ["<m:oMath><m:f>", "<a><m:oMath></b>", &"<m:oMath>".repeat(1000)] {
            assert!(rewrite(xml.as_bytes()).is_err());
        }
    }
}
