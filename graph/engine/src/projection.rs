//! The property graph as RDF, and loaded RDF in the property graph.

use std::collections::{BTreeMap, HashMap, HashSet};

use grafeo_common::types::{NodeId, PropertyKey, Value};
use grafeo_core::graph::{Direction, GraphStoreSearch};
use oxigraph::model::vocab::{rdf, xsd};
use oxigraph::model::{Literal, Term};

use crate::dataset::{DEFAULT_GRAPH, Dataset, Quad, TermId};
use crate::names::{class_name, id_of, iri_of, local_name, property_name};
use crate::property::{ID, PropertyGraph, text_of};
use crate::rdf::{Native, native, term_of_id};

/// Adds loaded facts to the property graph. `rdf:type` gives labels, a literal is a property, and
/// every other fact is an edge. Names are the last parts of the IRIs.
pub fn to_property_graph(
    dataset: &mut Dataset,
    mut facts: Vec<Quad>,
    graph: &mut PropertyGraph,
) {
    facts.sort_unstable_by_key(|&[g, s, p, o]| (s, p, o, g));
    facts.dedup_by_key(|&mut [_, s, p, o]| (s, p, o)); // the same fact in two graphs
    let type_id = dataset.terms.iri(rdf::TYPE.as_str());
    let mut builder = Builder { dataset, graph, type_id, nodes: HashMap::new() };

    for about in facts.chunk_by(|a, b| a[1] == b[1]) {
        builder.add_node(about);
    }
    for &[_, s, p, o] in &facts {
        if p != type_id && !matches!(builder.dataset.terms.get(o), Term::Literal(_)) {
            builder.add_edge(s, p, o);
        }
    }
}

struct Builder<'a> {
    dataset: &'a Dataset,
    graph: &'a mut PropertyGraph,
    type_id: TermId,
    nodes: HashMap<TermId, NodeId>,
}

impl Builder<'_> {
    /// Adds the node of a subject, of which all facts are given.
    fn add_node(&mut self, about: &[Quad]) {
        let terms = &self.dataset.terms;
        let mut labels = Vec::new();
        let mut properties: Vec<(String, Value)> = Vec::new();
        for &[_, _, p, o] in about {
            match terms.get(o) {
                Term::NamedNode(class) if p == self.type_id => {
                    labels.push(local_name(class.as_str()));
                }
                Term::Literal(literal) => {
                    let name = property_of(terms.get(p));
                    let value = value_of(literal);
                    match properties.iter_mut().find(|(key, _)| *key == name) {
                        Some((_, old)) => *old = joined(old, value),
                        None => properties.push((name, value)),
                    }
                }
                _ => {}
            }
        }

        let subject = about[0][1];
        let id = node_id(terms.get(subject));
        if let Some(node) = self.graph.find(&id) {
            let store = self.graph.store();
            for (name, value) in &mut properties {
                if let Some(old) = store.get_node_property(node, &PropertyKey::new(name.as_str())) {
                    *value = joined(&old, value.clone());
                }
            }
        }
        let properties = properties.into_iter().map(|(name, value)| (name.into(), value));
        let node = self.graph.add_node(&id, &labels, properties);
        self.nodes.insert(subject, node);
    }

    fn add_edge(&mut self, s: TermId, p: TermId, o: TermId) {
        let (from, to) = (self.node(s), self.node(o));
        if let Term::NamedNode(property) = self.dataset.terms.get(p) {
            self.graph.connect(from, to, local_name(property.as_str()), BTreeMap::new());
        }
    }

    fn node(&mut self, term: TermId) -> NodeId {
        if let Some(&node) = self.nodes.get(&term) {
            return node;
        }
        let id = node_id(self.dataset.terms.get(term));
        let node = self.graph.add_node(&id, &[], []);
        self.nodes.insert(term, node);
        node
    }
}

/// The property's name. A property named `id` would hide the node's id.
fn property_of(predicate: &Term) -> String {
    let Term::NamedNode(name) = predicate else { return String::new() };
    match local_name(name.as_str()) {
        ID => name.as_str().to_owned(),
        name => name.to_owned(),
    }
}

fn node_id(term: &Term) -> String {
    match term {
        Term::NamedNode(name) => id_of(name.as_str()),
        other => other.to_string(),
    }
}

fn value_of(literal: &Literal) -> Value {
    match native(literal) {
        Native::Boolean(value) => Value::Bool(value),
        Native::Integer(value) => Value::Int64(value),
        Native::Float(value) => Value::Float64(value),
        Native::Text => Value::String(literal.value().into()),
    }
}

/// A property with several values is a list of them.
fn joined(old: &Value, new: Value) -> Value {
    match old {
        _ if *old == new => new,
        Value::List(items) if items.contains(&new) => old.clone(),
        Value::List(items) => {
            let mut items = items.to_vec();
            items.push(new);
            Value::List(items.into())
        }
        _ => Value::List([old.clone(), new].into()),
    }
}

/// Computes the facts of the property graph that no loaded fact states.
pub fn to_rdf(dataset: &mut Dataset, graph: &PropertyGraph) {
    let stated = Stated::new(dataset);
    let type_id = dataset.terms.iri(rdf::TYPE.as_str());
    let store = graph.store();
    let key = PropertyKey::new(ID);
    let mut facts = Vec::new();

    let nodes = store.node_ids();
    let mut terms = HashMap::with_capacity(nodes.len());
    for &node in &nodes {
        let id = match store.get_node_property(node, &key) {
            Some(Value::String(id)) => id.to_string(),
            Some(id) if !id.is_null() => text_of(&id),
            _ => format!("node-{}", node.as_u64()),
        };
        terms.insert(node, dataset.terms.intern(term_of_id(&id)));
    }

    for node in nodes.into_iter().filter_map(|id| store.get_node(id)) {
        let subject = terms[&node.id];
        let said = stated.about(subject);
        for label in &node.labels {
            if !said.labels.contains(label.as_str()) {
                let class = dataset.terms.iri(&iri_of(&class_name(label)));
                facts.push([DEFAULT_GRAPH, subject, type_id, class]);
            }
        }
        for (name, value) in node.properties.iter().filter(|(name, _)| name.as_str() != ID) {
            let property = dataset.terms.iri(&iri_of(name.as_str()));
            let list;
            let values = match value {
                Value::List(items) => {
                    list = items.clone();
                    &list[..]
                }
                value => std::slice::from_ref(value),
            };
            for value in values {
                if said.properties.iter().any(|(key, said)| key == name.as_str() && said == value) {
                    continue;
                }
                if let Some(literal) = literal_of(value) {
                    facts.push([DEFAULT_GRAPH, subject, property, dataset.terms.intern(literal)]);
                }
            }
        }
        project_edges(store, dataset, &terms, node.id, said, &mut facts);
    }

    facts.sort_unstable();
    facts.dedup();
    facts.retain(|fact| dataset.base.binary_search(fact).is_err());
    dataset.projected = facts;
}

fn project_edges(
    store: &dyn GraphStoreSearch,
    dataset: &mut Dataset,
    terms: &HashMap<NodeId, TermId>,
    node: NodeId,
    said: &About,
    facts: &mut Vec<Quad>,
) {
    for (to, edge) in store.edges_from(node, Direction::Outgoing) {
        let (Some(name), Some(&object)) = (store.edge_type(edge), terms.get(&to)) else { continue };
        if said.edges.contains(&(name.to_string(), object)) {
            continue;
        }
        let property = dataset.terms.iri(&iri_of(&property_name(&name)));
        facts.push([DEFAULT_GRAPH, terms[&node], property, object]);
    }
}

/// What loaded facts say, in the names of the property graph.
struct Stated {
    about: HashMap<TermId, About>,
    nothing: About,
}

#[derive(Default)]
struct About {
    labels: HashSet<String>,
    properties: Vec<(String, Value)>,
    edges: HashSet<(String, TermId)>,
}

impl Stated {
    fn new(dataset: &mut Dataset) -> Self {
        let type_id = dataset.terms.iri(rdf::TYPE.as_str());
        let mut about: HashMap<TermId, About> = HashMap::new();
        for &[_, s, p, o] in &dataset.base {
            let entry = about.entry(s).or_default();
            let predicate = dataset.terms.get(p);
            match dataset.terms.get(o) {
                Term::Literal(literal) => {
                    entry.properties.push((property_of(predicate), value_of(literal)));
                }
                Term::NamedNode(class) if p == type_id => {
                    entry.labels.insert(local_name(class.as_str()).to_owned());
                }
                _ => {
                    let Term::NamedNode(name) = predicate else { continue };
                    entry.edges.insert((local_name(name.as_str()).to_owned(), o));
                }
            }
        }
        Self { about, nothing: About::default() }
    }

    fn about(&self, term: TermId) -> &About {
        self.about.get(&term).unwrap_or(&self.nothing)
    }
}

/// The literal of a value; a map or a nested list has none.
fn literal_of(value: &Value) -> Option<Term> {
    let typed = |text: String, datatype| Literal::new_typed_literal(text, datatype);
    let literal = match value {
        Value::Null | Value::List(_) | Value::Map(_) | Value::Path { .. } => return None,
        Value::Bool(value) => Literal::from(*value),
        Value::Int64(value) => Literal::from(*value),
        Value::Float64(value) => Literal::from(*value),
        Value::String(text) => Literal::new_simple_literal(text.as_str()),
        Value::Date(value) => typed(value.to_string(), xsd::DATE.into_owned()),
        Value::Timestamp(value) => typed(value.to_string(), xsd::DATE_TIME.into_owned()),
        Value::ZonedDatetime(value) => typed(value.to_string(), xsd::DATE_TIME.into_owned()),
        other => Literal::new_simple_literal(text_of(other)),
    };
    Some(literal.into())
}

