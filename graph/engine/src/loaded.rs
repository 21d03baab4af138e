//! The edges that were loaded, as the library does not have them yet.

use std::collections::BTreeMap;

use arcstr::ArcStr;
use grafeo_common::types::{EdgeId, NodeId, PropertyKey, Value};
use grafeo_core::graph::lpg::LpgStore;
use hashbrown::HashMap;

/// An edge of the property graph. A kind is the number of a type.
#[derive(Clone, Copy, Default)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
    pub kind: u32,
}

/// Edges in the order in which they came, which is that of the library's numbers. Queries that read
/// need no more, and the library takes longer and more memory for an edge.
#[derive(Default)]
pub struct LoadedEdges {
    pub all: Vec<Edge>,
    pub types: Types,
    pub properties: HashMap<u32, BTreeMap<PropertyKey, Value>>,
}

impl LoadedEdges {
    pub fn add(
        &mut self,
        from: NodeId,
        to: NodeId,
        edge_type: &str,
        properties: BTreeMap<PropertyKey, Value>,
    ) {
        if !properties.is_empty() {
            self.properties.insert(self.all.len() as u32, properties);
        }
        let (from, to) = (from.as_u64() as u32, to.as_u64() as u32);
        self.all.push(Edge { from, to, kind: self.types.number(edge_type) });
    }

    /// Gives all edges to the library, which has none.
    pub fn store(self, store: &LpgStore) {
        for edges in self.all.chunks(1 << 16) {
            let node = |number: u32| NodeId::new(number.into());
            let batch: Vec<(NodeId, NodeId, &str)> = edges
                .iter()
                .map(|edge| (node(edge.from), node(edge.to), &*self.types.names[edge.kind as usize]))
                .collect();
            store.batch_create_edges(&batch);
        }
        for (number, properties) in self.properties {
            for (key, value) in properties {
                store.set_edge_property(EdgeId::new(number.into()), key.as_str(), value);
            }
        }
    }
}

/// The types of edges, with a number for each.
#[derive(Clone, Default)]
pub struct Types {
    pub names: Vec<ArcStr>,
    numbers: HashMap<ArcStr, u32>,
}

impl Types {
    pub fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.find(name) {
            return number;
        }
        let (name, number) = (ArcStr::from(name), self.names.len() as u32);
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }
}
