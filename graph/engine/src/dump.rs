//! Writes the property graph to the host's output as records: a length in four bytes, and values.

use std::io::Write;

use grafeo_common::types::{NodeId, PropertyKey, Value};
use grafeo_core::graph::Direction;
use grafeo_core::graph::lpg::Node;

use crate::codec::Writer;
use crate::failure::{Failure, Kind};
use crate::host::Output;
use crate::property::{ID, PropertyGraph, text_of};

impl PropertyGraph {
    /// Writes all nodes: id, labels and properties of each.
    pub fn write_nodes(&self) -> Result<(), Failure> {
        let mut records = Records::default();
        for node in self.nodes_in_order() {
            let out = records.next()?;
            out.text(&self.id_text(node.id));
            out.texts(&node.labels.iter().map(ToString::to_string).collect::<Vec<_>>());
            self.write_properties(node.properties.iter(), out);
        }
        records.end()
    }

    /// Writes all edges: id, both ends, type and properties of each.
    pub fn write_edges(&self) -> Result<(), Failure> {
        let store = self.store();
        let mut records = Records::default();
        for node in self.nodes_in_order() {
            let mut edges = store.edges_from(node.id, Direction::Outgoing);
            edges.sort_unstable_by_key(|&(_, edge)| edge);
            for (target, edge) in edges {
                let Some(edge) = store.get_edge(edge) else { continue };
                let out = records.next()?;
                match edge.properties.get(&PropertyKey::new(ID)) {
                    Some(Value::String(id)) => out.text(id),
                    _ => out.text(""),
                }
                out.text(&self.id_text(node.id));
                out.text(&self.id_text(target));
                out.text(&edge.edge_type);
                self.write_properties(edge.properties.iter(), out);
            }
        }
        records.end()
    }

    /// The nodes in the order in which they were added.
    fn nodes_in_order(&self) -> impl Iterator<Item = Node> {
        let store = self.store();
        let mut ids = store.node_ids();
        ids.sort_unstable();
        ids.into_iter().filter_map(move |id| store.get_node(id))
    }

    fn id_text(&self, node: NodeId) -> String {
        match self.store().get_node_property(node, &PropertyKey::new(ID)) {
            Some(Value::String(id)) => id.to_string(),
            Some(id) if !id.is_null() => text_of(&id),
            _ => node.as_u64().to_string(),
        }
    }

    /// Writes all properties but the id, as a map without its tag.
    fn write_properties<'a>(
        &self,
        properties: impl Iterator<Item = (&'a PropertyKey, &'a Value)>,
        out: &mut Writer,
    ) {
        let own: Vec<_> = properties.filter(|(key, _)| key.as_str() != ID).collect();
        out.length(own.len());
        for (key, value) in own {
            out.text(key.as_str());
            self.write(value, out);
        }
    }
}

/// Records on their way to the host.
#[derive(Default)]
struct Records {
    record: Writer,
    ready: Vec<u8>,
}

impl Records {
    /// How many bytes the host gets at once.
    const ENOUGH: usize = 1 << 16;

    /// Ends a record and begins the next.
    fn next(&mut self) -> Result<&mut Writer, Failure> {
        if !self.record.data.is_empty() {
            self.ready.extend_from_slice(&(self.record.data.len() as u32).to_le_bytes());
            self.ready.append(&mut self.record.data);
        }
        if self.ready.len() >= Self::ENOUGH {
            self.flush()?;
        }
        Ok(&mut self.record)
    }

    /// Ends the last record.
    fn end(mut self) -> Result<(), Failure> {
        self.next()?;
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let written = Output.write_all(&self.ready);
        self.ready.clear();
        written.map_err(|e| Failure::new(Kind::Input, e.to_string()))
    }
}
