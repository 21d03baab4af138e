//! HTML: its visible text as Markdown.

use htmd::HtmlToMarkdown;

use crate::problem::Problem;
use crate::text::{Text, shorten};

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
    HtmlToMarkdown::builder()
        .skip_tags(vec![
            "script", "style", "noscript", "template", "svg", "iframe", "head", "title",
        ])
        .build()
        .convert(page)
        .map_err(Problem::damaged)
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
