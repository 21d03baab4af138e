//! The facts that follow from the default graph by RDFS and OWL 2 RL.

use oxigraph::model::vocab::{rdf, rdfs};
use oxigraph::model::{GraphName, NamedNode, NamedOrBlankNode, Term, Triple};
use reasonable::reasoner::Reasoner;

use crate::dataset::{DEFAULT_GRAPH, Dataset, Quad, TermId};
use crate::rules;

const OWL: &str = "http://www.w3.org/2002/07/owl#";

/// Words by which two names can come to mean the same thing.
const EQUALITY: [&str; 6] = [
    "sameAs",
    "FunctionalProperty",
    "InverseFunctionalProperty",
    "hasKey",
    "maxCardinality",
    "maxQualifiedCardinality",
];

/// The reasoner and the other rules take turns until neither finds anything, at most this often.
const MOST_ROUNDS: usize = 16;

/// Computes the inferred facts, which must be at most `most`. It returns false if they are more.
pub fn infer(dataset: &mut Dataset, most: usize) -> bool {
    dataset.inferred = Vec::new();
    dataset.contradictions = Vec::new();
    let triples = relevant(dataset);
    if triples.is_empty() {
        return true;
    }

    let mut reasoner = Reasoner::new();
    let hidden = (inverse_functional(), NamedNode::new_unchecked(rules::INVERSE_FUNCTIONAL));
    reasoner.load_triples(triples.into_iter().map(|triple| replace(triple, &hidden)).collect());
    let shown = (hidden.1, hidden.0);
    for _ in 0..MOST_ROUNDS {
        reasoner.reason();
        let found = rules::apply(reasoner.view_output());
        dataset.contradictions = found.contradictions;
        if found.facts.is_empty() || reasoner.view_output().len() > most.saturating_mul(4) {
            break;
        }
        reasoner.load_triples(found.facts);
    }
    dataset.contradictions.extend(reasoner.errors().iter().map(|e| e.message().to_owned()));

    let mut inferred = Vec::new();
    for triple in reasoner.view_output() {
        if is_noise(triple) {
            continue;
        }
        let triple = replace(triple.clone(), &shown);
        let quad = dataset.terms.quad(triple.in_graph(GraphName::DefaultGraph));
        let known = [&dataset.base, &dataset.projected]
            .into_iter()
            .any(|facts| facts.binary_search(&quad).is_ok());
        if !known {
            inferred.push(quad);
        }
        if inferred.len() > most {
            return false;
        }
    }

    inferred.sort_unstable();
    inferred.dedup();
    dataset.inferred = inferred;
    true
}

fn inverse_functional() -> NamedNode {
    NamedNode::new_unchecked(format!("{OWL}InverseFunctionalProperty"))
}

/// Replaces a name by another where it is the subject or the object.
fn replace(mut triple: Triple, (from, to): &(NamedNode, NamedNode)) -> Triple {
    if matches!(&triple.subject, NamedOrBlankNode::NamedNode(name) if name == from) {
        triple.subject = to.clone().into();
    }
    if matches!(&triple.object, Term::NamedNode(name) if name == from) {
        triple.object = to.clone().into();
    }
    triple
}

/// The facts that a rule can use. Most facts of a large graph have a property or a class of
/// which the schema says nothing, so nothing follows from them.
fn relevant(dataset: &Dataset) -> Vec<Triple> {
    let facts = || dataset.base.iter().chain(&dataset.projected).filter(|q| q[0] == DEFAULT_GRAPH);
    let type_id = dataset.terms.find(&Term::NamedNode(rdf::TYPE.into_owned()));
    let size = dataset.terms.len();

    let builtin: Vec<bool> =
        (0..size).map(|id| is_builtin(dataset.terms.get(id as TermId))).collect();
    let equality: Vec<TermId> = EQUALITY
        .iter()
        .filter_map(|name| {
            let iri = NamedNode::new_unchecked(format!("{OWL}{name}"));
            dataset.terms.find(&iri.into())
        })
        .collect();

    let mut mentioned = vec![false; size];
    let mut has_equality = false;
    for &[_, s, p, o] in facts() {
        mentioned[s as usize] = true;
        if Some(p) != type_id {
            mentioned[o as usize] = true;
        }
        has_equality |= equality.contains(&p) || equality.contains(&o);
    }

    let is_relevant = |&&[_, _, p, o]: &&Quad| {
        if Some(p) == type_id {
            return has_equality || mentioned[o as usize] || builtin[o as usize];
        }
        has_equality || mentioned[p as usize] || builtin[p as usize]
    };
    facts().filter(is_relevant).filter_map(|quad| triple_of(dataset, quad)).collect()
}

fn is_builtin(term: &Term) -> bool {
    let Term::NamedNode(name) = term else { return false };
    let name = name.as_str();
    name.starts_with(OWL)
        || name.starts_with("http://www.w3.org/2000/01/rdf-schema#")
        || name.starts_with("http://www.w3.org/1999/02/22-rdf-syntax-ns#")
}

fn triple_of(dataset: &Dataset, &[_, s, p, o]: &Quad) -> Option<Triple> {
    let subject = match dataset.terms.get(s).clone() {
        Term::NamedNode(name) => NamedOrBlankNode::NamedNode(name),
        Term::BlankNode(name) => NamedOrBlankNode::BlankNode(name),
        _ => return None,
    };
    let Term::NamedNode(predicate) = dataset.terms.get(p).clone() else { return None };
    Some(Triple::new(subject, predicate, dataset.terms.get(o).clone()))
}

/// Whether a fact says nothing: everything equals itself, and the reasoner always has two
/// classes of its own.
fn is_noise(triple: &Triple) -> bool {
    let NamedOrBlankNode::NamedNode(subject) = &triple.subject else { return false };
    let name = subject.as_str().strip_prefix(OWL);
    if triple.predicate == rdf::TYPE {
        return matches!(name, Some("Thing" | "Nothing"));
    }
    if triple.predicate == rdfs::SUB_CLASS_OF && name == Some("Nothing") {
        return true;
    }
    triple.predicate.as_str().strip_prefix(OWL) == Some("sameAs")
        && triple.object == Term::NamedNode(subject.clone())
}
