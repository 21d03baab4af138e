//! Runs the stages of a plan: each passes its rows to the next.

use grafeo_adapters::query::cypher::Direction;

use super::eval::{Reader, Result, holds, wrong};
use super::plan::{Expand, Labels, Row, Stage, Start, Step};
use super::scan::{BLOCK, Test};
use super::value::{Path, Val, equal};

/// Whether a receiver of rows wants more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Next,
    Stop,
}

/// What gets each row.
pub trait Sink {
    fn take(&mut self, row: &mut Row) -> Result<Flow>;

    /// Takes a row for each node, which is in a slot.
    fn take_nodes(&mut self, slot: usize, nodes: &[u32], row: &mut Row) -> Result<Flow> {
        for &node in nodes {
            row[slot] = Val::Node(node);
            if self.take(row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Next)
    }
}

impl<F: FnMut(&mut Row) -> Result<Flow>> Sink for F {
    fn take(&mut self, row: &mut Row) -> Result<Flow> {
        self(row)
    }
}

impl Reader<'_> {
    pub fn run_stages(&self, stages: &[Stage], row: &mut Row, sink: &mut dyn Sink) -> Result<Flow> {
        let Some((stage, rest)) = stages.split_first() else { return sink.take(row) };
        match stage {
            Stage::Filter(expr) => {
                if holds(&self.eval(expr, row)?)? {
                    return self.run_stages(rest, row, sink);
                }
                Ok(Flow::Next)
            }
            Stage::Unwind { list, slot } => match self.eval(list, row)? {
                Val::Null => Ok(Flow::Next),
                Val::List(items) => {
                    for item in items.iter() {
                        row[*slot] = item.clone();
                        if self.run_stages(rest, row, sink)? == Flow::Stop {
                            return Ok(Flow::Stop);
                        }
                    }
                    Ok(Flow::Next)
                }
                other => Err(wrong(format!("UNWIND needs a list, not {}", other.kind()))),
            },
            Stage::Match { steps, optional: None } if rest.is_empty() => {
                self.run_steps(steps, row, sink)
            }
            Stage::Match { steps, optional: None } => {
                self.run_steps(steps, row, &mut |row: &mut Row| self.run_stages(rest, row, sink))
            }
            Stage::Match { steps, optional: Some(new) } => {
                let mut found = false;
                let flow = self.run_steps(steps, row, &mut |row: &mut Row| {
                    found = true;
                    self.run_stages(rest, row, sink)
                })?;
                if found {
                    return Ok(flow);
                }
                new.iter().for_each(|&slot| row[slot] = Val::Null);
                self.run_stages(rest, row, sink)
            }
        }
    }

    fn run_steps(&self, steps: &[Step], row: &mut Row, sink: &mut dyn Sink) -> Result<Flow> {
        let Some((step, rest)) = steps.split_first() else { return sink.take(row) };
        match step {
            Step::Filter(expr) => {
                if holds(&self.eval(expr, row)?)? {
                    return self.run_steps(rest, row, sink);
                }
                Ok(Flow::Next)
            }
            Step::Check { slot, labels } => match row[*slot] {
                Val::Node(node) if self.may_be(node, labels) => self.run_steps(rest, row, sink),
                Val::Node(_) | Val::Null => Ok(Flow::Next),
                ref other => Err(wrong(format!("a pattern needs a node, not {}", other.kind()))),
            },
            Step::Scan { slot, from, labels, tests } => match labels {
                Some(labels) => self.scan(*slot, from, labels, tests, rest, row, sink),
                None => Ok(Flow::Next),
            },
            Step::Expand(expand) => match expand.length {
                None => self.expand(expand, rest, row, sink),
                Some(_) => self.expand_many(expand, rest, row, sink),
            },
            Step::Path { slot, nodes, edges } => {
                row[*slot] = self.path(nodes, edges, row);
                self.run_steps(rest, row, sink)
            }
        }
    }

    fn may_be(&self, node: u32, labels: &Labels) -> bool {
        labels.as_ref().is_some_and(|labels| self.has_labels(node, labels))
    }

    fn has_labels(&self, node: u32, labels: &[usize]) -> bool {
        labels.iter().all(|&label| self.snapshot.has_label(node, label))
    }

    #[allow(clippy::too_many_arguments)] // they are the parts of one step
    fn scan(
        &self,
        slot: usize,
        from: &Start,
        labels: &[usize],
        tests: &[Test],
        rest: &[Step],
        row: &mut Row,
        sink: &mut dyn Sink,
    ) -> Result<Flow> {
        let found;
        let (nodes, is_checked) = match from {
            Start::All => (&self.snapshot.nodes, labels.is_empty()),
            Start::Label(label) => (&self.snapshot.labels[*label].nodes, labels.len() == 1),
            Start::Id(value) => match self.eval(value, row)? {
                Val::Str(id) => {
                    found = self.find(&id);
                    (&found, false)
                }
                _ => (&self.snapshot.nodes, false),
            },
        };

        let mut chosen = Vec::with_capacity(nodes.len().min(BLOCK));
        for block in nodes.chunks(BLOCK) {
            chosen.clear();
            chosen.extend_from_slice(block);
            if !is_checked {
                chosen.retain(|&node| self.has_labels(node, labels));
            }
            tests.iter().for_each(|test| test.select(self.snapshot, &mut chosen));
            let flow = if rest.is_empty() {
                sink.take_nodes(slot, &chosen, row)?
            } else {
                let mut next = |row: &mut Row| self.run_steps(rest, row, sink);
                next.take_nodes(slot, &chosen, row)?
            };
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Next)
    }

    /// The nodes whose property `id` is a text.
    fn find(&self, id: &arcstr::ArcStr) -> Vec<u32> {
        let found = self.graph.find_all(id);
        let mut all: Vec<u32> = found.into_iter().map(|node| node.as_u64() as u32).collect();
        all.sort_unstable();
        all
    }

    /// The edges at a node that a pattern may follow, each with its other end.
    fn each_edge(
        &self,
        e: &Expand,
        node: u32,
        use_edge: &mut dyn FnMut(u32, u32) -> Result<Flow>,
    ) -> Result<Flow> {
        let fits = |kind: u32| e.types.as_ref().is_none_or(|types| types.contains(&kind));
        if e.direction != Direction::Incoming {
            for &number in self.snapshot.outgoing(node) {
                let edge = &self.snapshot.edges[number as usize];
                if fits(edge.kind) && use_edge(number, edge.to)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        if e.direction != Direction::Outgoing {
            for &number in self.snapshot.incoming(node) {
                let edge = &self.snapshot.edges[number as usize];
                let is_again = e.direction == Direction::Undirected && edge.from == edge.to;
                if fits(edge.kind) && !is_again && use_edge(number, edge.from)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::Next)
    }

    fn expand(
        &self,
        e: &Expand,
        rest: &[Step],
        row: &mut Row,
        sink: &mut dyn Sink,
    ) -> Result<Flow> {
        let Some(node) = start_of(e, row)? else { return Ok(Flow::Next) };
        self.each_edge(e, node, &mut |edge, end| {
            let is_other =
                e.edge_is_bound && !matches!(row[e.edge], Val::Edge(known) if known == edge);
            if is_other || is_used(e, row, edge) {
                return Ok(Flow::Next);
            }
            if !self.take_end(e, row, end)? {
                return Ok(Flow::Next);
            }
            if !e.edge_is_bound {
                row[e.edge] = Val::Edge(edge);
            }
            self.run_steps(rest, row, sink)
        })
    }

    /// Whether the path may end at a node. If the end has no value yet, it gets it.
    fn take_end(&self, e: &Expand, row: &mut Row, end: u32) -> Result<bool> {
        if e.to_is_bound {
            return Ok(equal(&row[e.to], &Val::Node(end)) == Some(true));
        }
        if !self.may_be(end, &e.labels) {
            return Ok(false);
        }
        row[e.to] = Val::Node(end);
        Ok(true)
    }

    fn expand_many(
        &self,
        e: &Expand,
        rest: &[Step],
        row: &mut Row,
        sink: &mut dyn Sink,
    ) -> Result<Flow> {
        let Some(node) = start_of(e, row)? else { return Ok(Flow::Next) };
        let mut edges = Vec::new();
        self.follow(e, node, &mut edges, rest, row, sink)
    }

    fn follow(
        &self,
        e: &Expand,
        node: u32,
        edges: &mut Vec<u32>,
        rest: &[Step],
        row: &mut Row,
        sink: &mut dyn Sink,
    ) -> Result<Flow> {
        let (least, most) = e.length.unwrap_or((1, 1));
        if edges.len() >= least && self.take_end(e, row, node)? {
            let mut list: Vec<Val> = edges.iter().map(|&edge| Val::Edge(edge)).collect();
            if e.is_turned {
                list.reverse();
            }
            row[e.edge] = Val::list(list);
            if self.run_steps(rest, row, sink)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        if edges.len() >= most {
            return Ok(Flow::Next);
        }
        self.each_edge(e, node, &mut |edge, end| {
            if edges.contains(&edge) || is_used(e, row, edge) {
                return Ok(Flow::Next);
            }
            if let Some((slot, test)) = &e.each {
                row[*slot] = Val::Edge(edge);
                if !holds(&self.eval(test, row)?)? {
                    return Ok(Flow::Next);
                }
            }
            edges.push(edge);
            let flow = self.follow(e, end, edges, rest, row, sink);
            edges.pop();
            flow
        })
    }

    /// The path along nodes and edges. An edge of many has a list.
    fn path(&self, nodes: &[usize], edges: &[usize], row: &Row) -> Val {
        let Val::Node(mut at) = row[nodes[0]] else { return Val::Null };
        let mut path = Path { nodes: vec![at], edges: Vec::new() };
        for &slot in edges {
            let one = std::slice::from_ref(&row[slot]);
            let all = match &row[slot] {
                Val::List(items) => &items[..],
                _ => one,
            };
            for edge in all {
                let Val::Edge(number) = *edge else { return Val::Null };
                let edge = &self.snapshot.edges[number as usize];
                at = if edge.from == at { edge.to } else { edge.from };
                path.edges.push(number);
                path.nodes.push(at);
            }
        }
        Val::Path(path.into())
    }
}

fn start_of(e: &Expand, row: &Row) -> Result<Option<u32>> {
    match &row[e.from] {
        Val::Node(node) => Ok(Some(*node)),
        Val::Null => Ok(None),
        other => Err(wrong(format!("a pattern needs a node, not {}", other.kind()))),
    }
}

/// Whether another part of the pattern has taken an edge.
fn is_used(e: &Expand, row: &Row, edge: u32) -> bool {
    e.others.iter().any(|&slot| match &row[slot] {
        Val::Edge(other) => *other == edge,
        Val::List(items) => {
            items.iter().any(|item| matches!(item, Val::Edge(other) if *other == edge))
        }
        _ => false,
    })
}
