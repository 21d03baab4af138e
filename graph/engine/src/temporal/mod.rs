//! Dates, times and durations of openCypher, to a nanosecond. The engine's library keeps
//! microseconds and has no components.

mod build;
mod duration;
mod parse;
mod zone;

use std::cmp::Ordering;
use std::fmt;

pub use build::{Fields, as_kind, build, from_epoch, now, truncate};
pub use duration::{Duration, Span, between};
pub use parse::parse;
pub use zone::{Place, Zone};

use parse::offset;

pub const DAY: i64 = 86_400_000_000_000;
const HOUR: i64 = 3_600_000_000_000;
const MINUTE: i64 = 60_000_000_000;
pub const SECOND: i64 = 1_000_000_000;

/// Which parts a type has: a date, a time of day, an offset from UTC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub day: bool,
    pub time: bool,
    pub zone: bool,
}

impl Kind {
    pub fn named(name: &str) -> Option<Self> {
        let (day, time, zone) = match name {
            "date" => (true, false, false),
            "localtime" => (false, true, false),
            "time" => (false, true, true),
            "localdatetime" => (true, true, false),
            "datetime" => (true, true, true),
            _ => return None,
        };
        Some(Self { day, time, zone })
    }
}

/// A date, a time, or both. Day and time are local: those of the offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Days since 1970-01-01.
    pub day: Option<i64>,
    /// Nanoseconds since midnight.
    pub nanos: Option<i64>,
    /// Seconds east of UTC.
    pub offset: Option<i32>,
    /// Of a date with a time alone. The offset is the zone's.
    pub zone: Option<Zone>,
}

impl Moment {
    pub fn kind(&self) -> Kind {
        Kind { day: self.day.is_some(), time: self.nanos.is_some(), zone: self.offset.is_some() }
    }

    /// Nanoseconds since 1970 in UTC, or since midnight.
    pub fn instant(&self) -> i128 {
        let offset = i128::from(self.offset.unwrap_or(0)) * i128::from(SECOND);
        self.local() - offset
    }

    fn local(&self) -> i128 {
        let day = i128::from(self.day.unwrap_or(0)) * i128::from(DAY);
        day + i128::from(self.nanos.unwrap_or(0))
    }

    /// The same instant with another offset.
    pub fn shifted(&self, offset: i32) -> Self {
        let Some(old) = self.offset else {
            return Self { offset: Some(offset), zone: None, ..*self };
        };
        let local = self.local() + i128::from(offset - old) * i128::from(SECOND);
        let day = local.div_euclid(DAY.into()) as i64;
        let nanos = local.rem_euclid(DAY.into()) as i64;
        Self { day: self.day.map(|_| day), nanos: Some(nanos), offset: Some(offset), zone: None }
    }

    /// Compares two moments of one type.
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        if self.kind() != other.kind() {
            return None;
        }
        Some(self.instant().cmp(&other.instant()).then(other.offset.cmp(&self.offset)))
    }

    /// The moment a duration later. Times of day wrap around, and dates ignore parts of days. In a
    /// zone, days are those of its calendar and hours are those of a clock that never changes.
    pub fn add(&self, d: &Duration, sign: i64) -> Option<Self> {
        let time = i128::from(sign) * d.time();
        if self.zone.is_none() {
            return self.add_local(d, time, sign);
        }
        let later = self.add_local(d, 0, sign)?.settled();
        let later_still = Self { zone: None, ..later }.add_local(&Duration::default(), time, 1)?;
        Some(later_still.moved(Place::Zone(self.zone?)))
    }

    fn add_local(&self, d: &Duration, time: i128, sign: i64) -> Option<Self> {
        let mut local = i128::from(self.nanos.unwrap_or(0)) + time;
        if self.nanos.is_none() {
            local = time / i128::from(DAY) * i128::from(DAY);
        }
        let carried = i64::try_from(local.div_euclid(DAY.into())).ok()?;
        let nanos = local.rem_euclid(DAY.into()) as i64;
        let day = match self.day {
            None => None,
            Some(day) => {
                let moved = add_months(day, sign.checked_mul(d.months)?)?;
                let days = sign.checked_mul(d.days)?.checked_add(carried)?;
                Some(valid_day(moved.checked_add(days)?)?)
            }
        };
        Some(Self { day, nanos: self.nanos.map(|_| nanos), ..*self })
    }

    /// A component such as `year` or `offsetMinutes`. Null if the type has none of that name.
    pub fn component(&self, name: &str) -> Option<Component> {
        if let Some(day) = self.day
            && let Some(number) = day_component(day, name)
        {
            return Some(Component::Number(number));
        }
        if let Some(nanos) = self.nanos {
            let number = match name {
                "hour" => nanos / HOUR,
                "minute" => nanos / MINUTE % 60,
                "second" => nanos / SECOND % 60,
                "millisecond" => nanos % SECOND / 1_000_000,
                "microsecond" => nanos % SECOND / 1000,
                "nanosecond" => nanos % SECOND,
                _ => -1,
            };
            if number >= 0 {
                return Some(Component::Number(number));
            }
        }
        let offset = self.offset?;
        Some(match name {
            "timezone" => {
                Component::Text(self.zone.map_or_else(|| show_offset(offset), Zone::name))
            }
            "offset" => Component::Text(show_offset(offset)),
            "offsetMinutes" => Component::Number((offset / 60).into()),
            "offsetSeconds" => Component::Number(offset.into()),
            "epochSeconds" => Component::Number(self.instant().div_euclid(SECOND.into()) as i64),
            "epochMillis" => Component::Number(self.instant().div_euclid(1_000_000) as i64),
            _ => return None,
        })
    }
}

pub enum Component {
    Number(i64),
    Text(String),
}

fn day_component(day: i64, name: &str) -> Option<i64> {
    let (year, month, date) = civil(day);
    Some(match name {
        "year" => year,
        "quarter" => (month - 1) / 3 + 1,
        "month" => month,
        "day" => date,
        "week" => week(day).1,
        "weekYear" => week(day).0,
        "weekDay" | "dayOfWeek" => week_day(day),
        "ordinalDay" => day - days(year, 1, 1) + 1,
        "dayOfQuarter" => day - days(year, (month - 1) / 3 * 3 + 1, 1) + 1,
        _ => return None,
    })
}

/// The largest year, as in openCypher.
const MAX_YEAR: i64 = 999_999_999;

fn valid_day(day: i64) -> Option<i64> {
    let bound = (MAX_YEAR + 1) * 366;
    ((-bound..=bound).contains(&day) && civil(day).0.abs() <= MAX_YEAR).then_some(day)
}

/// Year, month and day of a number of days since 1970, in the proleptic Gregorian calendar.
pub fn civil(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let m = (5 * of_year + 2) / 153;
    let month = if m < 10 { m + 3 } else { m - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * m + 2) / 5 + 1)
}

/// Days since 1970 of a date, which may lie beyond its month.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

pub fn month_length(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    days(next_year, next, 1) - days(year, month, 1)
}

/// Monday is 1.
fn week_day(day: i64) -> i64 {
    (day + 3).rem_euclid(7) + 1
}

/// The first day of the first week of a year: that with its first Thursday.
fn week_start(year: i64) -> i64 {
    let fourth = days(year, 1, 4);
    fourth - week_day(fourth) + 1
}

/// The year and the week of ISO 8601.
fn week(day: i64) -> (i64, i64) {
    let year = civil(day - week_day(day) + 4).0;
    (year, (day - week_start(year)) / 7 + 1)
}

fn add_months(day: i64, months: i64) -> Option<i64> {
    let (year, month, date) = civil(day);
    let all = year.checked_mul(12)?.checked_add(month - 1)?.checked_add(months)?;
    let (year, month) = (all.div_euclid(12), all.rem_euclid(12) + 1);
    if year.abs() > MAX_YEAR {
        return None;
    }
    Some(days(year, month, date.min(month_length(year, month))))
}

fn show_offset(offset: i32) -> String {
    if offset == 0 {
        return "Z".to_owned();
    }
    let (sign, size) = (if offset < 0 { '-' } else { '+' }, offset.abs());
    let text = format!("{sign}{:02}:{:02}", size / 3600, size / 60 % 60);
    if size % 60 == 0 { text } else { format!("{text}:{:02}", size % 60) }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(day) = self.day {
            let (year, month, date) = civil(day);
            match year {
                0..=9999 => write!(f, "{year:04}")?,
                10_000.. => write!(f, "+{year}")?,
                _ => write!(f, "-{:04}", -year)?,
            }
            write!(f, "-{month:02}-{date:02}")?;
        }
        let Some(nanos) = self.nanos else { return Ok(()) };
        if self.day.is_some() {
            f.write_str("T")?;
        }
        write!(f, "{:02}:{:02}", nanos / HOUR, nanos / MINUTE % 60)?;
        if nanos % MINUTE != 0 {
            write!(f, ":{:02}", nanos / SECOND % 60)?;
        }
        if nanos % SECOND != 0 {
            let digits = format!("{:09}", nanos % SECOND);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        self.offset.map_or(Ok(()), |offset| f.write_str(&show_offset(offset)))?;
        self.zone.map_or(Ok(()), |zone| write!(f, "[{}]", zone.name()))
    }
}
