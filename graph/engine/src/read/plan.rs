//! What a query does, with variables as slots of a row. `compile.rs` makes it.

use std::rc::Rc;

use arcstr::ArcStr;
use grafeo_adapters::query::cypher::{BinaryOp, Direction, ListPredicateKind, UnaryOp};

use super::aggregate::Aggregate;
use super::functions::Function;
use super::scan::Test;
use super::value::Val;

/// A row: a value for each slot.
pub type Row = Vec<Val>;

/// Queries joined by UNION.
pub struct Query {
    pub branches: Vec<Vec<Part>>,
    pub keeps_all: bool,
    pub columns: Vec<String>,
}

/// Clauses up to a WITH or the RETURN. Its rows begin with the columns of the part before.
pub struct Part {
    pub stages: Vec<Stage>,
    pub projection: Projection,
    pub width: usize,
}

pub enum Stage {
    Match { steps: Vec<Step>, optional: Option<Vec<usize>> },
    Unwind { list: Expr, slot: usize },
    Filter(Expr),
}

/// A step of a pattern. A node that a step binds must have the labels.
pub enum Step {
    Scan { slot: usize, from: Start, labels: Labels, tests: Vec<Test> },
    Check { slot: usize, labels: Labels },
    Expand(Expand),
    Filter(Expr),
    Path { slot: usize, nodes: Vec<usize>, edges: Vec<usize> },
}

/// The labels that a node must have. None: no node has them all.
pub type Labels = Option<Vec<usize>>;

/// Where a scan finds its nodes.
pub enum Start {
    All,
    Label(usize),
    /// The property `id` has this value. The filter of it follows.
    Id(Expr),
}

pub struct Expand {
    pub from: usize,
    pub to: usize,
    pub to_is_bound: bool,
    pub labels: Labels,
    pub edge: usize,
    pub edge_is_bound: bool,
    pub direction: Direction,
    /// None: any.
    pub types: Option<Vec<u32>>,
    /// The least and the most edges of a path.
    pub length: Option<(usize, usize)>,
    /// What each edge of a path of many must meet; it is in this slot.
    pub each: Option<(usize, Expr)>,
    /// The slots of other edges of the pattern, which must not be the same.
    pub others: Vec<usize>,
    /// Whether the pattern names the end of the path first.
    pub is_turned: bool,
}

pub struct Projection {
    pub items: Vec<Item>,
    pub aggregates: Vec<Aggregate>,
    pub is_grouped: bool,
    pub is_distinct: bool,
    /// Expressions over the row with the items, and whether they descend.
    pub sort: Vec<(Expr, bool)>,
    pub skip: Option<Expr>,
    pub limit: Option<Expr>,
    /// Over the row with the items.
    pub filter: Option<Expr>,
    /// Over the items alone.
    pub late_filter: Option<Expr>,
}

pub struct Item {
    pub expr: Expr,
    pub slot: usize,
    pub has_aggregate: bool,
}

pub enum Expr {
    Literal(Val),
    Slot(usize),
    Property(Box<Expr>, Key),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Call(Function, Vec<Expr>),
    HasLabel(Box<Expr>, ArcStr),
    List(Vec<Expr>),
    Map(Vec<(ArcStr, Expr)>),
    /// A map with some or all properties of a node, an edge or a map.
    Pick {
        base: Box<Expr>,
        all: bool,
        entries: Vec<(ArcStr, Expr)>,
    },
    Each {
        slot: usize,
        list: Box<Expr>,
        filter: Option<Box<Expr>>,
        item: Option<Box<Expr>>,
    },
    Quantifier {
        kind: ListPredicateKind,
        slot: usize,
        list: Box<Expr>,
        test: Box<Expr>,
    },
    Reduce {
        total: usize,
        first: Box<Expr>,
        slot: usize,
        list: Box<Expr>,
        next: Box<Expr>,
    },
    Case {
        input: Option<Box<Expr>>,
        whens: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Exists(Rc<Vec<Stage>>),
    Count(Rc<Vec<Stage>>),
    Matches(Rc<Vec<Stage>>, Box<Expr>),
}

/// A property's name and column. No column: no node and no edge has it.
pub struct Key {
    pub name: ArcStr,
    pub column: Option<usize>,
}

impl Expr {
    /// Adds the slots below a bound that the expression reads.
    pub fn add_slots(&self, below: usize, out: &mut Vec<usize>) {
        let mut add = |expr: &Expr| expr.add_slots(below, out);
        match self {
            Self::Literal(_) => {}
            Self::Slot(slot) => {
                if *slot < below {
                    out.push(*slot);
                }
            }
            Self::Property(base, _) | Self::HasLabel(base, _) | Self::Unary(_, base) => add(base),
            Self::Index(a, b) | Self::Binary(_, a, b) => {
                add(a);
                add(b);
            }
            Self::Slice(base, start, end) => {
                add(base);
                start.iter().chain(end).for_each(|e| add(e));
            }
            Self::Call(_, all) | Self::List(all) => all.iter().for_each(add),
            Self::Map(entries) => entries.iter().for_each(|(_, e)| add(e)),
            Self::Pick { base, entries, .. } => {
                add(base);
                entries.iter().for_each(|(_, e)| add(e));
            }
            Self::Each { list, filter, item, .. } => {
                add(list);
                filter.iter().chain(item).for_each(|e| add(e));
            }
            Self::Quantifier { list, test, .. } => {
                add(list);
                add(test);
            }
            Self::Reduce { first, list, next, .. } => {
                [first, list, next].into_iter().for_each(|e| add(e))
            }
            Self::Case { input, whens, otherwise } => {
                input.iter().chain(otherwise).for_each(|e| add(e));
                whens.iter().for_each(|(a, b)| {
                    add(a);
                    add(b);
                });
            }
            Self::Exists(stages) | Self::Count(stages) => add_stages(stages, below, out),
            Self::Matches(stages, item) => {
                add(item);
                add_stages(stages, below, out);
            }
        }
    }
}

fn add_stages(stages: &[Stage], below: usize, out: &mut Vec<usize>) {
    for stage in stages {
        match stage {
            Stage::Filter(expr) | Stage::Unwind { list: expr, .. } => expr.add_slots(below, out),
            Stage::Match { steps, .. } => {
                for step in steps {
                    match step {
                        Step::Filter(expr) | Step::Scan { from: Start::Id(expr), .. } => {
                            expr.add_slots(below, out);
                        }
                        Step::Expand(e) => {
                            out.extend(
                                [e.from, e.to, e.edge].into_iter().filter(|slot| *slot < below),
                            );
                            if let Some((_, test)) = &e.each {
                                test.add_slots(below, out);
                            }
                        }
                        Step::Scan { slot, .. } | Step::Check { slot, .. } => {
                            out.extend(Some(*slot).filter(|slot| *slot < below));
                        }
                        Step::Path { .. } => {}
                    }
                }
            }
        }
    }
}
