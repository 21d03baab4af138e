//! Errors as the host sees them.

use grafeo_common::utils::error::{Error as CypherError, QueryErrorKind};
use oxigraph::io::RdfParseError;
use oxigraph::sparql::{QueryEvaluationError, SparqlSyntaxError};

use crate::codec::Writer;

/// The kinds that the host tells apart, see `graph/errors.go`.
#[derive(Clone, Copy)]
pub enum Kind {
    /// The text of a query or a file is not in its language.
    Syntax = 1,
    /// It is, but cannot be answered.
    Query = 2,
    /// A reader has tried to write.
    ReadOnly = 3,
    /// The host's request is malformed or contradicts the graph.
    Request = 4,
    /// The host stopped giving input; it knows why.
    Input = 5,
    /// There are too many inferred facts.
    Inferred = 6,
    /// The library must get the whole graph first.
    Incomplete = 7,
}

pub struct Failure {
    pub kind: Kind,
    pub message: String,
    /// From 1; 0 if unknown.
    pub line: usize,
    pub column: usize,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), line: 0, column: 0 }
    }

    pub fn at(mut self, line: usize, column: usize) -> Self {
        (self.line, self.column) = (line, column);
        self
    }

    pub fn write(&self, out: &mut Writer) {
        out.byte(self.kind as u8);
        out.number(self.line);
        out.number(self.column);
        out.text(&self.message);
    }
}

impl From<&'static str> for Failure {
    fn from(message: &'static str) -> Self {
        Self::new(Kind::Request, message)
    }
}

impl From<CypherError> for Failure {
    fn from(error: CypherError) -> Self {
        let CypherError::Query(error) = error else {
            let message = error.to_string();
            if message.contains("permission denied") || message.contains("read-only") {
                return Self::new(Kind::ReadOnly, "this query would write to it");
            }
            if message.contains("CALL procedures") {
                return Self::new(Kind::Query, "there are no procedures here: query the graph itself");
            }
            return Self::new(Kind::Query, message);
        };
        if error.message.contains("permission denied") || error.message.contains("read-only") {
            return Self::new(Kind::ReadOnly, "this query would write to it");
        }

        let kind = match error.kind {
            QueryErrorKind::Lexer | QueryErrorKind::Syntax => Kind::Syntax,
            _ => Kind::Query,
        };
        let (line, column) = error
            .span
            .as_ref()
            .map_or((0, 0), |span| (span.line as usize, span.column as usize));
        let mut message = error.message;
        if let Some(hint) = error.hint {
            message = format!("{message} ({hint})");
        }
        Self::new(kind, message).at(line, column)
    }
}

impl From<SparqlSyntaxError> for Failure {
    fn from(error: SparqlSyntaxError) -> Self {
        let text = error.to_string();
        // error at LINE:COLUMN: expected …
        let parts = text.strip_prefix("error at ").and_then(|rest| {
            let mut parts = rest.splitn(3, ':');
            let line = parts.next()?.parse().ok()?;
            let column = parts.next()?.parse().ok()?;
            Some((line, column, parts.next()?.trim().to_owned()))
        });
        match parts {
            Some((line, column, message)) => {
                Self::new(Kind::Syntax, without_classes(&message)).at(line, column)
            }
            None => Self::new(Kind::Syntax, text),
        }
    }
}

/// A message without the classes of characters that could follow: nobody can read them.
fn without_classes(message: &str) -> String {
    let parts = message.split(", ").filter(|part| !part.contains("..=") && !part.contains("\\u{"));
    parts.collect::<Vec<_>>().join(", ")
}

impl From<QueryEvaluationError> for Failure {
    fn from(error: QueryEvaluationError) -> Self {
        Self::new(Kind::Query, error.to_string())
    }
}

impl From<RdfParseError> for Failure {
    fn from(error: RdfParseError) -> Self {
        match error {
            RdfParseError::Io(error) => Self::new(Kind::Input, error.to_string()),
            RdfParseError::Syntax(error) => {
                let (line, column) = error.location().map_or((0, 0), |range| {
                    (range.start.line as usize + 1, range.start.column as usize + 1)
                });
                Self::new(Kind::Syntax, error.to_string()).at(line, column)
            }
        }
    }
}
