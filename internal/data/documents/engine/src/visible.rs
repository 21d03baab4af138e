//! What a reader sees of a page: its tree without hidden elements, and with tables for data only.

use std::cell::RefCell;
use std::rc::Rc;

use html5ever::tendril::StrTendril;
use html5ever::{LocalName, QualName, local_name, ns};
use htmd::Node;
use markup5ever_rcdom::NodeData;

use crate::css::{self, Sheet, Style};

/// Elements that are never seen, besides those that `html.rs` skips.
const UNSEEN: &[&str] = &["datalist", "noframes", "rp", "area", "param"];

/// A cell with more text than this, and a table in it, is there for the layout.
const LONGEST_CELL: usize = 2_000;

/// What holds within an element.
#[derive(Clone, Copy, Default)]
struct State {
    is_invisible: bool,
    is_tiny: bool,
}

/// Changes a tree to what a reader sees.
pub fn prune(tree: &Rc<Node>) {
    let mut sheet = Sheet::default();
    find_sheets(tree, &mut sheet);
    visit(tree, State::default(), &sheet);
}

fn find_sheets(node: &Rc<Node>, sheet: &mut Sheet) {
    if tag(node) == "style" {
        let media = attribute(node, "media").unwrap_or_default().to_ascii_lowercase();
        if matches!(media.trim(), "" | "all" | "screen") {
            sheet.read(&text(node));
        }
        return;
    }
    for child in node.children.borrow().iter() {
        find_sheets(child, sheet);
    }
}

/// Removes what is hidden below a node.
fn visit(node: &Rc<Node>, state: State, sheet: &Sheet) {
    let children = node.children.take();
    let has_formula = children.iter().any(|child| has_class(child, "katex-mathml"));
    for child in children {
        match &child.data {
            NodeData::Text { .. } if state.is_invisible || state.is_tiny => continue,
            NodeData::Element { .. } => {
                // KaTeX writes a formula twice: for the eye, and for everybody else.
                if is_unseen(&child) || (has_formula && has_class(&child, "katex-html")) {
                    continue;
                }
                let style = find_style(&child, sheet);
                let is_hidden = with_attribute(&child, "hidden", |_| ()).is_some();
                if style.is_gone.unwrap_or(is_hidden) {
                    continue;
                }

                let inner = State {
                    is_invisible: style.is_invisible.unwrap_or(state.is_invisible),
                    is_tiny: style.is_tiny.unwrap_or(state.is_tiny),
                };
                visit(&child, inner, sheet);
                let child = match tag(&child) {
                    "table" if is_layout(&child) => lay_out(&child),
                    "ruby" => read_ruby(&child),
                    "span" | "font" if style.is_raised => wrap(&child, local_name!("sup")),
                    "span" | "font" if style.is_lowered => wrap(&child, local_name!("sub")),
                    _ => child,
                };
                append(node, child);
                continue;
            }
            _ => {}
        }
        append(node, child);
    }
    if node.children.borrow().iter().any(|child| tag(child) == "sup") {
        join_fractions(node);
    }
}

fn is_unseen(node: &Rc<Node>) -> bool {
    let tag = tag(node);
    UNSEEN.contains(&tag)
        || (tag == "dialog" && attribute(node, "open").is_none())
        || (tag == "input" && attribute(node, "type").is_some_and(|t| t == "hidden"))
}

/// Reports whether a table is there for the layout of a page alone: a frame around one cell, one
/// column, or cells with whole texts and tables.
fn is_layout(table: &Rc<Node>) -> bool {
    let role = attribute(table, "role").unwrap_or_default();
    if matches!(role.trim(), "presentation" | "none") {
        return true;
    }
    let rows = find_rows(table);
    let widest = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let is_data = rows.iter().flat_map(|(_, cells)| cells).any(|cell| tag(cell) == "th")
        || table.children.borrow().iter().any(|child| matches!(tag(child), "caption" | "thead"));
    if widest <= 1 {
        return !is_data;
    }
    let holds_much = rows.iter().flat_map(|(_, cells)| cells).any(|cell| {
        holds_table(cell) && (rows.len() == 1 || text(cell).len() > LONGEST_CELL)
    });
    !is_data && holds_much
}

fn holds_table(node: &Rc<Node>) -> bool {
    node.children.borrow().iter().any(|child| tag(child) == "table" || holds_table(child))
}

/// The rows of a table, each with its cells, in the order of a reader: what is in `tfoot` comes
/// last. The number tells the groups apart.
pub fn find_rows(table: &Rc<Node>) -> Vec<(usize, Vec<Rc<Node>>)> {
    let mut rows = Vec::new();
    let mut last = Vec::new();
    for (number, group) in table.children.borrow().iter().enumerate() {
        match tag(group) {
            "tr" => rows.push((usize::MAX, find_cells(group))),
            "thead" | "tbody" | "tfoot" => {
                let all = group.children.borrow();
                let found = all.iter().filter(|row| tag(row) == "tr");
                let found = found.map(|row| (number, find_cells(row)));
                if tag(group) == "tfoot" { last.extend(found) } else { rows.extend(found) }
            }
            _ => {}
        }
    }
    rows.append(&mut last);
    rows
}

fn find_cells(row: &Rc<Node>) -> Vec<Rc<Node>> {
    let cells = row.children.borrow();
    cells.iter().filter(|cell| matches!(tag(cell), "td" | "th")).cloned().collect()
}

/// Makes blocks of the cells of a table.
fn lay_out(table: &Rc<Node>) -> Rc<Node> {
    let block = element(local_name!("div"));
    for child in table.children.borrow().iter().filter(|child| tag(child) == "caption") {
        append(&block, child.clone());
    }
    for (_, cells) in find_rows(table) {
        for cell in cells {
            let inner = element(local_name!("div"));
            for child in cell.children.take() {
                append(&inner, child);
            }
            append(&block, inner);
        }
    }
    block
}

/// The words of ruby, and behind them how they are read: 東京(とうきょう).
fn read_ruby(ruby: &Rc<Node>) -> Rc<Node> {
    let words = element(local_name!("span"));
    let mut reading = String::new();
    for child in ruby.children.take() {
        match tag(&child) {
            "rt" | "rtc" => reading += text(&child).trim(),
            _ => append(&words, child),
        }
    }
    if !reading.is_empty() {
        append(&words, text_node(&format!("({reading})")));
    }
    words
}

/// Makes one text of fractions that are set by hand: `<sup>1</sup>⁄<sub>250</sub>`.
fn join_fractions(node: &Rc<Node>) {
    let is_line = |node: &Rc<Node>| {
        !matches!(tag(node), "sup" | "sub") && matches!(text(node).trim(), "/" | "⁄" | "∕")
    };
    let mut done: Vec<Rc<Node>> = Vec::new();
    for child in node.children.take() {
        done.push(child);
        let [.., above, line, below] = done.as_slice() else { continue };
        if tag(above) != "sup" || tag(below) != "sub" || !is_line(line) {
            continue;
        }
        let mut fraction = format!("{}/{}", text(above).trim(), text(below).trim());
        done.truncate(done.len() - 3);
        if done.last().is_some_and(|before| text(before).ends_with(char::is_numeric)) {
            fraction.insert(0, ' ');
        }
        done.push(text_node(&fraction));
    }
    for child in done {
        append(node, child);
    }
}

/// Puts what lies in an element into one inside it.
fn wrap(node: &Rc<Node>, name: LocalName) -> Rc<Node> {
    let inner = element(name);
    for child in node.children.take() {
        append(&inner, child);
    }
    inner
}

pub fn append(parent: &Rc<Node>, child: Rc<Node>) {
    child.parent.set(Some(Rc::downgrade(parent)));
    parent.children.borrow_mut().push(child);
}

fn element(name: LocalName) -> Rc<Node> {
    Node::new(NodeData::Element {
        name: QualName::new(None, ns!(html), name),
        attrs: RefCell::default(),
        template_contents: RefCell::default(),
        mathml_annotation_xml_integration_point: false,
    })
}

fn text_node(text: &str) -> Rc<Node> {
    Node::new(NodeData::Text { contents: RefCell::new(StrTendril::from(text)) })
}

pub fn tag(node: &Node) -> &str {
    match &node.data {
        NodeData::Element { name, .. } => &name.local,
        _ => "",
    }
}

pub fn attribute(node: &Node, wanted: &str) -> Option<String> {
    with_attribute(node, wanted, str::to_owned)
}

fn with_attribute<T>(node: &Node, wanted: &str, use_it: impl FnOnce(&str) -> T) -> Option<T> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attrs = attrs.borrow();
    let found = attrs.iter().find(|attribute| &*attribute.name.local == wanted);
    found.map(|attribute| use_it(&attribute.value))
}

fn has_class(node: &Node, class: &str) -> bool {
    let is_in = |all: &str| all.split_whitespace().any(|found| found == class);
    with_attribute(node, "class", is_in).unwrap_or(false)
}

/// What styles say about an element.
fn find_style(node: &Node, sheet: &Sheet) -> Style {
    let own = with_attribute(node, "style", css::parse).unwrap_or_default();
    if sheet.is_empty() { own } else { sheet.find(&names(node), own) }
}

/// The names by which a style sheet may mean an element: "p", ".hint" and "#id".
fn names(node: &Node) -> Vec<String> {
    let mut names = vec![tag(node).to_owned()];
    with_attribute(node, "class", |all| {
        names.extend(all.split_whitespace().take(64).map(|class| format!(".{class}")));
    });
    with_attribute(node, "id", |id| names.push(format!("#{id}")));
    names
}

/// All text in a node.
pub fn text(node: &Rc<Node>) -> String {
    fn collect(node: &Rc<Node>, out: &mut String) {
        if let NodeData::Text { contents } = &node.data {
            out.push_str(&contents.borrow());
        }
        node.children.borrow().iter().for_each(|child| collect(child, out));
    }
    let mut out = String::new();
    collect(node, &mut out);
    out
}
