//! PDF: the text of each page in reading order.

use std::cell::LazyCell;

use pdf_oxide::PdfDocument;
use pdf_oxide::error::Error;
use pdf_oxide::extractors::warnings::WarningCategory;

use crate::problem::Problem;
use crate::text::{Text, count};
use crate::{accents, outside, pages, rows, wraps};

/// A damaged file may claim any number of pages.
const MOST_PAGES: usize = 100_000;

pub fn read(data: Vec<u8>, text: &mut Text) -> Result<(), Problem> {
    let mut document = open(data.clone())?;
    let pages = document.page_count().map_err(explain)?;
    if pages > MOST_PAGES {
        return Err(Problem::unsupported(format!("it has more than {MOST_PAGES} pages")));
    }

    if let Some(upright) = pages::turn(&document, data) {
        let turned = open(upright);
        if let Ok(turned) = turned
            && turned.page_count().is_ok_and(|found| found == pages)
        {
            document = turned;
        }
    }

    text.describe(&format!("PDF, {}", count(pages, "page")))?;
    let (mut without_text, mut failed) = (Vec::new(), Vec::new());
    let (mut outside, mut unknown) = (Vec::new(), Vec::new());
    let mut why = None; // the first page cannot be read
    for index in 0..pages {
        text.part("page", "")?;
        let read = document.extract_text(index);
        let spans = document.extract_spans(index).unwrap_or_default();
        let chars = LazyCell::new(|| document.extract_chars(index).unwrap_or_default());
        match read {
            Ok(page) if page.trim().is_empty() => match document.get_page_content_data(index) {
                Ok(_) => without_text.push(index + 1),
                Err(error) => {
                    failed.push(index + 1);
                    why.get_or_insert(error);
                }
            },
            Ok(page) => {
                if page.contains('\u{fffd}') {
                    unknown.push(index + 1);
                }
                let mut page = rows::read(&document, index, &page, &spans).unwrap_or(page);
                if accents::may_be_joined(&page) {
                    page = accents::restore(page, &chars);
                }
                if wraps::may_be_joined(&page, &spans) {
                    page = wraps::separate(page, &chars);
                }
                text.block(&spell_out(&page))?;
            }
            Err(Error::EncryptedPdf) => return Err(Problem::encrypted()),
            Err(error) => {
                failed.push(index + 1);
                why.get_or_insert(error);
            }
        }
        if outside::may_exist(&document, index, &spans) && outside::exists(&document, index, &chars) {
            outside.push(index + 1);
        }
    }

    if without_text.len() + failed.len() == pages {
        return Err(match why {
            Some(error) => Problem::damaged(error),
            None => Problem::no_text_on(pages),
        });
    }
    if !without_text.is_empty() {
        text.warn(format!("no text on {}: pictures, or empty", list(&without_text)));
    }
    if !failed.is_empty() {
        text.warn(format!("cannot read {}", list(&failed)));
    }
    if !outside.is_empty() {
        text.warn(format!("text outside the visible part of {} is left out", list(&outside)));
    }
    if !unknown.is_empty() {
        text.warn(format!("fonts do not say what some signs mean on {}", list(&unknown)));
    }
    let all = document.structured_warnings();
    if all.iter().any(|warning| warning.category == WarningCategory::OperatorCapExceeded) {
        text.warn("a page draws too much, so its text is cut");
    }
    Ok(())
}

fn open(data: Vec<u8>) -> Result<PdfDocument, Problem> {
    let document = PdfDocument::from_bytes(data).map_err(explain)?;
    // Many files are encrypted with an empty password, so that anybody can read them.
    if document.is_encrypted() && !document.authenticate(b"").map_err(explain)? {
        return Err(Problem::encrypted());
    }
    Ok(document)
}

/// Writes ligatures as their letters, so that a search finds the words.
fn spell_out(page: &str) -> String {
    if !page.contains(|c| matches!(c, '\u{fb00}'..='\u{fb06}')) {
        return page.to_owned();
    }
    let mut out = String::with_capacity(page.len());
    for c in page.chars() {
        match c {
            '\u{fb00}' => out.push_str("ff"),
            '\u{fb01}' => out.push_str("fi"),
            '\u{fb02}' => out.push_str("fl"),
            '\u{fb03}' => out.push_str("ffi"),
            '\u{fb04}' => out.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => out.push_str("st"),
            _ => out.push(c),
        }
    }
    out
}

/// "page 3" or "pages 1-4, 7 and 12 more".
fn list(pages: &[usize]) -> String {
    const SHOWN: usize = 10;
    let ranges: Vec<_> = pages.chunk_by(|a, b| a + 1 == *b).collect();
    let mut shown = Vec::new();
    for range in ranges.iter().take(SHOWN) {
        match range {
            [only] => shown.push(only.to_string()),
            _ => shown.push(format!("{}-{}", range[0], range[range.len() - 1])),
        }
    }

    let rest: usize = ranges.iter().skip(SHOWN).map(|range| range.len()).sum();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    let noun = if pages.len() == 1 { "page" } else { "pages" };
    format!("{noun} {}{more}", shown.join(", "))
}

fn explain(error: Error) -> Problem {
    match error {
        Error::EncryptedPdf => Problem::encrypted(),
        Error::Unsupported(what) => Problem::unsupported(what),
        other => Problem::damaged(other),
    }
}
