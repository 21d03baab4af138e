//! The reader of documents of package documents: what people have in files becomes Markdown, in
//! one WebAssembly module.
//!
//! The host calls `allocate` for a request and then `call`. The module reads the document with
//! the host's `read` and writes the text with `write`. See `internal/documents/instance.go`.

mod compound;
mod epub;
mod host;
mod html;
mod mail;
mod notebook;
mod office;
mod opendocument;

mod package;
mod pdf;
mod problem;
mod rtf;
mod text;

use std::cell::RefCell;
use std::io::{BufReader, Read};

use problem::Problem;
use text::Text;

/// Documents in documents, such as the attachments of mail, are read this deep.
const DEEPEST: usize = 4;

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" {
    safe fn __wasm_call_ctors();
}

/// Prepares the module. It returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> i32 {
    __wasm_call_ctors();
    host::pause(); // an import that is never used would be dropped
    0
}

/// Makes room for a request and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    REQUEST.with_borrow_mut(|request| {
        *request = vec![0; length];
        request.as_mut_ptr()
    })
}

/// Converts the document of the kind in the request, which the number of its bytes follows. The
/// result has the answer's length above its address.
#[unsafe(no_mangle)]
pub extern "C" fn call(_operation: u32) -> u64 {
    let request = REQUEST.take();
    let mut text = Text::default();
    let result = answer(&request, &mut text);
    ANSWER.with_borrow_mut(|answer| {
        *answer = encode(result, &text);
        (answer.len() as u64) << 32 | answer.as_ptr() as u64
    })
}

fn answer(request: &[u8], text: &mut Text) -> Result<(), Problem> {
    let (size, kind) =
        request.split_first_chunk::<8>().ok_or_else(|| Problem::damaged("the request is short"))?;
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

    if text.position() == 0 {
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
        _ if name.ends_with(".eml") => "eml",
        _ if name.ends_with(".html") || name.ends_with(".htm") => "html",
        _ if name.ends_with(".ipynb") => "ipynb",
        _ => "",
    }
}

/// Encodes an answer: see `internal/documents/answer.go`.
fn encode(result: Result<(), Problem>, text: &Text) -> Vec<u8> {
    let mut out = Vec::new();
    if let Err(problem) = result {
        out.push(problem.kind as u8);
        put_text(&mut out, &text::shorten(&problem.message));
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

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number in LEB128.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
