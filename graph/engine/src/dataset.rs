//! The RDF dataset: loaded facts, the projection of the property graph, and inferred facts.
//!
//! A term is a number, and a quad is four of them. Three sorted lists answer every pattern of a
//! query by a binary search. oxigraph's own store takes ten times the memory.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use oxigraph::model::vocab::xsd;
use oxigraph::model::{GraphName, Literal, NamedNode, Quad as RdfQuad, Term};
use spareval::{ExpressionTerm, InternalQuad, QueryableDataset};

use crate::names::AU;

pub type TermId = u32;

/// Graph, subject, predicate and object.
pub type Quad = [TermId; 4];

pub const DEFAULT_GRAPH: TermId = 0;

/// The graph that holds the inferred facts once more, `au:inferred`.
pub const INFERRED_GRAPH: TermId = 1;

/// The dictionary of terms.
pub struct Terms {
    terms: Vec<Term>,
    table: HashTable<TermId>,
    hasher: RandomState,
}

impl Terms {
    fn new() -> Self {
        let mut terms =
            Self { terms: Vec::new(), table: HashTable::new(), hasher: RandomState::new() };
        terms.iri("au:default"); // the default graph has no name
        terms.iri(&format!("{AU}inferred"));
        terms
    }

    pub fn get(&self, id: TermId) -> &Term {
        &self.terms[id as usize]
    }

    pub fn find(&self, term: &Term) -> Option<TermId> {
        let hash = self.hasher.hash_one(term);
        self.table.find(hash, |&id| self.terms[id as usize] == *term).copied()
    }

    pub fn intern(&mut self, term: Term) -> TermId {
        let hash = self.hasher.hash_one(&term);
        let found = self.table.find(hash, |&id| self.terms[id as usize] == term);
        if let Some(&id) = found {
            return id;
        }

        let id = self.terms.len() as TermId;
        self.terms.push(term);
        let (terms, hasher) = (&self.terms, &self.hasher);
        self.table.insert_unique(hash, id, |&id| hasher.hash_one(&terms[id as usize]));
        id
    }

    pub fn iri(&mut self, iri: &str) -> TermId {
        self.intern(NamedNode::new_unchecked(iri).into())
    }

    pub fn len(&self) -> usize {
        self.terms.len()
    }

    pub fn quad(&mut self, quad: RdfQuad) -> Quad {
        let graph = match quad.graph_name {
            GraphName::DefaultGraph => DEFAULT_GRAPH,
            GraphName::NamedNode(name) => self.intern(name.into()),
            GraphName::BlankNode(name) => self.intern(name.into()),
        };
        [
            graph,
            self.intern(quad.subject.into()),
            self.intern(quad.predicate.into()),
            self.intern(quad.object),
        ]
    }
}

/// The places of a quad's terms in each of the sorted lists.
const ORDERS: [[usize; 4]; 3] = [[0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]];

pub struct Dataset {
    pub terms: Terms,
    /// Loaded facts, sorted.
    pub base: Vec<Quad>,
    /// The property graph's facts that were not loaded as RDF.
    pub projected: Vec<Quad>,
    pub inferred: Vec<Quad>,
    /// What cannot be true at once, in sentences.
    pub contradictions: Vec<String>,

    lists: [Vec<Quad>; 3],
    graphs: Vec<TermId>,
}

impl Dataset {
    pub fn new() -> Self {
        Self {
            terms: Terms::new(),
            base: Vec::new(),
            projected: Vec::new(),
            inferred: Vec::new(),
            contradictions: Vec::new(),
            lists: Default::default(),
            graphs: Vec::new(),
        }
    }

    /// Adds loaded facts and returns those that are new.
    pub fn add(&mut self, mut quads: Vec<Quad>) -> Vec<Quad> {
        quads.sort_unstable();
        quads.dedup();
        quads.retain(|quad| self.base.binary_search(quad).is_err());

        self.base.reserve_exact(quads.len());
        self.base.extend_from_slice(&quads);
        self.base.sort(); // it merges two sorted runs
        quads
    }

    /// Makes the lists that answer queries from all facts.
    pub fn index(&mut self) {
        self.lists = Default::default();
        let size = self.base.len() + self.projected.len() + 2 * self.inferred.len();
        let mut all = Vec::with_capacity(size);
        for part in [&self.base, &self.projected, &self.inferred] {
            all.extend_from_slice(part);
        }
        all.extend(self.inferred.iter().map(|&[_, s, p, o]| [INFERRED_GRAPH, s, p, o]));
        all.sort();
        all.dedup();

        for (list, order) in self.lists.iter_mut().zip(ORDERS).skip(1) {
            list.reserve_exact(all.len());
            list.extend(all.iter().map(|quad| order.map(|place| quad[place])));
            list.sort_unstable();
        }
        self.graphs = all.iter().map(|quad| quad[0]).filter(|&g| g != DEFAULT_GRAPH).collect();
        self.graphs.dedup();
        self.lists[0] = all;
    }

    pub fn is_inferred(&self, [s, p, o]: [TermId; 3]) -> bool {
        self.inferred.binary_search(&[DEFAULT_GRAPH, s, p, o]).is_ok()
    }

    /// The facts of a graph that match a pattern.
    fn matches(
        &self,
        graph: TermId,
        subject: Option<TermId>,
        predicate: Option<TermId>,
        object: Option<TermId>,
    ) -> impl Iterator<Item = Quad> + '_ {
        let (list, keys) = match (subject, predicate, object) {
            (Some(s), Some(p), Some(o)) => (0, [Some(s), Some(p), Some(o)]),
            (_, Some(p), Some(o)) => (1, [Some(p), Some(o), None]),
            (Some(s), _, Some(o)) => (2, [Some(o), Some(s), None]),
            (Some(s), p, _) => (0, [Some(s), p, None]),
            (_, Some(p), _) => (1, [Some(p), None, None]),
            (_, _, o) => (2, [o, None, None]),
        };

        let [a, b, c] = keys;
        let low = [graph, a.unwrap_or(0), b.unwrap_or(0), c.unwrap_or(0)];
        let most = TermId::MAX;
        let high = [graph, a.unwrap_or(most), b.unwrap_or(most), c.unwrap_or(most)];
        let rows = &self.lists[list];
        let start = rows.partition_point(|row| *row < low);
        let rows = &rows[start..];
        let length = prefix_length(rows, |row| *row <= high);

        rows[..length].iter().map(move |row| {
            let mut quad = [0; 4];
            for (place, &term) in ORDERS[list].into_iter().zip(row) {
                quad[place] = term;
            }
            quad
        })
    }
}

/// How many rows at the start meet a test that no later one meets. Few do, and the pages far
/// behind them need not be in memory.
fn prefix_length(rows: &[Quad], is_met: impl Fn(&Quad) -> bool) -> usize {
    let mut end = 1;
    while end < rows.len() && is_met(&rows[end]) {
        end *= 2;
    }
    let start = end / 2; // the row before it meets the test, if there is one
    let end = end.min(rows.len());
    start + rows[start..end].partition_point(is_met)
}

/// A term of a query: one of the dictionary, or one that the query has computed.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum QueryTerm {
    Known(TermId),
    Computed(Arc<Term>),
}

/// The dataset as a query sees it.
#[derive(Clone, Copy)]
pub struct View<'a>(pub &'a Dataset);

impl<'a> QueryableDataset<'a> for View<'a> {
    type InternalTerm = QueryTerm;
    type Error = Infallible;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&QueryTerm>,
        predicate: Option<&QueryTerm>,
        object: Option<&QueryTerm>,
        graph_name: Option<Option<&QueryTerm>>,
    ) -> impl Iterator<Item = Result<InternalQuad<QueryTerm>, Infallible>> + use<'a> {
        let dataset = self.0;
        let mut graphs: &'a [TermId] = match graph_name {
            Some(None) => &[DEFAULT_GRAPH],
            Some(Some(name)) => dataset.graph(name),
            None => &dataset.graphs,
        };
        let mut known = |term: Option<&QueryTerm>| match term {
            Some(QueryTerm::Known(id)) => Some(*id),
            Some(QueryTerm::Computed(_)) => {
                graphs = &[]; // no fact has it
                None
            }
            None => None,
        };

        let (s, p, o) = (known(subject), known(predicate), known(object));
        graphs.iter().flat_map(move |&graph| dataset.matches(graph, s, p, o)).map(|[g, s, p, o]| {
            Ok(InternalQuad {
                subject: QueryTerm::Known(s),
                predicate: QueryTerm::Known(p),
                object: QueryTerm::Known(o),
                graph_name: (g != DEFAULT_GRAPH).then_some(QueryTerm::Known(g)),
            })
        })
    }

    fn internal_named_graphs(
        &self,
    ) -> impl Iterator<Item = Result<QueryTerm, Infallible>> + use<'a> {
        self.0.graphs.iter().map(|&graph| Ok(QueryTerm::Known(graph)))
    }

    fn contains_internal_graph_name(&self, name: &QueryTerm) -> Result<bool, Infallible> {
        Ok(!self.0.graph(name).is_empty())
    }

    fn internalize_term(&self, term: Term) -> Result<QueryTerm, Infallible> {
        Ok(match self.0.terms.find(&term) {
            Some(id) => QueryTerm::Known(id),
            None => QueryTerm::Computed(Arc::new(term)),
        })
    }

    fn externalize_term(&self, term: QueryTerm) -> Result<Term, Infallible> {
        Ok(self.0.term(&term).clone())
    }

    fn externalize_expression_term(&self, term: QueryTerm) -> Result<ExpressionTerm, Infallible> {
        let term = self.0.term(&term);
        if let Term::Literal(literal) = term
            && let Some(number) = number_of(literal)
        {
            return Ok(number);
        }
        Ok(term.clone().into())
    }
}

impl Dataset {
    fn term<'a>(&'a self, term: &'a QueryTerm) -> &'a Term {
        match term {
            QueryTerm::Known(id) => self.terms.get(*id),
            QueryTerm::Computed(term) => term,
        }
    }

    fn graph(&self, name: &QueryTerm) -> &[TermId] {
        match name {
            QueryTerm::Known(id) => match self.graphs.binary_search(id) {
                Ok(at) => &self.graphs[at..=at],
                Err(_) => &[],
            },
            QueryTerm::Computed(_) => &[],
        }
    }
}

/// Parses the common numbers without a copy of the literal's text.
fn number_of(literal: &Literal) -> Option<ExpressionTerm> {
    let (datatype, text) = (literal.datatype(), literal.value());
    if datatype == xsd::INTEGER {
        text.parse().ok().map(ExpressionTerm::IntegerLiteral)
    } else if datatype == xsd::DOUBLE {
        text.parse().ok().map(ExpressionTerm::DoubleLiteral)
    } else if datatype == xsd::DECIMAL {
        text.parse().ok().map(ExpressionTerm::DecimalLiteral)
    } else {
        None
    }
}
