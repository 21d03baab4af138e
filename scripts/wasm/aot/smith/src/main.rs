//! usage: smith SEED COUNT FOLDER
//!
//! Writes that many random modules, which are the same for the same seed. Each can be a guest of
//! package internal/machine/aot: it has one memory and one table, imports functions of `host` only, and
//! uses no vectors, references, exceptions or threads. Its last global is fuel, so it ends.
use arbitrary::Unstructured;
use std::{env, error::Error, fs, path::Path};
use wasm_smith::{Config, Module};

/// A module that imports `a(i32) i32`, `b(i64, i32) i64`, `c(f32, f64) f64` and `d()`.
const IMPORTS: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x15\x04\x60\x01\x7f\x01\x7f\x60\x02\x7e\x7f\x01\x7e\x60\x02\x7d\x7c\x01\x7c\x60\0\0\
    \x02\x25\x04\x04host\x01a\0\0\x04host\x01b\0\x01\x04host\x01c\0\x02\x04host\x01d\0\x03";

fn config() -> Config {
    Config {
        available_imports: Some(IMPORTS.to_vec()),
        allow_start_export: false,
        bulk_memory_enabled: false,
        canonicalize_nans: true, // engines may make any NaN
        exceptions_enabled: false,
        export_everything: true,
        gc_enabled: false,
        max_data_segments: 4,
        max_element_segments: 1,
        max_funcs: 12,
        max_imports: 3,
        max_instructions: 400,
        max_memory32_bytes: 1 << 20,
        max_table_elements: 40,
        memory_max_size_required: true,
        min_data_segments: 1,
        min_element_segments: 1,
        min_funcs: 3,
        min_memories: 1,
        min_tables: 1,
        multi_value_enabled: false,
        reference_types_enabled: false,
        relaxed_simd_enabled: false,
        simd_enabled: false,
        tail_call_enabled: false,
        threads_enabled: false,
        ..Config::default()
    }
}

/// Random numbers: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect()
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, seed, count, folder] = &args[..] else {
        return Err("usage: smith SEED COUNT FOLDER".into());
    };
    let mut numbers = Numbers(seed.parse()?);
    for i in 0..count.parse::<u32>()? {
        let bytes = numbers.bytes(16 << 10);
        let mut module = Module::new(config(), &mut Unstructured::new(&bytes))?;
        module.ensure_termination(1)?;
        fs::write(Path::new(folder).join(format!("{i}.wasm")), module.to_bytes())?;
    }
    Ok(())
}
