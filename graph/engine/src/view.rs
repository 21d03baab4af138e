//! Views of a graph as a memory: what is like a text, what came last, what caused what, what is
//! named so, what is believed and where things are.

use std::collections::HashMap;

use grafeo_common::types::{NodeId, PropertyKey, Value};
use grafeo_core::graph::Direction;
use grafeo_core::graph::lpg::Node;

use crate::codec::Writer;
use crate::failure::{Failure, Kind};
use crate::names::{class_name, property_name};
use crate::property::{ID, PropertyGraph};

/// The most rows of a view.
const ROWS: usize = 5;

/// The properties that order nodes in time. A node's first one counts.
const TIMES: [&str; 6] = ["sequence", "timestamp", "created_at", "createdAt", "time", "date"];

/// Writes the rows of a view: a byte 1 and a map for each, and 0.
pub fn write(
    graph: &PropertyGraph,
    name: &str,
    query: &str,
    out: &mut Writer,
) -> Result<(), Failure> {
    match name {
        "semantic" => write_semantic(graph, query, out),
        "temporal" => write_temporal(graph, out),
        "causal" => write_pairs(graph, query, "ReasoningTrace", &["causedBy"], ["trace", "cause"], out),
        "entity" => write_entities(graph, query, out),
        "epistemic" => write_beliefs(graph, query, out),
        "place" => {
            let types = ["locatedIn", "locatedAt", "at", "place"];
            write_pairs(graph, query, "*", &types, ["node", "place"], out);
        }
        _ => {
            let message = format!(
                "there is no view {name:?}: use semantic, temporal, causal, entity, epistemic or place"
            );
            return Err(Failure::new(Kind::Request, message));
        }
    }
    out.byte(0);
    Ok(())
}

fn nodes(graph: &PropertyGraph) -> impl Iterator<Item = Node> + '_ {
    let store = graph.store();
    store.node_ids().into_iter().filter_map(|id| store.get_node(id))
}

/// The words of a text, in lower case.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase)
}

/// The texts of a node: its labels and the strings of its properties.
fn texts(node: &Node) -> Vec<String> {
    let mut all: Vec<String> = node.labels.iter().map(|label| label.to_string()).collect();
    for (_, value) in &node.properties {
        match value {
            Value::String(text) => all.push(text.to_string()),
            Value::List(items) => {
                all.extend(items.iter().filter_map(|item| item.as_str().map(str::to_owned)));
            }
            _ => {}
        }
    }
    all
}

/// How much each node has of a text's words, by TF-IDF. Nodes without any are left out.
fn scores(graph: &PropertyGraph, query: &str) -> HashMap<NodeId, f64> {
    let mut wanted: Vec<String> = words(query).collect();
    wanted.sort();
    wanted.dedup();

    let mut total = 0usize;
    let mut holders = vec![0usize; wanted.len()];
    let mut found: Vec<(NodeId, Vec<f64>)> = Vec::new();
    for node in nodes(graph) {
        total += 1;
        let mut counts = vec![0.0; wanted.len()];
        let mut length = 0usize;
        for text in texts(&node) {
            for word in words(&text) {
                length += 1;
                if let Ok(at) = wanted.binary_search(&word) {
                    counts[at] += 1.0;
                }
            }
        }
        if counts.iter().any(|&count| count > 0.0) {
            for (count, holders) in counts.iter_mut().zip(&mut holders) {
                *holders += usize::from(*count > 0.0);
                *count /= (length as f64).sqrt();
            }
            found.push((node.id, counts));
        }
    }

    let rarity: Vec<f64> =
        holders.iter().map(|&n| (1.0 + total as f64 / (1.0 + n as f64)).ln()).collect();
    found
        .into_iter()
        .map(|(id, counts)| (id, counts.iter().zip(&rarity).map(|(count, idf)| count * idf).sum()))
        .collect()
}

fn write_semantic(graph: &PropertyGraph, query: &str, out: &mut Writer) {
    let mut ranked: Vec<_> = scores(graph, query).into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for (id, score) in ranked.into_iter().take(ROWS) {
        write_row(graph, &[("node", Cell::Node(id)), ("score", Cell::Number(score))], out);
    }
}

fn write_temporal(graph: &PropertyGraph, out: &mut Writer) {
    let mut dated: Vec<(Value, NodeId)> = nodes(graph)
        .filter_map(|node| {
            let time = TIMES.iter().find_map(|name| node.properties.get(&PropertyKey::new(*name)))?;
            (!time.is_null()).then(|| (time.clone(), node.id))
        })
        .collect();
    dated.sort_by(|a, b| compare(&b.0, &a.0).then(a.1.cmp(&b.1)));
    for (_, id) in dated.into_iter().take(ROWS) {
        write_row(graph, &[("node", Cell::Node(id))], out);
    }
}

/// Orders numbers before texts; dates and times order as their texts.
fn compare(a: &Value, b: &Value) -> std::cmp::Ordering {
    let number = |value: &Value| match value {
        Value::Int64(number) => Some(*number as f64),
        Value::Float64(number) => Some(*number),
        _ => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => crate::property::text_of(a).cmp(&crate::property::text_of(b)),
    }
}

fn has_class(node: &Node, class: &str) -> bool {
    class == "*" || node.labels.iter().any(|label| class_name(label) == class)
}

/// Writes edges of some types from nodes of a class. Those whose ends are like the query come
/// first.
fn write_pairs(
    graph: &PropertyGraph,
    query: &str,
    class: &str,
    types: &[&str],
    columns: [&str; 2],
    out: &mut Writer,
) {
    let scores = scores(graph, query);
    let score = |id| scores.get(id).copied().unwrap_or(0.0);
    let mut pairs = Vec::new();
    for node in nodes(graph).filter(|node| has_class(node, class)) {
        for to in linked(graph, node.id, types, Direction::Outgoing) {
            pairs.push((score(&node.id) + score(&to), node.id, to));
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));

    for (_, from, to) in pairs.into_iter().take(ROWS) {
        write_row(graph, &[(columns[0], Cell::Node(from)), (columns[1], Cell::Node(to))], out);
    }
}

fn linked(graph: &PropertyGraph, node: NodeId, types: &[&str], way: Direction) -> Vec<NodeId> {
    let store = graph.store();
    let of_type = |edge| store.edge_type(edge).is_some_and(|t| types.contains(&&*property_name(&t)));
    store
        .edges_from(node, way)
        .into_iter()
        .filter_map(|(end, edge)| of_type(edge).then_some(end))
        .collect()
}

fn write_entities(graph: &PropertyGraph, query: &str, out: &mut Writer) {
    let wanted = query.to_lowercase();
    let key = PropertyKey::new(ID);
    let mut count = 0;
    for node in nodes(graph) {
        let contains = |text: &str| text.to_lowercase().contains(&wanted);
        let is_named = node.properties.get(&key).and_then(Value::as_str).is_some_and(contains)
            || node.labels.iter().any(|label| contains(label));
        if is_named {
            write_row(graph, &[("node", Cell::Node(node.id))], out);
            count += 1;
        }
        if count == ROWS {
            return;
        }
    }
}

/// Writes beliefs with what supports and what contradicts them.
fn write_beliefs(graph: &PropertyGraph, query: &str, out: &mut Writer) {
    let scores = scores(graph, query);
    let mut beliefs: Vec<_> = nodes(graph)
        .filter(|node| has_class(node, "Belief"))
        .map(|node| (scores.get(&node.id).copied().unwrap_or(0.0), node.id))
        .collect();
    beliefs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));

    for (_, belief) in beliefs.into_iter().take(ROWS) {
        let about = |incoming: &[&str], outgoing: &[&str]| {
            let mut all = linked(graph, belief, incoming, Direction::Incoming);
            all.extend(linked(graph, belief, outgoing, Direction::Outgoing));
            all.truncate(4 * ROWS);
            Cell::Nodes(all)
        };
        let supporting = about(&["supports"], &["supportedBy"]);
        let contradicting = about(&["contradicts"], &["contradicts", "contradictedBy"]);
        let row = [
            ("belief", Cell::Node(belief)),
            ("supporting", supporting),
            ("contradicting", contradicting),
        ];
        write_row(graph, &row, out);
    }
}

enum Cell {
    Node(NodeId),
    Nodes(Vec<NodeId>),
    Number(f64),
}

fn write_row(graph: &PropertyGraph, row: &[(&str, Cell)], out: &mut Writer) {
    out.byte(1);
    out.map(row.len());
    for (name, cell) in row {
        out.text(name);
        match cell {
            Cell::Node(id) => graph.write_node(*id, out),
            Cell::Number(number) => out.float(*number),
            Cell::Nodes(ids) => {
                out.list(ids.len());
                for id in ids {
                    graph.write_node(*id, out);
                }
            }
        }
    }
}
