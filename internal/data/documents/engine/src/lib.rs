//! The reader of documents of package documents: what people have in files becomes Markdown, in
//! one WebAssembly module.
//!
//! The module reads the document with the host's `read` and writes the text with `write`.

mod accents;
mod compound;
mod css;
mod epub;
mod formats;
#[path = "../../../../machine/rustmodule/formulas.rs"]
mod formulas;
mod grid;
#[path = "../../../../machine/rustmodule/guest.rs"]
mod guest;
mod host;
mod html;
mod mail;
mod math;
mod mime;
mod notebook;
mod office;
mod opendocument;
mod outside;
mod package;
mod pages;
mod pdf;
mod problem;
mod reading;
mod rows;
mod rtf;
mod sheets;
mod slides;
mod spelled;
mod spreadsheetml;
#[cfg(test)]
mod tests;
mod text;
mod tnef;
#[path = "../../../../machine/rustmodule/tokens.rs"]
mod tokens;
mod unseen;
mod visible;
mod wraps;
#[path = "../../../../machine/rustmodule/xlsb.rs"]
mod xlsb;
#[path = "../../../../machine/rustmodule/xmlbook.rs"]
mod xmlbook;

use std::io::{BufReader, Read};

use guest::{put_number, put_text};
use problem::Problem;
use text::Text;

/// Documents in documents, such as the attachments of mail, are read this deep.
const DEEPEST: usize = 4;

/// Converts a document. The request has the number of its bytes, how many may be unpacked in it or
/// written, and its kind. The answer is what `internal/data/documents/answer.go` decodes.
#[unsafe(no_mangle)]
pub extern "C" fn call(_operation: u32) -> u64 {
    let mut text = Text::default();
    let result = answer(&guest::take_request(), &mut text);
    guest::reply(encode(result, &text))
}

fn answer(request: &[u8], text: &mut Text) -> Result<(), Problem> {
    let short = || Problem::damaged("the request is short");
    let (size, rest) = request.split_first_chunk::<8>().ok_or_else(short)?;
    let (room, kind) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    text.room = u64::from_le_bytes(*room);
    let kind = String::from_utf8_lossy(kind);
    if kind == "mbox" {
        mail::read_mailbox(BufReader::with_capacity(64 << 10, host::Input), text)?;
    } else {
        let size = usize::try_from(u64::from_le_bytes(*size)).unwrap_or(usize::MAX);
        let mut data = Vec::new();
        data.try_reserve_exact(size)
            .map_err(|_| Problem::damaged("it is too large for the memory of the reader"))?;
        host::Input.read_to_end(&mut data)?;
        convert(&kind, data, text, 0)?;
    }

    if text.is_empty() {
        return Err(Problem::no_text("it has no text"));
    }
    text.flush()
}

/// Appends the text of a document, which may lie in another one.
fn convert(kind: &str, data: Vec<u8>, text: &mut Text, depth: usize) -> Result<(), Problem> {
    if depth > DEEPEST {
        return Err(Problem::unsupported("it lies too deep in other documents"));
    }

    match kind {
        "pdf" => pdf::read(data, text),
        "zip" => package::read(data, text),
        "ole" => compound::read(data, text, depth),
        "rtf" => rtf::read(&data, text),
        "eml" => mail::read(&data, text, depth),
        "html" => html::read(&data, text),
        "ipynb" => notebook::read(&data, text),
        "tnef" => tnef::read(&data, text, depth),
        "spreadsheetml" => spreadsheetml::read(&data, text),
        _ => Err(Problem::unsupported("nobody reads this kind of document")),
    }
}

/// Finds the kind of a document by its first bytes and its name, empty if it is none.
fn find_kind(name: &str, data: &[u8]) -> &'static str {
    let name = name.to_lowercase();
    match data {
        [b'%', b'P', b'D', b'F', ..] => "pdf",
        [b'P', b'K', 3, 4, ..] if package::is_document(data) => "zip",
        [0xd0, 0xcf, 0x11, 0xe0, ..] => "ole",
        [b'{', b'\\', b'r', b't', b'f', ..] => "rtf",
        _ if tnef::is_tnef(data) => "tnef",
        _ if name.ends_with(".eml") || name.ends_with(".mht") => "eml",
        _ if name.ends_with(".html") || name.ends_with(".htm") => "html",
        _ if name.ends_with(".ipynb") => "ipynb",
        _ => "",
    }
}

/// Encodes an answer: see `internal/data/documents/answer.go`.
fn encode(result: Result<(), Problem>, text: &Text) -> Vec<u8> {
    let mut out = Vec::new();
    if let Err(problem) = result {
        out.push(problem.kind as u8);
        put_text(&mut out, &text::shorten(&problem.message));
        put_number(&mut out, problem.pages as u64);
        return out;
    }

    out.push(0);
    put_text(&mut out, text.noun);
    put_number(&mut out, text.parts.len() as u64);
    for (title, start) in &text.parts {
        put_text(&mut out, title);
        put_number(&mut out, *start);
    }
    put_number(&mut out, text.warnings.len() as u64);
    for warning in &text.warnings {
        put_text(&mut out, warning);
    }
    put_number(&mut out, text.further_warnings);
    out
}
