//! The forms of ISO 8601 that openCypher reads.

use super::{Duration, HOUR, Kind, MINUTE, Moment, Place, SECOND, days, month_length, week_start};

/// Reads a moment of a type, which may end with a zone: `[Europe/Paris]`. An error without a
/// message: the text is none.
pub fn parse(text: &str, kind: Kind) -> Result<Moment, Option<String>> {
    let zone = text.strip_suffix(']').and_then(|text| text.split_once('['));
    let Some((text, zone)) = zone else {
        let local = parse_local(text, kind).ok_or(None)?;
        return Ok(Moment { offset: kind.zone.then(|| local.offset.unwrap_or(0)), ..local });
    };
    if !kind.day || !kind.zone {
        return Err(None);
    }
    let local = parse_local(text, kind).ok_or(None)?;
    Ok(local.moved(Place::parse(zone)?))
}

/// Reads a moment without a zone. It has an offset if the text has one.
fn parse_local(text: &str, kind: Kind) -> Option<Moment> {
    if !text.is_ascii() {
        return None;
    }
    let (date, time) = match (kind.day, kind.time) {
        (true, true) => match text.split_once('T') {
            Some((date, time)) => (Some(date), Some(time)),
            None => (Some(text), None),
        },
        (true, false) => (Some(text), None),
        _ => (None, Some(text)),
    };
    let day = match date {
        Some(date) => Some(parse_date(date)?),
        None => None,
    };

    let (mut nanos, mut zone) = (0, None);
    if let Some(time) = time {
        let clock = time.find(['Z', '+', '-']).unwrap_or(time.len());
        nanos = parse_time(&time[..clock])?;
        zone = match &time[clock..] {
            "" => None,
            zone => Some(offset(zone)?),
        };
    }
    if zone.is_some() && !kind.zone {
        return None;
    }
    Some(Moment { day, nanos: kind.time.then_some(nanos), offset: zone, zone: None })
}

/// Reads an offset from UTC, such as `Z`, `+01:00`, `-0130`, in seconds.
pub fn offset(text: &str) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let digits = rest.replace(':', "");
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), number);
    if !text.is_ascii() || !matches!(digits.len(), 2 | 4 | 6) {
        return None;
    }
    let (hours, minutes, seconds) = (part(0)?, part(2)?, part(4)?);
    if hours > 18 || minutes > 59 || seconds > 59 {
        return None;
    }
    Some(sign * (hours * 3600 + minutes * 60 + seconds) as i32)
}

/// A number of digits alone.
fn number(text: &str) -> Option<i64> {
    let is_number =
        !text.is_empty() && text.len() <= 10 && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn parse_date(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => (1, text),
    };
    let parts: Vec<&str> = rest.split('-').collect();
    let (year, rest): (&str, Vec<&str>) = if parts.len() > 1 {
        (parts[0], parts[1..].to_vec())
    } else {
        let (year, rest) = rest.split_at_checked(4)?;
        let rest = match rest.len() {
            0 => vec![],
            4 if rest.starts_with('W') => vec![&rest[..3], &rest[3..]],
            4 => vec![&rest[..2], &rest[2..]],
            _ => vec![rest],
        };
        (year, rest)
    };

    let year = sign * number(year)?;
    if year.abs() > super::MAX_YEAR {
        return None;
    }
    match rest[..] {
        [] => Some(days(year, 1, 1)),
        [month] if month.len() == 2 => date(year, number(month)?, 1),
        [ordinal] if ordinal.len() == 3 && !ordinal.starts_with('W') => {
            let number = number(ordinal)?;
            let length = days(year + 1, 1, 1) - days(year, 1, 1);
            (1..=length).contains(&number).then(|| days(year, 1, 1) + number - 1)
        }
        [week] => week_date(year, number(week.strip_prefix('W')?)?, 1),
        [week, day] if week.starts_with('W') => week_date(year, number(&week[1..])?, number(day)?),
        [month, day] => date(year, number(month)?, number(day)?),
        _ => None,
    }
}

/// The day of a date, if it exists.
pub fn date(year: i64, month: i64, day: i64) -> Option<i64> {
    let exists = year.abs() <= super::MAX_YEAR
        && (1..=12).contains(&month)
        && (1..=month_length(year, month)).contains(&day);
    exists.then(|| days(year, month, day))
}

pub fn week_date(year: i64, week: i64, day: i64) -> Option<i64> {
    let start = week_start(year);
    let weeks = (week_start(year + 1) - start) / 7;
    let exists = (1..=weeks).contains(&week) && (1..=7).contains(&day);
    exists.then(|| start + (week - 1) * 7 + day - 1)
}

fn parse_time(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once(['.', ',']).map_or((text, ""), |(c, f)| (c, f));
    let digits = clock.replace(':', "");
    let has_form = match clock.contains(':') {
        true => clock.split(':').all(|part| part.len() == 2),
        false => true,
    };
    if !has_form || !matches!(digits.len(), 2 | 4 | 6) || !fraction.is_empty() && digits.len() != 6
    {
        return None;
    }
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), number);
    let (hour, minute, second) = (part(0)?, part(2)?, part(4)?);
    if hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let nanos = match fraction {
        "" => 0,
        fraction => number(&format!("{fraction:0<9}"))?,
    };
    Some(hour * HOUR + minute * MINUTE + second * SECOND + nanos)
}

impl Duration {
    /// Reads `P1Y2M3DT4H5M6.7S`, or a date and a time such as `P2012-02-02T14:37:21`.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_ascii() {
            return None;
        }
        let (sign, text) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text),
        };
        let text = text.strip_prefix('P')?;
        if text.len() >= 10
            && text.as_bytes()[..4].iter().all(u8::is_ascii_digit)
            && text.as_bytes()[4] == b'-'
        {
            return Self::parse_as_date(text);
        }

        let (date, time) = text.split_once('T').map_or((text, ""), |(date, time)| (date, time));
        let (mut months, mut days, mut seconds, mut nanos) = (0.0, 0.0, 0.0, 0.0);
        let mut count = 0;
        let mut read = |mut text: &str, is_time: bool| {
            while !text.is_empty() {
                let end = text.find(|c: char| c.is_ascii_alphabetic())?;
                let number: f64 = text[..end].replace(',', ".").parse().ok()?;
                let number = number * sign;
                match (&text[end..=end], is_time) {
                    ("Y", false) => months += number * 12.0,
                    ("M", false) => months += number,
                    ("W", false) => days += number * 7.0,
                    ("D", false) => days += number,
                    ("H", true) => seconds += number * 3600.0,
                    ("M", true) => seconds += number * 60.0,
                    ("S", true) => {
                        seconds += number.trunc();
                        nanos += (number - number.trunc()) * 1e9;
                    }
                    _ => return None,
                }
                count += 1;
                text = &text[end + 1..];
            }
            Some(())
        };
        read(date, false)?;
        read(time, true)?;
        if count == 0 {
            return None;
        }
        Self::of_parts(months, days, seconds, nanos)
    }

    fn parse_as_date(text: &str) -> Option<Self> {
        let (date, time) = text.split_once('T').map_or((text, ""), |(date, time)| (date, time));
        let parts: Option<Vec<i64>> = date.split('-').map(number).collect();
        let &[years, months, days] = &parts?[..] else { return None };
        let time = if time.is_empty() { 0 } else { parse_time(time)? };
        Self::new(years * 12 + months, days, time.into())
    }
}
