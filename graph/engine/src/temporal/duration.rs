//! Durations, and what lies between two moments.

use std::fmt;

use super::{DAY, Moment, SECOND, add_months, civil};

/// The parts of a duration do not depend on each other: a month has no fixed number of days.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Duration {
    pub months: i64,
    pub days: i64,
    pub seconds: i64,
    /// From 0 to 999,999,999.
    pub nanos: i64,
}

/// The mean length of a month, in seconds.
const MONTH: i64 = 2_629_746;

impl Duration {
    /// The duration of whole parts and nanoseconds, if it can be held.
    pub fn new(months: i64, days: i64, time: i128) -> Option<Self> {
        let seconds = i64::try_from(time.div_euclid(SECOND.into())).ok()?;
        Some(Self { months, days, seconds, nanos: time.rem_euclid(SECOND.into()) as i64 })
    }

    /// The duration of parts with fractions: what is left of a month becomes days, and what is
    /// left of a day becomes seconds.
    pub fn of_parts(months: f64, days: f64, seconds: f64, nanos: f64) -> Option<Self> {
        let all = [months, days, seconds, nanos];
        if all.iter().any(|part| !part.is_finite() || part.abs() > 9e17) {
            return None;
        }
        let whole_months = months.trunc();
        let more = (months - whole_months) * MONTH as f64 / 86_400.0;
        let (more_days, rest) = (more.trunc(), (more - more.trunc()) * 86_400.0);
        let whole_days = days.trunc();
        let of_day = (days - whole_days) * 86_400.0;
        let whole_seconds = seconds.trunc();
        let mut time = (whole_seconds as i128 + rest.trunc() as i128) * i128::from(SECOND);
        let fraction = (seconds - whole_seconds) + (rest - rest.trunc()) + of_day;
        time += (fraction * 1e9 + nanos).round_ties_even() as i128;
        Self::new(whole_months as i64, (whole_days + more_days) as i64, time)
    }

    /// The part below days, in nanoseconds.
    pub fn time(&self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanos)
    }

    pub fn add(&self, other: &Self, sign: i64) -> Option<Self> {
        Self::new(
            self.months.checked_add(other.months.checked_mul(sign)?)?,
            self.days.checked_add(other.days.checked_mul(sign)?)?,
            self.time() + other.time() * i128::from(sign),
        )
    }

    pub fn times(&self, factor: f64) -> Option<Self> {
        let (seconds, nanos) = (self.seconds as f64, self.nanos as f64);
        Self::of_parts(
            self.months as f64 * factor,
            self.days as f64 * factor,
            seconds * factor,
            nanos * factor,
        )
    }

    /// About how long it is, for an order.
    pub fn length(&self) -> i128 {
        let days = i128::from(self.days) * i128::from(DAY);
        i128::from(self.months) * i128::from(MONTH) * i128::from(SECOND) + days + self.time()
    }

    pub fn component(&self, name: &str) -> Option<i64> {
        let (months, days, seconds) = (self.months, self.days, self.seconds);
        Some(match name {
            "years" => months / 12,
            "quarters" => months / 3,
            "months" => months,
            "weeks" => days / 7,
            "days" => days,
            "hours" => seconds / 3600,
            "minutes" => seconds / 60,
            "seconds" => seconds,
            "milliseconds" => i64::try_from(self.time().div_euclid(1_000_000)).ok()?,
            "microseconds" => i64::try_from(self.time().div_euclid(1000)).ok()?,
            "nanoseconds" => i64::try_from(self.time()).ok()?,
            "quartersOfYear" => months / 3 % 4,
            "monthsOfYear" => months % 12,
            "monthsOfQuarter" => months % 3,
            "daysOfWeek" => days % 7,
            "minutesOfHour" => seconds / 60 % 60,
            "secondsOfMinute" => seconds % 60,
            "millisecondsOfSecond" => self.nanos / 1_000_000,
            "microsecondsOfSecond" => self.nanos / 1000,
            "nanosecondsOfSecond" => self.nanos,
            _ => return None,
        })
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("P")?;
        let time = self.time();
        let (seconds, nanos) = (time / i128::from(SECOND), time % i128::from(SECOND));
        let dates = [(self.months / 12, 'Y'), (self.months % 12, 'M'), (self.days, 'D')];
        for (number, unit) in dates.into_iter().filter(|(number, _)| *number != 0) {
            write!(f, "{number}{unit}")?;
        }
        if time == 0 {
            let is_zero = self.months == 0 && self.days == 0;
            return if is_zero { f.write_str("T0S") } else { Ok(()) };
        }

        f.write_str("T")?;
        for (number, unit) in [(seconds / 3600, 'H'), (seconds / 60 % 60, 'M')] {
            if number != 0 {
                write!(f, "{number}{unit}")?;
            }
        }
        if seconds % 60 == 0 && nanos == 0 {
            return Ok(());
        }
        let sign = if time < 0 { "-" } else { "" };
        write!(f, "{sign}{}", (seconds % 60).abs())?;
        if nanos != 0 {
            let digits = format!("{:09}", nanos.abs());
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("S")
    }
}

/// The units in which a difference is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Span {
    All,
    Months,
    Days,
    Seconds,
}

/// What lies between two moments. If only one has a date, or an offset, the other gets it.
pub fn between(from: &Moment, to: &Moment, span: Span) -> Option<Duration> {
    let (from, to) = (&from.beside(to), &to.beside(from));
    let has_days = from.day.is_some() && to.day.is_some();
    let (start, end) = match (from.offset, to.offset) {
        (Some(offset), Some(_)) => (from.local(), to.shifted(offset).local()),
        _ => (from.local(), to.local()),
    };
    let day = i128::from(DAY);
    let (mut start, end) =
        if has_days { (start, end) } else { (start.rem_euclid(day), end.rem_euclid(day)) };

    let mut months = 0;
    if has_days && matches!(span, Span::All | Span::Months) {
        months = months_between(start, end)?;
        start =
            add_months(start.div_euclid(day) as i64, months)? as i128 * day + start.rem_euclid(day);
    }
    match span {
        Span::Months => return Duration::new(months, 0, 0),
        Span::Seconds => return Duration::new(0, 0, end - start),
        Span::All | Span::Days => {}
    }
    let whole = if has_days { (end - start) / day } else { 0 };
    let rest = if span == Span::Days { 0 } else { end - start - whole * day };
    Duration::new(months, whole as i64, rest)
}

impl Moment {
    /// A local time in the zone of another moment, if that has one: a day may have 25 hours there.
    fn beside(&self, other: &Self) -> Self {
        match other.zone {
            Some(_) if self.offset.is_none() => {
                let (day, nanos) = (self.day.or(other.day), self.nanos.or(Some(0)));
                Self { day, nanos, offset: None, zone: other.zone }.settled()
            }
            _ => *self,
        }
    }
}

/// The whole months from one local time to another.
fn months_between(start: i128, end: i128) -> Option<i64> {
    let day = i128::from(DAY);
    let (from, to) = (civil(start.div_euclid(day) as i64), civil(end.div_euclid(day) as i64));
    let mut months = (to.0 - from.0) * 12 + to.1 - from.1;
    let reached = |months| {
        add_months(start.div_euclid(day) as i64, months)
            .map(|d| i128::from(d) * day + start.rem_euclid(day))
    };
    if months > 0 && reached(months)? > end {
        months -= 1;
    } else if months < 0 && reached(months)? < end {
        months += 1;
    }
    Some(months)
}
