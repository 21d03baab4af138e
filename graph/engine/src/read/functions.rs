//! Functions of Cypher, by their names in lower case. Null gives null, but where a function says
//! otherwise.

use std::rc::Rc;

use arcstr::ArcStr;

use super::aggregate::number;
use super::eval::{Reader, Result, wrong};
use super::operators::{MAX_LENGTH, show};
use super::value::{Path, Val};

pub type Function = fn(&Reader, &[Val]) -> Result<Val>;

/// The functions: names in lower case, and the least and the most arguments.
static FUNCTIONS: &[(&[&str], Function, usize, usize)] = &[
    (&["id"], id, 1, 1),
    (
        &["elementid"],
        |r, args| {
            Ok(match id(r, args)? {
                Val::Int(id) => Val::text(id.to_string()),
                other => other,
            })
        },
        1,
        1,
    ),
    (&["labels"], labels, 1, 1),
    (&["type"], edge_type, 1, 1),
    (&["properties"], properties, 1, 1),
    (&["keys"], keys, 1, 1),
    (&["startnode"], |r, args| end_node(r, &args[0], true), 1, 1),
    (&["endnode"], |r, args| end_node(r, &args[0], false), 1, 1),
    (
        &["nodes"],
        |_, args| of_path(&args[0], |path| path.nodes.iter().map(|&n| Val::Node(n)).collect()),
        1,
        1,
    ),
    (
        &["relationships", "rels"],
        |_, args| of_path(&args[0], |path| path.edges.iter().map(|&e| Val::Edge(e)).collect()),
        1,
        1,
    ),
    (&["length"], length, 1, 1),
    (&["size"], size, 1, 1),
    (
        &["head"],
        |_, args| of_list(&args[0], |items| items.first().cloned().unwrap_or(Val::Null)),
        1,
        1,
    ),
    (
        &["last"],
        |_, args| of_list(&args[0], |items| items.last().cloned().unwrap_or(Val::Null)),
        1,
        1,
    ),
    (
        &["tail"],
        |_, args| of_list(&args[0], |items| Val::list(items.iter().skip(1).cloned().collect())),
        1,
        1,
    ),
    (&["reverse"], reverse, 1, 1),
    (&["range"], range, 2, 3),
    (&["coalesce"], coalesce, 1, usize::MAX),
    (&["exists"], |_, args| Ok(Val::Bool(!args[0].is_null())), 1, 1),
    (
        &["isempty"],
        |r, args| {
            Ok(match size(r, args)? {
                Val::Int(size) => Val::Bool(size == 0),
                other => other,
            })
        },
        1,
        1,
    ),
    (&["tointeger", "toint"], to_integer, 1, 1),
    (&["tofloat"], to_float, 1, 1),
    (&["toboolean"], to_boolean, 1, 1),
    (&["tostring"], to_text, 1, 1),
    (&["abs"], abs, 1, 1),
    (
        &["sign"],
        |_, args| {
            Ok(match &args[0] {
                Val::Null => Val::Null,
                value => Val::Int(number(value)?.partial_cmp(&0.0).map_or(0, |order| order as i64)),
            })
        },
        1,
        1,
    ),
    (&["ceil"], |_, args| math(&args[0], f64::ceil), 1, 1),
    (&["floor"], |_, args| math(&args[0], f64::floor), 1, 1),
    (&["round"], round, 1, 2),
    (&["sqrt"], |_, args| math(&args[0], f64::sqrt), 1, 1),
    (&["exp"], |_, args| math(&args[0], f64::exp), 1, 1),
    (&["log", "ln"], |_, args| math(&args[0], f64::ln), 1, 1),
    (&["log10"], |_, args| math(&args[0], f64::log10), 1, 1),
    (&["sin"], |_, args| math(&args[0], f64::sin), 1, 1),
    (&["cos"], |_, args| math(&args[0], f64::cos), 1, 1),
    (&["tan"], |_, args| math(&args[0], f64::tan), 1, 1),
    (&["asin"], |_, args| math(&args[0], f64::asin), 1, 1),
    (&["acos"], |_, args| math(&args[0], f64::acos), 1, 1),
    (&["atan"], |_, args| math(&args[0], f64::atan), 1, 1),
    (&["degrees"], |_, args| math(&args[0], f64::to_degrees), 1, 1),
    (&["radians"], |_, args| math(&args[0], f64::to_radians), 1, 1),
    (&["rand"], |_, _| Ok(random()), 0, 0),
    (&["pi"], |_, _| Ok(Val::Float(std::f64::consts::PI)), 0, 0),
    (&["e"], |_, _| Ok(Val::Float(std::f64::consts::E)), 0, 0),
    (
        &["isnan"],
        |_, args| {
            Ok(match &args[0] {
                Val::Null => Val::Null,
                value => Val::Bool(number(value)?.is_nan()),
            })
        },
        1,
        1,
    ),
    (
        &["toupper", "upper"],
        |_, args| of_text(&args[0], |text| Val::text(text.to_uppercase())),
        1,
        1,
    ),
    (
        &["tolower", "lower"],
        |_, args| of_text(&args[0], |text| Val::text(text.to_lowercase())),
        1,
        1,
    ),
    (&["trim"], |_, args| of_text(&args[0], |text| Val::text(text.trim())), 1, 1),
    (&["ltrim"], |_, args| of_text(&args[0], |text| Val::text(text.trim_start())), 1, 1),
    (&["rtrim"], |_, args| of_text(&args[0], |text| Val::text(text.trim_end())), 1, 1),
    (&["replace"], replace, 3, 3),
    (&["split"], split, 2, 2),
    (&["substring"], substring, 2, 3),
    (&["left"], |r, args| substring(r, &[args[0].clone(), Val::Int(0), args[1].clone()]), 2, 2),
    (&["right"], right, 2, 2),
];

/// Functions of the library alone, without those of its other languages.
const OTHERS: [&str; 22] = [
    "atan2",
    "byte_length",
    "octet_length",
    "char_length",
    "charlength",
    "ceiling",
    "cardinality",
    "cosine_distance",
    "cosine_similarity",
    "dot_product",
    "euclidean_distance",
    "isnormalized",
    "log2",
    "manhattan_distance",
    "normalize",
    "nullif",
    "pow",
    "power",
    "string_join",
    "tolist",
    "vector",
    "property_exists",
];

/// The function of a name that takes so many arguments. An error without a message: the library
/// has it.
pub fn find(name: &str, count: usize) -> std::result::Result<Function, Option<String>> {
    if let Some(function) = super::dates::find(name, count) {
        return Ok(function);
    }
    let found = FUNCTIONS.iter().find(|(names, ..)| names.contains(&name));
    match found {
        Some((_, function, least, most)) if (*least..=*most).contains(&count) => Ok(*function),
        Some(_) => Err(Some(format!("the function {name} does not take {count} arguments"))),
        None if OTHERS.contains(&name) => Err(None),
        None => Err(Some(unknown(name))),
    }
}

pub fn is_known(name: &str) -> bool {
    FUNCTIONS.iter().any(|(names, ..)| names.contains(&name))
        || OTHERS.contains(&name)
        || (0..=3).any(|count| super::dates::find(name, count).is_some())
}

/// The message about a function that does not exist, with the nearest one that does.
pub fn unknown(name: &str) -> String {
    let message = format!("there is no function {name}");
    let names = FUNCTIONS.iter().flat_map(|(names, ..)| names.iter()).chain(&super::dates::KINDS);
    let nearest = names.map(|known| (distance(name, known), *known)).min();
    match nearest {
        Some((changes, known)) if changes <= 2 && name.len() > 3 => {
            format!("{message}: is {known} meant?")
        }
        _ => message,
    }
}

/// How many letters must be changed, added or dropped to make one name of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().take(64).enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.bytes().enumerate() {
            let changed = last[j] + usize::from(x != y);
            next.push(changed.min(last[j + 1] + 1).min(next[j] + 1));
        }
        last = next;
    }
    last[b.len()]
}

/// A number from 0 to below 1.
fn random() -> Val {
    use std::hash::{BuildHasher, RandomState};
    Val::Float((RandomState::new().hash_one(0) >> 11) as f64 / (1u64 << 53) as f64)
}

fn unfit(function: &str, value: &Val) -> Box<crate::failure::Failure> {
    wrong(format!("{function} does not take {}", value.kind()))
}

fn id(_: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Null => Ok(Val::Null),
        Val::Node(id) | Val::Edge(id) => Ok(Val::Int((*id).into())),
        other => Err(unfit("id", other)),
    }
}

fn labels(r: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Null => Ok(Val::Null),
        Val::Node(node) => {
            Ok(Val::list(r.snapshot.labels_of(*node).cloned().map(Val::Str).collect()))
        }
        other => Err(unfit("labels", other)),
    }
}

fn edge_type(r: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Null => Ok(Val::Null),
        Val::Edge(edge) => Ok(Val::Str(r.snapshot.type_name(*edge).clone())),
        other => Err(unfit("type", other)),
    }
}

fn properties(r: &Reader, args: &[Val]) -> Result<Val> {
    if args[0].is_null() {
        return Ok(Val::Null);
    }
    Ok(Val::Map(Rc::new(r.properties(&args[0])?)))
}

fn keys(r: &Reader, args: &[Val]) -> Result<Val> {
    if args[0].is_null() {
        return Ok(Val::Null);
    }
    Ok(Val::list(r.properties(&args[0])?.into_keys().map(Val::Str).collect()))
}

fn end_node(r: &Reader, value: &Val, is_start: bool) -> Result<Val> {
    match value {
        Val::Null => Ok(Val::Null),
        Val::Edge(edge) => {
            let edge = r.snapshot.edges[*edge as usize];
            Ok(Val::Node(if is_start { edge.from } else { edge.to }))
        }
        other => Err(unfit("startNode or endNode", other)),
    }
}

fn of_path(value: &Val, read: impl Fn(&Path) -> Vec<Val>) -> Result<Val> {
    match value {
        Val::Null => Ok(Val::Null),
        Val::Path(path) => Ok(Val::list(read(path))),
        other => Err(unfit("nodes or relationships", other)),
    }
}

fn of_list(value: &Val, read: impl Fn(&[Val]) -> Val) -> Result<Val> {
    match value {
        Val::Null => Ok(Val::Null),
        Val::List(items) => Ok(read(items)),
        other => Err(wrong(format!("a list is needed, not {}", other.kind()))),
    }
}

fn of_text(value: &Val, read: impl Fn(&str) -> Val) -> Result<Val> {
    match value {
        Val::Null => Ok(Val::Null),
        Val::Str(text) => Ok(read(text)),
        other => Err(wrong(format!("a text is needed, not {}", other.kind()))),
    }
}

fn length(_: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Null => Ok(Val::Null),
        Val::Path(path) => Ok(Val::Int(path.edges.len() as i64)),
        Val::List(items) => Ok(Val::Int(items.len() as i64)),
        Val::Str(text) => Ok(Val::Int(text.chars().count() as i64)),
        other => Err(unfit("length", other)),
    }
}

fn size(_: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Null => Ok(Val::Null),
        Val::List(items) => Ok(Val::Int(items.len() as i64)),
        Val::Map(map) => Ok(Val::Int(map.len() as i64)),
        Val::Str(text) => Ok(Val::Int(text.chars().count() as i64)),
        other => Err(unfit("size", other)),
    }
}

fn reverse(_: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Null => Ok(Val::Null),
        Val::List(items) => Ok(Val::list(items.iter().rev().cloned().collect())),
        Val::Str(text) => Ok(Val::text(text.chars().rev().collect::<String>())),
        other => Err(unfit("reverse", other)),
    }
}

fn range(_: &Reader, args: &[Val]) -> Result<Val> {
    let mut bounds = Vec::new();
    for arg in args {
        match arg {
            Val::Int(value) => bounds.push(i128::from(*value)),
            other => return Err(unfit("range", other)),
        }
    }
    let step = bounds.get(2).copied().unwrap_or(1);
    if step == 0 {
        return Err(wrong("the step of range is 0"));
    }
    let count = ((bounds[1] - bounds[0]) / step + 1).max(0);
    if (bounds[1] - bounds[0]).signum() * step.signum() < 0 {
        return Ok(Val::list(Vec::new()));
    }
    if count > 1 << 27 {
        return Err(wrong("range makes too long a list"));
    }
    Ok(Val::list((0..count).map(|at| Val::Int((bounds[0] + at * step) as i64)).collect()))
}

fn coalesce(_: &Reader, args: &[Val]) -> Result<Val> {
    Ok(args.iter().find(|value| !value.is_null()).cloned().unwrap_or(Val::Null))
}

fn to_integer(_: &Reader, args: &[Val]) -> Result<Val> {
    Ok(match &args[0] {
        Val::Null => Val::Null,
        Val::Int(value) => Val::Int(*value),
        Val::Bool(value) => Val::Int((*value).into()),
        Val::Float(value) if value.is_finite() && value.abs() < 9.2e18 => Val::Int(*value as i64),
        Val::Float(_) => Val::Null,
        Val::Str(text) => {
            let text = text.trim();
            let as_float =
                || text.parse::<f64>().ok().filter(|x| x.abs() < 9.2e18).map(|x| x as i64);
            text.parse().ok().or_else(as_float).map_or(Val::Null, Val::Int)
        }
        other => return Err(unfit("toInteger", other)),
    })
}

fn to_float(_: &Reader, args: &[Val]) -> Result<Val> {
    Ok(match &args[0] {
        Val::Null => Val::Null,
        value @ (Val::Int(_) | Val::Float(_)) => Val::Float(number(value)?),
        Val::Str(text) => text.trim().parse().map_or(Val::Null, Val::Float),
        other => return Err(unfit("toFloat", other)),
    })
}

fn to_boolean(_: &Reader, args: &[Val]) -> Result<Val> {
    Ok(match &args[0] {
        Val::Null => Val::Null,
        Val::Bool(value) => Val::Bool(*value),
        Val::Int(value) => Val::Bool(*value != 0),
        Val::Str(text) => match text.trim().to_lowercase().as_str() {
            "true" => Val::Bool(true),
            "false" => Val::Bool(false),
            _ => Val::Null,
        },
        other => return Err(unfit("toBoolean", other)),
    })
}

fn to_text(_: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Null => Ok(Val::Null),
        other @ (Val::List(_) | Val::Map(_) | Val::Node(_) | Val::Edge(_) | Val::Path(_)) => {
            Err(unfit("toString", other))
        }
        other => Ok(Val::text(show(other))),
    }
}

fn abs(_: &Reader, args: &[Val]) -> Result<Val> {
    match &args[0] {
        Val::Int(value) => value
            .checked_abs()
            .map(Val::Int)
            .ok_or_else(|| wrong("the number has more than 64 bits")),
        other => math(other, f64::abs),
    }
}

fn math(value: &Val, function: impl Fn(f64) -> f64) -> Result<Val> {
    if value.is_null() {
        return Ok(Val::Null);
    }
    Ok(Val::Float(function(number(value)?)))
}

fn round(_: &Reader, args: &[Val]) -> Result<Val> {
    let digits = match args.get(1) {
        None => 0,
        Some(Val::Int(digits)) => *digits,
        Some(Val::Null) => return Ok(Val::Null),
        Some(other) => return Err(unfit("round", other)),
    };
    let scale = 10f64.powi(digits.clamp(0, 300) as i32);
    math(&args[0], |x| {
        let scaled = x * scale;
        if scaled.is_finite() { (scaled + 0.5).floor() / scale } else { x }
    })
}

fn replace(_: &Reader, args: &[Val]) -> Result<Val> {
    let (Val::Str(text), Val::Str(old), Val::Str(new)) = (&args[0], &args[1], &args[2]) else {
        return only_null("replace", args);
    };
    if text.len() * (new.len() + 1) > MAX_LENGTH
        && text.matches(old.as_str()).count() * new.len() > MAX_LENGTH
    {
        return Err(wrong("a text is too long"));
    }
    Ok(Val::text(text.replace(old.as_str(), new)))
}

/// Null if an argument is, else an error.
fn only_null(function: &str, args: &[Val]) -> Result<Val> {
    if args.iter().any(Val::is_null) {
        return Ok(Val::Null);
    }
    Err(wrong(format!("{function} does not take such arguments")))
}

fn split(_: &Reader, args: &[Val]) -> Result<Val> {
    let (Val::Str(text), Val::Str(by)) = (&args[0], &args[1]) else {
        return only_null("split", args);
    };
    if by.is_empty() {
        return Ok(Val::list(text.chars().map(|c| Val::text(c.to_string())).collect()));
    }
    Ok(Val::list(text.split(by.as_str()).map(Val::text).collect()))
}

fn substring(_: &Reader, args: &[Val]) -> Result<Val> {
    let (Val::Str(text), Val::Int(start)) = (&args[0], &args[1]) else {
        return only_null("substring", args);
    };
    let length = match args.get(2) {
        None => usize::MAX,
        Some(Val::Int(length)) if *length >= 0 => *length as usize,
        Some(Val::Null) => return Ok(Val::Null),
        Some(_) => return Err(wrong("a length must be an integer from 0")),
    };
    let start = usize::try_from(*start).map_err(|_| wrong("a start must not be negative"))?;
    let part: String = text.chars().skip(start).take(length).collect();
    Ok(Val::text(ArcStr::from(part)))
}

fn right(_: &Reader, args: &[Val]) -> Result<Val> {
    let (Val::Str(text), Val::Int(length)) = (&args[0], &args[1]) else {
        return only_null("right", args);
    };
    let length = usize::try_from(*length).map_err(|_| wrong("a length must not be negative"))?;
    let skip = text.chars().count().saturating_sub(length);
    Ok(Val::text(text.chars().skip(skip).collect::<String>()))
}
