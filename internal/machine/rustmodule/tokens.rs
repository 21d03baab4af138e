//! Formulas of binary workbooks (xlsb), which are stored as tokens: operands before operators. The
//! engines include this file. It writes those that `formulas.rs` may compute as Excel shows them.
//! See MS-XLSB, 2.2.2.

/// Formulas whose tokens or text are longer are not simple.
const LONGEST: usize = 2_048;

/// Functions that `formulas.rs` knows: their numbers, names and counts of arguments, if those are
/// not written with each use.
const FUNCTIONS: [(u16, &str, Option<usize>); 19] = [
    (0, "COUNT", None),
    (1, "IF", None),
    (4, "SUM", None),
    (5, "AVERAGE", None),
    (6, "MIN", None),
    (7, "MAX", None),
    (20, "SQRT", Some(1)),
    (24, "ABS", Some(1)),
    (25, "INT", Some(1)),
    (27, "ROUND", Some(2)),
    (34, "TRUE", Some(0)),
    (35, "FALSE", Some(0)),
    (36, "AND", None),
    (37, "OR", None),
    (38, "NOT", Some(1)),
    (39, "MOD", Some(2)),
    (169, "COUNTA", None),
    (183, "PRODUCT", None),
    (336, "CONCATENATE", None),
];
const IFERROR: (u16, &str, Option<usize>) = (480, "IFERROR", Some(2));

/// How strongly what stands in a text is bound, from comparisons to operands.
const COMPARED: u8 = 1;
const JOINED: u8 = 2;
const ADDED: u8 = 3;
const MULTIPLIED: u8 = 4;
const RAISED: u8 = 5;
const SIGNED: u8 = 6;
const WHOLE: u8 = 7;

/// The text of a formula, None if it has tokens that are not simple.
pub fn read(tokens: &[u8]) -> Option<String> {
    if tokens.len() > LONGEST {
        return None;
    }
    let mut rest = tokens;
    let mut stack: Vec<(String, u8)> = Vec::new();
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        // Operands and functions exist in three classes.
        let token = if *token < 0x20 { *token } else { 0x20 | (token & 0x1f) };
        let found = match token {
            0x03..=0x0e => join(token, &mut stack)?,
            0x12..=0x14 => sign(token, &mut stack)?,
            0x15 => (format!("({})", stack.pop()?.0), WHOLE),
            0x17 => (quote(&mut rest)?, WHOLE),
            0x19 => match take::<3>(&mut rest)? {
                [0x10, _, _] => (format!("SUM({})", stack.pop()?.0), WHOLE),
                // Spaces, and where the evaluation of IF and IFERROR goes on.
                [0x01 | 0x02 | 0x08 | 0x40 | 0x41 | 0x80, _, _] => continue,
                _ => return None,
            },
            0x1d => (if take::<1>(&mut rest)? == [0] { "FALSE" } else { "TRUE" }.to_owned(), WHOLE),
            0x1e => (u16::from_le_bytes(take(&mut rest)?).to_string(), WHOLE),
            0x1f => (number(f64::from_le_bytes(take(&mut rest)?))?, WHOLE),
            0x21 => {
                let (_, name, count) = find(u16::from_le_bytes(take(&mut rest)?))?;
                call(name, count?, &mut stack)?
            }
            0x22 => {
                let [count, low, high] = take(&mut rest)?;
                let (_, name, _) = find(u16::from_le_bytes([low, high]))?;
                call(name, usize::from(count & 0x7f), &mut stack)?
            }
            0x24 => {
                let (row, column) = (take(&mut rest)?, take(&mut rest)?);
                (cell(row, column)?, WHOLE)
            }
            0x25 => {
                let [first, last] = [take(&mut rest)?, take(&mut rest)?];
                let (left, right) = (take(&mut rest)?, take(&mut rest)?);
                (format!("{}:{}", cell(first, left)?, cell(last, right)?), WHOLE)
            }
            _ => return None,
        };
        if found.0.len() > LONGEST {
            return None;
        }
        stack.push(found);
    }
    let (text, _) = stack.pop()?;
    stack.is_empty().then_some(text)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (found, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*found)
}

fn find(number: u16) -> Option<(u16, &'static str, Option<usize>)> {
    FUNCTIONS.into_iter().chain([IFERROR]).find(|function| function.0 == number)
}

fn call(name: &str, count: usize, stack: &mut Vec<(String, u8)>) -> Option<(String, u8)> {
    let arguments = stack.split_off(stack.len().checked_sub(count)?);
    if count == 0 {
        return Some((name.to_owned(), WHOLE)); // TRUE and FALSE
    }
    let texts: Vec<_> = arguments.into_iter().map(|(text, _)| text).collect();
    Some((format!("{name}({})", texts.join(",")), WHOLE))
}

fn join(token: u8, stack: &mut Vec<(String, u8)>) -> Option<(String, u8)> {
    let (operator, strength) = match token {
        0x03 => ("+", ADDED),
        0x04 => ("-", ADDED),
        0x05 => ("*", MULTIPLIED),
        0x06 => ("/", MULTIPLIED),
        0x07 => ("^", RAISED),
        0x08 => ("&", JOINED),
        0x09 => ("<", COMPARED),
        0x0a => ("<=", COMPARED),
        0x0b => ("=", COMPARED),
        0x0c => (">=", COMPARED),
        0x0d => (">", COMPARED),
        _ => ("<>", COMPARED),
    };
    let (right, left) = (stack.pop()?, stack.pop()?);
    let (left, right) = (bracket(left, strength), bracket(right, strength + 1));
    Some((format!("{left}{operator}{right}"), strength))
}

fn sign(token: u8, stack: &mut Vec<(String, u8)>) -> Option<(String, u8)> {
    let operand = bracket(stack.pop()?, SIGNED);
    Some(match token {
        0x12 => (format!("+{operand}"), SIGNED),
        0x13 => (format!("-{operand}"), SIGNED),
        _ => (format!("{operand}%"), SIGNED),
    })
}

/// An operand in brackets, if it is bound less strongly than it must be.
fn bracket((text, strength): (String, u8), least: u8) -> String {
    if strength < least { format!("({text})") } else { text }
}

fn quote(rest: &mut &[u8]) -> Option<String> {
    let length = usize::from(u16::from_le_bytes(take(rest)?));
    let (text, after) = rest.split_at_checked(2 * length)?;
    *rest = after;
    Some(format!("\"{}\"", decode(text).replace('"', "\"\"")))
}

/// A text in UTF-16.
pub fn decode(text: &[u8]) -> String {
    let units: Vec<_> =
        text.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]])).collect();
    String::from_utf16_lossy(&units)
}

fn number(number: f64) -> Option<String> {
    number.is_finite().then(|| format!("{number:?}"))
}

/// A cell by its row and its column, whose highest bits say whether they are relative.
fn cell(row: [u8; 4], column: [u8; 2]) -> Option<String> {
    let row = u32::from_le_bytes(row).checked_add(1)?;
    let mut column = u32::from(u16::from_le_bytes(column) & 0x3fff) + 1;
    let mut letters = Vec::new();
    while column > 0 {
        column -= 1;
        letters.insert(0, char::from(b'A' + (column % 26) as u8));
        column /= 26;
    }
    Some(format!("{}{row}", letters.into_iter().collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(token: u8, row: u32, column: u16) -> Vec<u8> {
        [&[token][..], &row.to_le_bytes(), &(column | 0xc000).to_le_bytes()].concat()
    }

    #[test]
    fn tokens_become_formulas() {
        let (a1, b2) = (at(0x44, 0, 0), at(0x44, 1, 1));
        let one = [0x1e, 1, 0];
        let area = [&[0x25][..], &[0, 0, 0, 0, 8, 0, 0, 0], &[1, 0xc0, 27, 0xc0]].concat();
        for (tokens, want) in [
            (vec![&a1[..], &one, &[0x03]], Some("A1+1")),
            (vec![&a1, &one, &[0x03], &b2, &[0x05]], Some("(A1+1)*B2")),
            (vec![&a1, &one, &b2, &[0x04], &[0x04]], Some("A1-(1-B2)")),
            (vec![&one, &[0x13], &a1, &[0x07]], Some("-1^A1")),
            (vec![&one, &a1, &[0x07], &[0x13]], Some("-(1^A1)")),
            (vec![&area, &[0x19, 0x10, 0, 0]], Some("SUM(B1:AB9)")),
            (vec![&area, &a1, &[0x22, 2, 4, 0]], Some("SUM(B1:AB9,A1)")),
            (vec![&a1, &[0x17, 2, 0, b'x', 0, b'"', 0], &[0x08]], Some("A1&\"x\"\"\"")),
            (vec![&[0x1f], &2.5f64.to_le_bytes(), &[0x41, 25, 0]], Some("INT(2.5)")),
            // a name, a shared formula, no operand, two results
            (vec![&[0x23, 1, 0, 0, 0]], None),
            (vec![&[0x01, 1, 0, 0, 0]], None),
            (vec![&a1, &[0x03]], None),
            (vec![&a1, &b2], None),
            (vec![&[0x22, 200, 4, 0]], None),
            (vec![&[0x17, 255, 255]], None),
        ] {
            assert_eq!(read(&tokens.concat()).as_deref(), want, "{tokens:?}");
        }
    }
}
