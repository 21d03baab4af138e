//! The host of tests, which run without a module around them: `cargo test --target HOST`.

use std::cell::RefCell;

use crate::text::Text;

thread_local! {
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub unsafe fn read(_at: *mut u8, _length: usize) -> i32 {
    0
}

pub unsafe fn write(at: *const u8, length: usize) -> i32 {
    let data = unsafe { std::slice::from_raw_parts(at, length) };
    WRITTEN.with_borrow_mut(|all| all.extend_from_slice(data));
    0
}

// What a module imports.
#[unsafe(export_name = "yield")]
extern "C" fn pause() {}

#[unsafe(no_mangle)]
extern "C" fn __wasm_call_ctors() {}

/// Prints the text of the file that the variable DOCUMENT names, and what is said about it.
#[test]
#[ignore = "it needs a file"]
fn show() {
    let name = std::env::var("DOCUMENT").unwrap();
    let data = std::fs::read(&name).unwrap();
    let mut text = Text::default();
    text.room = 1 << 30;
    let mut kind = crate::find_kind(&name, &data);
    if kind.is_empty() {
        kind = "eml";
    }
    let result = crate::convert(kind, data, &mut text, 0);
    let _ = text.flush();
    WRITTEN.with_borrow(|all| println!("{}", String::from_utf8_lossy(all)));
    println!("warnings: {:?}", text.warnings);
    if let Err(problem) = result {
        println!("problem {}: {}", problem.kind as u8, problem.message);
    }
}
