//! The values of one property of all nodes.

use hashbrown::HashMap;

use grafeo_common::types::Value;

use super::value::Val;

/// Few nodes have the property, or many. Integers and short texts lie one after another.
pub enum Column {
    Sparse(HashMap<u32, Val>),
    Dense(Vec<Val>),
    Integers(Integers),
    Texts(Texts),
}

/// A property that is an integer, or missing.
pub struct Integers {
    values: Vec<i64>,
    present: Vec<u64>,
}

/// A property that is a text, or missing.
pub struct Texts {
    bytes: String,
    /// Where the text of each node begins, and where the last one ends.
    starts: Vec<u32>,
    present: Vec<u64>,
}

/// How long the texts of a column may be on average. Longer ones are not copied.
const MEAN_LENGTH: usize = 64;

impl Column {
    /// The column of the values of nodes, in the form that takes the least time, if it takes
    /// little memory.
    pub fn new(nodes: &[u32], values: &[Option<Value>], count: usize) -> Self {
        let present = || {
            let pairs = nodes.iter().zip(values);
            pairs.filter_map(|(&node, value)| Some((node, value.as_ref()?)))
        };
        if present().count() < count.div_ceil(8) {
            return Self::Sparse(present().map(|(node, value)| (node, Val::of(value))).collect());
        }
        if present().all(|(_, value)| matches!(value, Value::Int64(_))) {
            return Self::Integers(Integers::new(present(), count));
        }
        let length = |value: &Value| match value {
            Value::String(text) => Some(text.len()),
            _ => None,
        };
        let total = present().try_fold(0, |total, (_, value)| Some(total + length(value)?));
        if total.is_some_and(|total| total <= MEAN_LENGTH * count) {
            return Self::Texts(Texts::new(present(), count));
        }
        let mut dense = vec![Val::Null; count];
        for (node, value) in present() {
            dense[node as usize] = Val::of(value);
        }
        Self::Dense(dense)
    }

    pub fn get(&self, node: u32) -> Val {
        match self {
            Self::Sparse(values) => values.get(&node).cloned().unwrap_or(Val::Null),
            Self::Dense(values) => values[node as usize].clone(),
            Self::Integers(integers) => integers.get(node).map_or(Val::Null, Val::Int),
            Self::Texts(texts) => texts.get(node).map_or(Val::Null, Val::text),
        }
    }

    pub fn has(&self, node: u32) -> bool {
        match self {
            Self::Sparse(values) => values.contains_key(&node),
            Self::Dense(values) => !values[node as usize].is_null(),
            Self::Integers(Integers { present, .. }) | Self::Texts(Texts { present, .. }) => {
                has_bit(present, node)
            }
        }
    }
}

impl Integers {
    fn new<'v>(present: impl Iterator<Item = (u32, &'v Value)>, count: usize) -> Self {
        let mut all = Self { values: vec![0; count], present: vec![0; count.div_ceil(64)] };
        for (node, value) in present {
            if let Value::Int64(value) = value {
                all.values[node as usize] = *value;
                set_bit(&mut all.present, node);
            }
        }
        all
    }

    pub fn get(&self, node: u32) -> Option<i64> {
        has_bit(&self.present, node).then(|| self.values[node as usize])
    }

    /// Keeps the nodes whose value is from `least` to `most`, or the nodes with any other value.
    pub fn select(&self, nodes: &mut Vec<u32>, least: i64, most: i64, is_inside: bool) {
        let mut kept = 0;
        for at in 0..nodes.len() {
            let node = nodes[at];
            let value = self.values[node as usize];
            let is_met = ((least <= value) & (value <= most)) == is_inside;
            nodes[kept] = node; // no branch: the processor would guess wrong
            kept += usize::from(is_met & has_bit(&self.present, node));
        }
        nodes.truncate(kept);
    }
}

impl Texts {
    /// The nodes are in order.
    fn new<'v>(present: impl Iterator<Item = (u32, &'v Value)>, count: usize) -> Self {
        let mut all = Self {
            bytes: String::new(),
            starts: Vec::with_capacity(count + 1),
            present: vec![0; count.div_ceil(64)],
        };
        for (node, value) in present {
            if let Value::String(text) = value {
                all.starts.resize(node as usize + 1, all.bytes.len() as u32);
                all.bytes.push_str(text);
                set_bit(&mut all.present, node);
            }
        }
        all.bytes.shrink_to_fit();
        all.starts.resize(count + 1, all.bytes.len() as u32);
        all
    }

    pub fn get(&self, node: u32) -> Option<&str> {
        let at = node as usize;
        let place = self.starts[at] as usize..self.starts[at + 1] as usize;
        has_bit(&self.present, node).then(|| &self.bytes[place])
    }
}

pub fn has_bit(bits: &[u64], at: u32) -> bool {
    bits.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

pub fn set_bit(bits: &mut [u64], at: u32) {
    bits[at as usize / 64] |= 1 << (at % 64);
}
