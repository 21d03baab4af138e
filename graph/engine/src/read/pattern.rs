//! Plans of patterns: where to begin, and in what order to follow the edges.

use std::collections::HashMap;

use grafeo_adapters::query::cypher::{
    BinaryOp, Expression, NodePattern, Pattern, RelationshipPattern,
};

use super::compile::{Compiled, Compiler, Stop};
use super::eval::wrong;
use super::plan::{Expand, Expr, Labels, Stage, Start, Step};
use super::scan::Test;

/// The nodes, edges and conditions of a pattern.
#[derive(Default)]
struct Parts {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    conditions: Vec<Option<Condition>>,
    paths: Vec<(usize, Vec<usize>, Vec<usize>)>,
}

struct Node {
    slot: usize,
    labels: Labels,
    is_bound: bool,
    is_checked: bool,
}

struct Edge {
    slot: usize,
    is_bound: bool,
    from: usize,
    to: usize,
    expand: Option<Expand>,
}

/// A condition, and the slots that it reads.
struct Condition {
    expr: Expr,
    needs: Vec<usize>,
}

impl Compiler<'_> {
    /// Compiles the patterns of a MATCH with its WHERE.
    pub fn pattern(
        &mut self,
        patterns: &[Pattern],
        filter: Option<&Expression>,
        is_optional: bool,
    ) -> Compiled<Stage> {
        let outside = self.width;
        let mut parts = Parts::default();
        let mut nodes = HashMap::new();
        let mut conditions: Vec<(usize, &str, &Expression)> = Vec::new();
        for pattern in patterns {
            self.declare_pattern(pattern, outside, &mut parts, &mut nodes, &mut conditions)?;
        }

        let bound = self.width;
        for (slot, name, value) in conditions {
            let value = self.expression(value)?;
            let property = Expr::Property(Expr::Slot(slot).into(), self.key(name));
            parts.add(Expr::Binary(BinaryOp::Eq, property.into(), value.into()), bound);
        }
        if let Some(filter) = filter {
            self.add_filter(filter, bound, &mut parts)?;
        }
        let new: Vec<usize> = (outside..bound).collect();
        let steps = parts.plan(self, outside)?;
        Ok(Stage::Match { steps, optional: is_optional.then_some(new) })
    }

    /// Adds the parts of a WHERE that AND joins.
    fn add_filter(&mut self, filter: &Expression, bound: usize, parts: &mut Parts) -> Compiled<()> {
        if let Expression::Binary { left, op: BinaryOp::And, right } = filter {
            self.add_filter(left, bound, parts)?;
            return self.add_filter(right, bound, parts);
        }
        let filter = self.expression(filter)?;
        parts.add(filter, bound);
        Ok(())
    }

    fn declare_pattern<'q>(
        &mut self,
        pattern: &'q Pattern,
        outside: usize,
        parts: &mut Parts,
        nodes: &mut HashMap<usize, usize>,
        conditions: &mut Vec<(usize, &'q str, &'q Expression)>,
    ) -> Compiled<()> {
        let (name, pattern) = match pattern {
            Pattern::NamedPath { path_function: Some(_), .. } => return Err(Stop::Unknown),
            Pattern::NamedPath { name, pattern, .. } => (Some(name), &**pattern),
            other => (None, other),
        };
        let (start, chain): (_, &[RelationshipPattern]) = match pattern {
            Pattern::Node(node) => (node, &[]),
            Pattern::Path(path) => (&path.start, &path.chain),
            Pattern::NamedPath { .. } => return Err(Stop::Unknown),
        };

        let mut last = self.declare_node(start, outside, parts, nodes, conditions)?;
        let mut path = (vec![parts.nodes[last].slot], Vec::new());
        for step in chain {
            let next = self.declare_node(&step.target, outside, parts, nodes, conditions)?;
            let edge = self.declare_edge(step, last, next, outside, parts, conditions)?;
            path.0.push(parts.nodes[next].slot);
            path.1.push(edge);
            last = next;
        }
        if let Some(name) = name {
            let slot = self.declare(name)?;
            parts.paths.push((slot, path.0, path.1));
        }
        Ok(())
    }

    fn declare_node<'q>(
        &mut self,
        node: &'q NodePattern,
        outside: usize,
        parts: &mut Parts,
        nodes: &mut HashMap<usize, usize>,
        conditions: &mut Vec<(usize, &'q str, &'q Expression)>,
    ) -> Compiled<usize> {
        let name = node.variable.as_deref().unwrap_or("");
        let known = if name.is_empty() { None } else { self.find(name) };
        let slot = match known {
            Some(slot) => slot,
            None => self.declare(name)?,
        };
        for (key, value) in &node.properties {
            conditions.push((slot, key, value));
        }
        let at = *nodes.entry(slot).or_insert_with(|| {
            let is_bound = slot < outside;
            parts.nodes.push(Node { slot, labels: Some(Vec::new()), is_bound, is_checked: false });
            parts.nodes.len() - 1
        });
        let labels = &mut parts.nodes[at].labels;
        for label in &node.labels {
            match (self.snapshot.find_label(label), labels.as_mut()) {
                (Some(label), Some(all)) => all.push(label),
                _ => *labels = None,
            }
        }
        Ok(at)
    }

    fn declare_edge<'q>(
        &mut self,
        step: &'q RelationshipPattern,
        from: usize,
        to: usize,
        outside: usize,
        parts: &mut Parts,
        conditions: &mut Vec<(usize, &'q str, &'q Expression)>,
    ) -> Compiled<usize> {
        let name = step.variable.as_deref().unwrap_or("");
        let known = if name.is_empty() { None } else { self.find(name) };
        let slot = match known {
            Some(slot) if step.length.is_some() || slot >= outside => return Err(Stop::Unknown),
            Some(slot) => slot,
            None => self.declare(name)?,
        };
        let length = step.length.map(|range| {
            let most = range.max.map_or(self.longest, |most| most as usize);
            (range.min.unwrap_or(1) as usize, most)
        });
        let types = if step.types.is_empty() {
            None
        } else {
            Some(step.types.iter().filter_map(|name| self.snapshot.find_type(name)).collect())
        };

        let mut each = None;
        if length.is_some() && !step.properties.is_empty() {
            let slot = self.new_slot();
            each = Some((slot, self.each_edge(slot, &step.properties)?));
        } else {
            conditions
                .extend(step.properties.iter().map(|(key, value)| (slot, key.as_str(), value)));
        }
        if step.where_clause.is_some() {
            return Err(Stop::Unknown);
        }
        let expand = Expand {
            from: 0,
            to: 0,
            to_is_bound: false,
            labels: Some(Vec::new()),
            edge: slot,
            edge_is_bound: known.is_some(),
            direction: step.direction,
            types,
            length,
            each,
            others: Vec::new(),
            is_turned: false,
        };
        parts.edges.push(Edge { slot, is_bound: known.is_some(), from, to, expand: Some(expand) });
        Ok(slot)
    }

    /// The condition that each edge of a path of many has to meet.
    fn each_edge(&mut self, slot: usize, properties: &[(String, Expression)]) -> Compiled<Expr> {
        let mut all: Option<Expr> = None;
        for (key, value) in properties {
            let property = Expr::Property(Expr::Slot(slot).into(), self.key(key));
            let value = self.expression(value)?;
            let one = Expr::Binary(BinaryOp::Eq, property.into(), value.into());
            all = Some(match all {
                Some(all) => Expr::Binary(BinaryOp::And, all.into(), one.into()),
                None => one,
            });
        }
        all.ok_or_else(|| wrong("a pattern has no properties").into())
    }
}

impl Parts {
    fn add(&mut self, expr: Expr, below: usize) {
        let mut needs = Vec::new();
        expr.add_slots(below, &mut needs);
        self.conditions.push(Some(Condition { expr, needs }));
    }

    /// Orders the steps. Slots below `outside` have values.
    fn plan(mut self, compiler: &Compiler, outside: usize) -> Compiled<Vec<Step>> {
        let mut steps = Vec::new();
        let mut bound: Vec<bool> = vec![false; compiler.width];
        bound[..outside].fill(true);
        loop {
            self.add_conditions(&bound, &mut steps);
            for node in self.nodes.iter_mut().filter(|n| n.is_bound && !n.is_checked) {
                node.is_checked = true;
                steps.push(Step::Check { slot: node.slot, labels: node.labels.clone() });
            }
            if let Some(at) = self.next_edge(&bound) {
                let step = self.expand(at, &mut bound);
                steps.push(Step::Expand(step));
                continue;
            }
            let Some(at) = self.next_start(compiler, &bound) else { break };
            let from = self.start_of(at, compiler, &bound);
            let node = &mut self.nodes[at];
            bound[node.slot] = true;
            (node.is_bound, node.is_checked) = (true, true);
            let (slot, labels) = (node.slot, node.labels.clone());
            steps.push(Step::Scan { slot, from, labels, tests: Vec::new() });
        }
        for (slot, nodes, edges) in std::mem::take(&mut self.paths) {
            steps.push(Step::Path { slot, nodes, edges });
            bound[slot] = true;
        }
        self.add_conditions(&bound, &mut steps);
        steps.extend(self.conditions.into_iter().flatten().map(|c| Step::Filter(c.expr)));
        Ok(steps)
    }

    /// Adds the conditions that can be tested now.
    fn add_conditions(&mut self, bound: &[bool], steps: &mut Vec<Step>) {
        for condition in &mut self.conditions {
            let is_ready = |c: &mut Condition| c.needs.iter().all(|&slot| bound[slot]);
            if let Some(condition) = condition.take_if(is_ready) {
                add_filter(condition.expr, steps);
            }
        }
    }

    /// The edge to follow next: with both ends bound, or with one, or none.
    fn next_edge(&self, bound: &[bool]) -> Option<usize> {
        let ends = |edge: &Edge| {
            let has = |node: usize| usize::from(bound[self.nodes[node].slot]);
            has(edge.from) + has(edge.to)
        };
        let open = self.edges.iter().enumerate().filter(|(_, edge)| edge.expand.is_some());
        let best = open.max_by_key(|(at, edge)| (ends(edge), usize::MAX - at))?;
        (ends(best.1) > 0).then_some(best.0)
    }

    fn expand(&mut self, at: usize, bound: &mut [bool]) -> Expand {
        let others = self.edges.iter().filter(|e| e.expand.is_none()).map(|e| e.slot).collect();
        let edge = &mut self.edges[at];
        let mut expand = edge.expand.take().expect("an open edge");
        let is_turned = !bound[self.nodes[edge.from].slot];
        let (from, to) = if is_turned { (edge.to, edge.from) } else { (edge.from, edge.to) };
        if is_turned {
            expand.direction = turned(expand.direction);
        }
        expand.from = self.nodes[from].slot;
        expand.edge_is_bound = edge.is_bound;
        (expand.is_turned, expand.others) = (is_turned, others);
        let to = &mut self.nodes[to];
        expand.to = to.slot;
        expand.to_is_bound = bound[to.slot];
        if !expand.to_is_bound {
            expand.labels.clone_from(&to.labels);
            (to.is_bound, to.is_checked) = (true, true);
        }
        bound[to.slot] = true;
        bound[expand.edge] = true;
        expand
    }

    /// The node with the fewest candidates.
    fn next_start(&self, compiler: &Compiler, bound: &[bool]) -> Option<usize> {
        let open = self.nodes.iter().enumerate().filter(|(_, node)| !bound[node.slot]);
        let cost = |node: &Node| {
            if self.id_of(node.slot, bound).is_some() {
                return 0;
            }
            let Some(labels) = &node.labels else { return 0 };
            let sizes = labels.iter().map(|&label| compiler.snapshot.labels[label].nodes.len());
            sizes.min().map_or(compiler.snapshot.nodes.len() + 1, |least| least + 1)
        };
        open.min_by_key(|(_, node)| cost(node)).map(|(at, _)| at)
    }

    /// The value of a node's property `id` that a condition gives, and whether it stands left.
    fn id_of(&self, slot: usize, bound: &[bool]) -> Option<(usize, bool)> {
        let is_id = |e: &Expr| {
            matches!(e, Expr::Property(base, key)
                if key.name.as_str() == crate::property::ID && matches!(**base, Expr::Slot(s) if s == slot))
        };
        let is_known = |e: &Expr| {
            let mut needs = Vec::new();
            e.add_slots(bound.len(), &mut needs);
            matches!(e, Expr::Literal(_) | Expr::Slot(_) | Expr::Property(..))
                && needs.iter().all(|&s| bound[s])
        };
        self.conditions.iter().enumerate().find_map(|(at, condition)| {
            match &condition.as_ref()?.expr {
                Expr::Binary(BinaryOp::Eq, a, b) if is_id(a) && is_known(b) => Some((at, false)),
                Expr::Binary(BinaryOp::Eq, a, b) if is_id(b) && is_known(a) => Some((at, true)),
                _ => None,
            }
        })
    }

    fn start_of(&self, at: usize, compiler: &Compiler, bound: &[bool]) -> Start {
        let node = &self.nodes[at];
        if let Some((condition, is_left)) = self.id_of(node.slot, bound)
            && let Some(Condition { expr: Expr::Binary(_, a, b), .. }) = &self.conditions[condition]
            && let Some(value) = copied(if is_left { a } else { b }, compiler)
        {
            return Start::Id(value);
        }
        let labels = node.labels.iter().flatten();
        match labels.min_by_key(|&&label| compiler.snapshot.labels[label].nodes.len()) {
            Some(&label) => Start::Label(label),
            None => Start::All,
        }
    }
}

/// Adds a condition: the last scan tests it if it can.
fn add_filter(condition: Expr, steps: &mut Vec<Step>) {
    let last = steps.iter_mut().rev().find(|step| !matches!(step, Step::Filter(_)));
    if let Some(Step::Scan { slot, tests, .. }) = last
        && let Some(test) = Test::of(&condition, *slot)
    {
        tests.push(test);
    } else {
        steps.push(Step::Filter(condition));
    }
}

/// A copy of a simple expression.
fn copied(e: &Expr, compiler: &Compiler) -> Option<Expr> {
    Some(match e {
        Expr::Literal(value) => Expr::Literal(value.clone()),
        Expr::Slot(slot) => Expr::Slot(*slot),
        Expr::Property(base, key) => {
            Expr::Property(copied(base, compiler)?.into(), compiler.key(&key.name))
        }
        _ => return None,
    })
}

fn turned(
    direction: grafeo_adapters::query::cypher::Direction,
) -> grafeo_adapters::query::cypher::Direction {
    use grafeo_adapters::query::cypher::Direction::{Incoming, Outgoing, Undirected};
    match direction {
        Outgoing => Incoming,
        Incoming => Outgoing,
        Undirected => Undirected,
    }
}
