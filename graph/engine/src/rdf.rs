//! Reading and writing RDF, and SPARQL.

use std::collections::BTreeMap;
use std::io::Write;

use oxigraph::io::{RdfFormat, RdfParser, RdfSerializer};
use oxigraph::model::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsSerializer};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};

use crate::codec::Writer;
use crate::dataset::{Dataset, Quad, View};
use crate::failure::{Failure, Kind};
use crate::host::{Input, Output};
use crate::names::AU;
use crate::property::Bounds;

/// Prefixes that a query need not declare.
pub type Prefixes = BTreeMap<String, String>;

pub fn common_prefixes() -> Prefixes {
    [
        ("au", AU),
        ("owl", "http://www.w3.org/2002/07/owl#"),
        ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
        ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
        ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ]
    .map(|(name, iri)| (name.to_owned(), iri.to_owned()))
    .into()
}

fn format_of(name: &str) -> Result<RdfFormat, Failure> {
    match name {
        "turtle" => Ok(RdfFormat::Turtle),
        "ntriples" => Ok(RdfFormat::NTriples),
        "trig" => Ok(RdfFormat::TriG),
        "nquads" => Ok(RdfFormat::NQuads),
        "rdfxml" => Ok(RdfFormat::RdfXml),
        "jsonld" => Ok(RdfFormat::JsonLd { profile: Default::default() }),
        _ => Err(Failure::new(Kind::Request, format!("{name:?} is no format of RDF"))),
    }
}

/// Reads the host's input and returns its facts. Nothing is added if it is not well-formed.
pub fn read(
    dataset: &mut Dataset,
    prefixes: &mut Prefixes,
    format: &str,
    base: &str,
) -> Result<Vec<Quad>, Failure> {
    let mut parser = RdfParser::from_format(format_of(format)?).rename_blank_nodes();
    if !base.is_empty() {
        parser = parser
            .with_base_iri(base)
            .map_err(|e| Failure::new(Kind::Request, format!("the base {base:?}: {e}")))?;
    }

    let mut reader = parser.for_reader(Input);
    let mut quads = Vec::new();
    while let Some(quad) = reader.next() {
        quads.push(dataset.terms.quad(quad?));
    }
    for (name, iri) in reader.prefixes() {
        if !name.is_empty() {
            prefixes.entry(name.to_owned()).or_insert_with(|| iri.to_owned());
        }
    }
    Ok(quads)
}

/// Writes all facts but the inferred ones to the host's output.
pub fn dump(dataset: &Dataset, prefixes: &Prefixes, format: &str) -> Result<(), Failure> {
    let format = format_of(format)?;
    let mut serializer = RdfSerializer::from_format(format);
    for (name, iri) in prefixes {
        if let Ok(with) = serializer.clone().with_prefix(name, iri) {
            serializer = with;
        }
    }

    let failed = |e: std::io::Error| Failure::new(Kind::Input, e.to_string());
    let mut writer = serializer.for_writer(std::io::BufWriter::with_capacity(1 << 16, Output));
    for quad in dataset.base.iter().chain(&dataset.projected) {
        if let Some((triple, graph)) = quad_of(dataset, quad) {
            if graph != GraphName::DefaultGraph && !format.supports_datasets() {
                continue;
            }
            if format == RdfFormat::RdfXml {
                check_xml(&triple)?;
            }
            writer.serialize_quad(&triple.in_graph(graph)).map_err(failed)?;
        }
    }
    writer.finish().and_then(|mut buffer| buffer.flush()).map_err(failed)
}

/// Refuses a literal with a character that no XML document can hold.
fn check_xml(triple: &Triple) -> Result<(), Failure> {
    let is_bad = |c: char| {
        c < ' ' && !matches!(c, '\t' | '\n' | '\r') || matches!(c, '\u{FFFE}' | '\u{FFFF}')
    };
    let Term::Literal(literal) = &triple.object else { return Ok(()) };
    let Some(c) = literal.value().chars().find(|&c| is_bad(c)) else { return Ok(()) };
    let message = format!(
        "RDF/XML cannot hold the character U+{:04X} of {} {}: write another format",
        u32::from(c), triple.subject, triple.predicate,
    );
    Err(Failure::new(Kind::Query, message))
}

fn quad_of(dataset: &Dataset, &[g, s, p, o]: &Quad) -> Option<(Triple, GraphName)> {
    let subject = match dataset.terms.get(s).clone() {
        Term::NamedNode(name) => NamedOrBlankNode::NamedNode(name),
        Term::BlankNode(name) => NamedOrBlankNode::BlankNode(name),
        _ => return None,
    };
    let Term::NamedNode(predicate) = dataset.terms.get(p).clone() else { return None };
    let graph = match dataset.terms.get(g).clone() {
        _ if g == crate::dataset::DEFAULT_GRAPH => GraphName::DefaultGraph,
        Term::NamedNode(name) => name.into(),
        Term::BlankNode(name) => name.into(),
        _ => return None,
    };
    Some((Triple::new(subject, predicate, dataset.terms.get(o).clone()), graph))
}

/// Answers a query: rows, a truth value or triples.
pub fn query<'a>(
    dataset: &'a Dataset,
    prefixes: &Prefixes,
    text: &str,
    base: &str,
) -> Result<QueryResults<'a>, Failure> {
    let mut evaluator = SparqlEvaluator::new();
    if !base.is_empty() {
        evaluator = evaluator
            .with_base_iri(base)
            .map_err(|e| Failure::new(Kind::Request, format!("the base {base:?}: {e}")))?;
    }
    for (name, iri) in prefixes {
        if let Ok(with) = evaluator.clone().with_prefix(name, iri) {
            evaluator = with;
        }
    }

    let prepared = evaluator.clone().parse_query(text).map_err(|error| {
        if evaluator.parse_update(text).is_ok() {
            let message = "SPARQL Update is not allowed here, only SELECT, ASK, CONSTRUCT and DESCRIBE";
            return Failure::new(Kind::ReadOnly, message);
        }
        let mut failure = Failure::from(error);
        if let Some(name) = undeclared(text, prefixes) {
            failure.message = format!("the prefix {name}: is not declared: add PREFIX {name}: <…>");
        }
        failure
    })?;
    Ok(prepared.on_queryable_dataset(View(dataset)).execute()?)
}

/// The first prefix that a query uses and nobody declares. The parser only says so where nothing
/// else could stand.
fn undeclared<'t>(text: &'t str, prefixes: &Prefixes) -> Option<&'t str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut declared: Vec<&str> = prefixes.keys().map(String::as_str).collect();
    let mut word_before = "";
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let is_name = rest[word.len()..].starts_with(':');
        let length = match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => text_length(rest),
            '<' => match rest.find(|c: char| c.is_whitespace() || matches!(c, '>' | '{')) {
                Some(end) if rest[end..].starts_with('>') => end,
                _ => 1, // less than
            },
            '?' | '$' => 1 + rest[1..].find(|c| !is_part(c)).unwrap_or(rest.len() - 1),
            _ if is_name && word_before.eq_ignore_ascii_case("prefix") => {
                declared.push(word);
                word.len() + 1
            }
            _ if is_name && word != "_" && !declared.contains(&word) => return Some(word),
            _ if is_name => {
                let local = &rest[word.len() + 1..];
                let end = local.find(|c| !is_part(c) && !matches!(c, ':' | '%' | '\\'));
                word.len() + 1 + end.unwrap_or(local.len())
            }
            _ => word.len().max(c.len_utf8()),
        };
        if !c.is_whitespace() {
            word_before = word;
        }
        rest = &rest[length..];
    }
    None
}

/// The length of the quoted text that begins here.
fn text_length(text: &str) -> usize {
    let quote = &text[..1];
    let long = quote.repeat(3);
    let mark = if text.starts_with(&long) { &long[..] } else { quote };
    let mut at = mark.len();
    while let Some(c) = text[at..].chars().next() {
        if text[at..].starts_with(mark) {
            return at + mark.len();
        }
        at += c.len_utf8();
        if c == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    at
}

/// Writes an answer as values of Python.
pub fn answer(
    dataset: &Dataset,
    results: QueryResults<'_>,
    bounds: &Bounds,
    out: &mut Writer,
) -> Result<(), Failure> {
    match results {
        QueryResults::Boolean(value) => {
            out.byte(b'a');
            out.byte(value.into());
        }
        QueryResults::Solutions(mut solutions) => {
            out.byte(b's');
            let variables = solutions.variables().to_vec();
            let names: Vec<String> = variables.iter().map(|v| v.as_str().to_owned()).collect();
            out.texts(&names);

            let mut count = 0;
            loop {
                let Some(solution) = solutions.next() else {
                    out.byte(0);
                    break;
                };
                let solution = solution?;
                let mark = out.mark();
                out.byte(1);
                for variable in &variables {
                    match solution.get(variable) {
                        Some(term) => write_term(term, out),
                        None => out.null(),
                    }
                }
                if count == bounds.rows || out.cost > bounds.cost {
                    out.reset(mark);
                    out.byte(2);
                    break;
                }
                count += 1;
            }
        }
        QueryResults::Graph(triples) => {
            out.byte(b'g');
            let mut text = String::new();
            let mut truncated = false;
            for (count, triple) in triples.enumerate() {
                let triple = triple?;
                let line = line_of(dataset, &triple);
                if count == bounds.rows || text.len() + line.len() > bounds.cost {
                    truncated = true;
                    break;
                }
                text.push_str(&line);
            }
            out.byte(truncated.into());
            out.text(&text);
        }
    }
    Ok(())
}

/// A line of N-Triples. A comment marks an inferred fact.
fn line_of(dataset: &Dataset, triple: &Triple) -> String {
    let find = |term: Term| dataset.terms.find(&term);
    let ids = (
        find(triple.subject.clone().into()),
        find(triple.predicate.clone().into()),
        find(triple.object.clone()),
    );
    let is_inferred =
        matches!(ids, (Some(s), Some(p), Some(o)) if dataset.is_inferred([s, p, o]));
    format!("{triple} .{}\n", if is_inferred { " # inferred" } else { "" })
}

/// Writes an answer in a format of the W3C to the host's output: `json`, `xml`, `csv`, `tsv`
/// for rows and truth values, N-Triples for triples.
pub fn serialize(results: QueryResults<'_>, format: &str) -> Result<(), Failure> {
    let format = match format {
        "json" => QueryResultsFormat::Json,
        "xml" => QueryResultsFormat::Xml,
        "csv" => QueryResultsFormat::Csv,
        "tsv" => QueryResultsFormat::Tsv,
        _ => return Err(Failure::new(Kind::Request, format!("{format:?} is no format of results"))),
    };
    let failed = |e: std::io::Error| Failure::new(Kind::Input, e.to_string());
    let serializer = QueryResultsSerializer::from_format(format);
    let buffer = std::io::BufWriter::with_capacity(1 << 16, Output);

    let mut buffer = match results {
        QueryResults::Boolean(value) => {
            serializer.serialize_boolean_to_writer(buffer, value).map_err(failed)?
        }
        QueryResults::Solutions(solutions) => {
            let mut writer = serializer
                .serialize_solutions_to_writer(buffer, solutions.variables().to_vec())
                .map_err(failed)?;
            for solution in solutions {
                writer.serialize(&solution?).map_err(failed)?;
            }
            writer.finish().map_err(failed)?
        }
        QueryResults::Graph(triples) => {
            let mut writer = RdfSerializer::from_format(RdfFormat::NTriples).for_writer(buffer);
            for triple in triples {
                writer.serialize_triple(&triple?).map_err(failed)?;
            }
            writer.finish().map_err(failed)?
        }
    };
    buffer.flush().map_err(failed)
}

fn write_term(term: &Term, out: &mut Writer) {
    match term {
        Term::NamedNode(name) => out.string(name.as_str()),
        Term::BlankNode(name) => out.string(&format!("_:{}", name.as_str())),
        Term::Literal(literal) => match native(literal) {
            Native::Boolean(value) => out.boolean(value),
            Native::Integer(value) => out.integer(value),
            Native::Float(value) => out.float(value),
            Native::Text => out.string(literal.value()),
        },
    }
}

/// A literal as a value of Python and of Cypher.
pub enum Native {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text,
}

const INTEGERS: [&str; 13] = [
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
    "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort",
    "unsignedByte",
];

pub fn native(literal: &Literal) -> Native {
    let text = literal.value().trim();
    let datatype = literal.datatype();
    let Some(name) = datatype.as_str().strip_prefix("http://www.w3.org/2001/XMLSchema#") else {
        return Native::Text;
    };
    match name {
        "boolean" if matches!(text, "true" | "1") => Native::Boolean(true),
        "boolean" if matches!(text, "false" | "0") => Native::Boolean(false),
        "double" | "float" | "decimal" => match text {
            "INF" | "+INF" => Native::Float(f64::INFINITY),
            "-INF" => Native::Float(f64::NEG_INFINITY),
            "NaN" => Native::Float(f64::NAN),
            _ => text.parse().map_or(Native::Text, Native::Float),
        },
        _ if INTEGERS.contains(&name) => text.parse().map_or(Native::Text, Native::Integer),
        _ => Native::Text,
    }
}

/// The term of an id: `_:b` is a blank node.
pub fn term_of_id(id: &str) -> Term {
    if let Some(label) = id.strip_prefix("_:")
        && let Ok(node) = BlankNode::new(label)
    {
        return node.into();
    }
    NamedNode::new_unchecked(crate::names::iri_of(id)).into()
}

/// Counts the facts: loaded or projected, and inferred.
pub fn count(dataset: &Dataset, out: &mut Writer) {
    out.number(dataset.base.len() + dataset.projected.len());
    out.number(dataset.inferred.len());
}
