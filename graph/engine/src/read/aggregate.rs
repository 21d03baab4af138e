//! Aggregates: count, sum, collect and so on.

use std::cmp::Ordering;

use hashbrown::HashSet;

use super::eval::{Result, wrong};
use super::plan::Expr;
use super::value::{Val, encode, order};
use crate::temporal::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    CountRows,
    Count,
    Sum,
    Mean,
    Least,
    Most,
    Collect,
    Deviation,
    DeviationOfAll,
    Percentile,
    PercentileOfValues,
}

impl Measure {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "avg" => Self::Mean,
            "min" => Self::Least,
            "max" => Self::Most,
            "collect" => Self::Collect,
            "stdev" => Self::Deviation,
            "stdevp" => Self::DeviationOfAll,
            "percentilecont" => Self::Percentile,
            "percentiledisc" => Self::PercentileOfValues,
            _ => return None,
        })
    }
}

/// An aggregate of a projection. Its result is in the slot.
pub struct Aggregate {
    pub measure: Measure,
    pub argument: Expr,
    pub is_distinct: bool,
    pub percentile: Option<Expr>,
    pub slot: usize,
}

/// The values of one group so far.
#[derive(Default)]
pub struct Total {
    seen: HashSet<Vec<u8>>,
    count: i64,
    values: Vec<Val>,
    best: Option<Val>,
    percentile: f64,
}

impl Total {
    /// Counts rows.
    pub fn add_rows(&mut self, count: usize) {
        self.count += count as i64;
    }

    /// Adds a value. The buffer is for its own use.
    pub fn add(
        &mut self,
        a: &Aggregate,
        value: Val,
        percentile: Option<Val>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if a.measure == Measure::CountRows {
            self.add_rows(1);
            return Ok(());
        }
        if value.is_null() {
            return Ok(());
        }
        if a.is_distinct {
            buffer.clear();
            encode(&value, buffer);
            if self.seen.contains(&buffer[..]) {
                return Ok(());
            }
            self.seen.insert(buffer.clone());
        }

        self.count += 1;
        match a.measure {
            Measure::Least | Measure::Most => {
                let wanted =
                    if a.measure == Measure::Least { Ordering::Less } else { Ordering::Greater };
                if self.best.as_ref().is_none_or(|best| order(&value, best) == wanted) {
                    self.best = Some(value);
                }
            }
            Measure::Sum | Measure::Mean => self.sum(value)?,
            Measure::Collect => self.values.push(value),
            Measure::Count | Measure::CountRows => {}
            _ => {
                number(&value)?;
                self.percentile = match percentile {
                    Some(p) => number(&p)?,
                    None => 0.0,
                };
                if !(0.0..=1.0).contains(&self.percentile) {
                    return Err(wrong("a percentile must be from 0 to 1"));
                }
                self.values.push(value);
            }
        }
        Ok(())
    }

    fn sum(&mut self, value: Val) -> Result<()> {
        self.best = Some(match (self.best.take(), value) {
            (None, value @ (Val::Int(_) | Val::Float(_) | Val::Duration(_))) => value,
            (Some(Val::Int(a)), Val::Int(b)) => {
                Val::Int(a.checked_add(b).ok_or_else(|| wrong("the sum has more than 64 bits"))?)
            }
            (Some(Val::Duration(a)), Val::Duration(b)) => {
                let sum = a.add(&b, 1).ok_or_else(|| wrong("the sum is too long a duration"))?;
                Val::Duration(sum.into())
            }
            (Some(a), b) => Val::Float(number(&a)? + number(&b)?),
            (None, other) => return Err(wrong(format!("cannot sum {}", other.kind()))),
        });
        Ok(())
    }

    pub fn finish(mut self, a: &Aggregate) -> Result<Val> {
        Ok(match a.measure {
            Measure::CountRows | Measure::Count => Val::Int(self.count),
            Measure::Collect => Val::list(self.values),
            Measure::Least | Measure::Most => self.best.unwrap_or(Val::Null),
            Measure::Sum => self.best.unwrap_or(Val::Int(0)),
            Measure::Mean => match self.best {
                None => Val::Null,
                Some(Val::Duration(sum)) => {
                    let mean: Option<Duration> = sum.times(1.0 / self.count as f64);
                    mean.map_or(Val::Null, |mean| Val::Duration(mean.into()))
                }
                Some(sum) => Val::Float(number(&sum)? / self.count as f64),
            },
            Measure::Deviation | Measure::DeviationOfAll => self.deviation(a.measure)?,
            Measure::Percentile | Measure::PercentileOfValues => {
                self.values.sort_by(order);
                let Some(last) = self.values.len().checked_sub(1) else { return Ok(Val::Null) };
                let place = self.percentile * last as f64;
                if a.measure == Measure::PercentileOfValues {
                    let at = (self.percentile * self.values.len() as f64).ceil() as usize;
                    return Ok(self.values[at.saturating_sub(1).min(last)].clone());
                }
                let (low, high) = (
                    number(&self.values[place.floor() as usize])?,
                    number(&self.values[place.ceil() as usize])?,
                );
                Val::Float(low + (high - low) * place.fract())
            }
        })
    }

    fn deviation(&self, measure: Measure) -> Result<Val> {
        let numbers: Result<Vec<f64>> = self.values.iter().map(number).collect();
        let numbers = numbers?;
        let count = numbers.len() as f64;
        let divisor = if measure == Measure::Deviation { count - 1.0 } else { count };
        if divisor <= 0.0 {
            return Ok(Val::Float(0.0));
        }
        let mean = numbers.iter().sum::<f64>() / count;
        let squares: f64 = numbers.iter().map(|x| (x - mean) * (x - mean)).sum();
        Ok(Val::Float((squares / divisor).sqrt()))
    }
}

pub fn number(value: &Val) -> Result<f64> {
    match value {
        Val::Int(value) => Ok(*value as f64),
        Val::Float(value) => Ok(*value),
        other => Err(wrong(format!("a number is needed, not {}", other.kind()))),
    }
}
