//! Formulas of workbooks without a saved value. The engines include this file.
//!
//! Programs such as openpyxl write formulas, but do not compute them. This computes the simple
//! ones: arithmetic, references, sums and a few more functions. A formula with anything else has
//! no value here: none is better than a wrong one.

use std::collections::HashMap;
use std::rc::Rc;

/// Bounds of a workbook's cells and of all its formulas, of the length of one, and of the brackets
/// and references that lie in one another, which use the stack.
const MOST_CELLS: usize = 1 << 20;
const MOST_STEPS: usize = if cfg!(test) { 200_000 } else { 20_000_000 };
const LONGEST: usize = 8_192;
const DEEPEST: usize = 128;

/// Beyond Excel's last row and column.
const ROWS: u32 = 1 << 20;
const COLUMNS: u32 = 1 << 14;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Empty,
    Number(f64),
    /// Cells may share it.
    Text(Rc<str>),
    Boolean(bool),
    Error(String),
}

/// A cell: its saved value, or a formula without one.
#[derive(Clone, Debug)]
pub enum Cell {
    Value(Value),
    Formula(String),
}

/// Reports whether a workbook asks to be computed when it is opened, in its `xl/workbook.xml`.
/// XlsxWriter, for one, saves a 0 for each formula: there, a 0 is no value.
pub fn awaits_computing(workbook: &[u8]) -> bool {
    let workbook = String::from_utf8_lossy(workbook);
    ["\"1\"", "\"true\""].iter().any(|is| workbook.contains(&format!("fullCalcOnLoad={is}")))
}

/// A row and a column, from 0.
type Place = (u32, u32);

#[derive(Default)]
pub struct Book {
    sheets: Vec<Sheet>,
    size: usize,
    steps: usize,
    depth: usize,
}

struct Sheet {
    name: String,
    cells: HashMap<Place, Cell>,
    /// None while a formula is computed, then its value, if it has one.
    known: HashMap<Place, Option<Option<Value>>>,
}

impl Book {
    pub fn add_sheet(&mut self, name: &str) {
        let name = name.to_lowercase();
        self.sheets.push(Sheet { name, cells: HashMap::new(), known: HashMap::new() });
    }

    /// Adds a cell to the last sheet. A book with too many cells has no values.
    pub fn add(&mut self, row: u32, column: u32, cell: Cell) {
        self.size += 1;
        if let Some(sheet) = self.sheets.last_mut().filter(|_| self.size <= MOST_CELLS) {
            sheet.cells.insert((row, column), cell);
        }
    }

    /// Computes all formulas. What is too deep from above may not be from below.
    pub fn compute(&mut self) {
        if self.size > MOST_CELLS {
            return;
        }
        let is_formula = |cell: &Cell| matches!(cell, Cell::Formula(_));
        let mut places = Vec::new();
        for (index, sheet) in self.sheets.iter().enumerate() {
            let formulas = sheet.cells.iter().filter(|(_, cell)| is_formula(cell));
            places.extend(formulas.map(|(place, _)| (index, *place)));
        }
        places.sort_unstable();
        for (sheet, place) in places.iter().chain(places.iter().rev()) {
            self.depth = 0;
            let _ = self.find(*sheet, *place);
        }
    }

    /// The computed value of a formula, None if it is not simple.
    pub fn value(&self, sheet: usize, row: u32, column: u32) -> Option<&Value> {
        self.sheets.get(sheet)?.known.get(&(row, column))?.as_ref()?.as_ref()
    }

    /// The value of a cell. After None, nothing more is computed for the formula at the top.
    fn find(&mut self, sheet: usize, place: Place) -> Option<Value> {
        self.spend(1)?;
        let found = self.sheets.get(sheet)?;
        let formula = match found.cells.get(&place) {
            None => return Some(Value::Empty),
            Some(Cell::Value(value)) => return Some(value.clone()),
            Some(Cell::Formula(formula)) => formula.clone(),
        };
        if let Some(known) = found.known.get(&place) {
            return known.clone().flatten(); // a circle has no value
        }
        if formula.len() > LONGEST {
            return None;
        }

        self.depth += 1;
        self.sheets[sheet].known.insert(place, None);
        let value = Parser { book: self, sheet, text: &formula }.whole();
        if self.depth > DEEPEST {
            self.sheets[sheet].known.remove(&place);
            return None;
        }
        self.depth -= 1;
        // What refers to an empty cell shows 0.
        let value =
            value.map(|value| if value == Value::Empty { Value::Number(0.0) } else { value });
        let value = value.filter(|value| !matches!(value, Value::Number(n) if !n.is_finite()));
        self.sheets[sheet].known.insert(place, Some(value.clone()));
        value
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        self.steps = self.steps.saturating_add(steps);
        (self.steps <= MOST_STEPS).then_some(())
    }
}

/// What an argument of a function may be.
enum Operand {
    Value(Value),
    Area(usize, Place, Place),
}

struct Parser<'a> {
    book: &'a mut Book,
    sheet: usize,
    text: &'a str,
}

impl Parser<'_> {
    fn whole(mut self) -> Option<Value> {
        let value = self.value()?;
        self.skip();
        self.text.is_empty().then_some(value)
    }

    fn value(&mut self) -> Option<Value> {
        let operand = self.comparison()?;
        self.single(operand)
    }

    /// The value of an operand that is one cell at most.
    fn single(&mut self, operand: Operand) -> Option<Value> {
        match operand {
            Operand::Value(value) => Some(value),
            Operand::Area(sheet, from, to) if from == to => self.book.find(sheet, from),
            Operand::Area(..) => None,
        }
    }

    fn comparison(&mut self) -> Option<Operand> {
        self.book.depth += 1;
        if self.book.depth > DEEPEST {
            return None;
        }
        let mut left = self.joined()?;
        while let Some(operator) = self.take_any(&["<=", ">=", "<>", "<", ">", "="]) {
            let right = self.joined()?;
            let (a, b) = (self.single(left)?, self.single(right)?);
            left = Operand::Value(compare(operator, &a, &b)?);
        }
        self.book.depth -= 1;
        Some(left)
    }

    fn joined(&mut self) -> Option<Operand> {
        let mut left = self.sum()?;
        while self.take_any(&["&"]).is_some() {
            let right = self.sum()?;
            let (a, b) = (self.single(left)?, self.single(right)?);
            left = Operand::Value(join(&a, &b)?);
        }
        Some(left)
    }

    fn sum(&mut self) -> Option<Operand> {
        let mut left = self.product()?;
        while let Some(operator) = self.take_any(&["+", "-"]) {
            let right = self.product()?;
            left = self.calculate(operator, left, right)?;
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Operand> {
        let mut left = self.power()?;
        while let Some(operator) = self.take_any(&["*", "/"]) {
            let right = self.power()?;
            left = self.calculate(operator, left, right)?;
        }
        Some(left)
    }

    fn power(&mut self) -> Option<Operand> {
        let mut left = self.signed()?;
        while self.take_any(&["^"]).is_some() {
            let right = self.signed()?;
            left = self.calculate("^", left, right)?;
        }
        Some(left)
    }

    /// In Excel, a sign binds more than a power: -2^2 is 4.
    fn signed(&mut self) -> Option<Operand> {
        let mut is_negative = false;
        let mut has_sign = false;
        while let Some(sign) = self.take_any(&["-", "+"]) {
            is_negative ^= sign == "-";
            has_sign |= sign == "-";
        }
        let mut operand = self.operand()?;
        while self.take_any(&["%"]).is_some() {
            operand = self.calculate("/", operand, Operand::Value(Value::Number(100.0)))?;
        }
        if !has_sign {
            return Some(operand);
        }
        let factor = if is_negative { -1.0 } else { 1.0 };
        self.calculate("*", operand, Operand::Value(Value::Number(factor)))
    }

    fn calculate(&mut self, operator: &str, left: Operand, right: Operand) -> Option<Operand> {
        let (left, right) = (self.single(left)?, self.single(right)?);
        for value in [&left, &right] {
            if let Value::Error(_) = value {
                return Some(Operand::Value(value.clone()));
            }
        }
        let (a, b) = (number(&left)?, number(&right)?);
        let result = match operator {
            "+" => tidy(a + b, a, b),
            "-" => tidy(a - b, a, b),
            "*" => a * b,
            "/" if b == 0.0 => return Some(Operand::Value(Value::Error("#DIV/0!".to_owned()))),
            "/" => a / b,
            _ => a.powf(b),
        };
        Some(Operand::Value(Value::Number(result)))
    }

    fn operand(&mut self) -> Option<Operand> {
        self.book.spend(1)?;
        self.skip();
        match self.text.bytes().next()? {
            b'(' => {
                self.text = &self.text[1..];
                let inner = self.comparison()?;
                self.take(")")?;
                Some(inner)
            }
            b'"' => self.quoted('"').map(|text| Operand::Value(Value::Text(text.into()))),
            b'0'..=b'9' | b'.' => self.number(),
            b'\'' => {
                let name = self.quoted('\'')?;
                self.text = self.text.strip_prefix('!')?;
                self.reference(Some(name))
            }
            _ => self.named(),
        }
    }

    /// A text between quotes, which are doubled inside.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut text = String::new();
        let mut rest = self.text.strip_prefix(quote)?;
        loop {
            let end = rest.find(quote)?;
            text.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            if !rest.starts_with(quote) {
                self.text = rest;
                return Some(text);
            }
            text.push(quote);
            rest = &rest[1..];
        }
    }

    fn number(&mut self) -> Option<Operand> {
        let bytes = self.text.as_bytes();
        let mut end = 0;
        let is_digit = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'.');
        while is_digit(end) {
            end += 1;
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
                end += 1 + sign;
                while bytes.get(end).is_some_and(u8::is_ascii_digit) {
                    end += 1;
                }
            }
        }
        let number = self.text[..end].parse().ok()?;
        self.text = &self.text[end..];
        Some(Operand::Value(Value::Number(number)))
    }

    /// A function, a word, or a reference, maybe to another sheet.
    fn named(&mut self) -> Option<Operand> {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let end = self.text.find(|c| !is_part(c)).unwrap_or(self.text.len());
        let (name, rest) = self.text.split_at(end);
        if let Some(rest) = rest.strip_prefix('!') {
            let name = name.to_owned();
            self.text = rest;
            return self.reference(Some(name));
        }
        if let Some(rest) = rest.strip_prefix('(') {
            let name = name.to_ascii_uppercase();
            self.text = rest;
            return self.function(&name).map(Operand::Value);
        }
        match name.to_ascii_uppercase().as_str() {
            "TRUE" => self.text = rest,
            "FALSE" => {
                self.text = rest;
                return Some(Operand::Value(Value::Boolean(false)));
            }
            _ => return self.reference(None),
        }
        Some(Operand::Value(Value::Boolean(true)))
    }

    /// A cell, an area or whole columns: `A1`, `$A$1:B2`, `A:C`.
    fn reference(&mut self, sheet: Option<String>) -> Option<Operand> {
        let sheet = match sheet {
            None => self.sheet,
            Some(name) => {
                let name = name.to_lowercase();
                self.book.sheets.iter().position(|sheet| sheet.name == name)?
            }
        };
        let (column, row) = self.corner()?;
        let has_end = self.text.starts_with(':');
        let (last_column, last_row) = if has_end {
            self.text = &self.text[1..];
            self.corner()?
        } else {
            (column, row)
        };
        let (first_row, last_row) = match (row, last_row) {
            (Some(first), Some(last)) => (first.min(last), first.max(last)),
            (None, None) if has_end => (0, ROWS - 1),
            _ => return None,
        };
        let (first, last) = (column.min(last_column), column.max(last_column));
        // Names may begin as references do.
        let goes_on = |c: char| c.is_alphanumeric() || "_.([!#:".contains(c);
        if self.text.chars().next().is_some_and(goes_on) {
            return None;
        }
        Some(Operand::Area(sheet, (first_row, first), (last_row, last)))
    }

    /// A column, and a row if there is one.
    fn corner(&mut self) -> Option<(u32, Option<u32>)> {
        let rest = self.text.strip_prefix('$').unwrap_or(self.text);
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        if letters == 0 || letters > 3 {
            return None;
        }
        let column = rest[..letters]
            .bytes()
            .fold(0, |sum, b| sum * 26 + u32::from(b.to_ascii_uppercase() - b'A') + 1);
        let rest = &rest[letters..];
        let after = rest.strip_prefix('$').unwrap_or(rest);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if column > COLUMNS {
            return None;
        }
        if digits == 0 {
            self.text = rest;
            return Some((column - 1, None));
        }
        let row: u32 = after[..digits].parse().ok()?;
        self.text = &after[digits..];
        (1..=ROWS).contains(&row).then_some((column - 1, Some(row - 1)))
    }

    fn function(&mut self, name: &str) -> Option<Value> {
        if name == "IF" || name == "IFERROR" {
            return self.choose(name);
        }
        let mut arguments = Vec::new();
        if self.take(")").is_none() {
            loop {
                arguments.push(self.comparison()?);
                match self.take_any(&[",", ")"])? {
                    ")" => break,
                    _ => continue,
                }
            }
        }
        match name {
            "SUM" | "AVERAGE" | "MIN" | "MAX" | "COUNT" | "PRODUCT" | "COUNTA" => {
                self.aggregate(name, arguments)
            }
            "CONCATENATE" => {
                let mut whole = Value::Text("".into());
                for argument in arguments {
                    let value = self.single(argument)?;
                    whole = join(&whole, &value)?;
                }
                Some(whole)
            }
            "AND" | "OR" => {
                let mut all = Vec::new();
                for argument in arguments {
                    all.push(truth(&self.single(argument)?)?);
                }
                if all.is_empty() {
                    return None;
                }
                let is = if name == "AND" { all.iter().all(|is| *is) } else { all.contains(&true) };
                Some(Value::Boolean(is))
            }
            _ => {
                let mut values = Vec::new();
                for argument in arguments {
                    values.push(self.single(argument)?);
                }
                if let Some(error) = values.iter().find(|value| matches!(value, Value::Error(_))) {
                    return Some(error.clone());
                }
                simple(name, &values)
            }
        }
    }

    /// IF and IFERROR. All arguments are computed: one that cannot be has no value.
    fn choose(&mut self, name: &str) -> Option<Value> {
        let mut values = vec![self.value()?];
        while let Some(next) = self.take_any(&[",", ")"]) {
            if next == ")" {
                break;
            }
            values.push(self.value()?);
        }
        match (name, values.as_slice()) {
            ("IF", [error @ Value::Error(_), ..]) => Some(error.clone()),
            ("IF", [condition, then, rest @ ..]) if rest.len() < 2 => {
                let otherwise = rest.first().cloned().unwrap_or(Value::Boolean(false));
                Some(if truth(condition)? { then.clone() } else { otherwise })
            }
            ("IFERROR", [Value::Error(_), otherwise]) => Some(otherwise.clone()),
            ("IFERROR", [value, _]) => Some(value.clone()),
            _ => None,
        }
    }

    fn aggregate(&mut self, name: &str, arguments: Vec<Operand>) -> Option<Value> {
        let mut numbers = Vec::new();
        let mut filled = 0;
        for argument in arguments {
            match argument {
                Operand::Value(value) => {
                    filled += 1;
                    match value {
                        Value::Error(_) if name != "COUNT" && name != "COUNTA" => {
                            return Some(value);
                        }
                        Value::Text(_) | Value::Error(_) if name == "COUNTA" => {}
                        value => numbers.push(number(&value)?),
                    }
                }
                Operand::Area(sheet, from, to) => {
                    for place in self.places(sheet, from, to)? {
                        // In an area, only numbers count: neither texts nor truths.
                        let value = self.book.find(sheet, place)?;
                        filled += usize::from(value != Value::Empty);
                        match value {
                            Value::Number(number) => numbers.push(number),
                            Value::Error(_) if name != "COUNT" && name != "COUNTA" => {
                                return Some(value);
                            }
                            _ => {}
                        }
                    }
                }
            }
        }

        let count = numbers.len();
        let sum: f64 = numbers.iter().sum();
        Some(Value::Number(match name {
            "SUM" => sum,
            "COUNT" => count as f64,
            "COUNTA" => filled as f64,
            "AVERAGE" if count == 0 => return Some(Value::Error("#DIV/0!".to_owned())),
            "AVERAGE" => sum / count as f64,
            "PRODUCT" if count == 0 => 0.0,
            "PRODUCT" => numbers.iter().product(),
            _ if count == 0 => 0.0,
            "MIN" => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            _ => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }))
    }

    /// The places of an area that have a cell, from the top.
    fn places(&mut self, sheet: usize, from: Place, to: Place) -> Option<Vec<Place>> {
        let size = u64::from(to.0 - from.0 + 1) * u64::from(to.1 - from.1 + 1);
        let filled = self.book.sheets.get(sheet)?.cells.len();
        self.book.spend(filled.min(usize::try_from(size).unwrap_or(usize::MAX)))?;

        let cells = &self.book.sheets[sheet].cells;
        let mut places: Vec<Place> = if size < filled as u64 {
            let columns = from.1..=to.1;
            (from.0..=to.0)
                .flat_map(|row| columns.clone().map(move |column| (row, column)))
                .filter(|place| cells.contains_key(place))
                .collect()
        } else {
            let is_inside = |(row, column): &Place| {
                (from.0..=to.0).contains(row) && (from.1..=to.1).contains(column)
            };
            cells.keys().copied().filter(is_inside).collect()
        };
        places.sort_unstable();
        Some(places)
    }

    fn skip(&mut self) {
        self.text = self.text.trim_start();
    }

    fn take(&mut self, token: &'static str) -> Option<()> {
        self.take_any(&[token]).map(drop)
    }

    fn take_any(&mut self, tokens: &[&'static str]) -> Option<&'static str> {
        self.skip();
        let found = tokens.iter().find(|token| self.text.starts_with(**token))?;
        self.text = &self.text[found.len()..];
        Some(found)
    }
}

/// Functions of single values.
fn simple(name: &str, values: &[Value]) -> Option<Value> {
    let result = match (name, values) {
        ("NOT", [value]) => return Some(Value::Boolean(!truth(value)?)),
        ("ABS", [value]) => number(value)?.abs(),
        ("INT", [value]) => number(value)?.floor(),
        ("SQRT", [value]) if number(value)? >= 0.0 => number(value)?.sqrt(),
        ("ROUND", [value, digits]) => round(number(value)?, number(digits)?)?,
        ("MOD", [value, by]) if number(by)? != 0.0 => {
            let (value, by) = (number(value)?, number(by)?);
            value - by * (value / by).floor()
        }
        _ => return None,
    };
    Some(Value::Number(result))
}

/// Rounds as Excel does: a half away from zero, of the decimal digits that are seen.
fn round(number: f64, digits: f64) -> Option<f64> {
    if !(-15.0..=15.0).contains(&digits) {
        return None;
    }
    let factor = 10f64.powi(digits.trunc() as i32);
    let scaled: f64 = format!("{:.14e}", number * factor).parse().ok()?;
    Some(scaled.round() / factor)
}

/// A sum whose digits cancel is 0, as in Excel: 0.1+0.2-0.3.
fn tidy(result: f64, a: f64, b: f64) -> f64 {
    if result.abs() < a.abs().max(b.abs()) * 1e-15 { 0.0 } else { result }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        Value::Boolean(is) => Some(f64::from(u8::from(*is))),
        Value::Empty => Some(0.0),
        Value::Text(_) | Value::Error(_) => None,
    }
}

fn truth(value: &Value) -> Option<bool> {
    number(value).map(|number| number != 0.0)
}

fn compare(operator: &str, a: &Value, b: &Value) -> Option<Value> {
    let order = match (a, b) {
        (Value::Error(_), _) => return Some(a.clone()),
        (_, Value::Error(_)) => return Some(b.clone()),
        (Value::Number(a), Value::Number(b)) => a.partial_cmp(b)?,
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Empty, Value::Number(b)) => 0.0.partial_cmp(b)?,
        (Value::Number(a), Value::Empty) => a.partial_cmp(&0.0)?,
        (Value::Text(a), Value::Text(b)) => a.to_lowercase().cmp(&b.to_lowercase()),
        (Value::Text(a), Value::Empty) => (**a).cmp(""),
        (Value::Empty, Value::Text(b)) => "".cmp(b),
        (Value::Empty, Value::Empty) => std::cmp::Ordering::Equal,
        (Value::Empty, Value::Boolean(_)) | (Value::Boolean(_), Value::Empty) => return None,
        // Numbers come before texts, and texts before truths.
        (Value::Number(_), _) | (Value::Text(_), Value::Boolean(_)) => std::cmp::Ordering::Less,
        _ => std::cmp::Ordering::Greater,
    };
    Some(Value::Boolean(match operator {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }))
}

fn join(a: &Value, b: &Value) -> Option<Value> {
    let show = |value: &Value| match value {
        Value::Empty => Some(String::new()),
        Value::Text(text) => Some(text.to_string()),
        // Other numbers have digits that depend on Excel.
        Value::Number(number) if number.fract() == 0.0 && number.abs() < 1e11 => {
            Some(format!("{}", *number as i64))
        }
        Value::Boolean(is) => Some(if *is { "TRUE" } else { "FALSE" }.to_owned()),
        Value::Number(_) | Value::Error(_) => None,
    };
    let joined = show(a)? + &show(b)?;
    (joined.len() <= 1 << 15).then(|| Value::Text(joined.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compute(formula: &str) -> Option<Value> {
        let mut book = Book::default();
        book.add_sheet("Data");
        for row in 0..3 {
            book.add(row, 0, Cell::Value(Value::Number(f64::from(row) + 1.0)));
        }
        book.add(0, 1, Cell::Value(Value::Text("word".into())));
        book.add(1, 1, Cell::Formula("A1*2".to_owned()));
        book.add(2, 1, Cell::Formula("SUM(A1:A3)+B2".to_owned()));
        book.add(3, 1, Cell::Formula("B4+1".to_owned()));
        book.add(4, 1, Cell::Formula("VLOOKUP(1,A1:B3,2)".to_owned()));
        book.add(5, 1, Cell::Value(Value::Error("#N/A".to_owned())));
        book.add_sheet("My sheet");
        book.add(0, 0, Cell::Value(Value::Number(40.0)));
        book.add(9, 9, Cell::Formula(formula.to_owned()));
        book.sheets.swap(0, 1);
        book.compute();
        book.value(0, 9, 9).cloned()
    }

    #[test]
    fn simple_formulas_have_values() {
        for (formula, want) in [
            ("1+2*3", 7.0),
            ("-2^2", 4.0),
            ("(1+2)*3", 9.0),
            ("50%", 0.5),
            ("1E+2/4", 25.0),
            ("A1", 40.0),
            ("$A$1+Data!A2", 42.0),
            ("'my sheet'!A1", 40.0),
            ("SUM(Data!A1:A3)", 6.0),
            ("SUM(Data!A:A, 4)", 10.0),
            ("SUM(Data!A1:B3)", 16.0),
            ("AVERAGE(Data!A1:A3)", 2.0),
            ("MAX(Data!A1:A3)-MIN(Data!A1:A3)", 2.0),
            ("COUNT(Data!A1:B3)", 5.0),
            ("COUNTA(Data!A1:B3)", 6.0),
            ("Data!B3", 8.0),
            ("IF(A1>39, 1, 2)", 1.0),
            ("IF(A1=\"\", 1, 2)", 2.0),
            ("ROUND(2.675, 2)", 2.68),
            ("ROUND(-1234.5, -2)", -1200.0),
            ("IFERROR(1/0, 7)", 7.0),
            ("0.1+0.2-0.3", 0.0),
            ("Z99", 0.0),
            ("MOD(-1, 3)", 2.0),
        ] {
            assert_eq!(compute(formula), Some(Value::Number(want)), "{formula}");
        }
        assert_eq!(compute("1/0"), Some(Value::Error("#DIV/0!".to_owned())));
        assert_eq!(compute("SUM(Data!B1:B9)"), None);
        assert_eq!(compute("Data!B6+1"), Some(Value::Error("#N/A".to_owned())));
        assert_eq!(compute("\"a\"\"b\"&A1"), Some(Value::Text("a\"b40".into())));
        assert_eq!(compute("TRUE"), Some(Value::Boolean(true)));
        assert_eq!(compute("\"a\"=\"A\""), Some(Value::Boolean(true)));
    }

    #[test]
    fn other_formulas_have_none() {
        for formula in [
            "",
            "1+",
            "(1",
            "VLOOKUP(1,A1:A2,1)",
            "Data!B4",
            "Data!B5",
            "Data!B1+1",
            "Other!A1",
            "tax_rate*2",
            "A1:A3",
            "J10",
            "TODAY()",
            "[1]Sheet!A1",
            "A1#",
            "Table1[x]",
            "OFFSET(A1,1,1)",
            "{1,2}",
            "10^400",
            "A1(",
            "SUM(A1",
            "XFE1",
            "A1048577",
            "1 2",
            "A1 B1",
            "é",
        ] {
            assert_eq!(compute(formula), None, "{formula}");
        }
        assert_eq!(compute(&"(".repeat(5000)), None);
        assert_eq!(compute(&"-".repeat(9000)), None);
        assert_eq!(compute(&("1".to_owned() + &"+1".repeat(5000))), None);
    }

    #[test]
    fn long_chains_are_computed() {
        for is_down in [true, false] {
            let mut book = Book::default();
            book.add_sheet("Data");
            let start = if is_down { 0 } else { 999 };
            book.add(start, 0, Cell::Value(Value::Number(1.0)));
            for row in (0..1_000).filter(|row| *row != start) {
                let before = if is_down { row } else { row + 2 };
                book.add(row, 0, Cell::Formula(format!("A{before}+1")));
            }
            book.compute();
            assert_eq!(book.value(0, 999 - start, 0), Some(&Value::Number(1_000.0)));
        }
    }

    /// A short file can ask for much work.
    #[test]
    fn work_is_bounded() {
        let mut book = Book::default();
        book.add_sheet("Data");
        for row in 0..10_000 {
            book.add(row, 0, Cell::Formula(format!("SUM(B1:B10000, A{}:A10000)", row + 2)));
            book.add(row, 1, Cell::Value(Value::Number(1.0)));
        }
        book.compute();
        assert!(book.steps < 2 * MOST_STEPS);
    }
}
