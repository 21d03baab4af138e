//! PDF: the text of each page in reading order.

use pdf_oxide::PdfDocument;
use pdf_oxide::error::Error;

use crate::problem::Problem;
use crate::text::{Text, count};

/// A damaged file may claim any number of pages.
const MOST_PAGES: usize = 100_000;

pub fn read(data: Vec<u8>, text: &mut Text) -> Result<(), Problem> {
    let document = PdfDocument::from_bytes(data).map_err(explain)?;
    // Many files are encrypted with an empty password, so that anybody can read them.
    if document.is_encrypted() && !document.authenticate(b"").map_err(explain)? {
        return Err(Problem::encrypted());
    }
    let pages = document.page_count().map_err(explain)?;
    if pages > MOST_PAGES {
        return Err(Problem::unsupported(format!("it has more than {MOST_PAGES} pages")));
    }

    text.describe(&format!("PDF, {}", count(pages, "page")))?;
    let (mut without_text, mut failed) = (Vec::new(), Vec::new());
    let mut why = None; // the first page cannot be read
    for index in 0..pages {
        text.part("page", "")?;
        match document.extract_text(index) {
            Ok(page) if page.trim().is_empty() => match document.get_page_content_data(index) {
                Ok(_) => without_text.push(index + 1),
                Err(error) => {
                    failed.push(index + 1);
                    why.get_or_insert(error);
                }
            },
            Ok(page) => text.block(&page)?,
            Err(Error::EncryptedPdf) => return Err(Problem::encrypted()),
            Err(error) => {
                failed.push(index + 1);
                why.get_or_insert(error);
            }
        }
    }

    if without_text.len() + failed.len() == pages {
        return Err(match why {
            Some(error) => Problem::damaged(error),
            None => Problem::no_text(format!(
                "no text on its {}: pictures, as of a scanner, or nothing at all",
                count(pages, "page")
            )),
        });
    }
    if !without_text.is_empty() {
        text.warn(format!("no text on {}: pictures, or empty", list(&without_text)));
    }
    if !failed.is_empty() {
        text.warn(format!("cannot read {}", list(&failed)));
    }
    Ok(())
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
