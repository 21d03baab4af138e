//! The values of expressions.

use std::collections::BTreeMap;
use std::rc::Rc;

use arcstr::ArcStr;
use grafeo_adapters::query::cypher::{BinaryOp, ListPredicateKind, UnaryOp};

use super::aggregate::number;
use super::column::Column;
use super::operators::{add, arithmetic, boolean, compared, contains, matches, meets};
use super::plan::{Expr, Key, Row};
use super::run::Flow;
use super::snapshot::Snapshot;
use super::value::{Val, equal};
use crate::failure::{Failure, Kind};
use crate::property::PropertyGraph;
use crate::temporal::{Component, Moment, now};

pub type Result<T> = std::result::Result<T, Box<Failure>>;

/// A query that cannot be answered.
pub fn wrong(message: impl Into<String>) -> Box<Failure> {
    Box::new(Failure::new(Kind::Query, message))
}

/// What a query reads.
pub struct Reader<'a> {
    pub snapshot: &'a Snapshot,
    pub graph: &'a PropertyGraph,
    /// When the query began, in UTC.
    pub clock: Moment,
}

/// Whether a condition holds: null does not.
pub fn holds(value: &Val) -> Result<bool> {
    match value {
        Val::Bool(value) => Ok(*value),
        Val::Null => Ok(false),
        other => Err(wrong(format!("a condition must be a boolean, not {}", other.kind()))),
    }
}

/// A value of a logical operator: None is null.
fn logical(value: &Val) -> Result<Option<bool>> {
    match value {
        Val::Bool(value) => Ok(Some(*value)),
        Val::Null => Ok(None),
        other => Err(wrong(format!("AND, OR, XOR and NOT need booleans, not {}", other.kind()))),
    }
}

fn list_of(value: Val) -> Result<Option<Rc<Vec<Val>>>> {
    match value {
        Val::List(items) => Ok(Some(items)),
        Val::Null => Ok(None),
        other => Err(wrong(format!("a list is needed, not {}", other.kind()))),
    }
}

impl<'a> Reader<'a> {
    pub fn new(snapshot: &'a Snapshot, graph: &'a PropertyGraph) -> Self {
        Self { snapshot, graph, clock: now() }
    }

    pub fn eval(&self, expr: &Expr, row: &mut Row) -> Result<Val> {
        Ok(match expr {
            Expr::Literal(value) => value.clone(),
            Expr::Slot(slot) => row[*slot].clone(),
            Expr::Property(base, key) => match &**base {
                Expr::Slot(slot) => self.property(&row[*slot], key)?,
                base => self.property(&self.eval(base, row)?, key)?,
            },
            Expr::Binary(op, a, b) => self.binary(*op, a, b, row)?,
            Expr::Unary(op, operand) => unary(*op, self.eval(operand, row)?)?,
            Expr::Call(function, args) => {
                let args: Result<Vec<Val>> = args.iter().map(|arg| self.eval(arg, row)).collect();
                function(self, &args?)?
            }
            Expr::HasLabel(base, label) => self.has_label(&self.eval(base, row)?, label)?,
            Expr::Index(base, index) => {
                let base = self.eval(base, row)?;
                let index = self.eval(index, row)?;
                self.index(&base, &index)?
            }
            Expr::Slice(base, start, end) => {
                let base = self.eval(base, row)?;
                let start = self.optional(start.as_deref(), row)?;
                let end = self.optional(end.as_deref(), row)?;
                slice(base, start, end)?
            }
            Expr::List(items) => {
                let items: Result<Vec<Val>> =
                    items.iter().map(|item| self.eval(item, row)).collect();
                Val::list(items?)
            }
            Expr::Map(entries) => Val::Map(Rc::new(self.entries(entries, row)?)),
            Expr::Pick { base, all, entries } => {
                let base = self.eval(base, row)?;
                if base.is_null() {
                    return Ok(Val::Null);
                }
                let mut map = if *all { self.properties(&base)? } else { BTreeMap::new() };
                map.extend(self.entries(entries, row)?);
                Val::Map(Rc::new(map))
            }
            Expr::Each { slot, list, filter, item } => {
                let Some(items) = list_of(self.eval(list, row)?)? else { return Ok(Val::Null) };
                let mut out = Vec::new();
                for value in items.iter() {
                    row[*slot] = value.clone();
                    if let Some(filter) = filter
                        && !holds(&self.eval(filter, row)?)?
                    {
                        continue;
                    }
                    out.push(match item {
                        Some(item) => self.eval(item, row)?,
                        None => value.clone(),
                    });
                }
                Val::list(out)
            }
            Expr::Quantifier { kind, slot, list, test } => {
                let Some(items) = list_of(self.eval(list, row)?)? else { return Ok(Val::Null) };
                self.quantify(kind, *slot, &items, test, row)?
            }
            Expr::Reduce { total, first, slot, list, next } => {
                row[*total] = self.eval(first, row)?;
                let Some(items) = list_of(self.eval(list, row)?)? else { return Ok(Val::Null) };
                for value in items.iter() {
                    row[*slot] = value.clone();
                    row[*total] = self.eval(next, row)?;
                }
                row[*total].clone()
            }
            Expr::Case { input, whens, otherwise } => {
                let input = match input {
                    Some(input) => Some(self.eval(input, row)?),
                    None => None,
                };
                for (when, then) in whens {
                    let value = self.eval(when, row)?;
                    let is_met = match &input {
                        Some(input) => equal(input, &value) == Some(true),
                        None => holds(&value)?,
                    };
                    if is_met {
                        return self.eval(then, row);
                    }
                }
                return self.optional(otherwise.as_deref(), row).map(|v| v.unwrap_or(Val::Null));
            }
            Expr::Exists(stages) => {
                let mut found = false;
                self.run_stages(stages, row, &mut |_: &mut Row| {
                    found = true;
                    Ok(Flow::Stop)
                })?;
                Val::Bool(found)
            }
            Expr::Count(stages) => {
                let mut count = 0;
                self.run_stages(stages, row, &mut |_: &mut Row| {
                    count += 1;
                    Ok(Flow::Next)
                })?;
                Val::Int(count)
            }
            Expr::Matches(stages, item) => {
                let mut out = Vec::new();
                self.run_stages(stages, row, &mut |row: &mut Row| {
                    out.push(self.eval(item, row)?);
                    Ok(Flow::Next)
                })?;
                Val::list(out)
            }
        })
    }

    fn optional(&self, expr: Option<&Expr>, row: &mut Row) -> Result<Option<Val>> {
        expr.map(|expr| self.eval(expr, row)).transpose()
    }

    fn entries(&self, entries: &[(ArcStr, Expr)], row: &mut Row) -> Result<BTreeMap<ArcStr, Val>> {
        entries.iter().map(|(key, expr)| Ok((key.clone(), self.eval(expr, row)?))).collect()
    }

    pub fn property(&self, base: &Val, key: &Key) -> Result<Val> {
        Ok(match base {
            Val::Null => Val::Null,
            Val::Node(node) => {
                key.column.map_or(Val::Null, |at| self.snapshot.column(at).get(*node))
            }
            Val::Edge(edge) => {
                key.column.map_or(Val::Null, |at| self.snapshot.edge_property(*edge, at))
            }
            Val::Map(map) => map.get(&key.name).cloned().unwrap_or(Val::Null),
            Val::Moment(moment) => match moment.component(&key.name) {
                Some(Component::Number(number)) => Val::Int(number),
                Some(Component::Text(text)) => Val::text(text),
                None => Val::Null,
            },
            Val::Duration(d) => d.component(&key.name).map_or(Val::Null, Val::Int),
            other => {
                let message = format!("{} has no properties, so no {}", other.kind(), key.name);
                return Err(wrong(message));
            }
        })
    }

    /// All properties of a node, an edge or a map.
    pub fn properties(&self, base: &Val) -> Result<BTreeMap<ArcStr, Val>> {
        let read = |column: usize| match base {
            Val::Node(node) => self.snapshot.column(column).get(*node),
            Val::Edge(edge) => self.snapshot.edge_property(*edge, column),
            _ => Val::Null,
        };
        match base {
            Val::Map(map) => Ok((**map).clone()),
            Val::Node(_) | Val::Edge(_) => {
                let all =
                    self.snapshot.columns().map(|(name, column)| (name.clone(), read(column)));
                Ok(all.filter(|(_, value)| !value.is_null()).collect())
            }
            other => Err(wrong(format!("{} has no properties", other.kind()))),
        }
    }

    fn has_label(&self, base: &Val, label: &ArcStr) -> Result<Val> {
        Ok(match base {
            Val::Null => Val::Null,
            Val::Node(node) => {
                let found = self.snapshot.find_label(label);
                Val::Bool(found.is_some_and(|label| self.snapshot.has_label(*node, label)))
            }
            Val::Edge(edge) => Val::Bool(self.snapshot.type_name(*edge) == label),
            other => return Err(wrong(format!("{} has no labels", other.kind()))),
        })
    }

    fn binary(&self, op: BinaryOp, a: &Expr, b: &Expr, row: &mut Row) -> Result<Val> {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            let first = logical(&self.eval(a, row)?)?;
            let decides = op == BinaryOp::Or;
            if first == Some(decides)
                && !matches!(b, Expr::Literal(_) | Expr::List(_) | Expr::Map(_))
            {
                return Ok(Val::Bool(decides));
            }
            let second = logical(&self.eval(b, row)?)?;
            return Ok(if first == Some(decides) || second == Some(decides) {
                Val::Bool(decides)
            } else {
                boolean(first.and(second))
            });
        }

        if let (Some(a), Some(b)) = (self.integer(a, row), self.integer(b, row))
            && let Some(result) = meets(op, a.cmp(&b))
        {
            return Ok(Val::Bool(result));
        }
        let (a, b) = (self.eval(a, row)?, self.eval(b, row)?);
        if let Some(result) = compared(op, &a, &b) {
            return Ok(result);
        }
        Ok(match op {
            BinaryOp::Xor => match (logical(&a)?, logical(&b)?) {
                (Some(a), Some(b)) => Val::Bool(a != b),
                _ => Val::Null,
            },
            BinaryOp::In => boolean(contains(&a, &b)?),
            BinaryOp::Add | BinaryOp::Concat => add(a, b)?,
            BinaryOp::Pow if a.is_null() || b.is_null() => Val::Null,
            BinaryOp::Pow => Val::Float(number(&a)?.powf(number(&b)?)),
            BinaryOp::RegexMatch => matches(&a, &b)?,
            _ => arithmetic(op, &a, &b)?,
        })
    }

    /// The integer that an expression is without any calculation: most conditions have one.
    fn integer(&self, expr: &Expr, row: &Row) -> Option<i64> {
        match expr {
            Expr::Literal(Val::Int(value)) => Some(*value),
            Expr::Property(base, key) => match (&**base, key.column) {
                (Expr::Slot(slot), Some(column)) => match row[*slot] {
                    Val::Node(node) => match self.snapshot.column(column) {
                        Column::Integers(integers) => integers.get(node),
                        _ => None,
                    },
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    fn index(&self, base: &Val, index: &Val) -> Result<Val> {
        match (base, index) {
            (Val::List(items), Val::Int(at)) => {
                let at = if *at < 0 { at + items.len() as i64 } else { *at };
                let found = usize::try_from(at).ok().and_then(|at| items.get(at));
                Ok(found.cloned().unwrap_or(Val::Null))
            }
            (Val::Null, Val::Str(_) | Val::Int(_) | Val::Null) => Ok(Val::Null),
            (Val::Map(_) | Val::Node(_) | Val::Edge(_) | Val::List(_), Val::Null) => Ok(Val::Null),
            (Val::Map(_) | Val::Node(_) | Val::Edge(_), Val::Str(name)) => {
                let key = Key { name: name.clone(), column: self.snapshot.find_column(name) };
                self.property(base, &key)
            }
            (Val::List(_), other) => {
                Err(wrong(format!("the index of a list must be an integer, not {}", other.kind())))
            }
            (Val::Map(_), other) => {
                Err(wrong(format!("the key of a map must be a text, not {}", other.kind())))
            }
            (other, _) => Err(wrong(format!("{} has no elements", other.kind()))),
        }
    }

    fn quantify(
        &self,
        kind: &ListPredicateKind,
        slot: usize,
        items: &[Val],
        test: &Expr,
        row: &mut Row,
    ) -> Result<Val> {
        let (mut met, mut unknown) = (0usize, false);
        for value in items {
            row[slot] = value.clone();
            match logical(&self.eval(test, row)?)? {
                Some(true) => met += 1,
                Some(false) if *kind == ListPredicateKind::All => return Ok(Val::Bool(false)),
                Some(false) => {}
                None => unknown = true,
            }
            let is_decided = match kind {
                ListPredicateKind::Any | ListPredicateKind::None => met > 0,
                ListPredicateKind::Single => met > 1,
                ListPredicateKind::All => false,
            };
            if is_decided {
                return Ok(Val::Bool(*kind == ListPredicateKind::Any));
            }
        }
        if unknown {
            return Ok(Val::Null);
        }
        Ok(Val::Bool(match kind {
            ListPredicateKind::All | ListPredicateKind::None => true,
            ListPredicateKind::Any => false,
            ListPredicateKind::Single => met == 1,
        }))
    }
}

fn unary(op: UnaryOp, value: Val) -> Result<Val> {
    Ok(match (op, value) {
        (UnaryOp::IsNull, value) => Val::Bool(value.is_null()),
        (UnaryOp::IsNotNull, value) => Val::Bool(!value.is_null()),
        (UnaryOp::Not, value) => boolean(logical(&value)?.map(|value| !value)),
        (_, Val::Null) => Val::Null,
        (UnaryOp::Neg, Val::Int(value)) => {
            Val::Int(value.checked_neg().ok_or_else(|| wrong("the number has more than 64 bits"))?)
        }
        (UnaryOp::Neg, Val::Float(value)) => Val::Float(-value),
        (UnaryOp::Neg, Val::Duration(d)) => {
            let negative = d.times(-1.0).ok_or_else(|| wrong("the duration is too long"))?;
            Val::Duration(negative.into())
        }
        (UnaryOp::Pos, value @ (Val::Int(_) | Val::Float(_))) => value,
        (_, other) => return Err(wrong(format!("a number is needed, not {}", other.kind()))),
    })
}

fn slice(base: Val, start: Option<Val>, end: Option<Val>) -> Result<Val> {
    let Some(items) = list_of(base)? else { return Ok(Val::Null) };
    let length = items.len() as i64;
    let place = |value: Option<Val>, default: i64| match value {
        None => Ok(Some(default)),
        Some(Val::Int(at)) => Ok(Some((if at < 0 { at + length } else { at }).clamp(0, length))),
        Some(Val::Null) => Ok(None),
        Some(other) => Err(wrong(format!("a slice needs integers, not {}", other.kind()))),
    };
    let (Some(start), Some(end)) = (place(start, 0)?, place(end, length)?) else {
        return Ok(Val::Null);
    };
    if start >= end {
        return Ok(Val::list(Vec::new()));
    }
    Ok(Val::list(items[start as usize..end as usize].to_vec()))
}
