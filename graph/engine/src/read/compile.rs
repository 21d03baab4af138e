//! Makes plans of parsed queries: names become slots, parameters become values.

use std::collections::HashMap;

use arcstr::ArcStr;
use grafeo_adapters::query::cypher::{
    BinaryOp, Clause, Expression, Literal, MapProjectionEntry, Query as ParsedQuery, ReturnItems,
    Statement,
};
use grafeo_common::types::Value;

use super::aggregate::{Aggregate, Measure};
use super::columns::Tail;
use super::eval::wrong;
use super::functions;
use super::plan::{Expr, Key, Part, Query, Stage};
use super::snapshot::Snapshot;
use super::value::Val;
use crate::failure::Failure;

/// Why there is no plan.
pub enum Stop {
    /// The engine's library has to answer: the query writes, or uses something that is not here.
    Unknown,
    Failed(Box<Failure>),
}

impl From<Box<Failure>> for Stop {
    fn from(failure: Box<Failure>) -> Self {
        Self::Failed(failure)
    }
}

pub type Compiled<T> = Result<T, Stop>;

pub struct Compiler<'a> {
    pub snapshot: &'a Snapshot,
    pub parameters: &'a HashMap<String, Value>,
    /// The longest path without an upper bound.
    pub longest: usize,
    /// Whether a pattern may be a subquery, which has variables of its own.
    pub has_subqueries: bool,
    pub scope: Vec<(String, usize)>,
    pub width: usize,
    pub aggregates: Option<Vec<Aggregate>>,
}

pub fn compile(
    statement: &Statement,
    snapshot: &Snapshot,
    parameters: &HashMap<String, Value>,
    longest: usize,
    has_subqueries: bool,
) -> Compiled<Query> {
    let (queries, keeps_all): (Vec<&ParsedQuery>, bool) = match statement {
        Statement::Query(query) => (vec![query], true),
        Statement::Union { queries, all } => (queries.iter().collect(), *all),
        _ => return Err(Stop::Unknown),
    };
    let mut branches = Vec::new();
    let mut columns: Option<Vec<String>> = None;
    for query in queries {
        let mut compiler = Compiler {
            snapshot,
            parameters,
            longest,
            has_subqueries,
            scope: Vec::new(),
            width: 0,
            aggregates: None,
        };
        let (parts, names) = compiler.query(&query.clauses)?;
        if columns.as_ref().is_some_and(|columns| *columns != names) {
            return Err(wrong("the parts of UNION must have the same columns").into());
        }
        columns = Some(names);
        branches.push(parts);
    }
    Ok(Query { branches, keeps_all, columns: columns.unwrap_or_default() })
}

impl<'a> Compiler<'a> {
    fn query(&mut self, clauses: &[Clause]) -> Compiled<(Vec<Part>, Vec<String>)> {
        let mut parts = Vec::new();
        let mut stages = Vec::new();
        let mut at = 0;
        while at < clauses.len() {
            at += match &clauses[at] {
                Clause::With(with) => {
                    let tail = Tail::read(&clauses[at + 1..], true);
                    let filters = [with.where_clause.as_ref().map(|w| &w.predicate), tail.filter];
                    let items = if with.is_wildcard { None } else { Some(&with.items[..]) };
                    let (projection, names) =
                        self.projection(items, with.distinct, &tail, &filters)?;
                    if names.iter().any(String::is_empty) {
                        return Err(wrong("a column of WITH needs a name: add AS name").into());
                    }
                    let stages = std::mem::take(&mut stages);
                    parts.push(Part { stages, projection, width: self.width });
                    self.scope =
                        names.into_iter().enumerate().map(|(slot, name)| (name, slot)).collect();
                    self.width = self.scope.len();
                    1 + tail.length
                }
                Clause::Return(returned) => {
                    let tail = Tail::read(&clauses[at + 1..], false);
                    if at + 1 + tail.length < clauses.len() {
                        return Err(Stop::Unknown);
                    }
                    let items = match &returned.items {
                        ReturnItems::All => None,
                        ReturnItems::Explicit(items) => Some(&items[..]),
                    };
                    if items.is_none() && self.named().next().is_none() {
                        return Err(wrong("RETURN * has no variable to return").into());
                    }
                    let (projection, names) =
                        self.projection(items, returned.distinct, &tail, &[])?;
                    parts.push(Part { stages, projection, width: self.width });
                    return Ok((parts, names));
                }
                _ => self.stage(&clauses[at..], &mut stages)?,
            };
        }
        Err(Stop::Unknown)
    }

    /// Compiles the first of some clauses, with its WHERE, and returns how many they are.
    fn stage(&mut self, clauses: &[Clause], stages: &mut Vec<Stage>) -> Compiled<usize> {
        let filter = match clauses.get(1) {
            Some(Clause::Where(filter)) => Some(&filter.predicate),
            _ => None,
        };
        match &clauses[0] {
            Clause::Match(pattern) => {
                stages.push(self.pattern(&pattern.patterns, filter, false)?)
            }
            Clause::OptionalMatch(pattern) => {
                stages.push(self.pattern(&pattern.patterns, filter, true)?)
            }
            Clause::Unwind(unwind) => {
                let list = self.expression(&unwind.expression)?;
                let slot = self.declare(&unwind.variable)?;
                stages.push(Stage::Unwind { list, slot });
                return Ok(1);
            }
            Clause::Where(filter) => {
                let filter = self.expression(&filter.predicate)?;
                stages.push(Stage::Filter(filter));
                return Ok(1);
            }
            _ => return Err(Stop::Unknown),
        }
        Ok(1 + usize::from(filter.is_some()))
    }

    /// The stages of a subquery, which may use the variables outside.
    fn subquery(&mut self, query: &ParsedQuery) -> Compiled<Vec<Stage>> {
        let scope = self.scope.len();
        let mut stages = Vec::new();
        let mut at = 0;
        while at < query.clauses.len() {
            if matches!(query.clauses[at], Clause::Return(_)) && at + 1 == query.clauses.len() {
                break;
            }
            at += self.stage(&query.clauses[at..], &mut stages)?;
        }
        if !self.has_subqueries && self.scope[scope..].iter().any(|(name, _)| !name.is_empty()) {
            return Err(wrong("a pattern in an expression cannot introduce a variable").into());
        }
        self.scope.truncate(scope);
        Ok(stages)
    }

    pub fn find(&self, name: &str) -> Option<usize> {
        self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, slot)| *slot)
    }

    /// The named variables, each once.
    pub fn named(&self) -> impl Iterator<Item = (&str, usize)> {
        self.scope
            .iter()
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, slot)| (name.as_str(), *slot))
    }

    pub fn new_slot(&mut self) -> usize {
        self.width += 1;
        self.width - 1
    }

    /// Gives a new variable a slot.
    pub fn declare(&mut self, name: &str) -> Compiled<usize> {
        if !name.is_empty() && self.find(name).is_some() {
            return Err(wrong(format!("the variable {name} is known already")).into());
        }
        let slot = self.new_slot();
        self.scope.push((name.to_owned(), slot));
        Ok(slot)
    }

    fn boxed(&mut self, e: &Expression) -> Compiled<Box<Expr>> {
        Ok(Box::new(self.expression(e)?))
    }

    fn optional(&mut self, e: Option<&Expression>) -> Compiled<Option<Box<Expr>>> {
        e.map(|e| self.boxed(e)).transpose()
    }

    pub fn all(&mut self, all: &[Expression]) -> Compiled<Vec<Expr>> {
        all.iter().map(|e| self.expression(e)).collect()
    }

    pub fn key(&self, name: &str) -> Key {
        Key { name: name.into(), column: self.snapshot.find_column(name) }
    }

    /// Compiles an expression with a variable of its own.
    fn with_variable<T>(
        &mut self,
        name: &str,
        then: impl FnOnce(&mut Self, usize) -> Compiled<T>,
    ) -> Compiled<T> {
        let slot = self.new_slot();
        self.scope.push((name.to_owned(), slot));
        let result = then(self, slot);
        self.scope.pop();
        result
    }

    pub fn expression(&mut self, e: &Expression) -> Compiled<Expr> {
        Ok(match e {
            Expression::Literal(literal) => Expr::Literal(match literal {
                Literal::Null => Val::Null,
                Literal::Bool(value) => Val::Bool(*value),
                Literal::Integer(value) => Val::Int(*value),
                Literal::Float(value) if value.is_infinite() => {
                    return Err(wrong("a float is out of range").into());
                }
                Literal::Float(value) => Val::Float(*value),
                Literal::String(text) => Val::text(text.as_str()),
            }),
            Expression::Variable(name) => match self.find(name) {
                Some(slot) => Expr::Slot(slot),
                None => return Err(wrong(format!("the variable {name} is not defined")).into()),
            },
            Expression::Parameter(name) => match self.parameters.get(name) {
                Some(value) => Expr::Literal(Val::of(value)),
                None => return Err(wrong(format!("the parameter ${name} is missing")).into()),
            },
            Expression::PropertyAccess { base, property } => {
                Expr::Property(self.boxed(base)?, self.key(property))
            }
            Expression::IndexAccess { base, index } => {
                Expr::Index(self.boxed(base)?, self.boxed(index)?)
            }
            Expression::SliceAccess { base, start, end } => {
                let base = self.boxed(base)?;
                Expr::Slice(base, self.optional(start.as_deref())?, self.optional(end.as_deref())?)
            }
            Expression::Binary { left, op, right } => self.binary(left, *op, right)?,
            Expression::Unary { op, operand } => Expr::Unary(*op, self.boxed(operand)?),
            Expression::FunctionCall { name, distinct, args } => {
                self.call(name, *distinct, args)?
            }
            Expression::List(items) => Expr::List(self.all(items)?),
            Expression::Map(entries) => Expr::Map(self.entries(entries)?),
            Expression::ListComprehension { variable, list, filter, projection } => {
                let list = self.boxed(list)?;
                self.with_variable(variable, |own, slot| {
                    let filter = own.optional(filter.as_deref())?;
                    let item = own.optional(projection.as_deref())?;
                    Ok(Expr::Each { slot, list, filter, item })
                })?
            }
            Expression::ListPredicate { kind, variable, list, predicate } => {
                let list = self.boxed(list)?;
                self.with_variable(variable, |own, slot| {
                    let test = own.boxed(predicate)?;
                    Ok(Expr::Quantifier { kind: kind.clone(), slot, list, test })
                })?
            }
            Expression::Reduce { accumulator, initial, variable, list, expression } => {
                let (first, list) = (self.boxed(initial)?, self.boxed(list)?);
                self.with_variable(accumulator, |own, total| {
                    own.with_variable(variable, |own, slot| {
                        Ok(Expr::Reduce { total, first, slot, list, next: own.boxed(expression)? })
                    })
                })?
            }
            Expression::Case { input, whens, else_clause } => {
                let input = self.optional(input.as_deref())?;
                let mut pairs = Vec::new();
                for (when, then) in whens {
                    pairs.push((self.expression(when)?, self.expression(then)?));
                }
                Expr::Case {
                    input,
                    whens: pairs,
                    otherwise: self.optional(else_clause.as_deref())?,
                }
            }
            Expression::Exists(query) => Expr::Exists(self.subquery(query)?.into()),
            Expression::CountSubquery(query) => Expr::Count(self.subquery(query)?.into()),
            Expression::PatternComprehension { pattern, where_clause, projection } => {
                let scope = self.scope.len();
                let pattern = std::slice::from_ref(&**pattern);
                let stage = self.pattern(pattern, where_clause.as_deref(), false)?;
                let item = self.boxed(projection)?;
                self.scope.truncate(scope);
                Expr::Matches(vec![stage].into(), item)
            }
            Expression::MapProjection { base, entries } => {
                let Some(slot) = self.find(base) else {
                    return Err(wrong(format!("the variable {base} is not defined")).into());
                };
                let mut all = false;
                let mut own = Vec::new();
                for entry in entries {
                    match entry {
                        MapProjectionEntry::AllProperties => all = true,
                        MapProjectionEntry::PropertySelector(name) => {
                            let value = Expr::Property(Expr::Slot(slot).into(), self.key(name));
                            own.push((ArcStr::from(name.as_str()), value));
                        }
                        MapProjectionEntry::LiteralEntry(name, value) => {
                            own.push((ArcStr::from(name.as_str()), self.expression(value)?));
                        }
                    }
                }
                Expr::Pick { base: Expr::Slot(slot).into(), all, entries: own }
            }
        })
    }

    pub fn entries(&mut self, entries: &[(String, Expression)]) -> Compiled<Vec<(ArcStr, Expr)>> {
        entries
            .iter()
            .map(|(key, e)| Ok((ArcStr::from(key.as_str()), self.expression(e)?)))
            .collect()
    }

    /// Compiles an operator. `a < b < c` is `a < b AND b < c`.
    fn binary(&mut self, left: &Expression, op: BinaryOp, right: &Expression) -> Compiled<Expr> {
        let is_order = |op| matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge);
        if let Expression::Binary { op: first, right: middle, .. } = left
            && is_order(op)
            && is_order(*first)
        {
            let second = Expr::Binary(op, self.boxed(middle)?, self.boxed(right)?);
            return Ok(Expr::Binary(BinaryOp::And, self.boxed(left)?, second.into()));
        }
        Ok(Expr::Binary(op, self.boxed(left)?, self.boxed(right)?))
    }

    fn call(&mut self, name: &str, is_distinct: bool, args: &[Expression]) -> Compiled<Expr> {
        let lower = name.to_lowercase();
        if lower == "haslabel" && args.len() == 2 {
            if let Expression::Literal(Literal::String(label)) = &args[1] {
                return Ok(Expr::HasLabel(self.boxed(&args[0])?, label.as_str().into()));
            }
        }
        if let Some(measure) = Measure::named(&lower) {
            return self.aggregate(measure, is_distinct, args);
        }
        let function = functions::find(&lower, args.len())
            .map_err(|why| why.map_or(Stop::Unknown, |why| wrong(why).into()))?;
        Ok(Expr::Call(function, self.all(args)?))
    }
}
