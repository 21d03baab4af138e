//! Variables of Cypher that stand for two kinds of things. The engine would answer such a query
//! with nothing or with something else, where openCypher has an error.

use std::collections::HashMap;
use std::ops::Range;

use crate::cypher::{Token, depth_after, tokens};
use crate::failure::{Failure, Kind};

/// What a variable stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thing {
    Node,
    Relationship,
    Path,
    Value,
}

impl Thing {
    fn name(self) -> &'static str {
        match self {
            Self::Node => "a node",
            Self::Relationship => "a relationship",
            Self::Path => "a path",
            Self::Value => "a value",
        }
    }
}

/// The words that begin a clause, or a part of one behind its patterns or columns.
const CLAUSES: [&str; 19] = [
    "MATCH", "OPTIONAL", "WHERE", "RETURN", "WITH", "UNWIND", "CREATE", "MERGE", "SET", "DELETE",
    "DETACH", "REMOVE", "CALL", "FOREACH", "UNION", "ORDER", "SKIP", "LIMIT", "ON",
];

/// Refuses a query with a variable of two kinds.
pub fn check(query: &str) -> Result<(), Failure> {
    let tokens = tokens(query);
    let mut depth = 0;
    let mut starts = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        depth = depth_after(depth, token);
        if depth == 0 && token.is(&CLAUSES) {
            starts.push(at);
        }
    }

    let mut variables = Variables { query, tokens: &tokens, things: HashMap::new() };
    for (number, &start) in starts.iter().enumerate() {
        let clause = start + 1..starts.get(number + 1).copied().unwrap_or(tokens.len());
        match tokens[start].text.as_str() {
            "MATCH" => variables.read_patterns(clause)?,
            "WITH" => variables.read_columns(clause),
            "UNWIND" => variables.forget(clause),
            "UNION" => variables.things.clear(),
            "CALL" | "FOREACH" => break, // they have variables of their own
            _ => {}
        }
    }
    Ok(())
}

struct Variables<'a> {
    query: &'a str,
    tokens: &'a [Token],
    things: HashMap<&'a str, Thing>,
}

impl<'a> Variables<'a> {
    fn text(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.query[token.start..token.end])
    }

    fn is(&self, at: usize, texts: &[&str]) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(texts))
    }

    fn is_name(&self, at: usize) -> bool {
        self.text(at).starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '`')
    }

    /// Reads the patterns of a MATCH. Those with conditions inside are left to the engine.
    fn read_patterns(&mut self, clause: Range<usize>) -> Result<(), Failure> {
        if self.tokens[clause.clone()].iter().any(|token| token.is(&["WHERE"])) {
            return Ok(());
        }
        let (mut depth, mut braces) = (0, 0);
        for at in clause.clone() {
            depth = depth_after(depth, &self.tokens[at]);
            braces += i32::from(self.is(at, &["{"])) - i32::from(self.is(at, &["}"]));
            if braces > 0 {
                continue;
            }

            let is_step = at > clause.start && self.is(at - 1, &["-", "<-"]);
            if self.is(at, &["("]) && self.is_name(at + 1) && self.is(at + 2, &[")", ":", "{"]) {
                self.bind(at + 1, Thing::Node, false)?;
            } else if self.is(at, &["["]) && is_step && self.is_name(at + 1) {
                let step = self.tokens[at..clause.end].iter();
                let is_list = step.take_while(|token| !token.is(&["]"])).any(|token| token.is(&["*"]));
                self.bind(at + 1, Thing::Relationship, is_list)?;
            } else if depth == 0 && self.is_name(at) && self.is(at + 1, &["="]) {
                self.bind(at, Thing::Path, false)?;
            }
        }
        Ok(())
    }

    fn bind(&mut self, at: usize, thing: Thing, is_list: bool) -> Result<(), Failure> {
        let name = self.text(at);
        let Some(&known) = self.things.get(name) else {
            self.things.insert(name, thing);
            return Ok(());
        };
        if known == thing && thing != Thing::Path || known == Thing::Value && is_list {
            return Ok(());
        }

        let before = &self.query[..self.tokens[at].start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        let message =
            format!("the variable {name} is {} and cannot be {}, too", known.name(), thing.name());
        Err(Failure::new(Kind::Syntax, message).at(line, column))
    }

    /// Keeps the variables that a WITH passes on.
    fn read_columns(&mut self, clause: Range<usize>) {
        let mut start = clause.start + usize::from(self.is(clause.start, &["DISTINCT"]));
        let before = std::mem::take(&mut self.things);
        if self.is(start, &["*"]) {
            self.things = before.clone();
        }
        let mut depth = 0;
        for at in start..=clause.end {
            let is_end = at == clause.end || depth == 0 && self.is(at, &[","]);
            if is_end {
                self.read_column(start..at, &before);
                start = at + 1;
            } else {
                depth = depth_after(depth, &self.tokens[at]);
            }
        }
    }

    fn read_column(&mut self, item: Range<usize>, before: &HashMap<&'a str, Thing>) {
        let has_alias = item.len() > 2 && self.is(item.end - 2, &["AS"]);
        let value = item.start..if has_alias { item.end - 2 } else { item.end };
        if value.is_empty() || item.len() > 1 && !has_alias {
            return;
        }
        let name = self.text(item.end - 1);
        let thing = match value.len() {
            1 if self.is_literal(value.start) => Some(Thing::Value),
            1 => before.get(self.text(value.start)).copied(),
            _ if self.is_group(&value) => Some(Thing::Value),
            _ => None,
        };
        match thing {
            Some(thing) => self.things.insert(name, thing),
            None => self.things.remove(name),
        };
    }

    fn is_literal(&self, at: usize) -> bool {
        self.is(at, &["TRUE", "FALSE"])
            || self.text(at).starts_with(|c: char| c.is_ascii_digit() || c == '\'' || c == '"')
    }

    /// Whether tokens are one list or one map.
    fn is_group(&self, value: &Range<usize>) -> bool {
        let mut depth = 0;
        let end = value.clone().find(|&at| {
            depth = depth_after(depth, &self.tokens[at]);
            depth == 0
        });
        self.is(value.start, &["[", "{"]) && end == Some(value.end - 1)
    }

    /// Forgets the variable of an UNWIND.
    fn forget(&mut self, clause: Range<usize>) {
        if clause.len() > 2 && self.is(clause.end - 2, &["AS"]) {
            self.things.remove(self.text(clause.end - 1));
        }
    }
}
