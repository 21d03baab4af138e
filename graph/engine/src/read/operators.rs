//! Arithmetic, texts and lists.

use std::cell::RefCell;
use std::cmp::Ordering;

use arcstr::ArcStr;
use grafeo_adapters::query::cypher::BinaryOp;

use regex::{Regex, RegexBuilder};

use super::aggregate::number;
use super::eval::{Result, wrong};
use super::value::{Val, compare, equal, has_nan};

/// The longest list or text that a query may make of others.
pub const MAX_LENGTH: usize = 64 << 20;

fn overflow() -> Box<crate::failure::Failure> {
    wrong("the number has more than 64 bits")
}

fn too_far() -> Box<crate::failure::Failure> {
    wrong("the date or the duration is out of range")
}

pub fn add(a: Val, b: Val) -> Result<Val> {
    Ok(match (a, b) {
        (Val::List(a), Val::List(b)) => joined(a.to_vec(), b.to_vec())?,
        (Val::List(a), b) => joined(a.to_vec(), vec![b])?,
        (a, Val::List(b)) => joined(vec![a], b.to_vec())?,
        (Val::Null, _) | (_, Val::Null) => Val::Null,
        (Val::Str(a), Val::Str(b)) => text(&a, &b)?,
        (Val::Str(a), b @ (Val::Int(_) | Val::Float(_) | Val::Bool(_))) => text(&a, &show(&b))?,
        (a @ (Val::Int(_) | Val::Float(_) | Val::Bool(_)), Val::Str(b)) => text(&show(&a), &b)?,
        (a, b) => arithmetic(BinaryOp::Add, &a, &b)?,
    })
}

fn joined(mut a: Vec<Val>, b: Vec<Val>) -> Result<Val> {
    if a.len() + b.len() > MAX_LENGTH / 16 {
        return Err(wrong("a list is too long"));
    }
    a.extend(b);
    Ok(Val::list(a))
}

fn text(a: &str, b: &str) -> Result<Val> {
    if a.len() + b.len() > MAX_LENGTH {
        return Err(wrong("a text is too long"));
    }
    Ok(Val::text(format!("{a}{b}")))
}

/// A value as toString has it.
pub fn show(value: &Val) -> String {
    match value {
        Val::Int(value) => value.to_string(),
        Val::Float(value) if value.is_finite() && value.fract() == 0.0 && value.abs() < 1e15 => {
            format!("{value:.1}")
        }
        Val::Float(value) if value.is_infinite() => {
            if *value > 0.0 {
                "Infinity".into()
            } else {
                "-Infinity".into()
            }
        }
        Val::Float(value) if value.abs() >= 1e15 || value.abs() < 1e-5 => format!("{value:E}"),
        Val::Float(value) => value.to_string(),
        Val::Bool(value) => value.to_string(),
        Val::Str(text) => text.to_string(),
        Val::Moment(moment) => moment.to_string(),
        Val::Duration(duration) => duration.to_string(),
        other => other.kind().to_owned(),
    }
}

pub fn arithmetic(op: BinaryOp, a: &Val, b: &Val) -> Result<Val> {
    let sign = if op == BinaryOp::Sub { -1 } else { 1 };
    let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Sub);
    Ok(match (a, b) {
        (Val::Null, _) | (_, Val::Null) => Val::Null,
        (Val::Int(a), Val::Int(b)) => Val::Int(whole(op, *a, *b)?),
        (Val::Int(_) | Val::Float(_), Val::Int(_) | Val::Float(_)) => {
            let (a, b) = (number(a)?, number(b)?);
            Val::Float(match op {
                BinaryOp::Add => a + b,
                BinaryOp::Sub => a - b,
                BinaryOp::Mul => a * b,
                BinaryOp::Div => a / b,
                _ => a % b,
            })
        }
        (Val::Moment(m), Val::Duration(d)) if is_sum => {
            Val::Moment(m.add(d, sign).ok_or_else(too_far)?.into())
        }
        (Val::Duration(d), Val::Moment(m)) if op == BinaryOp::Add => {
            Val::Moment(m.add(d, 1).ok_or_else(too_far)?.into())
        }
        (Val::Duration(a), Val::Duration(b)) if is_sum => {
            Val::Duration(a.add(b, sign).ok_or_else(too_far)?.into())
        }
        (Val::Duration(d), factor @ (Val::Int(_) | Val::Float(_))) if op == BinaryOp::Div => {
            Val::Duration(d.times(1.0 / number(factor)?).ok_or_else(too_far)?.into())
        }
        (Val::Duration(d), factor @ (Val::Int(_) | Val::Float(_)))
        | (factor @ (Val::Int(_) | Val::Float(_)), Val::Duration(d))
            if op == BinaryOp::Mul =>
        {
            Val::Duration(d.times(number(factor)?).ok_or_else(too_far)?.into())
        }
        (a, b) => {
            let message = format!("an operator does not know {} and {}", a.kind(), b.kind());
            return Err(wrong(message));
        }
    })
}

fn whole(op: BinaryOp, a: i64, b: i64) -> Result<i64> {
    let result = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div | BinaryOp::Mod if b == 0 => {
            return Err(wrong("an integer is divided by zero"));
        }
        BinaryOp::Div => a.checked_div(b),
        _ => Some(a.wrapping_rem(b)),
    };
    result.ok_or_else(overflow)
}

/// Whether a list has an element. None is null.
pub fn contains(element: &Val, list: &Val) -> Result<Option<bool>> {
    let items = match list {
        Val::List(items) => items,
        Val::Null => return Ok(None),
        other => return Err(wrong(format!("IN needs a list, not {}", other.kind()))),
    };
    let mut result = Some(false);
    for item in items.iter() {
        match equal(element, item) {
            Some(true) => return Ok(Some(true)),
            None => result = None,
            Some(false) => {}
        }
    }
    Ok(result)
}

thread_local! {
    /// The last regular expression, since a query has the same one for all rows.
    static PATTERN: RefCell<Option<(ArcStr, Regex)>> = const { RefCell::new(None) };
}

/// The most bytes of a compiled regular expression.
const MAX_PATTERN: usize = 1 << 20;

/// Whether a regular expression matches a whole text.
pub fn matches(text: &Val, pattern: &Val) -> Result<Val> {
    let (Val::Str(text), Val::Str(pattern)) = (text, pattern) else { return Ok(Val::Null) };
    let build = |pattern: &str| {
        let built = RegexBuilder::new(pattern).size_limit(MAX_PATTERN).build();
        built.map_err(|e| wrong(format!("the regular expression {pattern:?} is wrong: {e}")))
    };
    PATTERN.with_borrow_mut(|last| {
        if let Some((known, regex)) = last
            && known == pattern
        {
            return Ok(Val::Bool(regex.is_match(text)));
        }
        build(pattern)?; // it must not end the group below
        let regex = build(&format!("^(?:{pattern})$"))?;
        let found = regex.is_match(text);
        *last = Some((pattern.clone(), regex));
        Ok(Val::Bool(found))
    })
}

/// Whether a text is in another. The library's search first looks at what it searches for, which
/// takes longer than a search in a short text.
fn contains_text(text: &str, part: &str) -> bool {
    let Some((&first, rest)) = part.as_bytes().split_first() else { return true };
    if text.len() > 256 || part.len() > 32 {
        return text.contains(part);
    }
    let Some(last) = text.len().checked_sub(part.len()) else { return false };
    let text = text.as_bytes();
    (0..=last).any(|at| text[at] == first && text[at + 1..].starts_with(rest))
}

/// Compares two values, or tests a text. None: the operator does neither.
pub fn compared(op: BinaryOp, a: &Val, b: &Val) -> Option<Val> {
    Some(match op {
        BinaryOp::Eq => boolean(equal(a, b)),
        BinaryOp::Ne => boolean(equal(a, b).map(|equal| !equal)),
        BinaryOp::StartsWith | BinaryOp::EndsWith | BinaryOp::Contains => match (a, b) {
            (Val::Str(a), Val::Str(b)) => boolean(compared_texts(op, a, b)),
            _ => Val::Null,
        },
        _ => {
            meets(op, Ordering::Equal)?;
            match compare(a, b) {
                Some(order) => boolean(meets(op, order)),
                None if has_nan(a, b) => Val::Bool(false),
                None => Val::Null,
            }
        }
    })
}

/// Whether two values in this order meet a comparison. None: the operator compares nothing.
pub fn meets(op: BinaryOp, order: Ordering) -> Option<bool> {
    Some(match op {
        BinaryOp::Eq => order.is_eq(),
        BinaryOp::Ne => order.is_ne(),
        BinaryOp::Lt => order.is_lt(),
        BinaryOp::Le => order.is_le(),
        BinaryOp::Gt => order.is_gt(),
        BinaryOp::Ge => order.is_ge(),
        _ => return None,
    })
}

/// Compares two texts, or tests the first for the second.
pub fn compared_texts(op: BinaryOp, a: &str, b: &str) -> Option<bool> {
    match op {
        BinaryOp::StartsWith => Some(a.starts_with(b)),
        BinaryOp::EndsWith => Some(a.ends_with(b)),
        BinaryOp::Contains => Some(contains_text(a, b)),
        _ => meets(op, a.cmp(b)),
    }
}

/// A value of three: None is null.
pub fn boolean(value: Option<bool>) -> Val {
    value.map_or(Val::Null, Val::Bool)
}
