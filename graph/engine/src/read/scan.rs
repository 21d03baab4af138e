//! Conditions that a scan tests on many nodes at once, column by column. They cannot fail.

use grafeo_adapters::query::cypher::{BinaryOp, UnaryOp};

use super::column::Column;
use super::operators::{compared, compared_texts};
use super::plan::Expr;
use super::snapshot::Snapshot;
use super::value::Val;

/// How many nodes a scan tests at once. Their numbers stay in the processor's cache.
pub const BLOCK: usize = 1024;

/// A condition on a property of the node that a scan binds.
pub enum Test {
    /// The property on the left, a constant on the right.
    Compare {
        column: Option<usize>,
        op: BinaryOp,
        value: Val,
    },
    Presence {
        column: Option<usize>,
        is_wanted: bool,
    },
    Either(Box<Test>, Box<Test>),
    Both(Box<Test>, Box<Test>),
}

impl Test {
    /// The test that a condition is, if it reads nothing but properties of the node in a slot.
    pub fn of(expr: &Expr, slot: usize) -> Option<Self> {
        match expr {
            Expr::Binary(op @ (BinaryOp::Or | BinaryOp::And), a, b) => {
                let (a, b) = (Self::of(a, slot)?.into(), Self::of(b, slot)?.into());
                Some(if *op == BinaryOp::Or { Self::Either(a, b) } else { Self::Both(a, b) })
            }
            Expr::Binary(op, a, b) => match (&**a, &**b) {
                (property, Expr::Literal(value)) if is_test(*op) => {
                    let column = column_of(property, slot)?;
                    Some(Self::Compare { column, op: *op, value: value.clone() })
                }
                (Expr::Literal(value), property) => {
                    let column = column_of(property, slot)?;
                    Some(Self::Compare { column, op: turned(*op)?, value: value.clone() })
                }
                _ => None,
            },
            Expr::Unary(op @ (UnaryOp::IsNull | UnaryOp::IsNotNull), property) => {
                let column = column_of(property, slot)?;
                Some(Self::Presence { column, is_wanted: *op == UnaryOp::IsNotNull })
            }
            _ => None,
        }
    }

    /// Keeps the nodes that meet the test.
    pub fn select(&self, snapshot: &Snapshot, nodes: &mut Vec<u32>) {
        match self {
            Self::Compare { column: None, .. } => nodes.clear(),
            Self::Compare { column: Some(column), op, value } => {
                select_values(snapshot.column(*column), *op, value, nodes);
            }
            Self::Presence { column, is_wanted } => {
                let has = |node| column.is_some_and(|at| snapshot.column(at).has(node));
                nodes.retain(|&node| has(node) == *is_wanted);
            }
            Self::Both(a, b) => {
                a.select(snapshot, nodes);
                b.select(snapshot, nodes);
            }
            Self::Either(a, b) => {
                let mut first = nodes.clone();
                a.select(snapshot, &mut first);
                let mut known = first.iter().copied().peekable();
                nodes.retain(|&node| known.next_if_eq(&node).is_none());
                b.select(snapshot, nodes);
                nodes.extend(first);
                nodes.sort_unstable();
            }
        }
    }
}

fn select_values(column: &Column, op: BinaryOp, value: &Val, nodes: &mut Vec<u32>) {
    match (column, value) {
        (Column::Integers(integers), Val::Int(value)) if turned(op).is_some() => {
            let (least, most) = match op {
                BinaryOp::Lt => (i64::MIN, value.checked_sub(1)),
                BinaryOp::Le => (i64::MIN, Some(*value)),
                BinaryOp::Gt => (value.saturating_add(1), (*value < i64::MAX).then_some(i64::MAX)),
                BinaryOp::Ge => (*value, Some(i64::MAX)),
                _ => (*value, Some(*value)),
            };
            match most {
                Some(most) => integers.select(nodes, least, most, op != BinaryOp::Ne),
                None => nodes.clear(), // nothing is beyond the end of the numbers
            }
        }
        (Column::Texts(texts), Val::Str(value)) => nodes.retain(|&node| {
            texts.get(node).is_some_and(|text| compared_texts(op, text, value) == Some(true))
        }),
        _ => nodes.retain(|&node| {
            matches!(compared(op, &column.get(node), value), Some(Val::Bool(true)))
        }),
    }
}

/// The column of a property of the node in a slot. The column is None if no node has it.
pub fn column_of(expr: &Expr, slot: usize) -> Option<Option<usize>> {
    match expr {
        Expr::Property(base, key) if matches!(**base, Expr::Slot(s) if s == slot) => {
            Some(key.column)
        }
        _ => None,
    }
}

fn is_test(op: BinaryOp) -> bool {
    turned(op).is_some()
        || matches!(op, BinaryOp::StartsWith | BinaryOp::EndsWith | BinaryOp::Contains)
}

/// The operator of a comparison whose sides change places.
fn turned(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq | BinaryOp::Ne => op,
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        _ => return None,
    })
}
