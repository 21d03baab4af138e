//! The values that pass between the host and the engine.
//!
//! A value is a tag and its content: numbers are little-endian, lengths are LEB128. The host's
//! half is `graph/codec.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use grafeo_common::types::{PropertyKey, Value};
use hashbrown::HashMap;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const STRING: u8 = 5;
const LIST: u8 = 6;
const MAP: u8 = 7;

/// The deepest nesting of lists and maps.
const MAX_DEPTH: usize = 64;

/// What the host pays for a value besides its text, for the bound of a result.
const VALUE_COST: usize = 32;

pub struct Reader<'a> {
    data: &'a [u8],
    /// The keys of maps so far: most nodes have the same ones.
    keys: HashMap<&'a str, PropertyKey>,
}

type Decoded<T> = Result<T, &'static str>;

const TRUNCATED: &str = "a request ends too early";

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, keys: HashMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    pub fn byte(&mut self) -> Decoded<u8> {
        let (&first, rest) = self.data.split_first().ok_or(TRUNCATED)?;
        self.data = rest;
        Ok(first)
    }

    pub fn length(&mut self) -> Decoded<usize> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return usize::try_from(value).map_err(|_| TRUNCATED);
            }
        }
        Err("a length is malformed")
    }

    pub fn bytes(&mut self, length: usize) -> Decoded<&'a [u8]> {
        let (bytes, rest) = self.data.split_at_checked(length).ok_or(TRUNCATED)?;
        self.data = rest;
        Ok(bytes)
    }

    pub fn text(&mut self) -> Decoded<&'a str> {
        let length = self.length()?;
        std::str::from_utf8(self.bytes(length)?).map_err(|_| "a text is not UTF-8")
    }

    pub fn texts(&mut self) -> Decoded<Vec<&'a str>> {
        let count = self.count()?;
        (0..count).map(|_| self.text()).collect()
    }

    /// The number of items that follow. Each takes at least one byte.
    pub fn count(&mut self) -> Decoded<usize> {
        let count = self.length()?;
        if count > self.data.len() { Err(TRUNCATED) } else { Ok(count) }
    }

    pub fn integer(&mut self) -> Decoded<i64> {
        Ok(i64::from_le_bytes(self.bytes(8)?.try_into().map_err(|_| TRUNCATED)?))
    }

    fn value_at(&mut self, depth: usize) -> Decoded<Value> {
        if depth > MAX_DEPTH {
            return Err("a value is nested too deeply");
        }

        Ok(match self.byte()? {
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            INTEGER => Value::Int64(self.integer()?),
            FLOAT => Value::Float64(f64::from_bits(self.integer()? as u64)),
            STRING => Value::String(self.text()?.into()),
            LIST => {
                let count = self.count()?;
                let items: Decoded<Vec<_>> = (0..count).map(|_| self.value_at(depth + 1)).collect();
                Value::List(items?.into())
            }
            MAP => Value::Map(Arc::new(self.map_at(depth + 1)?)),
            _ => return Err("a value has an unknown tag"),
        })
    }

    /// A map without its tag.
    pub fn map(&mut self) -> Decoded<BTreeMap<PropertyKey, Value>> {
        self.map_at(0)
    }

    fn map_at(&mut self, depth: usize) -> Decoded<BTreeMap<PropertyKey, Value>> {
        let mut map = BTreeMap::new();
        for _ in 0..self.count()? {
            let name = self.text()?;
            let key = self.keys.entry(name).or_insert_with(|| PropertyKey::new(name)).clone();
            map.insert(key, self.value_at(depth)?);
        }
        Ok(map)
    }
}

/// Writes values, and counts what they will cost the host.
#[derive(Default)]
pub struct Writer {
    pub data: Vec<u8>,
    pub cost: usize,
}

impl Writer {
    pub fn byte(&mut self, byte: u8) {
        self.data.push(byte);
    }

    pub fn length(&mut self, mut length: usize) {
        while length >= 0x80 {
            self.data.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.data.push(length as u8);
    }

    pub fn number(&mut self, number: usize) {
        self.data.extend_from_slice(&(number as i64).to_le_bytes());
    }

    pub fn text(&mut self, text: &str) {
        self.cost += text.len();
        self.length(text.len());
        self.data.extend_from_slice(text.as_bytes());
    }

    pub fn texts(&mut self, texts: &[String]) {
        self.length(texts.len());
        for text in texts {
            self.text(text);
        }
    }

    pub fn null(&mut self) {
        self.tag(NULL);
    }

    pub fn boolean(&mut self, value: bool) {
        self.tag(if value { TRUE } else { FALSE });
    }

    pub fn integer(&mut self, value: i64) {
        self.tag(INTEGER);
        self.data.extend_from_slice(&value.to_le_bytes());
    }

    pub fn float(&mut self, value: f64) {
        self.tag(FLOAT);
        self.data.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    pub fn string(&mut self, value: &str) {
        self.tag(STRING);
        self.text(value);
    }

    pub fn list(&mut self, count: usize) {
        self.tag(LIST);
        self.length(count);
    }

    pub fn map(&mut self, count: usize) {
        self.tag(MAP);
        self.length(count);
    }

    fn tag(&mut self, tag: u8) {
        self.cost += VALUE_COST;
        self.data.push(tag);
    }

    /// Drops what was written after `mark` returned `at`.
    pub fn reset(&mut self, at: (usize, usize)) {
        self.data.truncate(at.0);
        self.cost = at.1;
    }

    pub fn mark(&self) -> (usize, usize) {
        (self.data.len(), self.cost)
    }
}
