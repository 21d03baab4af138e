//! Reading queries of Cypher. The engine's library parses them and keeps the graph; its own
//! evaluation reads whole nodes, and lacks much of openCypher's values. What writes, or is not
//! here (shortest paths), is left to the library.

mod aggregate;
mod calls;
mod column;
mod columns;
mod compile;
mod dates;
mod eval;
mod functions;
mod groups;
mod operators;
mod pattern;
mod plan;
mod project;
mod run;
mod scan;
mod snapshot;
mod value;

use std::collections::HashMap;

use grafeo_common::types::{NodeId, Value};

use crate::codec::Writer;
use crate::cypher::{name_columns, tokens};
use crate::failure::Failure;
use crate::property::{Bounds, PropertyGraph};
use compile::Stop;
use eval::Reader;
use value::Val;

pub use calls::check_calls;
pub use snapshot::Snapshot;

/// Whether a query has no clause that writes or calls.
pub fn only_reads(query: &str) -> bool {
    let writing = [
        "CREATE", "MERGE", "SET", "DELETE", "DETACH", "REMOVE", "FOREACH", "CALL", "DROP", "ALTER",
        "LOAD",
    ];
    !tokens(query).iter().any(|token| token.is(&writing))
}

/// Answers a query that reads. False: the library has to.
pub fn answer(
    graph: &PropertyGraph,
    snapshot: &Snapshot,
    query: &str,
    parameters: &HashMap<String, Value>,
    longest: usize,
    bounds: &Bounds,
    out: &mut Writer,
) -> Result<bool, Failure> {
    let tokens = tokens(query);
    let text = dates::dotless(query, &tokens);
    let Ok(statement) = grafeo_adapters::query::cypher::parse(&text) else { return Ok(false) };
    let has_subqueries =
        tokens.windows(2).any(|next| next[0].is(&["EXISTS", "COUNT"]) && next[1].is(&["{"]));
    let plan = match compile::compile(&statement, snapshot, parameters, longest, has_subqueries) {
        Ok(plan) => plan,
        Err(Stop::Unknown) => return Ok(false),
        Err(Stop::Failed(failure)) => return Err(*failure),
    };

    let reader = Reader::new(snapshot, graph);
    let rows = reader.rows(&plan, bounds.rows).map_err(|failure| *failure)?;
    let mut columns = plan.columns;
    name_columns(query, &mut columns);
    out.texts(&columns);
    let mut count = 0;
    for row in &rows {
        let mark = out.mark();
        out.byte(1);
        row.iter().for_each(|value| reader.write(value, out));
        if count == bounds.rows || out.cost > bounds.cost {
            out.reset(mark);
            break;
        }
        count += 1;
    }
    out.byte(if count < rows.len() { 2 } else { 0 });
    Ok(true)
}

impl Reader<'_> {
    fn write(&self, value: &Val, out: &mut Writer) {
        match value {
            Val::Null => out.null(),
            Val::Bool(value) => out.boolean(*value),
            Val::Int(value) => out.integer(*value),
            Val::Float(value) => out.float(*value),
            Val::Str(text) => out.string(text),
            Val::List(items) => {
                out.list(items.len());
                items.iter().for_each(|item| self.write(item, out));
            }
            Val::Map(map) => {
                out.map(map.len());
                for (key, value) in map.iter() {
                    out.text(key);
                    self.write(value, out);
                }
            }
            Val::Node(node) => self.graph.write_node(NodeId::new((*node).into()), out),
            Val::Edge(edge) => self.write_edge(*edge, out),
            Val::Path(path) => {
                out.map(2);
                out.text("nodes");
                out.list(path.nodes.len());
                path.nodes.iter().for_each(|node| self.write(&Val::Node(*node), out));
                out.text("relationships");
                out.list(path.edges.len());
                path.edges.iter().for_each(|edge| self.write(&Val::Edge(*edge), out));
            }
            Val::Moment(moment) => out.string(&moment.to_string()),
            Val::Duration(duration) => out.string(&duration.to_string()),
        }
    }

    fn write_edge(&self, edge: u32, out: &mut Writer) {
        let ends = self.snapshot.edges[edge as usize];
        let own = self.properties(&Val::Edge(edge)).unwrap_or_default();
        let id = own.get(crate::property::ID).cloned().unwrap_or(Val::Int(edge.into()));
        let own =
            own.iter().filter(|(key, _)| !matches!(key.as_str(), "id" | "type" | "from" | "to"));
        let own: Vec<_> = own.collect();

        out.map(4 + own.len());
        out.text("id");
        self.write(&id, out);
        out.text("type");
        out.string(self.snapshot.type_name(edge));
        for (name, node) in [("from", ends.from), ("to", ends.to)] {
            out.text(name);
            self.write(&self.node_id(node), out);
        }
        for (key, value) in own {
            out.text(key);
            self.write(value, out);
        }
    }

    fn node_id(&self, node: u32) -> Val {
        let column = self.snapshot.find_column(crate::property::ID);
        match column.map(|at| self.snapshot.column(at).get(node)) {
            Some(id) if !id.is_null() => id,
            _ => Val::Int(node.into()),
        }
    }
}

/// A date, a time or another stored value as text.
pub fn text_of(value: &Value) -> String {
    operators::show(&Val::of(value))
}

/// A query that writes, with each date, time and duration of constants as a parameter: the
/// library has other ones.
pub fn with_constants(
    query: &str,
    parameters: &mut HashMap<String, Value>,
    graph: &PropertyGraph,
) -> String {
    let tokens = tokens(query);
    let snapshot = Snapshot::default();
    let reader = Reader::new(&snapshot, graph);
    let mut text = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < tokens.len() {
        let end = dates::constant_end(&tokens, at);
        let value = end.and_then(|end| {
            let part = &query[tokens[at].start..tokens[end].end];
            let part = dates::dotless(part, &crate::cypher::tokens(part));
            let statement =
                grafeo_adapters::query::cypher::parse(&format!("RETURN {part}")).ok()?;
            let plan = compile::compile(&statement, &snapshot, parameters, 1, false).ok()?;
            reader.rows(&plan, 1).ok()?.first()?.first()?.to_stored()
        });
        if let (Some(end), Some(value)) = (end, value) {
            let name = format!("constant_{}", parameters.len());
            text.push_str(&query[copied..tokens[at].start]);
            text.push_str(&format!("${name}"));
            parameters.insert(name, value);
            copied = tokens[end].end;
            at = end;
        }
        at += 1;
    }
    text.push_str(&query[copied..]);
    text
}
