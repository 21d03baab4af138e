//! The pages of a PDF, turned so that no rule of display gets between a reader and the text.
//!
//! A page may say that it is shown turned. Its text has a direction of its own, and pdf_oxide reads
//! a page best by that direction alone. So turned pages are written once more behind the file, as
//! programs do that change a PDF: not turned, and as wide and high as they are in either direction.

use std::collections::{HashMap, HashSet};

use pdf_oxide::PdfDocument;
use pdf_oxide::object::{Object, ObjectRef};

type Dictionary = HashMap<String, Object>;

/// More nodes are not looked at. A damaged file may claim any number.
const MOST_NODES: usize = 1 << 18;

/// Objects that lie deeper are not written.
const DEEPEST: usize = 64;

/// What a page inherits from the nodes above it.
const INHERITED: [&str; 3] = ["Rotate", "MediaBox", "CropBox"];

/// The file with its turned pages upright, None if it has none.
pub fn turn(document: &PdfDocument, data: Vec<u8>) -> Option<Vec<u8>> {
    let trailer = document.trailer().as_dict()?;
    let start = find_start(&data)?;
    let mut size = trailer.get("Size").and_then(Object::as_integer).unwrap_or(0);
    let mut out = data;
    let mut table = String::from("xref\n");
    let mut is_changed = false;
    for (reference, page) in find_pages(document)? {
        let Some(upright) = turn_page(document, page) else { continue };
        is_changed = true;
        size = size.max(i64::from(reference.id) + 1);
        out.push(b'\n');
        let (id, generation) = (reference.id, reference.r#gen);
        table += &format!("{id} 1\n{:010} {generation:05} n\r\n", out.len());
        out.extend_from_slice(format!("{id} {generation} obj\n").as_bytes());
        write(&Object::Dictionary(upright), 0, &mut out);
        out.extend_from_slice(b"\nendobj\n");
    }
    if !is_changed {
        return None;
    }

    let mut last = Dictionary::new();
    for name in ["Root", "Info", "ID", "Encrypt"] {
        last.extend(trailer.get(name).map(|found| (name.to_owned(), found.clone())));
    }
    last.insert("Size".to_owned(), Object::Integer(size));
    last.insert("Prev".to_owned(), Object::Integer(start));
    let here = out.len();
    out.extend_from_slice(table.as_bytes());
    out.extend_from_slice(b"trailer\n");
    write(&Object::Dictionary(last), 0, &mut out);
    out.extend_from_slice(format!("\nstartxref\n{here}\n%%EOF\n").as_bytes());
    Some(out)
}

/// Where the table of the objects begins, which stands at the end of the file.
fn find_start(data: &[u8]) -> Option<i64> {
    const MARK: &[u8] = b"startxref";
    let tail = &data[data.len().saturating_sub(2048)..];
    let at = tail.windows(MARK.len()).rposition(|found| found == MARK)?;
    let rest = tail[at + MARK.len()..].trim_ascii_start();
    let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// The pages in their order, with what they inherit.
fn find_pages(document: &PdfDocument) -> Option<Vec<(ObjectRef, Dictionary)>> {
    let root = document.catalog().ok()?;
    let top = root.as_dict()?.get("Pages")?.as_reference()?;
    let mut pages = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![(top, Dictionary::new())];
    while let Some((reference, mut inherited)) = open.pop() {
        if !seen.insert(reference) || seen.len() > MOST_NODES {
            continue;
        }
        let Ok(node) = document.load_object(reference) else { continue };
        let Some(node) = node.as_dict() else { continue };
        let kids = node.get("Kids").and_then(|kids| document.resolve_object(kids).ok());
        let Some(kids) = kids.as_ref().and_then(Object::as_array) else {
            inherited.extend(node.iter().map(|(name, value)| (name.clone(), value.clone())));
            pages.push((reference, inherited));
            continue;
        };
        for name in INHERITED {
            inherited.extend(node.get(name).map(|found| (name.to_owned(), found.clone())));
        }
        let kids = kids.iter().rev().filter_map(Object::as_reference);
        open.extend(kids.map(|kid| (kid, inherited.clone())));
    }
    Some(pages)
}

/// A page that is not turned, None if it was not.
fn turn_page(document: &PdfDocument, mut page: Dictionary) -> Option<Dictionary> {
    let resolve = |found: &Object| document.resolve_object(found).ok();
    let angle = number(&resolve(page.get("Rotate")?)?)?;
    let turns = (angle / 90.0).round().rem_euclid(4.0);
    if turns == 0.0 || angle % 90.0 != 0.0 {
        return None;
    }

    page.insert("Rotate".to_owned(), Object::Integer(0));
    if turns == 2.0 {
        return Some(page);
    }
    let find = |name: &str| {
        let all = resolve(page.get(name)?)?;
        let all: Vec<f64> =
            all.as_array()?.iter().filter_map(|side| number(&resolve(side)?)).collect();
        <[f64; 4]>::try_from(all).ok()
    };
    let Some([a, b, c, d]) = find("MediaBox") else { return Some(page) };
    // Programs exchange width and height, or do not. So the page is as large as both need.
    let (left, bottom) = (a.min(c), b.min(d));
    let side = (a - c).abs().max((b - d).abs());
    let whole = [left, bottom, left + side, bottom + side].map(Object::Real);
    let is_cropped = find("CropBox").is_some_and(|crop| {
        [a, b, c, d].iter().zip(crop).any(|(side, crop)| (side - crop).abs() > 1.0)
    });
    if !is_cropped {
        page.insert("CropBox".to_owned(), Object::Array(whole.to_vec()));
    }
    page.insert("MediaBox".to_owned(), Object::Array(whole.to_vec()));
    Some(page)
}

fn number(object: &Object) -> Option<f64> {
    match object {
        Object::Integer(number) => Some(*number as f64),
        Object::Real(number) => Some(*number),
        _ => None,
    }
}

/// Writes an object of a page. Streams stand in objects of their own.
fn write(object: &Object, depth: usize, out: &mut Vec<u8>) {
    if depth > DEEPEST {
        out.extend_from_slice(b"null");
        return;
    }
    match object {
        Object::Null | Object::Stream { .. } => out.extend_from_slice(b"null"),
        Object::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Object::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Object::Real(number) => out.extend_from_slice(format!("{number:.4}").as_bytes()),
        Object::String(bytes) => {
            out.push(b'<');
            bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes()));
            out.push(b'>');
        }
        Object::Name(name) => write_name(name, out),
        Object::Array(all) => {
            out.push(b'[');
            for one in all {
                write(one, depth + 1, out);
                out.push(b' ');
            }
            out.push(b']');
        }
        Object::Dictionary(all) => {
            out.extend_from_slice(b"<<");
            for (name, value) in all {
                write_name(name, out);
                out.push(b' ');
                write(value, depth + 1, out);
                out.push(b' ');
            }
            out.extend_from_slice(b">>");
        }
        Object::Reference(reference) => {
            let (id, generation) = (reference.id, reference.r#gen);
            out.extend_from_slice(format!("{id} {generation} R").as_bytes());
        }
    }
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    out.push(b'/');
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+') {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("#{byte:02x}").as_bytes());
        }
    }
}
