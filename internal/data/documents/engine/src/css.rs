//! Style sheets of pages, as far as they hide elements.

use std::collections::{HashMap, HashSet};

/// What follows these sizes is not read.
const LONGEST_SHEET: usize = 1 << 20;
const MOST_RULES: usize = 10_000;

/// What a style says about whether an element is seen. None: nothing.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Style {
    /// `display: none`.
    pub is_gone: Option<bool>,
    /// `visibility: hidden`, which the elements inside inherit and may change.
    pub is_invisible: Option<bool>,
    /// `font-size: 0`, which they inherit, too.
    pub is_tiny: Option<bool>,
    pub is_raised: bool,
    pub is_lowered: bool,
    is_important: bool,
}

/// A selector without combinators, such as `p.hint`.
struct Rule {
    names: Vec<String>,
    weight: (usize, usize),
    style: Style,
}

/// The rules of a page that hide elements or show them.
#[derive(Default)]
pub struct Sheet {
    rules: Vec<Rule>,
    /// The rules by one of their names: "p", ".hint" or "#id".
    by_name: HashMap<String, Vec<usize>>,
    /// The names at the end of rules that show elements, if they have parts that nobody checks here.
    /// What may be shown is not hidden.
    shown: HashSet<String>,
}

impl Sheet {
    pub fn read(&mut self, css: &str) {
        let css = without_comments(&css[..css.floor_char_boundary(LONGEST_SHEET)]);
        let mut rest = css.as_str();
        while let Some(at) = rest.find(['{', ';']) {
            let prelude = rest[..at].trim().trim_start_matches("<!--").trim();
            if rest.as_bytes()[at] == b';' {
                rest = &rest[at + 1..]; // such as @import
                continue;
            }
            let end = find_end(&rest[at..]) + at;
            let body = &rest[at + 1..end];
            rest = rest.get(end + 1..).unwrap_or_default();

            let lower = prelude.to_ascii_lowercase();
            match lower.strip_prefix("@media").map(str::trim) {
                Some("screen" | "all") => self.read_rules(body),
                Some(_) => {} // who knows how wide the page is
                None if lower.starts_with('@') => {}
                None => self.add(prelude, body),
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    fn read_rules(&mut self, mut rest: &str) {
        while let Some(at) = rest.find('{') {
            let end = find_end(&rest[at..]) + at;
            self.add(rest[..at].trim(), &rest[at + 1..end]);
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }

    fn add(&mut self, selectors: &str, body: &str) {
        let style = parse(body);
        if style.is_gone.is_none() && style.is_invisible.is_none() {
            return;
        }
        for selector in selectors.split(',') {
            if self.rules.len() >= MOST_RULES {
                return;
            }
            let selector = selector.trim();
            let last = selector.split([' ', '>', '+', '~']).next_back().unwrap_or_default();
            let names = split_names(last.split([':', '[']).next().unwrap_or_default());
            let is_simple = !names.is_empty()
                && last.len() == selector.len()
                && !last.contains([':', '[', '*', '\\']);
            if is_simple {
                let ids = names.iter().filter(|name| name.starts_with('#')).count();
                self.by_name.entry(names[0].clone()).or_default().push(self.rules.len());
                self.rules.push(Rule { weight: (ids, names.len() - ids), names, style });
            } else if style.is_gone == Some(false) || style.is_invisible == Some(false) {
                self.shown.extend(names);
            }
        }
    }

    /// What the sheet and the element's own style say together.
    pub fn find(&self, names: &[String], own: Style) -> Style {
        let mut found = Style::default();
        let is_unsure = names.iter().any(|name| self.shown.contains(name));
        if !is_unsure {
            let mut fitting: Vec<usize> = names
                .iter()
                .filter_map(|name| self.by_name.get(name))
                .flatten()
                .copied()
                .filter(|rule| self.rules[*rule].names.iter().all(|name| names.contains(name)))
                .collect();
            fitting.sort_by_key(|rule| {
                let r = &self.rules[*rule];
                (r.style.is_important, r.weight, *rule)
            });
            for rule in fitting {
                found = found.under(self.rules[rule].style);
            }
        }
        if found.is_important && !own.is_important { own.under(found) } else { found.under(own) }
    }
}

impl Style {
    fn under(self, stronger: Self) -> Self {
        Self {
            is_gone: stronger.is_gone.or(self.is_gone),
            is_invisible: stronger.is_invisible.or(self.is_invisible),
            is_tiny: stronger.is_tiny.or(self.is_tiny),
            is_raised: stronger.is_raised || self.is_raised,
            is_lowered: stronger.is_lowered || self.is_lowered,
            is_important: stronger.is_important || self.is_important,
        }
    }
}

/// Parses declarations: `display: none; color: red`.
pub fn parse(declarations: &str) -> Style {
    let mut style = Style::default();
    for declaration in declarations.split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let value = value.trim().to_ascii_lowercase();
        let (value, is_important) = match value.split_once('!') {
            Some((value, _)) => (value.trim(), true),
            None => (value.as_str(), false),
        };
        match name.trim().to_ascii_lowercase().as_str() {
            "display" => style.is_gone = Some(value == "none"),
            "visibility" => style.is_invisible = Some(matches!(value, "hidden" | "collapse")),
            "font-size" => {
                let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
                style.is_tiny = Some(digits.trim().parse() == Ok(0.0));
                continue;
            }
            "vertical-align" => {
                style.is_raised = value == "super";
                style.is_lowered = value == "sub";
                continue;
            }
            _ => continue,
        }
        style.is_important |= is_important;
    }
    style
}

/// The names in a compound selector: `p.hint#x` has "p", ".hint" and "#x".
fn split_names(compound: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for c in compound.trim().chars() {
        match names.last_mut() {
            Some(name) if !matches!(c, '.' | '#') => name.push(c),
            _ => names.push(c.to_string()),
        }
    }
    for name in &mut names {
        if !name.starts_with(['.', '#']) {
            name.make_ascii_lowercase();
        }
    }
    names
}

/// Where the block ends that a brace begins.
fn find_end(block: &str) -> usize {
    let mut depth = 0;
    for (at, c) in block.bytes().enumerate() {
        match c {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    block.len()
}

fn without_comments(css: &str) -> String {
    let mut out = String::new();
    let mut rest = css;
    while let Some((before, comment)) = rest.split_once("/*") {
        out += before;
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(css: &str, names: &[&str], own: &str) -> bool {
        let mut sheet = Sheet::default();
        sheet.read(css);
        let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
        sheet.find(&names, parse(own)).is_gone == Some(true)
    }

    #[test]
    fn rules_hide_elements() {
        assert!(hides("/* x */ .a, p.b { color: red; display:none }", &["div", ".a"], ""));
        assert!(hides("p.b{display:none}", &["p", ".b"], ""));
        assert!(!hides("p.b{display:none}", &["div", ".b"], ""));
        assert!(!hides("@media print { .a{display:none} }", &["p", ".a"], ""));
        assert!(hides("@media screen{.a{display:none}}", &["p", ".a"], ""));
        assert!(!hides(".a{display:none}", &["p", ".a"], "display:block"));
        assert!(hides(".a{display:none !important}", &["p", ".a"], "display:block"));
        assert!(!hides(".a{display:none} #x{display:block}", &["p", ".a", "#x"], ""));
        assert!(!hides(".a{display:none} .tabs > .a.on{display:block}", &["p", ".a"], ""));
        assert!(!hides(".menu .a{display:none}", &["p", ".a"], ""));
        assert!(hides("", &["p"], "Display : NONE"));
    }

    #[test]
    fn damaged_sheets_end() {
        for css in ["{", "}", "a{", "@media screen {", "/*", ";;{{}}", "a{}}}{", "@media screen{a"] {
            hides(css, &["p"], css);
        }
    }
}
