//! Names of the property graph and IRIs: node type `run_trace` is class `au:RunTrace`, edge type
//! `HAS_EDIT_FOR` is property `au:hasEditFor`, property `score` is `au:score`.

pub const AU: &str = "http://agent-utilities.dev/ontology#";

/// The class of a node type: `run_trace` is `RunTrace`.
pub fn class_name(node_type: &str) -> String {
    let mut name = String::with_capacity(node_type.len());
    let shouts = is_shouted(node_type);
    for word in node_type.split(['_', '-', ' ']) {
        let mut letters = word.chars();
        name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        if shouts && node_type.contains('_') {
            name.extend(letters.flat_map(char::to_lowercase));
        } else {
            name.extend(letters);
        }
    }
    name
}

/// The object property of an edge type: `HAS_EDIT_FOR` is `hasEditFor`.
pub fn property_name(edge_type: &str) -> String {
    if !is_shouted(edge_type) {
        return edge_type.to_owned();
    }

    let mut name = String::with_capacity(edge_type.len());
    for word in edge_type.split('_') {
        let mut letters = word.chars().flat_map(char::to_lowercase);
        if name.is_empty() {
            name.extend(letters);
        } else {
            name.extend(letters.next().into_iter().flat_map(char::to_uppercase));
            name.extend(letters);
        }
    }
    name
}

fn is_shouted(name: &str) -> bool {
    name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase)
}

/// The IRI of a name or of a node's id. An absolute IRI is its own.
pub fn iri_of(name: &str) -> String {
    if is_iri(name) {
        return name.to_owned();
    }

    let mut iri = String::with_capacity(AU.len() + name.len());
    iri.push_str(AU);
    for c in name.chars() {
        if c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '~' | ':' | '@' | '/') {
            iri.push(c);
        } else {
            let mut buffer = [0; 4];
            for byte in c.encode_utf8(&mut buffer).bytes() {
                iri.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    iri
}

/// The id of an IRI's node: a name in `au:` without its namespace, or the IRI.
pub fn id_of(iri: &str) -> String {
    iri.strip_prefix(AU).and_then(decode).unwrap_or_else(|| iri.to_owned())
}

/// Undoes the percent-encoding of `iri_of`; `None` if it did not make this name.
fn decode(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte == b'%' {
            let code = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(code, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(byte);
            rest = tail;
        }
    }

    let id = String::from_utf8(bytes).ok()?;
    (!id.is_empty() && iri_of(&id).strip_prefix(AU) == Some(name)).then_some(id)
}

/// The last part of an IRI, behind `#`, `/` or `:`.
pub fn local_name(iri: &str) -> &str {
    let name = iri.trim_end_matches(['/', '#']);
    let start = name.rfind(['#', '/']).or_else(|| name.rfind(':')).map_or(0, |at| at + 1);
    if start < name.len() { &name[start..] } else { iri }
}

/// Whether a text is an absolute IRI: `http://…` or `urn:…`, but not `trace:1`.
fn is_iri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    (rest.starts_with("//") || scheme.eq_ignore_ascii_case("urn"))
        && oxigraph::model::NamedNode::new(text).is_ok()
}
