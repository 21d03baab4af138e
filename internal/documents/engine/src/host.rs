//! The host's functions.

use std::io::{self, Read};

#[link(wasm_import_module = "rlm")]
unsafe extern "C" {
    /// Fills a buffer from the document. Negative: it cannot be read.
    fn read(at: *mut u8, length: usize) -> i32;
    /// Appends to the text. Negative: the text has failed.
    fn write(at: *const u8, length: usize) -> i32;
    /// The build inserts calls of it: see AddFuel of `scripts/wasm/internal/wasmbin`.
    #[link_name = "yield"]
    pub safe fn pause();
}

/// The bytes of the document.
pub struct Input;

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = unsafe { read(buffer.as_mut_ptr(), buffer.len()) };
        usize::try_from(count).map_err(|_| io::Error::other("the document cannot be read"))
    }
}

/// Appends to the text.
pub fn append(data: &[u8]) -> io::Result<()> {
    match unsafe { write(data.as_ptr(), data.len()) } {
        0 => Ok(()),
        _ => Err(io::Error::other("the text cannot be written")),
    }
}
