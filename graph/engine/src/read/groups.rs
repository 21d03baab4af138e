//! The groups of a projection with aggregates.

use std::borrow::Borrow;
use std::hash::Hash;

use hashbrown::HashMap;

use super::aggregate::{Measure, Total};
use super::column::Column;
use super::eval::{Reader, Result};
use super::plan::{Item, Projection, Row};
use super::project::Output;
use super::run::{Flow, Sink};
use super::scan::column_of;
use super::value::{Val, encode};

pub struct Groups<'a> {
    reader: &'a Reader<'a>,
    projection: &'a Projection,
    number_of: HashMap<Vec<u8>, usize>,
    /// The same for the values of the only key, if they are in a column.
    of_integer: HashMap<i64, usize>,
    of_text: HashMap<String, usize>,
    /// A row of each group, and its totals.
    groups: Vec<(Row, Vec<Total>)>,
    /// The groups of the last nodes.
    numbers: Vec<usize>,
    key: Vec<u8>,
    buffer: Vec<u8>,
}

fn is_key(item: &&Item) -> bool {
    !item.has_aggregate
}

impl Sink for Groups<'_> {
    fn take(&mut self, row: &mut Row) -> Result<Flow> {
        let number = self.number(row)?;
        for at in 0..self.projection.aggregates.len() {
            self.add(number, at, row)?;
        }
        Ok(Flow::Next)
    }

    fn take_nodes(&mut self, slot: usize, nodes: &[u32], row: &mut Row) -> Result<Flow> {
        self.number_nodes(slot, nodes, row)?;
        for (at, a) in self.projection.aggregates.iter().enumerate() {
            if a.measure == Measure::CountRows {
                for run in self.numbers.chunk_by(|a, b| a == b) {
                    self.groups[run[0]].1[at].add_rows(run.len());
                }
                continue;
            }
            for (place, &node) in nodes.iter().enumerate() {
                row[slot] = Val::Node(node);
                self.add(self.numbers[place], at, row)?;
            }
        }
        Ok(Flow::Next)
    }
}

impl<'a> Groups<'a> {
    pub fn new(reader: &'a Reader<'a>, projection: &'a Projection) -> Self {
        Self {
            reader,
            projection,
            number_of: HashMap::new(),
            of_integer: HashMap::new(),
            of_text: HashMap::new(),
            groups: Vec::new(),
            numbers: Vec::new(),
            key: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// The number of a row's group, which may be new.
    fn number(&mut self, row: &mut Row) -> Result<usize> {
        let p = self.projection;
        self.key.clear();
        for item in p.items.iter().filter(is_key) {
            row[item.slot] = self.reader.eval(&item.expr, row)?;
            encode(&row[item.slot], &mut self.key);
        }
        if let Some(&number) = self.number_of.get(&self.key[..]) {
            return Ok(number);
        }
        let totals = p.aggregates.iter().map(|_| Total::default()).collect();
        self.groups.push((row.clone(), totals));
        self.number_of.insert(self.key.clone(), self.groups.len() - 1);
        Ok(self.groups.len() - 1)
    }

    /// Finds the groups of rows with these nodes in a slot.
    fn number_nodes(&mut self, slot: usize, nodes: &[u32], row: &mut Row) -> Result<()> {
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        let mut keys = self.projection.items.iter().filter(is_key);
        let (key, is_only) = (keys.next(), keys.next().is_none());
        let column = match key.map(|key| column_of(&key.expr, slot)) {
            Some(Some(Some(at))) if is_only => Some(self.reader.snapshot.column(at)),
            _ => None,
        };

        if let (None, Some(&first)) = (key, nodes.first()) {
            row[slot] = Val::Node(first);
            numbers.resize(nodes.len(), self.number(row)?);
            self.numbers = numbers;
            return Ok(());
        }
        let mut of_integer = std::mem::take(&mut self.of_integer);
        let mut of_text = std::mem::take(&mut self.of_text);
        for &node in nodes {
            let mut number = || {
                row[slot] = Val::Node(node);
                self.number(row)
            };
            numbers.push(match column {
                Some(Column::Integers(integers)) => match integers.get(node) {
                    Some(value) => remembered(&mut of_integer, &value, number)?,
                    None => number()?,
                },
                Some(Column::Texts(texts)) => match texts.get(node) {
                    Some(text) => remembered(&mut of_text, text, number)?,
                    None => number()?,
                },
                _ => number()?,
            });
        }
        (self.numbers, self.of_integer, self.of_text) = (numbers, of_integer, of_text);
        Ok(())
    }

    /// Adds the row's value of an aggregate to a group.
    fn add(&mut self, number: usize, at: usize, row: &mut Row) -> Result<()> {
        let a = &self.projection.aggregates[at];
        let value = self.reader.eval(&a.argument, row)?;
        let percentile = a.percentile.as_ref().map(|p| self.reader.eval(p, row)).transpose()?;
        self.groups[number].1[at].add(a, value, percentile, &mut self.buffer)
    }

    pub fn finish(mut self, width: usize, output: &mut Output) -> Result<()> {
        let p = self.projection;
        if self.groups.is_empty() && p.items.iter().all(|item| item.has_aggregate) {
            let totals = p.aggregates.iter().map(|_| Total::default()).collect();
            self.groups.push((vec![Val::Null; width], totals));
        }
        for (mut row, totals) in self.groups {
            for (a, total) in p.aggregates.iter().zip(totals) {
                row[a.slot] = total.finish(a)?;
            }
            for item in p.items.iter().filter(|item| item.has_aggregate) {
                row[item.slot] = self.reader.eval(&item.expr, &mut row)?;
            }
            if output.take(self.reader, &mut row)? == Flow::Stop {
                break;
            }
        }
        Ok(())
    }
}

/// The number that a key had before, or else has now.
fn remembered<K: ?Sized + Hash + Eq + ToOwned>(
    known: &mut HashMap<K::Owned, usize>,
    key: &K,
    find: impl FnOnce() -> Result<usize>,
) -> Result<usize>
where
    K::Owned: Hash + Eq + Borrow<K>,
{
    if let Some(&number) = known.get(key) {
        return Ok(number);
    }
    let number = find()?;
    known.insert(key.to_owned(), number);
    Ok(number)
}
