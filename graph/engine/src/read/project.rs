//! Projections: columns, groups, order, DISTINCT, SKIP and LIMIT.

use std::cmp::Ordering;

use hashbrown::HashSet;

use super::eval::{Reader, Result, holds, wrong};
use super::groups::Groups;
use super::plan::{Expr, Part, Projection, Query, Row};
use super::run::Flow;
use super::value::{Val, encode, order};

impl Reader<'_> {
    /// The rows of a query. It may stop after `most` rows and one more.
    pub fn rows(&self, query: &Query, most: usize) -> Result<Vec<Row>> {
        let mut all = Vec::new();
        for parts in &query.branches {
            let mut rows = vec![Vec::new()];
            for (at, part) in parts.iter().enumerate() {
                let is_last = at + 1 == parts.len() && query.branches.len() == 1;
                rows = self.part(part, rows, if is_last { most + 1 } else { usize::MAX })?;
            }
            all.extend(rows);
        }
        if !query.keeps_all {
            let mut seen = Seen::default();
            all.retain(|row| seen.is_new(row));
        }
        Ok(all)
    }

    fn part(&self, part: &Part, input: Vec<Row>, most: usize) -> Result<Vec<Row>> {
        let p = &part.projection;
        let mut empty = vec![Val::Null; part.width];
        let (skip, limit) =
            (self.count(p.skip.as_ref(), &mut empty)?, self.count(p.limit.as_ref(), &mut empty)?);
        let skip = skip.unwrap_or(0);
        let limit = limit.unwrap_or(usize::MAX);
        let mut output = Output::new(p, skip.saturating_add(limit.min(most)));
        let mut groups = Groups::new(self, p);
        if limit == 0 {
            return Ok(Vec::new());
        }

        for mut row in input {
            row.resize(part.width, Val::Null);
            if p.is_grouped {
                self.run_stages(&part.stages, &mut row, &mut groups)?;
                continue;
            }
            let flow = self.run_stages(&part.stages, &mut row, &mut |row: &mut Row| {
                if output.is_too_late(self, row)? {
                    return Ok(Flow::Next);
                }
                for item in &p.items {
                    if !matches!(item.expr, Expr::Slot(slot) if slot == item.slot) {
                        row[item.slot] = self.eval(&item.expr, row)?;
                    }
                }
                output.take(self, row)
            })?;
            if flow == Flow::Stop {
                break;
            }
        }
        if p.is_grouped {
            groups.finish(part.width, &mut output)?;
        }

        let mut rows = output.finish(skip, limit);
        if let Some(filter) = &p.late_filter {
            let mut kept = Vec::new();
            for row in rows {
                let mut whole = row.clone();
                whole.resize(part.width.max(row.len()), Val::Null);
                if holds(&self.eval(filter, &mut whole)?)? {
                    kept.push(row);
                }
            }
            rows = kept;
        }
        Ok(rows)
    }

    /// The number of SKIP or LIMIT.
    fn count(&self, expr: Option<&Expr>, row: &mut Row) -> Result<Option<usize>> {
        let Some(expr) = expr else { return Ok(None) };
        match self.eval(expr, row)? {
            Val::Int(count) if count >= 0 => Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
            _ => Err(wrong("SKIP and LIMIT need an integer from 0")),
        }
    }
}

/// Rows that were seen before.
#[derive(Default)]
struct Seen {
    rows: HashSet<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Seen {
    fn is_new<'v>(&mut self, values: impl IntoIterator<Item = &'v Val>) -> bool {
        self.buffer.clear();
        values.into_iter().for_each(|value| encode(value, &mut self.buffer));
        if self.rows.contains(&self.buffer[..]) {
            return false;
        }
        self.rows.insert(self.buffer.clone())
    }
}

/// The rows of a projection so far.
pub struct Output<'p> {
    projection: &'p Projection,
    /// How many rows are wanted, before any are skipped.
    wanted: usize,
    seen: Seen,
    /// With the values to sort by.
    rows: Vec<(Vec<Val>, Row)>,
    /// The last row that is wanted so far, by its values to sort by.
    worst: Option<Vec<Val>>,
}

impl<'p> Output<'p> {
    fn new(projection: &'p Projection, wanted: usize) -> Self {
        Self { projection, wanted, seen: Seen::default(), rows: Vec::new(), worst: None }
    }

    /// Whether a row, whose columns have no values yet, comes after all rows that are wanted.
    fn is_too_late(&self, reader: &Reader, row: &mut Row) -> Result<bool> {
        let (Some(worst), Some((first, is_down))) = (&self.worst, self.projection.sort.first())
        else {
            return Ok(false);
        };
        let item = match first {
            Expr::Slot(slot) => self.projection.items.iter().find(|item| item.slot == *slot),
            _ => None,
        };
        let Some(item) = item else { return Ok(false) };
        let place = order(&reader.eval(&item.expr, row)?, &worst[0]);
        Ok(if *is_down { place == Ordering::Less } else { place == Ordering::Greater })
    }

    /// Takes a row whose columns have values.
    pub fn take(&mut self, reader: &Reader, row: &mut Row) -> Result<Flow> {
        let p = self.projection;
        if let Some(filter) = &p.filter
            && !holds(&reader.eval(filter, row)?)?
        {
            return Ok(Flow::Next);
        }
        if p.is_distinct && !self.seen.is_new(p.items.iter().map(|item| &row[item.slot])) {
            return Ok(Flow::Next);
        }
        let keys = match &self.worst {
            Some(worst) => {
                let mut keys = Vec::with_capacity(p.sort.len());
                for ((expr, is_down), worst) in p.sort.iter().zip(worst) {
                    let value = reader.eval(expr, row)?;
                    let place = order(&value, worst);
                    let place = if *is_down { place.reverse() } else { place };
                    keys.push(value);
                    match place {
                        Ordering::Greater => return Ok(Flow::Next),
                        Ordering::Less => break,
                        Ordering::Equal => {}
                    }
                }
                let at = keys.len();
                for (expr, _) in &p.sort[at..] {
                    keys.push(reader.eval(expr, row)?);
                }
                keys
            }
            None => p.sort.iter().map(|(expr, _)| reader.eval(expr, row)).collect::<Result<_>>()?,
        };
        self.rows.push((keys, p.items.iter().map(|item| row[item.slot].clone()).collect()));

        if p.sort.is_empty() {
            return Ok(if self.rows.len() >= self.wanted { Flow::Stop } else { Flow::Next });
        }
        if self.rows.len() >= self.wanted.saturating_mul(2).saturating_add(1024) {
            self.sort();
            self.rows.truncate(self.wanted);
            self.worst = self.rows.last().map(|(keys, _)| keys.clone());
        }
        Ok(Flow::Next)
    }

    fn sort(&mut self) {
        let by = &self.projection.sort;
        self.rows.sort_by(|(a, _), (b, _)| {
            let mut places = a.iter().zip(b).zip(by).map(|((a, b), (_, is_down))| {
                let place = order(a, b);
                if *is_down { place.reverse() } else { place }
            });
            places.find(|&place| place != Ordering::Equal).unwrap_or(Ordering::Equal)
        });
    }

    fn finish(mut self, skip: usize, limit: usize) -> Vec<Row> {
        if !self.projection.sort.is_empty() {
            self.sort();
        }
        self.rows.into_iter().skip(skip).take(limit).map(|(_, row)| row).collect()
    }
}
