//! Plans of the columns of WITH and RETURN, with what follows them.

use grafeo_adapters::query::cypher::{
    Clause, Expression, OrderByClause, ProjectionItem, SortDirection,
};

use super::aggregate::{Aggregate, Measure};
use super::compile::{Compiled, Compiler};
use super::eval::wrong;
use super::plan::{Expr, Item, Projection};
use super::value::Val;

impl Compiler<'_> {
    pub fn projection(
        &mut self,
        items: Option<&[ProjectionItem]>,
        is_distinct: bool,
        tail: &Tail,
        filters: &[Option<&Expression>],
    ) -> Compiled<(Projection, Vec<String>)> {
        let outside = self.scope.clone();
        self.aggregates = Some(Vec::new());
        let (mut compiled, mut names) = (Vec::new(), Vec::new());
        match items {
            None => {
                for (name, slot) in self.named().map(|(n, s)| (n.to_owned(), s)).collect::<Vec<_>>()
                {
                    names.push(name);
                    compiled.push(Item { expr: Expr::Slot(slot), slot, has_aggregate: false });
                }
            }
            Some(items) => {
                for item in items {
                    let before = self.aggregate_count();
                    let expr = self.expression(&item.expression)?;
                    let slot = self.new_slot();
                    let name = match (&item.alias, &item.expression) {
                        (Some(alias), _) => alias.clone(),
                        (None, Expression::Variable(name)) => name.clone(),
                        _ => String::new(),
                    };
                    if !name.is_empty() && names.contains(&name) {
                        return Err(wrong(format!("two columns are called {name}")).into());
                    }
                    names.push(name);
                    compiled.push(Item {
                        expr,
                        slot,
                        has_aggregate: self.aggregate_count() > before,
                    });
                }
            }
        }

        let is_grouped = self.aggregate_count() > 0;
        if is_grouped || is_distinct {
            self.scope.clear(); // the rest sees the columns, and the variables that they group by
            if is_grouped {
                self.scope.clone_from(&outside);
            }
        }
        for (name, item) in names.iter().zip(&compiled) {
            if !name.is_empty() {
                self.scope.push((name.clone(), item.slot));
            }
        }
        let mut sort = Vec::new();
        for by in tail.order.iter().flat_map(|order| &order.items) {
            let same = items.and_then(|items| {
                items.iter().position(|item| {
                    format!("{:?}", item.expression) == format!("{:?}", by.expression)
                })
            });
            let expr = match same {
                Some(at) => Expr::Slot(compiled[at].slot),
                None => self.expression(&by.expression)?,
            };
            sort.push((expr, by.direction == SortDirection::Desc));
        }
        let aggregates = self.aggregates.take().unwrap_or_default();
        if !is_grouped && !aggregates.is_empty() {
            return Err(wrong("an aggregate cannot stand in ORDER BY alone").into());
        }
        let is_cut = tail.skip.is_some() || tail.limit.is_some();
        let mut filter = None;
        let mut late_filter = None;
        for predicate in filters.iter().flatten() {
            if is_cut {
                self.scope =
                    names.iter().enumerate().map(|(slot, name)| (name.clone(), slot)).collect();
                late_filter = Some(self.expression(predicate)?);
            } else {
                filter = Some(self.expression(predicate)?);
            }
        }
        self.scope = Vec::new();
        let skip = tail.skip.map(|e| self.expression(e)).transpose()?;
        let limit = tail.limit.map(|e| self.expression(e)).transpose()?;
        self.scope = outside;
        let projection = Projection {
            items: compiled,
            is_grouped,
            aggregates,
            is_distinct,
            sort,
            skip,
            limit,
            filter,
            late_filter,
        };
        Ok((projection, names))
    }

    fn aggregate_count(&self) -> usize {
        self.aggregates.as_ref().map_or(0, Vec::len)
    }

    pub fn aggregate(
        &mut self,
        measure: Measure,
        is_distinct: bool,
        args: &[Expression],
    ) -> Compiled<Expr> {
        let Some(mut aggregates) = self.aggregates.take() else {
            return Err(wrong("an aggregate cannot stand here").into());
        };
        let is_all = matches!(&args.first(), Some(Expression::Variable(name)) if name == "*");
        let wanted =
            1 + usize::from(matches!(measure, Measure::Percentile | Measure::PercentileOfValues));
        if args.len() != wanted {
            return Err(wrong("an aggregate has too many or too few arguments").into());
        }
        let aggregate = if is_all {
            Aggregate {
                measure: Measure::CountRows,
                argument: Expr::Literal(Val::Null),
                is_distinct: false,
                percentile: None,
                slot: self.new_slot(),
            }
        } else {
            let argument = self.expression(&args[0])?; // no aggregate in an aggregate
            let percentile = args.get(1).map(|e| self.expression(e)).transpose()?;
            Aggregate { measure, argument, is_distinct, percentile, slot: self.new_slot() }
        };
        let slot = aggregate.slot;
        aggregates.push(aggregate);
        self.aggregates = Some(aggregates);
        Ok(Expr::Slot(slot))
    }
}

/// What follows the columns of a projection.
pub struct Tail<'a> {
    order: Option<&'a OrderByClause>,
    skip: Option<&'a Expression>,
    limit: Option<&'a Expression>,
    pub filter: Option<&'a Expression>,
    pub length: usize,
}

impl<'a> Tail<'a> {
    pub fn read(clauses: &'a [Clause], has_filter: bool) -> Self {
        let mut tail = Self { order: None, skip: None, limit: None, filter: None, length: 0 };
        for clause in clauses {
            match clause {
                Clause::OrderBy(order) if tail.length == 0 => tail.order = Some(order),
                Clause::Skip(skip) if tail.skip.is_none() && tail.limit.is_none() => {
                    tail.skip = Some(skip)
                }
                Clause::Limit(limit) if tail.limit.is_none() => tail.limit = Some(limit),
                Clause::Where(filter) if has_filter && tail.filter.is_none() => {
                    tail.filter = Some(&filter.predicate);
                }
                _ => break,
            }
            tail.length += 1;
        }
        tail
    }
}
