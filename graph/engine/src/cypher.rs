//! What the engine's own parser of Cypher does not tell: how a query names its columns, how long
//! its paths may be, and where its first path should begin.

use std::ops::Range;

use grafeo_adapters::query::cypher::Lexer;

/// A token's text, in upper case, and its place.
pub struct Token {
    pub text: String,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn is(&self, texts: &[&str]) -> bool {
        texts.contains(&self.text.as_str())
    }
}

pub fn tokens(query: &str) -> Vec<Token> {
    let mut lexer = Lexer::new(query);
    let mut all = Vec::new();
    loop {
        let token = lexer.next_token();
        if token.text.is_empty() {
            return all; // the end
        }
        let text = token.text.to_uppercase();
        // The lexer has put the length into the span's end.
        let start = token.span.start;
        all.push(Token { text, start, end: start + token.span.end });
    }
}

pub fn depth_after(depth: i32, token: &Token) -> i32 {
    if token.is(&["(", "[", "{"]) {
        depth + 1
    } else if token.is(&[")", "]", "}"]) {
        depth - 1
    } else {
        depth
    }
}

/// Names the columns that have no alias by the text of their expressions, as openCypher does.
pub fn name_columns(query: &str, columns: &mut [String]) {
    let tokens = tokens(query);
    let mut depth = 0;
    let start = tokens.iter().position(|token| {
        depth = depth_after(depth, token);
        depth == 0 && token.is(&["RETURN"])
    });
    let Some(mut start) = start.map(|at| at + 1) else { return };
    if tokens.get(start).is_some_and(|token| token.is(&["DISTINCT"])) {
        start += 1;
    }

    let mut items: Vec<Vec<&Token>> = vec![Vec::new()];
    depth = 0;
    for token in &tokens[start..] {
        depth = depth_after(depth, token);
        if depth == 0 && token.is(&["ORDER", "SKIP", "LIMIT", "UNION", ";"]) {
            break;
        }
        if depth == 0 && token.is(&[","]) {
            items.push(Vec::new());
        } else if let Some(item) = items.last_mut() {
            item.push(token);
        }
    }
    if items.len() != columns.len() {
        return; // RETURN *
    }

    for (item, column) in items.into_iter().zip(columns) {
        let (Some(first), Some(last)) = (item.first(), item.last()) else { continue };
        let mut depth = 0;
        let has_alias = item.iter().any(|token| {
            depth = depth_after(depth, token);
            depth == 0 && token.is(&["AS"])
        });
        if !has_alias && item.len() > 1 {
            *column = query[first.start..last.end].to_owned();
        }
    }
}

/// The longest path that a pattern asks for by a number: `[*1..5]` is 5.
pub fn longest_path(query: &str) -> u64 {
    let tokens = tokens(query);
    let mut longest = 0;
    for (at, token) in tokens.iter().enumerate() {
        let is_pattern = at > 0 && token.is(&["["]) && tokens[at - 1].is(&["-", "<-"]);
        if !is_pattern {
            continue;
        }
        let inside = tokens[at..].iter().take_while(|token| !token.is(&["]"]));
        for token in inside.skip_while(|token| !token.is(&["*"])).skip(1) {
            if !token.text.starts_with(|c: char| c == '.' || c.is_ascii_digit()) {
                break;
            }
            for number in token.text.split('.').filter(|part| !part.is_empty()) {
                longest = longest.max(number.parse().unwrap_or(u64::MAX));
            }
        }
    }
    longest
}

/// Writes the first path of a query backwards if only its last node is given by an id. The engine
/// begins with the first node of a path and has an index of ids. The rows are the same.
pub fn begin_at_id(query: &str) -> Option<String> {
    let tokens = tokens(query);
    if !tokens.first()?.is(&["MATCH"]) {
        return None;
    }
    let returns_all = tokens.windows(3).any(|next| {
        next[0].is(&["RETURN"]) && (next[1].is(&["*"]) || next[1].is(&["DISTINCT"]) && next[2].is(&["*"]))
    });
    let path = Path::read(query, &tokens)?;
    if returns_all || !path.may_turn() || path.has_id(0) || !path.has_id(path.nodes.len() - 1) {
        return None;
    }

    let text = |range: &Range<usize>| &query[tokens[range.start].start..tokens[range.end - 1].end];
    let mut turned = text(path.nodes.last()?).to_owned();
    for (node, step) in path.nodes.iter().zip(&path.steps).rev() {
        turned += &turn_step(text(step))?;
        turned += text(node);
    }
    let (start, end) = (tokens[1].start, tokens[path.end() - 1].end);
    Some(format!("{}{turned}{}", &query[..start], &query[end..]))
}

/// Turns `-[…]->` to `<-[…]-`, and so on.
fn turn_step(step: &str) -> Option<String> {
    let (inner, is_left) = match step.strip_prefix("<-") {
        Some(rest) => (rest, true),
        None => (step.strip_prefix('-')?, false),
    };
    let (inner, is_right) = match inner.strip_suffix("->") {
        Some(rest) => (rest, true),
        None => (inner.strip_suffix('-')?, false),
    };
    let is_whole = inner.is_empty() || inner.starts_with('[') && inner.ends_with(']');
    if !is_whole || is_left && is_right {
        return None;
    }
    let (left, right) = (if is_right { "<-" } else { "-" }, if is_left { "->" } else { "-" });
    Some(format!("{left}{inner}{right}"))
}

/// The first path of a query, which has no name: ranges of its tokens.
struct Path<'a> {
    query: &'a str,
    tokens: &'a [Token],
    nodes: Vec<Range<usize>>,
    steps: Vec<Range<usize>>,
}

impl<'a> Path<'a> {
    fn read(query: &'a str, tokens: &'a [Token]) -> Option<Self> {
        let mut path = Self { query, tokens, nodes: Vec::new(), steps: Vec::new() };
        let mut at = 1;
        loop {
            if !tokens.get(at)?.is(&["("]) {
                return None;
            }
            let end = path.group_end(at)?;
            path.nodes.push(at..end);
            at = end;
            if !tokens.get(at).is_some_and(|token| token.is(&["-", "<-", "--"])) {
                return (!path.steps.is_empty()).then_some(path);
            }

            let start = at;
            while !tokens.get(at)?.is(&["("]) {
                at = if tokens[at].is(&["["]) { path.group_end(at)? } else { at + 1 };
            }
            path.steps.push(start..at);
        }
    }

    /// Where the group of brackets that begins at a token ends.
    fn group_end(&self, start: usize) -> Option<usize> {
        let mut depth = 0;
        let length = self.tokens[start..].iter().position(|token| {
            depth = depth_after(depth, token);
            depth == 0
        });
        length.map(|length| start + length + 1)
    }

    fn end(&self) -> usize {
        self.nodes.last().map_or(1, |node| node.end)
    }

    /// Whether no property depends on another part of the path, and no list of relationships has
    /// a name: its order would change.
    fn may_turn(&self) -> bool {
        let depends = self.tokens[1..self.end()].iter().any(|token| token.is(&["."]));
        let has_list = self.steps.iter().any(|step| {
            let step = &self.tokens[step.clone()];
            let name = step.iter().skip_while(|token| !token.is(&["["])).nth(1);
            step.iter().any(|token| token.is(&["*"]))
                && name.is_some_and(|name| !name.is(&[":", "*", "{", "]"]))
        });
        !depends && !has_list
    }

    /// Whether a node is given by the property id, in its map or in a condition that is required.
    fn has_id(&self, number: usize) -> bool {
        let node = &self.tokens[self.nodes[number].clone()];
        let map = node.iter().position(|token| token.is(&["{"]));
        let (_, in_map) = node.split_at(map.unwrap_or(node.len()));
        if in_map
            .windows(3)
            .any(|next| self.is_id(&next[0]) && next[1].is(&[":"]) && self.is_value(&next[2]))
        {
            return true;
        }

        let rest = &self.tokens[self.end()..];
        if !rest.first().is_some_and(|token| token.is(&["WHERE"])) {
            return false;
        }
        let condition = rest.iter().take_while(|token| {
            !token.is(&["RETURN", "WITH", "MATCH", "OPTIONAL", "UNWIND", "CALL", "UNION"])
        });
        let condition: Vec<_> = condition.collect();
        let is_required = !condition.iter().any(|token| token.is(&["OR", "XOR", "NOT", "CASE", "["]));
        is_required
            && condition.windows(5).any(|next| {
                self.text(next[0]) == self.text(&node[1])
                    && next[1].is(&["."])
                    && self.is_id(next[2])
                    && next[3].is(&["="])
                    && self.is_value(next[4])
            })
    }

    fn text(&self, token: &Token) -> &str {
        &self.query[token.start..token.end]
    }

    fn is_id(&self, token: &Token) -> bool {
        self.text(token) == crate::property::ID
    }

    /// Whether a token is a text or a parameter.
    fn is_value(&self, token: &Token) -> bool {
        self.text(token).starts_with(['\'', '"', '$'])
    }
}
