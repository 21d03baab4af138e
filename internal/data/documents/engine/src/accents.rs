//! Accents of PDF pages that are signs of their own, such as those of `code` and ~40.
//!
//! Some programs draw an accent over a letter. pdf_oxide makes one letter of both, but it does so
//! as well where the letter stands beside the sign. This takes those apart again.

use pdf_oxide::layout::TextChar;
use unicode_normalization::UnicodeNormalization;

/// Reports whether a page has letters with accents, of which pdf_oxide may have made some.
pub fn may_be_joined(page: &str) -> bool {
    let is_accent = |c: char| matches!(c, '\u{300}'..='\u{36f}');
    page.chars().filter(|c| !c.is_ascii()).nfd().any(is_accent)
}

/// The text of a page with such signs as they are drawn.
pub fn restore(page: String, chars: &[TextChar]) -> String {
    let mut apart: Vec<(char, char)> = Vec::new();
    let mut over: Vec<(char, char)> = Vec::new();
    for pair in chars.windows(2) {
        let [sign, letter] = pair else { continue };
        if find_accent(sign.char).is_none() || !letter.char.is_alphabetic() {
            continue;
        }
        let step = letter.origin_x - sign.origin_x;
        let is_beside = step >= 0.5 * sign.bbox.width.max(0.1 * sign.font_size);
        let found = if is_beside { &mut apart } else { &mut over };
        if !found.contains(&(sign.char, letter.char)) {
            found.push((sign.char, letter.char));
        }
    }

    let mut page = page;
    for (sign, letter) in apart.into_iter().filter(|pair| !over.contains(pair)) {
        let Some(accent) = find_accent(sign) else { continue };
        let joined: String = [letter, accent].into_iter().nfc().collect();
        // The page may have such letters, too.
        let is_drawn = chars.iter().any(|c| joined.chars().any(|j| j == c.char && j != letter));
        if !is_drawn && page.contains(&joined) {
            page = page.replace(&joined, &format!("{sign}{letter}"));
        }
    }
    page
}

/// The accent that pdf_oxide makes of a sign.
fn find_accent(sign: char) -> Option<char> {
    Some(match sign {
        '\u{b4}' => '\u{301}',
        '`' => '\u{300}',
        '^' | '\u{2c6}' => '\u{302}',
        '~' | '\u{2dc}' => '\u{303}',
        '\u{a8}' => '\u{308}',
        '\u{af}' | '\u{2c9}' => '\u{304}',
        '\u{b8}' => '\u{327}',
        '\u{2da}' => '\u{30a}',
        _ => return None,
    })
}
