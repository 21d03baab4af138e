//! The property graph in columns, as queries read it. The engine's library reads a whole node for
//! each property of a row.

use hashbrown::HashMap;

use arcstr::ArcStr;
use grafeo_common::types::{NodeId, PropertyKey, Value};
use grafeo_core::graph::Direction;

use super::column::{Column, has_bit, set_bit};
use super::value::Val;
use crate::loaded::{Edge, LoadedEdges, Types};
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
    types: Types,
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

impl Snapshot {
    pub fn new(graph: &PropertyGraph) -> Self {
        let store = graph.store();
        let mut ids = store.node_ids();
        ids.sort_unstable();
        let count = ids.last().map_or(0, |last| last.as_u64() as usize + 1);
        let mut all =
            Self { nodes: ids.iter().map(|id| id.as_u64() as u32).collect(), ..Self::default() };
        let mut live = vec![0; count.div_ceil(64)];
        all.nodes.iter().for_each(|&node| set_bit(&mut live, node));

        for name in store.all_labels() {
            let nodes = store.nodes_by_label(&name).into_iter().map(|id| id.as_u64() as u32);
            let mut nodes: Vec<u32> = nodes.filter(|&node| has_bit(&live, node)).collect();
            nodes.sort_unstable();
            all.add_label(name.into(), nodes, count);
        }
        for name in store.all_property_keys() {
            let values = store.get_node_property_batch(&ids, &PropertyKey::new(name.as_str()));
            all.column_of.insert(name.into(), all.columns.len());
            all.columns.push(Column::new(&all.nodes, &values, count));
        }

        let edges = match &graph.loaded {
            Some(loaded) => all.add_loaded(loaded),
            None => all.add_stored(graph, &ids),
        };
        all.outgoing = Links::new(count, &all.edges, &edges, |edge| edge.from);
        all.incoming = Links::new(count, &all.edges, &edges, |edge| edge.to);
        all
    }

    fn add_label(&mut self, name: ArcStr, nodes: Vec<u32>, count: usize) {
        if nodes.is_empty() {
            return;
        }
        let mut label = Label { name: name.clone(), nodes, members: Vec::new() };
        label.mark(count);
        self.label_of.insert(name, self.labels.len());
        self.labels.push(label);
    }

    /// Adds the edges that the library does not have, and returns their numbers.
    fn add_loaded(&mut self, loaded: &LoadedEdges) -> Vec<u32> {
        self.edges.clone_from(&loaded.all);
        self.types.clone_from(&loaded.types);
        for (&number, properties) in &loaded.properties {
            for key in properties.keys() {
                if self.find_column(key.as_str()).is_none() {
                    self.column_of.insert(key.as_str().into(), self.columns.len());
                    self.columns.push(Column::Sparse(HashMap::new()));
                }
            }
            self.add_properties(number, properties.iter());
        }
        (0..loaded.all.len() as u32).collect()
    }

    /// Adds the edges of the library, and returns their numbers in order.
    fn add_stored(&mut self, graph: &PropertyGraph, ids: &[NodeId]) -> Vec<u32> {
        let store = graph.store();
        let mut edges = Vec::new();
        for (at, &id) in ids.iter().enumerate() {
            for (to, edge) in store.edges_from(id, Direction::Outgoing) {
                let Some(kind) = store.edge_type(edge) else { continue };
                let number = edge.as_u64() as u32;
                edges.push(number);
                self.add_edge(number, self.nodes[at], to.as_u64() as u32, &kind);
                if graph.has_edge_properties
                    && let Some(edge) = store.get_edge(edge)
                {
                    self.add_properties(number, edge.properties.iter());
                }
            }
        }
        edges.sort_unstable();
        edges
    }

    fn add_edge(&mut self, number: u32, from: u32, to: u32, name: &str) {
        let kind = self.types.number(name);
        if self.edges.len() <= number as usize {
            self.edges.resize(number as usize + 1, Edge::default());
        }
        self.edges[number as usize] = Edge { from, to, kind };
    }

    fn add_properties<'p>(
        &mut self,
        number: u32,
        properties: impl Iterator<Item = (&'p PropertyKey, &'p Value)>,
    ) {
        let column = |name: &str| self.find_column(name).map(|column| column as u32);
        let all: Vec<(u32, Val)> = properties
            .filter_map(|(key, value)| Some((column(key.as_str())?, Val::of(value))))
            .collect();
        if !all.is_empty() {
            self.edge_properties.insert(number, all.into());
        }
    }

    pub fn find_label(&self, name: &str) -> Option<usize> {
        self.label_of.get(name).copied()
    }

    pub fn find_type(&self, name: &str) -> Option<u32> {
        self.types.find(name)
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
        &self.types.names[self.edges[edge as usize].kind as usize]
    }

    pub fn outgoing(&self, node: u32) -> &[u32] {
        self.outgoing.of(node)
    }

    pub fn incoming(&self, node: u32) -> &[u32] {
        self.incoming.of(node)
    }

    pub fn column(&self, at: usize) -> &Column {
        &self.columns[at]
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
