//! The property graph and Cypher.

use std::collections::{BTreeMap, HashMap};

use arcstr::ArcStr;
use grafeo_common::types::{NodeId, PropertyKey, Value};
use grafeo_core::graph::{Direction, GraphStoreSearch};
use grafeo_engine::auth::Role;
use grafeo_engine::{Config, GrafeoDB};

use crate::codec::{Reader, Writer};
use crate::failure::{Failure, Kind};
use crate::loaded::LoadedEdges;
use crate::names::class_name;

/// The property that holds a node's id.
pub const ID: &str = "id";

pub struct PropertyGraph {
    pub db: GrafeoDB,
    /// Nodes by their ids: all of them, until a query has written.
    known: hashbrown::HashMap<ArcStr, NodeId>,
    knows_all: bool,
    /// All edges, until something needs them from the library.
    pub loaded: Option<LoadedEdges>,
    /// Whether an edge may have a property.
    pub has_edge_properties: bool,
}

/// The bounds of one result.
pub struct Bounds {
    pub rows: usize,
    pub cost: usize,
}

impl PropertyGraph {
    pub fn new() -> Result<Self, Failure> {
        let db = GrafeoDB::with_config(
            Config::in_memory().with_threads(1).without_query_timeout(),
        )?;
        Ok(Self {
            db,
            known: hashbrown::HashMap::new(),
            knows_all: true,
            loaded: Some(LoadedEdges::default()),
            has_edge_properties: false,
        })
    }

    pub fn store(&self) -> &dyn GraphStoreSearch {
        self.db.store().as_ref()
    }

    /// Whether the library has all edges, and an index of the ids.
    pub fn is_complete(&self) -> bool {
        self.loaded.is_none()
    }

    /// Gives the library what only its own queries need. It takes longer than a load.
    pub fn complete(&mut self) {
        if let Some(edges) = self.loaded.take() {
            edges.store(self.db.store());
            self.db.create_property_index(ID);
        }
    }

    pub fn find(&self, id: &str) -> Option<NodeId> {
        match self.known.get(id) {
            Some(&node) => Some(node),
            None if self.knows_all => None,
            None => self.find_all(id).first().copied(),
        }
    }

    /// The nodes of an id: a query that writes may give it to several.
    pub fn find_all(&self, id: &str) -> Vec<NodeId> {
        if self.knows_all {
            return self.known.get(id).copied().into_iter().collect();
        }
        self.db.store().find_nodes_by_property(ID, &Value::String(id.into()))
    }

    /// Adds a node, or labels and properties to the node of that id. It writes to the store
    /// itself: the library's own calls make a transaction of each.
    pub fn add_node(
        &mut self,
        id: &str,
        labels: &[&str],
        properties: impl IntoIterator<Item = (PropertyKey, Value)>,
    ) -> NodeId {
        let known = self.find(id);
        let store = self.db.store();
        let properties = properties.into_iter().filter(|(key, _)| key.as_str() != ID);
        let Some(node) = known else {
            let id = ArcStr::from(id);
            let own = (PropertyKey::new(ID), Value::String(id.clone()));
            let all = properties.filter(|(_, value)| !value.is_null()).chain([own]);
            let node = store.create_node_with_props(labels, all);
            self.known.insert(id, node);
            return node;
        };

        for label in labels {
            store.add_label(node, label);
        }
        for (key, value) in properties {
            if value.is_null() {
                store.remove_node_property(node, key.as_str());
            } else {
                store.set_node_property(node, key.as_str(), value);
            }
        }
        node
    }

    /// Adds an edge between nodes that exist.
    pub fn connect(
        &mut self,
        from: NodeId,
        to: NodeId,
        edge_type: &str,
        mut properties: BTreeMap<PropertyKey, Value>,
    ) {
        properties.retain(|_, value| !value.is_null());
        match &mut self.loaded {
            Some(edges) => edges.add(from, to, edge_type, properties),
            None => {
                self.db.store().create_edge_with_props(from, to, edge_type, properties);
            }
        }
    }

    /// Adds the nodes of a request: id, labels and properties of each.
    pub fn add_nodes(&mut self, request: &mut Reader) -> Result<(), Failure> {
        while !request.is_empty() {
            let id = request.text()?;
            let labels = request.texts()?;
            self.add_node(id, &labels, request.map()?);
        }
        Ok(())
    }

    /// Adds the edges of a request: id, both ends, type and properties of each.
    pub fn add_edges(&mut self, request: &mut Reader) -> Result<(), Failure> {
        while !request.is_empty() {
            if let Some(id) = self.add_edge(request)? {
                let message = format!("an edge names the node {id:?}, which is missing");
                return Err(Failure::new(Kind::Request, message));
            }
        }
        Ok(())
    }

    /// Adds the edges of a request whose nodes exist, and writes the numbers of the others.
    pub fn add_known_edges(&mut self, request: &mut Reader, out: &mut Writer) -> Result<(), Failure> {
        let mut unknown = Vec::new();
        for number in 0.. {
            if request.is_empty() {
                break;
            }
            if self.add_edge(request)?.is_some() {
                unknown.push(number);
            }
        }
        out.length(unknown.len());
        unknown.into_iter().for_each(|number| out.number(number));
        Ok(())
    }

    /// Adds the next edge of a request, or returns a node of it that is missing.
    fn add_edge<'a>(&mut self, request: &mut Reader<'a>) -> Result<Option<&'a str>, Failure> {
        let (id, from, to) = (request.text()?, request.text()?, request.text()?);
        let edge_type = request.text()?;
        let mut properties = request.map()?;
        if !id.is_empty() {
            properties.insert(PropertyKey::new(ID), Value::String(id.into()));
        }
        self.has_edge_properties |= !properties.is_empty();
        let Some(start) = self.find(from) else { return Ok(Some(from)) };
        let Some(end) = self.find(to) else { return Ok(Some(to)) };
        self.connect(start, end, edge_type, properties);
        Ok(None)
    }

    /// Runs a query and writes its columns and rows.
    pub fn query(
        &mut self,
        text: &str,
        parameters: HashMap<String, Value>,
        may_write: bool,
        bounds: &Bounds,
        out: &mut Writer,
    ) -> Result<(), Failure> {
        let role = if may_write {
            self.known.clear(); // it may change ids, and remove nodes
            self.knows_all = false;
            Role::Admin
        } else {
            Role::ReadOnly
        };
        let session = self.db.session_with_role(role);
        let mut result = session.execute_cypher_with_params(text, parameters)?;
        crate::cypher::name_columns(text, &mut result.columns);

        out.texts(&result.columns);
        let mut count = 0;
        for row in result.rows() {
            let mark = out.mark();
            out.byte(1); // a row follows
            for value in row {
                self.write(value, out);
            }
            if count == bounds.rows || out.cost > bounds.cost {
                out.reset(mark);
                break;
            }
            count += 1;
        }
        out.byte(if count < result.row_count() { 2 } else { 0 });
        Ok(())
    }

    pub fn write(&self, value: &Value, out: &mut Writer) {
        match value {
            Value::Null => out.null(),
            Value::Bool(value) => out.boolean(*value),
            Value::Int64(value) => out.integer(*value),
            Value::Float64(value) => out.float(*value),
            Value::String(value) => out.string(value),
            Value::List(items) => self.write_list(items, out),
            Value::Path { nodes, edges } => {
                out.map(2);
                out.text("nodes");
                self.write_list(nodes, out);
                out.text("relationships");
                self.write_list(edges, out);
            }
            Value::Vector(numbers) => {
                out.list(numbers.len());
                for &number in numbers.iter() {
                    out.float(number.into());
                }
            }
            Value::Map(map) => {
                let key = |name: &str| map.get(&PropertyKey::new(name));
                if let (Some(Value::Int64(id)), Some(labels)) = (key("_id"), key("_labels")) {
                    let fields = [("id", id_or(key(ID), *id)), ("labels", labels.clone())];
                    self.write_entity(map.iter(), &fields, out);
                } else if let (Some(Value::Int64(id)), Some(edge_type), Some(from), Some(to)) =
                    (key("_id"), key("_type"), key("_source"), key("_target"))
                {
                    let fields = [
                        ("id", id_or(key(ID), *id)),
                        ("type", edge_type.clone()),
                        ("from", self.id_of(from)),
                        ("to", self.id_of(to)),
                    ];
                    self.write_entity(map.iter(), &fields, out);
                } else {
                    out.map(map.len());
                    for (key, value) in map.iter() {
                        out.text(key.as_str());
                        self.write(value, out);
                    }
                }
            }
            other => out.string(&crate::read::text_of(other)),
        }
    }

    fn write_list(&self, items: &[Value], out: &mut Writer) {
        out.list(items.len());
        for item in items {
            self.write(item, out);
        }
    }

    /// Writes a node or an edge: its fields, then its properties. A field hides a property of the
    /// same name.
    fn write_entity<'a>(
        &self,
        properties: impl Iterator<Item = (&'a PropertyKey, &'a Value)>,
        fields: &[(&str, Value)],
        out: &mut Writer,
    ) {
        let own: Vec<_> = properties
            .filter(|(key, _)| {
                let key = key.as_str();
                !matches!(key, "_id" | "_labels" | "_type" | "_source" | "_target")
                    && fields.iter().all(|(field, _)| *field != key)
            })
            .collect();

        out.map(fields.len() + own.len());
        for (field, value) in fields {
            out.text(field);
            self.write(value, out);
        }
        for (key, value) in own {
            out.text(key.as_str());
            self.write(value, out);
        }
    }

    fn id_of(&self, node: &Value) -> Value {
        let Value::Int64(number) = node else { return Value::Null };
        let key = PropertyKey::new(ID);
        let id = self.store().get_node_property(NodeId::new(*number as u64), &key);
        id_or(id.as_ref(), *number)
    }

    /// Writes a node as a query's result has it.
    pub fn write_node(&self, id: NodeId, out: &mut Writer) {
        let Some(node) = self.store().get_node(id) else { return out.null() };
        let labels = node.labels.iter().cloned().map(Value::String).collect::<Vec<_>>();
        let own = node.properties.get(&PropertyKey::new(ID));
        let fields =
            [("id", id_or(own, id.as_u64() as i64)), ("labels", Value::List(labels.into()))];
        self.write_entity(node.properties.iter(), &fields, out);
    }

    /// Writes the nodes of a type, `"*"` being all: `{id, **properties}` of each.
    pub fn export(&self, node_type: &str, bounds: &Bounds, out: &mut Writer) {
        let class = class_name(node_type);
        let store = self.store();
        let mut nodes = Vec::new();
        if node_type == "*" {
            nodes = store.node_ids();
        } else {
            for label in store.all_labels() {
                if class_name(&label) == class {
                    nodes.extend(store.nodes_by_label(&label));
                }
            }
        }
        nodes.sort_unstable();
        nodes.dedup();

        let mut count = 0;
        let total = nodes.len();
        for node in nodes.into_iter().filter_map(|id| store.get_node(id)) {
            let mark = out.mark();
            out.byte(1);
            let key = PropertyKey::new(ID);
            let id = id_or(node.properties.get(&key), node.id.as_u64() as i64);
            self.write_entity(node.properties.iter(), &[("id", id)], out);
            if count == bounds.rows || out.cost > bounds.cost {
                out.reset(mark);
                break;
            }
            count += 1;
        }
        out.byte(if count < total { 2 } else { 0 });
    }

    /// Writes the counts of nodes, edges, labels and types.
    pub fn count(&self, out: &mut Writer) {
        let store = self.store();
        out.number(store.node_count());
        out.number(self.loaded.as_ref().map_or_else(|| store.edge_count(), |edges| edges.all.len()));

        let mut labels: Vec<_> = store
            .all_labels()
            .into_iter()
            .map(|label| (store.nodes_by_label_count(&label), label))
            .collect();
        let mut types = HashMap::new();
        if let Some(edges) = &self.loaded {
            for edge in &edges.all {
                let name = &edges.types.names[edge.kind as usize];
                *types.entry(name.clone()).or_insert(0usize) += 1;
            }
        } else {
            for node in store.node_ids() {
                for (_, edge) in store.edges_from(node, Direction::Outgoing) {
                    if let Some(name) = store.edge_type(edge) {
                        *types.entry(name).or_insert(0usize) += 1;
                    }
                }
            }
        }
        labels.retain(|(count, _)| *count > 0);
        write_counts(labels, out);
        write_counts(types.into_iter().map(|(name, n)| (n, name.to_string())).collect(), out);
    }
}

/// Writes names with their counts, the most frequent first.
fn write_counts(mut counts: Vec<(usize, String)>, out: &mut Writer) {
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    out.length(counts.len());
    for (count, name) in counts {
        out.number(count);
        out.text(&name);
    }
}

/// The id of a node or an edge: its own, or the engine's number.
fn id_or(id: Option<&Value>, number: i64) -> Value {
    match id {
        Some(id) if !id.is_null() => id.clone(),
        _ => Value::Int64(number),
    }
}

/// A date, a time or another value that the host knows as text.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Date(value) => value.to_string(),
        Value::Time(value) => value.to_string(),
        Value::Timestamp(value) => value.to_string(),
        Value::Duration(value) => value.to_string(),
        Value::ZonedDatetime(value) => value.to_string(),
        other => other.to_string(),
    }
}
