//! Number formats of spreadsheets: a number as Excel shows it in its cell.
//!
//! Dates that name their year, month and day become ISO 8601, because readers of other countries
//! read 3/4 differently. All else is written as its code says.

use std::collections::HashMap;

use office_oxide::xlsx::DateTimeValue;
use office_oxide::xlsx::numfmt::builtin_format_code;
use ssfmt::{FormatOptions, NumberFormat};

/// Excel refuses longer codes.
const LONGEST_CODE: usize = 255;

/// A file with more codes than this has its first ones parsed again.
const MOST_CODES: usize = 1 << 12;

/// The day after the last of the calendar, 9999-12-31.
const CALENDAR_END: f64 = 2_958_466.0;

/// The days from 1900 to 1904.
const EPOCHS: f64 = 1_462.0;

/// Beyond this, numbers and numbers of days are shown plainly: a code would add only digits.
const LARGEST: f64 = 1e21;
const LONGEST_TIME: f64 = 1e7;

#[derive(Default)]
pub struct Formats {
    is_1904: bool,
    parsed: HashMap<String, Option<Format>>,
    /// How many cells have the format of a date, and a number outside the calendar.
    pub undated: usize,
}

struct Format {
    shape: Shape,
    code: NumberFormat,
    /// The characters of the code that are not ASCII: see parse.
    others: Vec<char>,
    /// Numbers from here on have more digits than the library shows.
    end: f64,
    is_fraction: bool,
    /// Whether a power of 10 stands behind one digit.
    is_scientific: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Number,
    /// It has the word General or an @, which stand for the plain number.
    General,
    /// A year, a month and a day, and maybe a time.
    Date,
    /// Parts of a date, such as its month and year.
    PartOfDate,
    TimeOfDay,
    /// Hours, minutes or seconds that have passed.
    Elapsed,
}

impl Formats {
    pub fn new(is_1904: bool) -> Self {
        Self { is_1904, ..Self::default() }
    }

    /// A number as shown by a code, or by the code that Excel knows by a number.
    pub fn show(&mut self, number: f64, id: u32, code: Option<&str>) -> String {
        let code = code.or_else(|| builtin_format_code(id)).or_else(|| date_code(id));
        let Some(code) = code.filter(|code| code.len() <= LONGEST_CODE) else {
            return plain(number);
        };
        if self.parsed.len() >= MOST_CODES {
            self.parsed.clear();
        }
        if !self.parsed.contains_key(code) {
            self.parsed.insert(code.to_owned(), parse(code));
        }
        let Some(Some(format)) = self.parsed.get(code) else { return plain(number) };
        if !number.is_finite() || number.abs() >= LARGEST {
            return plain(number);
        }

        let days = if self.is_1904 { number + EPOCHS } else { number };
        let shown = match format.shape {
            // The library keeps ten digits of such a number, and the cell may have more.
            Shape::General
                if code == "@"
                    || code.eq_ignore_ascii_case("General")
                    || plain(number).len() > 10 =>
            {
                None
            }
            Shape::Number | Shape::General if number.abs() >= format.end => None,
            Shape::Number if format.is_fraction => {
                format.write(number).filter(|text| is_fraction_of(text, number))
            }
            // The library does not carry over: it shows 9999.9 as 10.00E+03.
            Shape::Number if format.is_scientific => {
                format.write(number).filter(|text| !text.trim_start_matches('-').starts_with("10"))
            }
            Shape::Number | Shape::General => format.write(raise_half(number)),
            Shape::Elapsed if number.abs() >= LONGEST_TIME => None,
            Shape::Elapsed if number < 0.0 => {
                format.write(round_time(-number)).map(|text| format!("-{text}"))
            }
            Shape::Elapsed => format.write(round_time(number)),
            _ if !(0.0..CALENDAR_END).contains(&days) => {
                self.undated += 1;
                None
            }
            Shape::TimeOfDay => format.write(round_time(days)),
            Shape::Date => Some(date(days)),
            Shape::PartOfDate if days < 1.0 => Some(date(days)),
            Shape::PartOfDate => format.write(round_time(days)),
        };
        // A code may hide a number, which is still in the cell.
        shown.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| plain(number))
    }
}

impl Format {
    fn write(&self, number: f64) -> Option<String> {
        let text = self.code.try_format(number, &FormatOptions::default()).ok()?;
        let text: String = text
            .chars()
            .map(|c| {
                (c as usize)
                    .checked_sub(1)
                    .and_then(|index| self.others.get(index))
                    .map_or(c, |c| *c)
            })
            .collect();
        // Spaces align numbers in their column.
        Some(text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
    }
}

/// A number without a format: an integer whole, others with the 15 digits that Excel keeps.
pub fn plain(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < LARGEST {
        return format!("{number:.0}").replace("-0", if number == 0.0 { "0" } else { "-0" });
    }
    let rounded: f64 = format!("{number:.14e}").parse().unwrap_or(number);
    if (1e-5..LARGEST).contains(&rounded.abs()) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}

/// The codes of dates and times that Excel has for East Asia.
fn date_code(id: u32) -> Option<&'static str> {
    match id {
        27..=31 | 36 | 50..=54 | 57 | 58 => Some("yyyy-mm-dd"),
        32 | 33 | 55 | 56 => Some("h:mm:ss"),
        _ => None,
    }
}

/// Parses a code. The library cuts texts between bytes, so what is not ASCII stands there as a
/// control character.
fn parse(code: &str) -> Option<Format> {
    let shape = find_shape(code);
    if code.chars().any(char::is_control) || (shape == Shape::General && code.contains(['[', ']']))
    {
        return None;
    }
    // The library shows a zero for further digits.
    let bare = strip(code);
    let most = if matches!(shape, Shape::Number | Shape::General) { 10 } else { 3 };
    let decimals = bare
        .split('.')
        .skip(1)
        .map(|after| after.bytes().take_while(|b| matches!(b, b'0' | b'#' | b'?')).count());
    if decimals.max().unwrap_or(0) > most {
        return None;
    }

    let mut others = Vec::new();
    let mut ascii = String::with_capacity(code.len());
    for c in code.chars() {
        if c.is_ascii() {
            ascii.push(c);
            continue;
        }
        let index = others.iter().position(|other| *other == c).unwrap_or(others.len());
        if index == others.len() {
            others.push(c);
        }
        ascii.push(char::from_u32(index as u32 + 1).filter(|c| *c < ' ')?);
    }
    let is_fraction = shape == Shape::Number && bare.contains('/');
    let is_scientific = bare.contains(['E', 'e'])
        && bare.starts_with(['0', '#', '?'])
        && bare[1..].starts_with(['.', 'E', 'e']);
    let hundreds = bare.bytes().filter(|b| *b == b'%').count();
    let end = if is_fraction { 1e9 } else { 9e15 / 100f64.powi(hundreds as i32) };
    let code = NumberFormat::parse(&ascii).ok()?;
    (!code.sections().is_empty()).then_some(Format {
        shape,
        code,
        others,
        end,
        is_fraction,
        is_scientific,
    })
}

/// A code without its texts and what stands in brackets.
fn strip(code: &str) -> String {
    let mut bare = String::new();
    let mut rest = code.chars();
    while let Some(c) = rest.next() {
        match c {
            '"' => drop(rest.by_ref().find(|c| *c == '"')),
            '\\' | '_' | '*' => drop(rest.next()),
            '[' => drop(rest.by_ref().find(|c| *c == ']')),
            _ => bare.push(c),
        }
    }
    bare
}

/// Reports whether a fraction such as `1 1/4` is a number. Of others, Excel and the library find
/// different ones.
fn is_fraction_of(text: &str, number: f64) -> bool {
    let text = text.trim_start_matches('-');
    let Some((before, below)) = text.split_once('/') else {
        return text.trim().parse() == Ok(number.abs());
    };
    let (whole, above) = before.trim().rsplit_once(' ').unwrap_or(("0", before.trim()));
    let numbers = [whole.trim(), above, below.trim()].map(str::parse::<f64>);
    let [Ok(whole), Ok(above), Ok(below)] = numbers else { return false };
    (whole + above / below - number.abs()).abs() < 1e-9
}

/// Finds what the first section of a code shows.
fn find_shape(code: &str) -> Shape {
    let letters = find_letters(code);
    let has = |wanted: &[char]| letters.iter().any(|(c, _)| wanted.contains(c));
    if has(&['[']) {
        return Shape::Elapsed;
    }
    if has(&['G', '@']) {
        return Shape::General;
    }
    // An m beside hours or seconds is minutes.
    let is_month = |index: usize| {
        let (letter, count) = letters[index];
        let before = index.checked_sub(1).map(|before| letters[before].0);
        let after = letters.get(index + 1).map(|(letter, _)| *letter);
        letter == 'm' && (count > 2 || (before != Some('h') && after != Some('s')))
    };
    let has_month = (0..letters.len()).any(is_month);
    match (has(&['y', 'e']), has_month, has(&['d'])) {
        (true, true, true) => Shape::Date,
        (false, false, false) if has(&['h', 's', 'm']) => Shape::TimeOfDay,
        (false, false, false) => Shape::Number,
        _ => Shape::PartOfDate,
    }
}

/// The runs of letters of a section's dates and times, in lower case; `[` for a time that has
/// passed, `G` for the word General, and `@`.
fn find_letters(code: &str) -> Vec<(char, usize)> {
    let mut found: Vec<(char, usize)> = Vec::new();
    let mut rest = code.chars();
    let mut last = ' ';
    while let Some(c) = rest.next() {
        let c = c.to_ascii_lowercase();
        match c {
            ';' => break,
            '"' => drop(rest.by_ref().find(|c| *c == '"')),
            '\\' | '_' | '*' => drop(rest.next()),
            '[' => {
                let inner: String = rest.by_ref().take_while(|c| *c != ']').collect();
                let inner = inner.to_ascii_lowercase();
                if !inner.is_empty()
                    && ["h", "m", "s"].iter().any(|unit| inner.replace(unit, "").is_empty())
                {
                    found.push(('[', 1));
                }
            }
            'g' if rest.as_str().to_ascii_lowercase().starts_with("eneral") => {
                found.push(('G', 1));
                rest.by_ref().take("eneral".len()).for_each(drop);
            }
            'a' if rest.as_str().to_ascii_lowercase().starts_with("m/pm") => {
                rest.by_ref().take("m/pm".len()).for_each(drop);
            }
            '@' => found.push(('@', 1)),
            // Of a number such as 0.00E+00.
            'e' if rest.as_str().starts_with(['+', '-']) => {}
            'y' | 'm' | 'd' | 'h' | 's' | 'e' => match found.last_mut() {
                Some((letter, count)) if *letter == c && last == c => *count += 1,
                _ => found.push((c, 1)),
            },
            _ => {}
        }
        last = c;
    }
    found
}

/// A date, a time of its first day, or both, in ISO 8601 with a space.
fn date(days: f64) -> String {
    let days = round_time(days);
    if days < 1.0 {
        let seconds = (days * 86_400.0).round() as u64;
        return format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
    if (60.0..61.0).contains(&days) {
        // The 29th of February 1900 is a day of spreadsheets alone.
        return date(days - 59.0).replacen("1900-01-01", "1900-02-29", 1);
    }
    DateTimeValue::from_serial(days, false).map_or_else(|| plain(days), |date| date.to_string())
}

/// A number whose half is rounded up by its decimal digits, as in Excel: 1.005 to 1.01. In binary,
/// most halves lie a little below.
fn raise_half(number: f64) -> f64 {
    if number.fract() == 0.0 { number } else { number * (1.0 + 4e-16) }
}

/// Days to the nearest millisecond: 23:59:59.9999 belongs to the next day.
fn round_time(days: f64) -> f64 {
    let seconds = (days * 86_400.0).round();
    if (days * 86_400.0 - seconds).abs() < 5e-4 { seconds / 86_400.0 } else { days }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(number: f64, code: &str) -> String {
        Formats::default().show(number, 164, Some(code))
    }

    #[test]
    fn numbers_are_shown_as_in_excel() {
        for (number, code, want) in [
            (2134.0, "00000", "02134"),
            (12345678.0, "000-00-0000", "012-34-5678"),
            (12345678.0, "000\\-00\\-0000", "012-34-5678"),
            (5551234567.0, "(000) 000-0000", "(555) 123-4567"),
            (5551234567.0, "[<=9999999]###-####;(###) ###-####", "(555) 123-4567"),
            (3.5, "0.0 \"kg\"", "3.5 kg"),
            (3.5, "0.0\\k\\g", "3.5kg"),
            (42.0, "\"INV-\"0000", "INV-0042"),
            (1234567.0, "#,##0", "1,234,567"),
            (-1234.5, "#,##0.00;(#,##0.00)", "(1,234.50)"),
            (-1234.5, "#,##0.00_);[Red]\\(#,##0.00\\)", "(1,234.50)"),
            (0.0, "0;-0;\"zero\"", "zero"),
            (-5.5, "$#,##0.00", "-$5.50"),
            (0.256, "0%", "26%"),
            (0.256, "0.0%", "25.6%"),
            (0.5, "# ?/?", "1/2"),
            (1.25, "# ?/?", "1 1/4"),
            (12345.0, "0.00E+00", "1.23E+04"),
            (1500000.0, "0.0,,\"M\"", "1.5M"),
            (5.0, "+0;-0", "+5"),
            (7.0, "General\" kg\"", "7 kg"),
            (1234.5, "[$€-407] #,##0.00", "€ 1,234.50"),
            (1234.5, "_-* #,##0.00\\ \"€\"_-", "1,234.50 €"),
            (3.5, "0.0\" m²\"", "3.5 m²"),
            (1234.5, "#,##0.00 €", "1,234.50 €"),
            (1234.5, "€#,##0", "€1,235"),
            (7.0, "[Red]General", "7"),
            (3.141592653589793, "General", "3.14159265358979"),
            (4111111111111111.0, "@", "4111111111111111"),
            (52.520008123456, "General\" °\"", "52.520008123456"),
            (1.005, "0.00", "1.01"),
            (2.675, "0.00", "2.68"),
            (-0.125, "0.00", "-0.13"),
            (0.285, "0%", "29%"),
            (1.0049999, "0.00", "1.00"),
            (0.1, "0.0000000000", "0.1000000000"),
            (1e20, "#,##0", "100000000000000000000"),
            (1e15, "0%", "1000000000000000"),
            (0.123456789012, "0.000000000000", "0.123456789012"),
            (0.3, "# ?/?", "0.3"),
            (-1.25, "# ??/??", "-1 1/4"),
            (3.0, "# ?/?", "3"),
            (9999.9, "0.00E+00", "9999.9"),
            (7.0, "]General", "7"),
            (7.0, ";;;", "7"),
            (1e15, "0", "1000000000000000"),
            (4111111111111111.0, "0000 0000 0000 0000", "4111 1111 1111 1111"),
            (1.0, "\"Yes\";\"Yes\";\"No\"", "Yes"),
        ] {
            assert_eq!(show(number, code), want, "{number} as {code}");
        }
    }

    #[test]
    fn times_and_dates_are_shown_as_in_excel() {
        for (number, code, want) in [
            (0.4375, "h:mm", "10:30"),
            (0.4375, "hh:mm", "10:30"),
            (0.75, "h:mm AM/PM", "6:00 PM"),
            (1.25, "h:mm:ss", "6:00:00"),
            (1.2708333333333333, "[h]:mm:ss", "30:30:00"),
            (1.2708333333333333, "[h]:mm", "30:30"),
            (-0.5, "[h]:mm", "-12:00"),
            (0.0625, "mm:ss", "30:00"),
            (0.0625, "[mm]:ss", "90:00"),
            (0.0003472222222222222, "mm:ss", "00:30"),
            (0.000011574, "[s]", "1"),
            (0.5000014, "h:mm:ss.000", "12:00:00.121"),
            (0.5, "h:mm:ss.0000000000", "0.5"),
            (45366.0, "yyyy-mm-dd", "2024-03-15"),
            (45366.0, "dd.mm.yyyy", "2024-03-15"),
            (45366.0, "m/d/yy", "2024-03-15"),
            (45366.5, "m/d/yy h:mm", "2024-03-15 12:00:00"),
            (45366.0, "mmm-yy", "Mar-24"),
            (45366.0, "yyyy", "2024"),
            (45366.0, "dddd", "Friday"),
            (45366.0, "yyyy年m月d日", "2024-03-15"),
            (45366.0, "m月d日", "3月15日"),
            (45366.0, "[$-409]d\\-mmm\\-yyyy", "2024-03-15"),
            (45366.9999999999, "yyyy-mm-dd", "2024-03-16"),
            (60.0, "yyyy-mm-dd", "1900-02-29"),
            (0.5, "yyyy-mm-dd hh:mm", "12:00:00"),
            (-3.0, "yyyy-mm-dd", "-3"),
            (3000000.0, "yyyy-mm-dd", "3000000"),
            (1e300, "yyyy-mm-dd", "1e300"),
        ] {
            assert_eq!(show(number, code), want, "{number} as {code}");
        }

        let mut formats = Formats::new(true);
        assert_eq!(formats.show(43904.0, 14, None), "2024-03-15");
        assert_eq!(formats.show(-1.0, 46, None), "-24:00:00");
        assert_eq!(formats.show(43904.0, 17, None), "Mar-24");
        assert_eq!(formats.show(-2000.0, 14, None), "-2000");
        assert_eq!(formats.undated, 1);
    }

    #[test]
    fn plain_numbers_keep_their_digits() {
        for (number, want) in [
            (0.1 + 0.2, "0.3"),
            (-0.0, "0"),
            (-10.0, "-10"),
            (1234567890123456.0, "1234567890123456"),
            (-1e15, "-1000000000000000"),
            (1e-7, "1e-7"),
            (1.5e300, "1.5e300"),
            (2.5, "2.5"),
        ] {
            assert_eq!(plain(number), want);
        }
    }

    /// A panic would end the conversion of the whole document.
    #[test]
    fn no_code_panics() {
        let pieces = [
            "0", "#", "?", ".", ",", "/", "E+", "e-", "%", ";", "[h]", "[", "]", "[>1]", "\"",
            "\\", "_", "*", "@", "General", "y", "mmmmm", "d", "h", "s.000", "AM/PM", "A/P",
            "[$-F800]", "é", "b2", "g", " ",
        ];
        let mut state = 1u64;
        let mut next = |most: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % most
        };
        let mut formats = Formats::default();
        for _ in 0..20_000 {
            let code: String = (0..next(9)).map(|_| pieces[next(pieces.len())]).collect();
            for number in [0.0, 1.5, -1.0, 45366.75, 9.99e20, -1e-300, f64::NAN] {
                assert!(
                    !formats.show(number, 164, Some(&code)).is_empty() || code.is_empty(),
                    "{code}"
                );
            }
        }
    }
}
