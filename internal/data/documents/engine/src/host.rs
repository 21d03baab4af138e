//! The host's functions.

use std::io::{self, Read};

#[cfg(not(test))]
use crate::guest::{read, write};
#[cfg(test)]
use crate::tests::{read, write};

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
