//! HTML: its visible text as Markdown.

use std::rc::Rc;

use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdown, Node};

use crate::grid::Grid;
use crate::problem::Problem;
use crate::text::{Text, shorten};
use crate::visible::{self, attribute, tag};
use crate::math;

pub fn read(data: &[u8], text: &mut Text) -> Result<(), Problem> {
    let page = decode(data);
    let markdown = to_markdown(&page)?;
    if markdown.trim().is_empty() {
        return Err(Problem::no_text("it has no visible text"));
    }
    let title = find_title(&page);
    text.describe(&if title.is_empty() { "HTML".to_owned() } else { format!("HTML: {title}") })?;
    text.block(&markdown)
}

/// Appends a page that lies in a document: as it is, if it cannot be converted.
pub fn append(page: &str, text: &mut Text) -> Result<(), Problem> {
    match to_markdown(page) {
        Ok(markdown) => text.block(&markdown),
        Err(problem) => {
            text.warn(format!("HTML is as in the document: {}", problem.message));
            text.block(page)
        }
    }
}

pub fn to_markdown(page: &str) -> Result<String, Problem> {
    check_depth(page)?;
    let converter = HtmlToMarkdown::builder()
        .skip_tags(vec![
            "script", "style", "noscript", "template", "svg", "iframe", "head", "title",
        ])
        .add_handler(vec!["table"], convert_table)
        .add_handler(vec!["math"], convert_formula)
        .add_handler(vec!["input"], convert_input)
        .add_handler(vec!["sup", "sub"], |all: &dyn Handlers, e: Element| surround(all, e, None))
        .add_handler(vec!["del", "s", "strike"], |all: &dyn Handlers, e: Element| {
            surround(all, e, Some("~~"))
        })
        .build();

    let tree = converter.html_to_tree(page).map_err(Problem::damaged)?;
    visible::prune(&tree);
    let markdown = converter.tree_to_markdown(&tree);
    if !markdown.trim().is_empty() {
        // Where a word may be divided is no part of it.
        return Ok(markdown.replace('\u{ad}', ""));
    }
    // Some pages are hidden until their scripts show them.
    let tree = converter.html_to_tree(page).map_err(Problem::damaged)?;
    Ok(converter.tree_to_markdown(&tree))
}

/// Keeps a sign around a text, or the tags: without them `10<sup>6</sup>` would be another number.
fn surround(all: &dyn Handlers, e: Element, sign: Option<&str>) -> Option<HandlerResult> {
    let content = all.walk_children(e.node).content;
    if content.trim().is_empty() {
        return Some(content.into());
    }
    Some(match sign {
        Some(sign) => format!("{sign}{}{sign}", content.trim()).into(),
        None => format!("<{}>{}</{}>", e.tag, content.trim(), e.tag).into(),
    })
}

fn convert_table(all: &dyn Handlers, e: Element) -> Option<HandlerResult> {
    let mut grid = Grid::default();
    let mut last = None;
    for (group, cells) in visible::find_rows(e.node) {
        if last.is_some_and(|last| last != group) {
            grid.end_group();
        }
        last = Some(group);
        grid.begin_row();
        for cell in cells {
            let number = |name| attribute(&cell, name).and_then(|n| n.trim().parse().ok());
            let rows = match number("rowspan") {
                Some(0) => usize::MAX, // to the end of the group
                rows => rows.unwrap_or(1),
            };
            let text = all.handle(&cell).map(|found| found.content).unwrap_or_default();
            grid.place(&text, number("colspan").unwrap_or(1), rows);
        }
    }
    grid.drop_blank_rows();

    let mut out = String::from("\n\n");
    for child in e.node.children.borrow().iter().filter(|child| tag(child) == "caption") {
        let caption = all.handle(child).map(|found| found.content).unwrap_or_default();
        if !caption.trim().is_empty() {
            out += caption.trim();
            out += "\n\n";
        }
    }
    if !grid.is_blank() {
        out += &if is_in_cell(e.node) { grid.to_lines() } else { grid.to_markdown() };
        out += "\n\n";
    }
    Some(out.into())
}

fn is_in_cell(node: &Rc<Node>) -> bool {
    let parent = node.parent.take();
    let above = parent.as_ref().and_then(|parent| parent.upgrade());
    node.parent.set(parent);
    above.is_some_and(|above| matches!(tag(&above), "td" | "th") || is_in_cell(&above))
}

fn convert_formula(_: &dyn Handlers, e: Element) -> Option<HandlerResult> {
    let line = math::linear(&find_formula(e.node));
    let is_block = attribute(e.node, "display").is_some_and(|display| display == "block");
    let line = line.trim();
    Some(if is_block { format!("\n\n{line}\n\n").into() } else { line.into() })
}

/// The value that a field of a form shows.
fn convert_input(_: &dyn Handlers, e: Element) -> Option<HandlerResult> {
    let kind = attribute(e.node, "type").unwrap_or_default().to_ascii_lowercase();
    let is_checked = attribute(e.node, "checked").is_some();
    let shown = match kind.as_str() {
        "checkbox" | "radio" if is_checked => "[x]".to_owned(),
        "checkbox" | "radio" => "[ ]".to_owned(),
        "password" | "file" | "image" | "color" | "range" => String::new(),
        _ => attribute(e.node, "value").unwrap_or_default(),
    };
    Some(shown.into())
}

fn find_formula(node: &Rc<Node>) -> math::Element {
    let children = node.children.borrow();
    let inner: Vec<_> =
        children.iter().filter(|child| !tag(child).is_empty()).map(find_formula).collect();
    let names = ["open", "close", "separators", "linethickness"];
    let values = names.iter().filter_map(|name| Some(((*name).to_owned(), attribute(node, name)?)));
    math::Element {
        name: tag(node).to_owned(),
        attributes: values.collect(),
        text: if inner.is_empty() { visible::text(node).trim().to_owned() } else { String::new() },
        children: inner,
    }
}

/// Elements that lie deeper are an error, because the parser looks at all of them again and again.
/// Browsers ignore what lies deeper than this.
const DEEPEST: usize = 512;

/// Elements that end where the next one starts, or have no end.
const OPEN_ENDED: &[&str] = &[
    "area", "base", "br", "col", "colgroup", "dd", "dt", "embed", "hr", "img", "input", "li", "link",
    "meta", "optgroup", "option", "p", "param", "rp", "rt", "source", "tbody", "td", "tfoot", "th",
    "thead", "tr", "track", "wbr",
];

/// Elements whose content is no HTML.
const RAW: &[&str] = &["script", "style", "textarea", "title", "xmp", "iframe", "noembed"];

fn check_depth(page: &str) -> Result<(), Problem> {
    let mut depth: usize = 0;
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(comment) = rest.strip_prefix("!--") {
            rest = comment.find("-->").map_or("", |end| &comment[end..]);
            continue;
        }
        let is_end = rest.starts_with('/');
        let name = rest[usize::from(is_end)..].split(|c: char| !c.is_ascii_alphanumeric()).next();
        let name = name.unwrap_or_default();
        if name.is_empty() || name.len() > 32 {
            continue;
        }
        let name = name.to_ascii_lowercase();
        if is_end {
            depth = depth.saturating_sub(usize::from(!OPEN_ENDED.contains(&name.as_str())));
        } else if RAW.contains(&name.as_str()) {
            rest = find_end(rest, &name);
        } else if !OPEN_ENDED.contains(&name.as_str()) {
            depth += 1;
            if depth > DEEPEST {
                return Err(Problem::damaged(format!("it has more than {DEEPEST} elements in each other")));
            }
        }
    }
    Ok(())
}

/// Writes the empty elements of XML, such as `<title/>`, as HTML does: for its parser, what follows
/// would lie in them.
pub fn expand_empty(page: &str) -> String {
    const VOID: [&str; 14] = [
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
        "track", "wbr",
    ];
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find("/>") {
        let before = &rest[..at];
        out += before;
        rest = &rest[at + 2..];
        let tag = before.rfind('<').map(|start| &before[start + 1..]).unwrap_or_default();
        let name = tag.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && !tag.contains('>');
        if is_name && !VOID.contains(&name.to_ascii_lowercase().as_str()) {
            out += &format!("></{name}>");
        } else {
            out += "/>";
        }
    }
    out + rest
}

/// What follows the content of a raw element.
fn find_end<'a>(rest: &'a str, name: &str) -> &'a str {
    let mut from = 0;
    while let Some(at) = rest[from..].find("</") {
        let end = from + at + 2;
        let found = rest.get(end..end + name.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return &rest[end + name.len()..];
        }
        from = end;
    }
    ""
}

/// The title of a page, empty without one.
pub fn find_title(page: &str) -> String {
    let head: String = page.chars().take(64 << 10).collect();
    let lower = head.to_ascii_lowercase();
    let Some(tag) = lower.find("<title") else { return String::new() };
    let Some(start) = lower[tag..].find('>').map(|at| tag + at + 1) else { return String::new() };
    let Some(end) = lower[start..].find("</title").map(|at| start + at) else {
        return String::new();
    };
    let title = to_markdown(&head[start..end]).unwrap_or_default();
    shorten(&title)
}

/// Decodes a page: by its mark of the byte order, as UTF-8, or by the name of its encoding.
pub fn decode(data: &[u8]) -> String {
    if let Some((encoding, length)) = encoding_rs::Encoding::for_bom(data) {
        return encoding.decode_without_bom_handling(&data[length..]).0.into_owned();
    }
    if let Ok(page) = std::str::from_utf8(data) {
        return page.to_owned();
    }

    let head = String::from_utf8_lossy(&data[..data.len().min(1024)]).to_ascii_lowercase();
    let named = ["charset=", "encoding="].iter().find_map(|attribute| {
        let value = head.split_once(attribute)?.1.trim_start_matches(['"', '\'']);
        let name = value.split(['"', '\'', ';', '>', ' ', '/', '?']).next()?;
        encoding_rs::Encoding::for_label(name.as_bytes())
    });
    named.unwrap_or(encoding_rs::WINDOWS_1252).decode(data).0.into_owned()
}
