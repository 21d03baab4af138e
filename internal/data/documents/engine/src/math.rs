//! Formulas of MathML and of Office as one line of text: `1/250`, `10^6`, `√(x)`.

/// An element of a formula.
#[derive(Default)]
pub struct Element {
    /// The name without its namespace.
    pub name: String,
    /// The attributes, by their names without their namespaces.
    pub attributes: Vec<(String, String)>,
    pub text: String,
    pub children: Vec<Element>,
}

impl Element {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of a part that Office names.
    fn part(&self, name: &str) -> String {
        self.child(name).map(linear).unwrap_or_default()
    }

    /// The text of a part that MathML numbers.
    fn at(&self, index: usize) -> String {
        self.children.get(index).map(linear).unwrap_or_default()
    }

    /// A property of Office: the value of an element in the properties.
    fn property(&self, name: &str) -> Option<&str> {
        let all = self.children.iter().find(|child| child.name.ends_with("Pr"))?;
        all.child(name).map(|found| found.attribute("val").unwrap_or("1"))
    }
}

/// The formula as one line.
pub fn linear(e: &Element) -> String {
    match e.name.as_str() {
        "mfrac" if e.attribute("linethickness").is_some_and(is_zero) => over(&e.at(0), &e.at(1)),
        "mfrac" => fraction(&e.at(0), &e.at(1)),
        "f" if e.property("type") == Some("noBar") => over(&e.part("num"), &e.part("den")),
        "f" => fraction(&e.part("num"), &e.part("den")),

        "msup" => scripts(&e.at(0), "", &e.at(1)),
        "msub" => scripts(&e.at(0), &e.at(1), ""),
        "msubsup" => scripts(&e.at(0), &e.at(1), &e.at(2)),
        "sSup" | "sSub" | "sSubSup" => scripts(&e.part("e"), &e.part("sub"), &e.part("sup")),
        "sPre" => scripts("", &e.part("sub"), &e.part("sup")) + &group(&e.part("e")),
        "mmultiscripts" => multiscripts(e),

        "munder" => scripts(&e.at(0), &e.at(1), ""),
        "mover" => accent(&e.at(0), &e.at(1)),
        "munderover" => scripts(&e.at(0), &e.at(1), &e.at(2)),
        "limLow" => scripts(&e.part("e"), &e.part("lim"), ""),
        "limUpp" => scripts(&e.part("e"), "", &e.part("lim")),
        "acc" => accent(&e.part("e"), e.property("chr").unwrap_or("\u{302}")),
        "bar" => accent(&e.part("e"), "\u{304}"),

        "msqrt" => format!("√({})", join(&e.children)),
        "mroot" => root(&e.at(0), &e.at(1)),
        "rad" => root(&e.part("e"), &e.part("deg")),

        "nary" => {
            let sign = e.property("chr").unwrap_or("∫");
            let sum = scripts(sign, &e.part("sub"), &e.part("sup"));
            format!("{sum} {}", group(&e.part("e")))
        }
        "func" => format!("{}({})", e.part("fName"), unwrap(&e.part("e"))),

        "d" => {
            let sign = |name, usual| e.property(name).unwrap_or(usual);
            let parts: Vec<_> = e.children.iter().filter(|c| c.name == "e").map(linear).collect();
            let inner = parts.join(sign("sepChr", "|"));
            format!("{}{inner}{}", sign("begChr", "("), sign("endChr", ")"))
        }
        "mfenced" => {
            let parts: Vec<_> = e.children.iter().map(linear).collect();
            let sign = |name, usual| e.attribute(name).unwrap_or(usual);
            let comma = sign("separators", ",").chars().next().map(String::from);
            let inner = parts.join(&comma.unwrap_or_default());
            format!("{}{inner}{}", sign("open", "("), sign("close", ")"))
        }

        "mtable" | "m" | "eqArr" => {
            let rows = e.children.iter().filter(|c| !c.name.ends_with("Pr")).map(linear);
            format!("[{}]", rows.collect::<Vec<_>>().join("; "))
        }
        "mtr" | "mlabeledtr" | "mr" => {
            let cells = e.children.iter().filter(|c| !c.name.ends_with("Pr")).map(linear);
            cells.collect::<Vec<_>>().join(", ")
        }

        "semantics" | "maction" => e.at(0),
        "annotation" | "annotation-xml" | "mphantom" | "phant" | "mspace" => String::new(),
        name if name.ends_with("Pr") => String::new(),
        _ if e.children.is_empty() => token(&e.text),
        _ => join(&e.children),
    }
}

fn token(text: &str) -> String {
    // Spaces of Office are the author's. Those of MathML come with the lines of the page.
    let text = match text.contains(['\n', '\t']) {
        true => text.split_whitespace().collect::<Vec<_>>().join(" "),
        false => text.to_owned(),
    };
    text.chars().map(plain_letter).collect()
}

/// Letters and digits of formulas, such as 𝑥, as everybody types them.
fn plain_letter(c: char) -> char {
    let plain = match c as u32 {
        0x210e => return 'h',
        code @ 0x1d400..0x1d6a4 => match (code - 0x1d400) % 52 {
            at @ 0..26 => u32::from(b'A') + at,
            at => u32::from(b'a') + at - 26,
        },
        code @ 0x1d7ce..0x1d800 => u32::from(b'0') + (code - 0x1d7ce) % 10,
        _ => return c,
    };
    char::from_u32(plain).unwrap_or(c)
}

/// Puts parts next to each other, so that no two numbers become one.
fn join(parts: &[Element]) -> String {
    let mut out = String::new();
    let mut was_fraction = false;
    for part in parts {
        let text = linear(part);
        let Some(first) = text.chars().next() else { continue };
        let last = out.chars().next_back();
        let is_fraction = matches!(part.name.as_str(), "mfrac" | "f");
        if (is_fraction || was_fraction)
            && last.is_some_and(char::is_alphanumeric)
            && first.is_alphanumeric()
        {
            out.push(' ');
        }
        was_fraction = is_fraction;
        out += &text;
    }

    // Signs that are not seen: the application of a function, a product, a comma and a sum.
    if !out.contains(['\u{2061}', '\u{2062}', '\u{2063}', '\u{2064}']) {
        return out;
    }
    let letters: Vec<char> = out.chars().collect();
    let mut seen = String::new();
    for (at, c) in letters.iter().enumerate() {
        let next = letters.get(at + 1).copied().unwrap_or(' ');
        let is_between = seen.ends_with(|c: char| c.is_numeric()) && next.is_numeric();
        match c {
            '\u{2061}' if next.is_alphanumeric() => seen.push(' '),
            '\u{2062}' if is_between => seen.push('·'),
            '\u{2063}' => seen.push(','),
            '\u{2064}' => seen.push(' '),
            '\u{2061}' | '\u{2062}' => {}
            _ => seen.push(*c),
        }
    }
    seen
}

pub fn fraction(above: &str, below: &str) -> String {
    format!("{}/{}", group(above), group(below))
}

/// What is above something else without a line, such as a binomial coefficient.
fn over(above: &str, below: &str) -> String {
    format!("{} over {}", group(above), group(below))
}

fn root(of: &str, degree: &str) -> String {
    let of = unwrap(of);
    match degree.trim() {
        "" | "2" => format!("√({of})"),
        "3" => format!("∛({of})"),
        "4" => format!("∜({of})"),
        degree => format!("({of})^(1/{})", group(degree)),
    }
}

fn scripts(base: &str, below: &str, above: &str) -> String {
    let mut out = if base.is_empty() { String::new() } else { group(base) };
    for (sign, script) in [('_', below), ('^', above)] {
        let script = script.trim();
        if !script.is_empty() {
            out.push(sign);
            let number = script.trim_start_matches(['-', '−', '+']);
            let is_signed = script.len() > number.len() && is_atom(number);
            out += &if is_signed { script.to_owned() } else { group(script) };
        }
    }
    out
}

/// The scripts behind and before a sign, as of isotopes.
fn multiscripts(e: &Element) -> String {
    let mut pairs = [String::new(), String::new()];
    let mut place = 0;
    let mut is_below = true;
    let mut before = String::new();
    for child in e.children.iter().skip(1) {
        if child.name == "mprescripts" {
            place = 1;
            is_below = true;
            continue;
        }
        let script = if child.name == "none" { String::new() } else { linear(child) };
        pairs[place] += &if is_below {
            scripts("", &script, "")
        } else {
            scripts("", "", &script)
        };
        is_below = !is_below;
    }
    before += &pairs[1];
    before + &e.at(0) + &pairs[0]
}

fn accent(base: &str, sign: &str) -> String {
    let mark = match sign.trim() {
        "¯" | "‾" | "\u{305}" | "\u{304}" | "_" => '\u{304}',
        "^" | "ˆ" | "\u{302}" => '\u{302}',
        "~" | "˜" | "\u{303}" => '\u{303}',
        "→" | "\u{20d7}" => '\u{20d7}',
        "." | "˙" | "\u{307}" => '\u{307}',
        "¨" | "\u{308}" => '\u{308}',
        other => return scripts(base, "", other),
    };
    if base.chars().count() == 1 { format!("{base}{mark}") } else { format!("({base}){mark}") }
}

/// Puts parentheses around what would otherwise be read with its neighbours.
fn group(text: &str) -> String {
    let text = text.trim();
    let is_whole = is_atom(text) || is_enclosed(text.trim_start_matches(['√', '∛', '∜']));
    if is_whole { text.to_owned() } else { format!("({text})") }
}

/// Takes away parentheses around a whole text.
fn unwrap(text: &str) -> &str {
    let text = text.trim();
    if text.starts_with('(') && is_enclosed(text) { &text[1..text.len() - 1] } else { text }
}

/// Reports whether a text is one number, name or sign.
fn is_atom(text: &str) -> bool {
    let is_number = |c: char| c.is_numeric() || matches!(c, '.' | ',' | '%' | '°');
    text.chars().count() <= 1
        || text.chars().all(is_number)
        || text.chars().all(|c| c.is_alphabetic() || matches!(c, '\'' | '′' | '\u{300}'..='\u{36f}'))
}

/// Reports whether the first parenthesis of a text ends with the text.
fn is_enclosed(text: &str) -> bool {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at > 0 && at + c.len_utf8() == text.len();
        }
    }
    false
}

fn is_zero(length: &str) -> bool {
    length.trim().trim_end_matches(|c: char| c.is_alphabetic()).parse() == Ok(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn e(name: &str, children: Vec<Element>) -> Element {
        Element { name: name.into(), children, ..Default::default() }
    }

    fn t(text: &str) -> Element {
        Element { name: "mi".into(), text: text.into(), ..Default::default() }
    }

    #[test]
    fn numbers_stay_apart() {
        let half = || e("mfrac", vec![t("1"), t("2")]);
        for (want, formula) in [
            ("1/250", e("mfrac", vec![t("1"), t("250")])),
            ("10^6", e("msup", vec![t("10"), t("6")])),
            ("10^-6", e("msup", vec![t("10"), e("mrow", vec![t("-"), t("6")])])),
            ("x_12", e("msub", vec![t("x"), t("12")])),
            ("x_i^2", e("msubsup", vec![t("x"), t("i"), t("2")])),
            ("3 1/2", e("mrow", vec![t("3"), half()])),
            ("(a+b)/(2x)", e("mfrac", vec![t("a+b"), e("mrow", vec![t("2"), t("x")])])),
            ("√(x)", e("msqrt", vec![t("x")])),
            ("∛(8)", e("mroot", vec![t("8"), t("3")])),
            ("2·3", e("mrow", vec![t("2"), t("\u{2062}"), t("3")])),
            ("[1, 2; 3, 4]", e("mtable", vec![
                e("mtr", vec![t("1"), t("2")]), e("mtr", vec![t("3"), t("4")]),
            ])),
        ] {
            assert_eq!(linear(&formula), want);
        }
    }
}
