//! Lines of PDF pages that end within a paragraph.
//!
//! In files that say what belongs to a paragraph, pdf_oxide joins its lines. If they are close to
//! each other, and a sign stands at the end of one or at the start of the next, it forgets the
//! space between them. This finds such ends by where the characters are drawn.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use pdf_oxide::layout::{TextChar, TextSpan};

/// Longer words stay as they are.
const LONGEST: usize = 64;

/// The next line is at least this much lower, in sizes of the font.
const LOWER: f32 = 0.5;

/// Lines of a paragraph are at most this far from each other, in sizes of the font.
const FARTHEST: f32 = 4.0;

/// With more pairs of words, the places of all characters are found in less time.
const MOST_PAIRS: usize = 1000;

/// Words without a space between them are this far from each other, in sizes of the font.
const GAP: f32 = 0.15;

/// A character and where it is drawn.
#[derive(Clone, Copy)]
struct Drawn {
    char: char,
    left: f32,
    right: f32,
    base: f32,
    size: f32,
}

impl Drawn {
    /// Reports whether it ends the line above a character.
    fn is_end(&self, next: &Self) -> bool {
        self.base - next.base > LOWER * self.size.min(next.size).max(1.0) && next.left < self.left
    }

    fn has_gap(&self, next: &Self) -> bool {
        next.left - self.right > GAP * self.size.min(next.size).max(1.0)
    }
}

/// Reports whether the last word of a line and the first of a line below may stand in a page as one.
/// Pieces of a line may be drawn in any order, with marks above or below it. So this compares each
/// piece with all that are not far below, and finds more than `separate` does.
pub fn may_be_joined(page: &str, spans: &[TextSpan]) -> bool {
    if spans.iter().all(|span| span.mcid.is_none()) {
        return false; // the file does not say what belongs to a paragraph
    }
    let mut drawn: Vec<_> = spans.iter().filter(|span| !span.text.trim().is_empty()).collect();
    drawn.sort_by(|a, b| b.bbox.y.total_cmp(&a.bbox.y));
    let mut left = MOST_PAIRS;
    for (at, last) in drawn.iter().enumerate() {
        let before = last_word(last.text.trim_end());
        let size = last.font_size.abs().max(1.0);
        let below = drawn[at + 1..].iter();
        for next in below.take_while(|next| last.bbox.y - next.bbox.y < FARTHEST * size) {
            let is_below = last.bbox.y - next.bbox.y > 0.5 * LOWER * size.min(next.font_size.abs());
            if !is_below || next.bbox.x >= last.bbox.x + last.bbox.width {
                continue;
            }
            let after = first_word(next.text.trim_start());
            if !may_separate(before, after) {
                continue;
            }
            left -= 1;
            if left == 0 || page.contains(&format!("{before}{after}")) {
                return true;
            }
        }
    }
    false
}

/// The text of a page with spaces between its lines.
pub fn separate(page: String, chars: &[TextChar]) -> String {
    let upright = chars.iter().filter(|c| c.rotation_degrees == 0.0);
    let drawn: Vec<_> = upright
        .map(|c| Drawn {
            char: c.char,
            left: c.bbox.x,
            right: c.bbox.x + c.bbox.width,
            base: c.origin_y,
            size: c.font_size,
        })
        .collect();
    insert(page, &drawn)
}

fn insert(page: String, drawn: &[Drawn]) -> String {
    let mut whole = String::new(); // what is drawn, with a space at each gap and end of a line
    let mut ends = Vec::new();
    let mut last: Option<&Drawn> = None;
    for c in drawn {
        if last.is_some_and(|last| last.is_end(c)) {
            ends.push(whole.len());
            whole.push(' ');
        } else if last.is_some_and(|last| last.has_gap(c)) {
            whole.push(' ');
        }
        whole.push(c.char);
        last = Some(c);
    }

    let mut joined = HashMap::new(); // the words around each end, and where the second begins
    for end in ends {
        let (before, after) = (last_word(&whole[..end]), first_word(&whole[end + 1..]));
        if may_separate(before, after) {
            joined.entry(format!("{before}{after}")).or_insert(before.len());
        }
    }
    match joined.is_empty() || forget(&mut joined, &whole).is_none() {
        true => page,
        false => separate_words(&page, &joined),
    }
}

/// Removes the words that are drawn without a space elsewhere. It looks for all at once, because a
/// page may have very many.
fn forget(joined: &mut HashMap<String, usize>, whole: &str) -> Option<()> {
    let kind = Some(AhoCorasickKind::NoncontiguousNFA); // the fastest to build
    let finder = AhoCorasick::builder().kind(kind).prefilter(false).build(joined.keys()).ok()?;
    for found in finder.find_overlapping_iter(whole) {
        joined.remove(&whole[found.range()]);
    }
    Some(())
}

fn last_word(text: &str) -> &str {
    text.rsplit(char::is_whitespace).next().unwrap_or_default()
}

fn first_word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

/// Reports whether two words at the ends of lines have a space between them: a word that goes on
/// has none, an address, nor a script without spaces.
fn may_separate(before: &str, after: &str) -> bool {
    let (Some(last), Some(first)) = (before.chars().next_back(), after.chars().next()) else {
        return false;
    };
    let goes_on =
        |c: char| matches!(c, '-' | '\u{ad}' | '\u{2010}'..='\u{2015}' | '/' | '\\' | '_' | '@');
    let has_spaces = |c: char| {
        let is_thai_or_lao = matches!(c, '\u{e00}'..='\u{eff}');
        let is_burmese_or_khmer = matches!(c, '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}');
        let is_chinese = matches!(c, '\u{2e80}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}');
        let is_wide = matches!(c, '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}');
        let is_rare = c >= '\u{20000}';
        !(is_thai_or_lao || is_burmese_or_khmer || is_chinese || is_wide || is_rare)
    };
    let is_address = before.contains("://") || before.starts_with("www.");
    before.len().max(after.len()) <= LONGEST
        && !goes_on(last)
        && !is_address
        && has_spaces(last)
        && has_spaces(first)
}

/// Puts a space between two joined words wherever nothing stands before them.
fn separate_words(page: &str, joined: &HashMap<String, usize>) -> String {
    let mut lengths: Vec<usize> = joined.keys().map(String::len).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    lengths.dedup();
    let longest = lengths.first().copied().unwrap_or_default();

    let mut out = String::with_capacity(page.len() + page.len() / 16);
    let mut rest = page; // where a word begins
    while !rest.is_empty() {
        let most = rest.bytes().take(longest).position(|b| b == b' ' || b == b'\n');
        let most = most.unwrap_or(longest);
        let words = lengths.iter().filter(|length| **length <= most);
        let mut found = words.filter_map(|length| joined.get(rest.get(..*length)?));
        let (length, space) = match found.next() {
            Some(length) => (*length, " "),
            None => {
                let end = rest.split_inclusive(char::is_whitespace).next();
                (end.map_or(rest.len(), str::len), "")
            }
        };
        out.push_str(&rest[..length]);
        out.push_str(space);
        rest = &rest[length..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(page: &str, lines: &[&str]) -> String {
        let mut drawn = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let base = 700.0 - 10.5 * number as f32;
            // Words that are drawn without a space stand apart.
            let places = line.chars().enumerate().filter(|(_, char)| *char != ' ');
            drawn.extend(places.map(|(at, char)| {
                let left = 50.0 + 5.0 * at as f32;
                Drawn { char, left, right: left + 5.0, base, size: 9.0 }
            }));
        }
        insert(page.to_owned(), &drawn)
    }

    #[test]
    fn lines_have_spaces_between_them() {
        for (page, lines, want) in [
            ("100 % [sic]w0010", vec!["100 % [sic]", "w0010"], "100 % [sic] w0010"),
            ("so w11*not bold*", vec!["so w11", "*not bold*"], "so w11 *not bold*"),
            (
                "it ends.It begins (a)(b)",
                vec!["it ends.", "It begins (a)", "(b)"],
                "it ends. It begins (a) (b)",
            ),
            ("(a)(b)(c)", vec!["(a)", "(b)", "(c)"], "(a) (b) (c)"),
            // words that go on
            ("a well-known one", vec!["a well-", "known one"], "a well-known one"),
            (
                "see https://a.b/c.html",
                vec!["see https://a.b/c", ".html"],
                "see https://a.b/c.html",
            ),
            ("東京です。次の", vec!["東京です。", "次の"], "東京です。次の"),
            // what is drawn without a space elsewhere
            ("a) b a)b", vec!["a) b a)", "b", "x a)b"], "a) b a)b"),
            ("(xa)b", vec!["a)", "b"], "(xa)b"),
        ] {
            assert_eq!(read(page, &lines), want, "{lines:?}");
        }
    }

    #[test]
    fn pages_of_very_many_lines_have_spaces_too() {
        let lines: Vec<_> = (0..20_000).map(|at| format!("({at})")).collect();
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        assert_eq!(read(&lines.concat(), &lines), lines.join(" "));
    }
}
