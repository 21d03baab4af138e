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
    text.block(&if title.is_empty() { "HTML".to_owned() } else { format!("HTML: {title}") })?;
    text.block(&markdown)
}

pub fn to_markdown(page: &str) -> Result<String, Problem> {
    HtmlToMarkdown::builder()
        .skip_tags(vec![
            "script", "style", "noscript", "template", "svg", "iframe", "head", "title",
        ])
        .build()
        .convert(page)
        .map_err(Problem::damaged)
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
