//! How a module and its host exchange bytes. The engines include this file.
//!
//! The host calls `start`, then `allocate` for a request, then the engine's `call`, which returns
//! what `reply` makes of an answer. See `internal/machine/rustmodule/instance.go`.

use std::cell::RefCell;

#[link(wasm_import_module = "rlm")]
unsafe extern "C" {
    /// Fills a buffer from the input. Negative: it cannot be read.
    pub fn read(at: *mut u8, length: usize) -> i32;
    /// Appends to the output. Negative: it has failed.
    pub fn write(at: *const u8, length: usize) -> i32;
    /// The build inserts calls of it: see AddFuel of `scripts/wasm/internal/wasmbin`.
    #[link_name = "yield"]
    safe fn pause();
}

unsafe extern "C" {
    safe fn __wasm_call_ctors();
}

thread_local! {
    static REQUEST: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Prepares the module. It returns 0.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> i32 {
    __wasm_call_ctors();
    pause(); // an import that is never used would be dropped
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

/// The bytes of the request.
pub fn take_request() -> Vec<u8> {
    REQUEST.take()
}

/// Keeps an answer for the host. The result has its length above its address.
pub fn reply(bytes: Vec<u8>) -> u64 {
    ANSWER.with_borrow_mut(|answer| {
        *answer = bytes;
        (answer.len() as u64) << 32 | answer.as_ptr() as u64
    })
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number in LEB128.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
