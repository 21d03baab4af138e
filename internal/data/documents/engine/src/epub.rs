//! EPUB: the chapters of a book in the order of its spine.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::html;
use crate::package::{Package, read_member};
use crate::problem::{Kind, Problem};
use crate::text::{Text, count};

/// What the package file of a book says.
#[derive(Default)]
struct Book {
    title: String,
    author: String,
    chapters: Vec<String>,
}

pub fn read(mut package: Package, text: &mut Text) -> Result<(), Problem> {
    if package.index_for_name("META-INF/rights.xml").is_some() {
        return Err(Problem::encrypted());
    }
    let root = find_root(&read_member(&mut package, "META-INF/container.xml", text)?)?;
    let book = read_book(&read_member(&mut package, &root, text)?)?;
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);

    let mut about = format!("EPUB, {}", count(book.chapters.len(), "chapter"));
    for part in [book.title, book.author].into_iter().filter(|part| !part.is_empty()) {
        about += &format!(", {part}");
    }
    text.describe(&about)?;
    for href in &book.chapters {
        let name = resolve(folder, href);
        let chapter = read_member(&mut package, &name, text);
        let page = chapter.map(|data| html::expand_empty(&html::decode(&data)));
        let markdown = match page.and_then(|page| html::to_markdown(&page)) {
            Ok(markdown) => markdown,
            Err(problem) if problem.kind == Kind::TooLarge => return Err(problem),
            Err(problem) => {
                text.warn(format!("cannot read the chapter {name}: {}", problem.message));
                continue;
            }
        };
        let heading = markdown.lines().find(|line| line.starts_with('#')).unwrap_or_default();
        text.part("chapter", heading.trim_start_matches('#'))?;
        text.block(&markdown)?;
    }
    Ok(())
}

/// The path of the package file.
fn find_root(container: &[u8]) -> Result<String, Problem> {
    let mut reader = Reader::from_reader(container);
    loop {
        match reader.read_event()? {
            Event::Start(e) | Event::Empty(e) if e.local_name().as_ref() == "rootfile" => {
                return Ok(attribute(&e, "full-path"));
            }
            Event::Eof => return Err(Problem::damaged("its container names no package file")),
            _ => {}
        }
    }
}

fn read_book(file: &[u8]) -> Result<Book, Problem> {
    let mut reader = Reader::from_reader(file);
    let mut book = Book::default();
    let mut paths = HashMap::new();
    let mut field = String::new(); // the element whose text is read
    loop {
        match reader.read_event()? {
            Event::Start(e) | Event::Empty(e) => {
                field = e.local_name().as_ref().to_owned();
                match field.as_str() {
                    "item" => {
                        paths.insert(attribute(&e, "id"), attribute(&e, "href"));
                    }
                    "itemref" => book.chapters.extend(paths.get(&attribute(&e, "idref")).cloned()),
                    _ => {}
                }
            }
            Event::Text(t) => {
                let found = t.xml10_content();
                match field.as_str() {
                    "title" => book.title += &found,
                    "creator" => book.author += &found,
                    _ => {}
                }
            }
            Event::End(_) => field.clear(),
            Event::Eof => return Ok(book),
            _ => {}
        }
    }
}

/// The value of an attribute, empty without it.
fn attribute(element: &BytesStart, name: &str) -> String {
    let found = element.try_get_attribute(name).ok().flatten();
    found.map(|a| a.value.replace("&amp;", "&")).unwrap_or_default()
}

/// The path in the package that a reference means.
fn resolve(folder: &str, href: &str) -> String {
    let path = decode_percent(href.split('#').next().unwrap_or_default());
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            ".." => drop(names.pop()),
            "." | "" => {}
            _ => names.push(name),
        }
    }
    names.join("/")
}

fn decode_percent(path: &str) -> String {
    let mut out = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match digits.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if first == b'%' => {
                out.push(byte);
                rest = &tail[2..];
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
