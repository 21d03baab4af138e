//! The host's functions.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::Problem;
use crate::guest::{read, write};

#[link(wasm_import_module = "rlm")]
unsafe extern "C" {
    /// Sets where in the file `read` goes on. Negative: it cannot.
    #[link_name = "seek"]
    safe fn go_to(position: u64) -> i32;
}

/// A reader of the file, with a position of its own.
#[derive(Clone)]
pub struct Input {
    size: u64,
    at: u64,
}

impl Input {
    pub fn new(size: u64) -> Self {
        Self { size, at: 0 }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn from(&self, at: u64) -> Self {
        Self { size: self.size, at }
    }

    /// The whole file, which must fit into the memory.
    pub fn read_whole(mut self) -> Result<Vec<u8>, Problem> {
        let mut data = Vec::new();
        data.try_reserve_exact(usize::try_from(self.size)?)?;
        self.read_to_end(&mut data)?;
        Ok(data)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.size {
            return Ok(0);
        }
        if go_to(self.at) != 0 {
            return Err(io::Error::other("the file cannot be read"));
        }
        let count = unsafe { read(buffer.as_mut_ptr(), buffer.len()) };
        let count =
            usize::try_from(count).map_err(|_| io::Error::other("the file cannot be read"))?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Input {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// The rows, in lines.
pub struct Output;

impl Write for Output {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        match unsafe { write(data.as_ptr(), data.len()) } {
            0 => Ok(data.len()),
            _ => Err(io::Error::other("the rows cannot be written")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
