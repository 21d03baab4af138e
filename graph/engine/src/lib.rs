//! The engine of package graph: a property graph with Cypher, and an RDF dataset with SPARQL and
//! OWL 2 RL, as one WebAssembly module.
//!
//! The host calls `allocate` for a request and then `call`. See `graph/engine.go`.

mod closure;
mod codec;
mod cypher;
mod dataset;
mod dump;
mod failure;
mod host;
mod kinds;
mod loaded;
mod names;
mod projection;
mod property;
mod rdf;
mod read;
mod rules;
mod temporal;
mod view;

use std::cell::RefCell;
use std::collections::HashMap;

use codec::{Reader, Writer};
use dataset::{Dataset, Quad};
use failure::{Failure, Kind};
use property::{Bounds, PropertyGraph};

/// The whole state of a graph.
struct State {
    graph: PropertyGraph,
    dataset: Dataset,
    prefixes: rdf::Prefixes,
    /// Loaded facts that the property graph does not have yet.
    fresh: Vec<Quad>,
    /// The property graph as queries read it, unless it has changed since.
    snapshot: Option<read::Snapshot>,
    /// Whether anything but loaded RDF was written to the property graph.
    is_written: bool,
}

thread_local! {
    static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
    static BUFFERS: RefCell<Buffers> = const {
        RefCell::new(Buffers { request: Vec::new(), response: Vec::new() })
    };
}

struct Buffers {
    request: Vec<u8>,
    response: Vec<u8>,
}

unsafe extern "C" {
    safe fn __wasm_call_ctors();
}

/// Makes an empty graph. It returns 0, or 1 if it cannot.
#[unsafe(no_mangle)]
pub extern "C" fn start() -> i32 {
    __wasm_call_ctors();
    host::pause(); // an import that is never used would be dropped
    let Ok(graph) = PropertyGraph::new() else { return 1 };
    STATE.set(Some(State {
        graph,
        dataset: Dataset::new(),
        prefixes: rdf::common_prefixes(),
        fresh: Vec::new(),
        snapshot: None,
        is_written: false,
    }));
    0
}

/// Makes room for a request and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    BUFFERS.with_borrow_mut(|buffers| {
        buffers.response = Vec::new();
        buffers.request = vec![0; length];
        buffers.request.as_mut_ptr()
    })
}

/// Answers the request. The result has the response's length above its address. Its first byte
/// is 0, or the kind of a failure.
#[unsafe(no_mangle)]
pub extern "C" fn call(operation: u32) -> u64 {
    let request = BUFFERS.with_borrow_mut(|buffers| std::mem::take(&mut buffers.request));
    let mut out = Writer::default();
    out.byte(0);
    let result = STATE.with_borrow_mut(|state| match state {
        Some(state) => state.answer(operation, &mut Reader::new(&request), &mut out),
        None => Err("the engine has not started".into()),
    });
    if let Err(failure) = result {
        out = Writer::default();
        failure.write(&mut out);
    }

    BUFFERS.with_borrow_mut(|buffers| {
        buffers.response = out.data;
        (buffers.response.len() as u64) << 32 | buffers.response.as_ptr() as u64
    })
}

/// The operations, in the order of `graph/engine.go`.
const ADD_NODES: u32 = 1;
const ADD_EDGES: u32 = 2;
const READ_RDF: u32 = 3;
const READY_CYPHER: u32 = 4;
const READY_SPARQL: u32 = 5;
const CYPHER: u32 = 6;
const SPARQL: u32 = 7;
const SPARQL_TEXT: u32 = 8;
const EXPORT: u32 = 9;
const COUNT: u32 = 10;
const WRITE_RDF: u32 = 11;
const CYPHER_WRITE: u32 = 12;
const READY_FACTS: u32 = 13;
const VIEW: u32 = 14;
const CONTRADICTIONS: u32 = 15;
const ADD_KNOWN_EDGES: u32 = 16;
const WRITE_NODES: u32 = 17;
const WRITE_EDGES: u32 = 18;
const READY_LIBRARY: u32 = 19;

impl State {
    fn answer(
        &mut self,
        operation: u32,
        request: &mut Reader,
        out: &mut Writer,
    ) -> Result<(), Failure> {
        match operation {
            ADD_NODES => {
                self.change();
                self.graph.add_nodes(request)
            }
            ADD_EDGES => {
                self.change();
                self.graph.add_edges(request)
            }
            ADD_KNOWN_EDGES => {
                self.change();
                self.graph.add_known_edges(request, out)
            }
            WRITE_NODES => self.graph.write_nodes(),
            WRITE_EDGES => {
                self.graph.complete();
                self.graph.write_edges()
            }
            READY_LIBRARY => {
                self.graph.complete();
                Ok(())
            }
            READ_RDF => self.read_rdf(request.text()?, request.text()?),
            READY_CYPHER => self.ready_cypher(),
            READY_FACTS => {
                if self.is_written {
                    self.graph.complete();
                    projection::to_rdf(&mut self.dataset, &self.graph);
                }
                Ok(())
            }
            READY_SPARQL => self.ready_sparql(request.length()?),
            CYPHER => self.cypher(request, false, out),
            CYPHER_WRITE => self.cypher(request, true, out),
            SPARQL => {
                let bounds = bounds(request)?;
                let text = request.text()?;
                let results = rdf::query(&self.dataset, &self.prefixes, text, request.text()?)?;
                rdf::answer(&self.dataset, results, &bounds, out)
            }
            SPARQL_TEXT => {
                let format = request.text()?;
                let text = request.text()?;
                let results = rdf::query(&self.dataset, &self.prefixes, text, request.text()?)?;
                rdf::serialize(results, format)
            }
            EXPORT => {
                let bounds = bounds(request)?;
                self.graph.export(request.text()?, &bounds, out);
                Ok(())
            }
            COUNT => {
                self.count(out);
                Ok(())
            }
            CONTRADICTIONS => {
                out.texts(&self.dataset.contradictions);
                Ok(())
            }
            VIEW => {
                self.graph.complete();
                let query = request.text()?;
                for name in request.texts()? {
                    view::write(&self.graph, name, query, out)?;
                }
                Ok(())
            }
            WRITE_RDF => rdf::dump(&self.dataset, &self.prefixes, request.text()?),
            _ => Err("the operation is unknown".into()),
        }
    }

    /// Notes that the property graph is about to change.
    fn change(&mut self) {
        self.is_written = true;
        self.snapshot = None;
    }

    fn read_rdf(&mut self, format: &str, base: &str) -> Result<(), Failure> {
        let quads = rdf::read(&mut self.dataset, &mut self.prefixes, format, base)?;
        let fresh = self.dataset.add(quads);
        self.fresh.extend(fresh);
        Ok(())
    }

    /// Brings loaded facts into the property graph.
    fn ready_cypher(&mut self) -> Result<(), Failure> {
        let fresh = std::mem::take(&mut self.fresh);
        if !fresh.is_empty() {
            self.snapshot = None;
        }
        projection::to_property_graph(&mut self.dataset, fresh, &mut self.graph);
        self.snapshot.get_or_insert_with(|| read::Snapshot::new(&self.graph));
        Ok(())
    }

    /// Infers at most `most` facts and indexes all. With 0, it infers none.
    fn ready_sparql(&mut self, most: usize) -> Result<(), Failure> {
        if most > 0 && !closure::infer(&mut self.dataset, most) {
            let message = format!("more than {most} facts follow from the graph");
            return Err(Failure::new(Kind::Inferred, message));
        }
        self.dataset.index();
        Ok(())
    }

    fn cypher(
        &mut self,
        request: &mut Reader,
        may_write: bool,
        out: &mut Writer,
    ) -> Result<(), Failure> {
        let bounds = bounds(request)?;
        let most = request.length()?;
        let text = request.text()?;
        if cypher::longest_path(text) > most as u64 {
            let message = format!("a path may have {most} relationships at most: see MaxPathDepth");
            return Err(Failure::new(Kind::Query, message));
        }
        kinds::check(text)?;
        let mut parameters: HashMap<_, _> =
            request.map()?.into_iter().map(|(key, value)| (key.as_str().to_owned(), value)).collect();
        if !may_write || read::only_reads(text) {
            let snapshot = self.snapshot.get_or_insert_with(|| read::Snapshot::new(&self.graph));
            if read::answer(&self.graph, snapshot, text, &parameters, most, &bounds, out)? {
                return Ok(());
            }
        }
        if !may_write {
            if !self.graph.is_complete() {
                return Err(Failure::new(Kind::Incomplete, "the library does not have all of it"));
            }
            return self.graph.query(text, parameters, false, &bounds, out);
        }
        read::check_calls(text).map_err(|failure| *failure)?;
        self.graph.complete();
        self.change();
        self.graph.has_edge_properties = true;
        let text = read::with_constants(text, &mut parameters, &self.graph);
        self.graph.query(&text, parameters, true, &bounds, out)
    }

    fn count(&self, out: &mut Writer) {
        self.graph.count(out);
        rdf::count(&self.dataset, out);
        out.length(self.prefixes.len());
        for (name, iri) in &self.prefixes {
            out.text(name);
            out.text(iri);
        }
    }
}

fn bounds(request: &mut Reader) -> Result<Bounds, Failure> {
    Ok(Bounds { rows: request.length()?, cost: request.length()? })
}
