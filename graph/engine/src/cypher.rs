//! What the library's parser of Cypher does not tell: how a query names its columns, and how long
//! its paths may be.

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
