//! The host's functions.

use std::io::{self, Read, Write};

#[link(wasm_import_module = "rlm")]
unsafe extern "C" {
    /// Fills a buffer from the host's input. Negative: the input has failed.
    fn read(at: *mut u8, length: usize) -> i32;
    /// Appends to the host's output. Negative: the output has failed.
    fn write(at: *const u8, length: usize) -> i32;
    /// The offset of a time zone in seconds, at a number of seconds since 1970 in UTC or in local
    /// time. The least integer: no zone has the name.
    fn zone(name: *const u8, length: usize, seconds: i64, is_local: i32) -> i32;
    /// The build inserts calls of it: see AddFuel of `scripts/wasm/internal/wasmbin`.
    #[link_name = "yield"]
    pub safe fn pause();
}

pub fn zone_offset(name: &str, seconds: i64, is_local: bool) -> Option<i32> {
    let offset = unsafe { zone(name.as_ptr(), name.len(), seconds, is_local.into()) };
    (offset != i32::MIN).then_some(offset)
}

pub struct Input;

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = unsafe { read(buffer.as_mut_ptr(), buffer.len()) };
        usize::try_from(count).map_err(|_| io::Error::other("the input has failed"))
    }
}

pub struct Output;

impl Write for Output {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match unsafe { write(data.as_ptr(), data.len()) } {
            0 => Ok(data.len()),
            _ => Err(io::Error::other("the output has failed")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
