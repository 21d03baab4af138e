//! The property graph in columns, as queries read it. The engine's library reads a whole node for
//! each property of a row.

use hashbrown::HashMap;

use arcstr::ArcStr;
use grafeo_common::types::NodeId;
use grafeo_core::graph::Direction;

use super::value::Val;
use crate::property::PropertyGraph;

/// Numbers of nodes and edges are those of the library.
#[derive(Default)]
pub struct Snapshot {
    /// All nodes, in order.
    pub nodes: Vec<u32>,
    pub labels: Vec<Label>,
    label_of: HashMap<ArcStr, usize>,
    columns: Vec<Column>,
    column_of: HashMap<ArcStr, usize>,
    pub types: Vec<ArcStr>,
    type_of: HashMap<ArcStr, u32>,
    pub edges: Vec<Edge>,
    edge_properties: HashMap<u32, Box<[(u32, Val)]>>,
    outgoing: Links,
    incoming: Links,
}

pub struct Label {
    pub name: ArcStr,
    /// In order.
    pub nodes: Vec<u32>,
    /// A bit for each node, if many have the label.
    members: Vec<u64>,
}

impl Label {
    fn mark(&mut self, count: usize) {
        if self.nodes.len() >= count / 64 {
            self.members = vec![0; count.div_ceil(64)];
            self.nodes.iter().for_each(|&node| set_bit(&mut self.members, node));
        }
    }

    fn has(&self, node: u32) -> bool {
        if self.members.is_empty() {
            return self.nodes.binary_search(&node).is_ok();
        }
        has_bit(&self.members, node)
    }
}

#[derive(Clone, Copy, Default)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: u32,
}

/// The values of a property: few nodes have it, or many.
enum Column {
    Sparse(HashMap<u32, Val>),
    Dense(Vec<Val>),
    Integers { values: Vec<i64>, present: Vec<u64> },
}

/// The edges of each node, one after another.
#[derive(Default)]
struct Links {
    starts: Vec<u32>,
    edges: Vec<u32>,
}

impl Links {
    fn new(count: usize, edges: &[Edge], live: &[u32], end: impl Fn(&Edge) -> u32) -> Self {
        let mut starts = vec![0u32; count + 1];
        for &edge in live {
            starts[end(&edges[edge as usize]) as usize + 1] += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut all = vec![0; live.len()];
        for &edge in live {
            let place = &mut next[end(&edges[edge as usize]) as usize];
            all[*place as usize] = edge;
            *place += 1;
        }
        Self { starts, edges: all }
    }

    fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.edges[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

fn has_bit(bits: &[u64], at: u32) -> bool {
    bits.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

fn set_bit(bits: &mut [u64], at: u32) {
    bits[at as usize / 64] |= 1 << (at % 64);
}

impl Snapshot {
    pub fn new(graph: &PropertyGraph) -> Self {
        let store = graph.store();
        let mut ids: Vec<u32> = store.node_ids().into_iter().map(|id| id.as_u64() as u32).collect();
        ids.sort_unstable();
        let count = ids.last().map_or(0, |&last| last as usize + 1);
        let mut all = Self::default();
        let mut live = Vec::new();
        for &id in &ids {
            let Some(node) = store.get_node(NodeId::new(id.into())) else { continue };
            for name in &node.labels {
                all.label(name).nodes.push(id);
            }
            for (key, value) in node.properties.iter() {
                let column = all.column(key.as_str());
                if let Column::Sparse(values) = &mut all.columns[column] {
                    values.insert(id, Val::of(value));
                }
            }
            for (_, edge) in store.edges_from(node.id, Direction::Outgoing) {
                if let Some(edge) = store.get_edge(edge) {
                    let number = edge.id.as_u64() as u32;
                    live.push(number);
                    all.add_edge(number, &edge);
                }
            }
        }

        live.sort_unstable();
        all.outgoing = Links::new(count, &all.edges, &live, |edge| edge.from);
        all.incoming = Links::new(count, &all.edges, &live, |edge| edge.to);
        all.columns = all.columns.into_iter().map(|column| column.packed(count)).collect();
        all.labels.iter_mut().for_each(|label| label.mark(count));
        all.nodes = ids;
        all
    }

    fn label(&mut self, name: &ArcStr) -> &mut Label {
        let labels = &mut self.labels;
        let at = *self.label_of.entry(name.clone()).or_insert_with(|| {
            labels.push(Label { name: name.clone(), nodes: Vec::new(), members: Vec::new() });
            labels.len() - 1
        });
        &mut self.labels[at]
    }

    fn column(&mut self, name: &str) -> usize {
        if let Some(&at) = self.column_of.get(name) {
            return at;
        }
        self.columns.push(Column::Sparse(HashMap::new()));
        self.column_of.insert(name.into(), self.columns.len() - 1);
        self.columns.len() - 1
    }

    fn add_edge(&mut self, number: u32, edge: &grafeo_core::graph::lpg::Edge) {
        let types = &mut self.types;
        let kind = *self.type_of.entry(edge.edge_type.clone()).or_insert_with(|| {
            types.push(edge.edge_type.clone());
            types.len() as u32 - 1
        });
        if self.edges.len() <= number as usize {
            self.edges.resize(number as usize + 1, Edge::default());
        }
        let (from, to) = (edge.src.as_u64() as u32, edge.dst.as_u64() as u32);
        self.edges[number as usize] = Edge { from, to, kind };
        if !edge.properties.is_empty() {
            let properties = edge.properties.iter();
            let all: Vec<_> =
                properties.map(|(key, value)| (self.column(key.as_str()) as u32, Val::of(value))).collect();
            self.edge_properties.insert(number, all.into());
        }
    }

    pub fn find_label(&self, name: &str) -> Option<usize> {
        self.label_of.get(name).copied()
    }

    pub fn find_type(&self, name: &str) -> Option<u32> {
        self.type_of.get(name).copied()
    }

    pub fn find_column(&self, name: &str) -> Option<usize> {
        self.column_of.get(name).copied()
    }

    pub fn has_label(&self, node: u32, label: usize) -> bool {
        self.labels[label].has(node)
    }

    pub fn labels_of(&self, node: u32) -> impl Iterator<Item = &ArcStr> {
        self.labels.iter().filter(move |label| label.has(node)).map(|label| &label.name)
    }

    pub fn type_name(&self, edge: u32) -> &ArcStr {
        &self.types[self.edges[edge as usize].kind as usize]
    }

    pub fn outgoing(&self, node: u32) -> &[u32] {
        self.outgoing.of(node)
    }

    pub fn incoming(&self, node: u32) -> &[u32] {
        self.incoming.of(node)
    }

    pub fn node_property(&self, node: u32, column: usize) -> Val {
        match &self.columns[column] {
            Column::Sparse(values) => values.get(&node).cloned().unwrap_or(Val::Null),
            Column::Dense(values) => values[node as usize].clone(),
            Column::Integers { values, present } => {
                if has_bit(present, node) { Val::Int(values[node as usize]) } else { Val::Null }
            }
        }
    }

    /// A property that all nodes have as an integer, or not at all.
    pub fn node_integer(&self, node: u32, column: usize) -> Option<i64> {
        match &self.columns[column] {
            Column::Integers { values, present } if has_bit(present, node) => Some(values[node as usize]),
            _ => None,
        }
    }

    pub fn edge_property(&self, edge: u32, column: usize) -> Val {
        let own = self.edge_properties.get(&edge).map_or(&[][..], |own| &own[..]);
        let found = own.iter().find(|(key, _)| *key as usize == column);
        found.map_or(Val::Null, |(_, value)| value.clone())
    }

    /// The names of all properties, and their columns.
    pub fn columns(&self) -> impl Iterator<Item = (&ArcStr, usize)> {
        self.column_of.iter().map(|(name, &at)| (name, at))
    }
}

impl Column {
    /// The column in the form that takes the least time, if it takes little memory.
    fn packed(self, count: usize) -> Self {
        let Self::Sparse(values) = self else { return self };
        if values.len() < count / 8 {
            return Self::Sparse(values);
        }
        if values.values().all(|value| matches!(value, Val::Int(_))) {
            let (mut numbers, mut present) = (vec![0; count], vec![0; count.div_ceil(64)]);
            for (node, value) in values {
                if let Val::Int(value) = value {
                    numbers[node as usize] = value;
                    set_bit(&mut present, node);
                }
            }
            return Self::Integers { values: numbers, present };
        }
        let mut dense = vec![Val::Null; count];
        for (node, value) in values {
            dense[node as usize] = value;
        }
        Self::Dense(dense)
    }
}
