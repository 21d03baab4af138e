//! Values of Cypher, and how they compare.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use arcstr::ArcStr;
use grafeo_common::types::{Date, Time, Timestamp, Value, ZonedDatetime};

use crate::temporal::{DAY, Duration, Moment, SECOND};

#[derive(Clone)]
pub enum Val {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(ArcStr),
    List(Rc<Vec<Val>>),
    Map(Rc<BTreeMap<ArcStr, Val>>),
    Node(u32),
    Edge(u32),
    Path(Rc<Path>),
    Moment(Rc<Moment>),
    Duration(Rc<Duration>),
}

/// A path: each edge leads from a node to the next one, or back.
#[derive(PartialEq, Eq)]
pub struct Path {
    pub nodes: Vec<u32>,
    pub edges: Vec<u32>,
}

impl Val {
    pub fn text(text: impl Into<ArcStr>) -> Self {
        Self::Str(text.into())
    }

    pub fn list(items: Vec<Self>) -> Self {
        Self::List(Rc::new(items))
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a float",
            Self::Str(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Node(_) => "a node",
            Self::Edge(_) => "a relationship",
            Self::Path(_) => "a path",
            Self::Moment(_) => "a date or a time",
            Self::Duration(_) => "a duration",
        }
    }

    /// A stored value, or one of a parameter.
    pub fn of(value: &Value) -> Self {
        let micros = |t: &Timestamp| i128::from(t.as_micros()) * 1000;
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int64(value) => Self::Int(*value),
            Value::Float64(value) => Self::Float(*value),
            Value::String(text) => Self::Str(text.clone()),
            Value::List(items) => Self::list(items.iter().map(Self::of).collect()),
            Value::Vector(items) => {
                Self::list(items.iter().map(|&x| Self::Float(x.into())).collect())
            }
            Value::Map(map) => {
                let entries =
                    map.iter().map(|(key, value)| (ArcStr::from(key.as_str()), Self::of(value)));
                Self::Map(Rc::new(entries.collect()))
            }
            Value::Date(date) => {
                let (year, month, day) = date.to_ymd();
                let day = crate::temporal::days(year.into(), month.into(), day.into());
                Self::moment(Some(day), None, None)
            }
            Value::Time(time) => {
                Self::moment(None, Some(time.as_nanos() as i64), time.offset_seconds())
            }
            Value::Timestamp(time) => Self::at(micros(time), None),
            Value::ZonedDatetime(time) => {
                Self::at(micros(&time.as_timestamp()), Some(time.offset_seconds()))
            }
            Value::Duration(d) => match Duration::new(d.months(), d.days(), d.nanos().into()) {
                Some(d) => Self::Duration(Rc::new(d)),
                None => Self::Null,
            },
            other => Self::text(other.to_string()),
        }
    }

    pub fn moment(day: Option<i64>, nanos: Option<i64>, offset: Option<i32>) -> Self {
        Self::Moment(Rc::new(Moment { day, nanos, offset, zone: None }))
    }

    /// The date and time so many nanoseconds after 1970 began in UTC.
    fn at(nanos: i128, offset: Option<i32>) -> Self {
        let local = nanos + i128::from(offset.unwrap_or(0)) * i128::from(SECOND);
        let day = local.div_euclid(DAY.into()) as i64;
        Self::moment(Some(day), Some(local.rem_euclid(DAY.into()) as i64), offset)
    }

    /// The value as the engine's library stores it: dates with times to a microsecond. None: it
    /// cannot store it.
    pub fn to_stored(&self) -> Option<Value> {
        Some(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int64(*value),
            Self::Float(value) => Value::Float64(*value),
            Self::Str(text) => Value::String(text.clone()),
            Self::List(items) => {
                let items: Option<Vec<_>> = items.iter().map(Self::to_stored).collect();
                Value::List(items?.into())
            }
            Self::Duration(d) => {
                let nanos = i64::try_from(d.time()).ok()?;
                Value::Duration(grafeo_common::types::Duration::new(d.months, d.days, nanos))
            }
            Self::Moment(m) => stored_moment(m)?,
            Self::Map(_) | Self::Node(_) | Self::Edge(_) | Self::Path(_) => return None,
        })
    }
}

fn stored_moment(m: &Moment) -> Option<Value> {
    let micros = || i64::try_from(m.instant() / 1000).ok().map(Timestamp::from_micros);
    Some(match (m.day, m.nanos, m.offset) {
        (Some(day), None, _) => {
            let (year, month, day) = crate::temporal::civil(day);
            Value::Date(Date::from_ymd(year.try_into().ok()?, month as u32, day as u32)?)
        }
        (None, Some(nanos), offset) => {
            let time = Time::from_nanos(nanos as u64)?;
            Value::Time(offset.map_or(time, |offset| time.with_offset(offset)))
        }
        (Some(_), Some(_), None) => Value::Timestamp(micros()?),
        (Some(_), Some(_), Some(offset)) => {
            Value::ZonedDatetime(ZonedDatetime::from_timestamp_offset(micros()?, offset))
        }
        (None, None, _) => return None,
    })
}

/// Whether two values are equal. None is null: it is not known.
pub fn equal(a: &Val, b: &Val) -> Option<bool> {
    Some(match (a, b) {
        (Val::Null, _) | (_, Val::Null) => return None,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Str(a), Val::Str(b)) => a == b,
        (Val::Node(a), Val::Node(b)) | (Val::Edge(a), Val::Edge(b)) => a == b,
        (Val::Path(a), Val::Path(b)) => a == b,
        (Val::Moment(a), Val::Moment(b)) => a.compare(b) == Some(Ordering::Equal),
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::List(a), Val::List(b)) => {
            if a.len() != b.len() {
                return Some(false);
            }
            return all_equal(a.iter().zip(b.iter()));
        }
        (Val::Map(a), Val::Map(b)) => {
            if a.len() != b.len() || !a.keys().eq(b.keys()) {
                return Some(false);
            }
            return all_equal(a.values().zip(b.values()));
        }
        _ => return Some(compare_numbers(a, b) == Some(Ordering::Equal)),
    })
}

fn all_equal<'a>(pairs: impl Iterator<Item = (&'a Val, &'a Val)>) -> Option<bool> {
    let mut result = Some(true);
    for (a, b) in pairs {
        match equal(a, b) {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

/// Compares two numbers exactly. None: one is NaN, or no number.
fn compare_numbers(a: &Val, b: &Val) -> Option<Ordering> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(b)),
        (Val::Float(a), Val::Float(b)) => a.partial_cmp(b),
        (Val::Int(a), Val::Float(b)) => compare_mixed(*a, *b),
        (Val::Float(a), Val::Int(b)) => compare_mixed(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

fn compare_mixed(a: i64, b: f64) -> Option<Ordering> {
    if b.is_nan() {
        return None;
    }
    if b >= 9.3e18 {
        return Some(Ordering::Less);
    }
    if b <= -9.3e18 {
        return Some(Ordering::Greater);
    }
    let rest = if b.fract() > 0.0 {
        Ordering::Less
    } else if b.fract() < 0.0 {
        Ordering::Greater
    } else {
        Ordering::Equal
    };
    Some(i128::from(a).cmp(&(b.trunc() as i128)).then(rest))
}

/// Compares by `<`. None is null.
pub fn compare(a: &Val, b: &Val) -> Option<Ordering> {
    match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
        (Val::Str(a), Val::Str(b)) => Some(a.as_str().cmp(b.as_str())),
        (Val::Moment(a), Val::Moment(b)) => a.compare(b),
        (Val::List(a), Val::List(b)) => {
            for (a, b) in a.iter().zip(b.iter()) {
                if equal(a, b)? {
                    continue;
                }
                return compare(a, b);
            }
            Some(a.len().cmp(&b.len()))
        }
        _ => compare_numbers(a, b),
    }
}

/// Whether numbers are compared of which one is NaN: every comparison of them is false.
pub fn has_nan(a: &Val, b: &Val) -> bool {
    let is_number = |v: &Val| matches!(v, Val::Int(_) | Val::Float(_));
    is_number(a) && is_number(b) && compare_numbers(a, b).is_none()
}

/// The place of a value's type in an order of all.
fn rank(value: &Val) -> u8 {
    match value {
        Val::Map(_) => 0,
        Val::Node(_) => 1,
        Val::Edge(_) => 2,
        Val::List(_) => 3,
        Val::Path(_) => 4,
        Val::Moment(m) => match (m.day, m.nanos, m.offset) {
            (Some(_), Some(_), Some(_)) => 5,
            (Some(_), Some(_), None) => 6,
            (Some(_), None, _) => 7,
            (None, _, Some(_)) => 8,
            _ => 9,
        },
        Val::Duration(_) => 10,
        Val::Str(_) => 11,
        Val::Bool(_) => 12,
        Val::Int(_) | Val::Float(_) => 13,
        Val::Null => 14,
    }
}

/// Orders all values, for ORDER BY, min and max.
pub fn order(a: &Val, b: &Val) -> Ordering {
    if let (Val::Int(a), Val::Int(b)) = (a, b) {
        return a.cmp(b);
    }
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (Val::Node(a), Val::Node(b)) | (Val::Edge(a), Val::Edge(b)) => a.cmp(b),
        (Val::Path(a), Val::Path(b)) => (&a.nodes, &a.edges).cmp(&(&b.nodes, &b.edges)),
        (Val::Duration(a), Val::Duration(b)) => a.length().cmp(&b.length()),
        (Val::List(a), Val::List(b)) => order_all(a.iter(), b.iter()),
        (Val::Map(a), Val::Map(b)) => {
            a.keys().cmp(b.keys()).then_with(|| order_all(a.values(), b.values()))
        }
        (Val::Null, Val::Null) => Ordering::Equal,
        _ => compare(a, b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b))),
    })
}

fn is_nan(value: &Val) -> bool {
    matches!(value, Val::Float(x) if x.is_nan())
}

fn order_all<'a>(
    a: impl Iterator<Item = &'a Val>,
    mut b: impl Iterator<Item = &'a Val>,
) -> Ordering {
    for a in a {
        let Some(b) = b.next() else { return Ordering::Greater };
        let result = order(a, b);
        if result != Ordering::Equal {
            return result;
        }
    }
    if b.next().is_some() { Ordering::Less } else { Ordering::Equal }
}

/// Appends bytes that are the same for values that DISTINCT takes as one.
pub fn encode(value: &Val, out: &mut Vec<u8>) {
    match value {
        Val::Null => out.push(0),
        Val::Bool(value) => out.extend([1, u8::from(*value)]),
        Val::Int(value) => encode_int(*value, out),
        Val::Float(value) => {
            if value.fract() == 0.0 && value.abs() < 9e18 {
                return encode_int(*value as i64, out);
            }
            let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
            out.push(3);
            out.extend(bits.to_le_bytes());
        }
        Val::Str(text) => {
            out.push(4);
            out.extend((text.len() as u32).to_le_bytes());
            out.extend(text.as_bytes());
        }
        Val::List(items) => {
            out.push(5);
            out.extend((items.len() as u32).to_le_bytes());
            items.iter().for_each(|item| encode(item, out));
        }
        Val::Map(map) => {
            out.push(6);
            out.extend((map.len() as u32).to_le_bytes());
            for (key, value) in map.iter() {
                encode(&Val::Str(key.clone()), out);
                encode(value, out);
            }
        }
        Val::Node(id) => encode_id(7, *id, out),
        Val::Edge(id) => encode_id(8, *id, out),
        Val::Path(path) => {
            encode_id(9, path.nodes.len() as u32, out);
            path.nodes.iter().chain(&path.edges).for_each(|id| out.extend(id.to_le_bytes()));
        }
        Val::Moment(m) => {
            out.push(10 + rank(value));
            out.extend(m.instant().to_le_bytes());
            out.extend(m.offset.unwrap_or(0).to_le_bytes());
            out.extend(m.zone.map_or(0, |zone| zone.number() + 1).to_le_bytes());
        }
        Val::Duration(d) => {
            out.push(30);
            [d.months, d.days, d.seconds, d.nanos]
                .iter()
                .for_each(|part| out.extend(part.to_le_bytes()));
        }
    }
}

fn encode_int(value: i64, out: &mut Vec<u8>) {
    out.push(2);
    out.extend(value.to_le_bytes());
}

fn encode_id(tag: u8, id: u32, out: &mut Vec<u8>) {
    out.push(tag);
    out.extend(id.to_le_bytes());
}
