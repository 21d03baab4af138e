//! Moments of components, of other moments, and of both.

use super::parse::{date, week_date};
use super::{
    DAY, HOUR, Kind, MINUTE, Moment, Place, SECOND, civil, days, month_length, week, week_day,
    week_start,
};

/// The components that a query gives, and the moments that it takes others from.
#[derive(Default)]
pub struct Fields {
    pub numbers: Vec<(String, i64)>,
    pub timezone: Option<String>,
    pub date: Option<Moment>,
    pub time: Option<Moment>,
}

impl Fields {
    fn get(&self, name: &str) -> Option<i64> {
        self.numbers.iter().find(|(key, _)| key == name).map(|(_, number)| *number)
    }

    /// A component within its bounds.
    fn within(&self, name: &str, least: i64, most: i64) -> Result<Option<i64>, String> {
        match self.get(name) {
            Some(number) if !(least..=most).contains(&number) => {
                Err(format!("{name} must be from {least} to {most}, not {number}"))
            }
            number => Ok(number),
        }
    }
}

const NAMES: [&str; 16] = [
    "year",
    "month",
    "day",
    "week",
    "dayOfWeek",
    "quarter",
    "dayOfQuarter",
    "ordinalDay",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
    "nanosecond",
    "epochSeconds",
    "epochMillis",
];

/// Makes a moment of a type.
pub fn build(kind: Kind, fields: &Fields) -> Result<Moment, String> {
    if let Some((name, _)) = fields.numbers.iter().find(|(name, _)| !NAMES.contains(&name.as_str()))
    {
        return Err(format!("a date or a time has no component {name:?}"));
    }
    let place = fields.timezone.as_deref().map(|text| place_of(kind, text)).transpose()?;
    let epoch = match (fields.get("epochSeconds"), fields.get("epochMillis")) {
        (Some(seconds), _) => Some(i128::from(seconds) * i128::from(SECOND)),
        (_, Some(millis)) => Some(i128::from(millis) * 1_000_000),
        _ => None,
    };
    if let (Some(epoch), true) = (epoch, kind.day) {
        let nanos = fields.within("nanosecond", 0, SECOND - 1)?.unwrap_or(0);
        let all = at_epoch(epoch + i128::from(nanos))?;
        return Ok(as_kind(kind, &all.moved(place.unwrap_or(Place::Offset(0)))));
    }

    let day = if kind.day { Some(build_day(fields)?) } else { None };
    if !kind.time {
        return Ok(Moment { day, nanos: None, offset: None, zone: None });
    }
    let nanos = Some(build_nanos(fields)?);
    if !kind.zone {
        return Ok(Moment { day, nanos, offset: None, zone: None });
    }
    let base = fields.time.as_ref();
    let (offset, zone) = (base.and_then(|time| time.offset), base.and_then(|time| time.zone));
    let built = Moment { day, nanos, offset, zone: zone.filter(|_| kind.day) }.settled();
    Ok(match place {
        Some(place) => built.moved(place),
        None => Moment { offset: Some(built.offset.unwrap_or(0)), ..built },
    })
}

fn place_of(kind: Kind, text: &str) -> Result<Place, String> {
    match Place::parse(text)? {
        Place::Zone(zone) if !kind.day => {
            let name = zone.name();
            Err(format!("a time of day has an offset such as '+01:00', not the zone {name}"))
        }
        place => Ok(place),
    }
}

fn build_day(fields: &Fields) -> Result<i64, String> {
    let base = fields.date.and_then(|date| date.day);
    let (y, m, d) = base.map_or((0, 1, 1), civil);
    let year = fields.within("year", -super::MAX_YEAR, super::MAX_YEAR)?;
    if year.is_none() && base.is_none() {
        return Err("a date needs a year".into());
    }
    let missing = || "there is no such date".to_owned();

    if let Some(number) = fields.within("week", 1, 53)? {
        let default = base.map_or(1, week_day);
        let day = fields.within("dayOfWeek", 1, 7)?.unwrap_or(default);
        let year = year.unwrap_or_else(|| base.map_or(0, |base| week(base).0));
        return week_date(year, number, day).ok_or_else(missing);
    }
    if let (Some(day), Some(base)) = (fields.within("dayOfWeek", 1, 7)?, base) {
        return Ok(base - week_day(base) + day);
    }
    let year = year.unwrap_or(y);
    if let Some(number) = fields.within("ordinalDay", 1, 366)? {
        let day = days(year, 1, 1) + number - 1;
        return if day < days(year + 1, 1, 1) { Ok(day) } else { Err(missing()) };
    }
    let quarter = fields.within("quarter", 1, 4)?;
    if quarter.is_some() || fields.get("dayOfQuarter").is_some() {
        let quarter = quarter.unwrap_or((m - 1) / 3 + 1);
        let first = (quarter - 1) * 3 + 1;
        return match fields.within("dayOfQuarter", 1, 92)? {
            Some(day) => {
                let day = days(year, first, 1) + day - 1;
                if civil(day).1 <= first + 2 && civil(day).0 == year {
                    Ok(day)
                } else {
                    Err(missing())
                }
            }
            None => {
                let month = first + (m - 1) % 3;
                Ok(days(year, month, d.min(month_length(year, month))))
            }
        };
    }

    let month = fields.within("month", 1, 12)?;
    let day = fields.within("day", 1, 31)?;
    if base.is_none() && month.is_none() && day.is_some() {
        return Err("a day needs its month".into());
    }
    let (month, is_given) = (month.unwrap_or(m), day.is_some());
    let day = day.unwrap_or(d);
    let day = if is_given { day } else { day.min(month_length(year, month)) };
    date(year, month, day).ok_or_else(missing)
}

fn build_nanos(fields: &Fields) -> Result<i64, String> {
    let base = fields.time.and_then(|time| time.nanos);
    let nanos = base.unwrap_or(0);
    let part = |name: &str, most: i64, old: i64| {
        Ok::<_, String>(fields.within(name, 0, most)?.unwrap_or(old))
    };
    let names = ["hour", "minute", "second"];
    let needed = names.iter().rposition(|name| fields.get(name).is_some());
    if base.is_none()
        && needed.is_some_and(|last| names[..last].iter().any(|n| fields.get(n).is_none()))
    {
        return Err("a time needs hours before minutes, and minutes before seconds".into());
    }

    let hour = part("hour", 23, nanos / HOUR)?;
    let minute = part("minute", 59, nanos / MINUTE % 60)?;
    let second = part("second", 59, nanos / SECOND % 60)?;
    let millis = fields.within("millisecond", 0, 999)?;
    let micros = fields.within("microsecond", 0, if millis.is_some() { 999 } else { 999_999 })?;
    let is_alone = millis.is_none() && micros.is_none();
    let rest = fields.within("nanosecond", 0, if is_alone { SECOND - 1 } else { 999 })?;
    let old = nanos % SECOND;
    let fraction = match (millis, micros, rest) {
        (None, None, None) => old,
        (None, None, Some(rest)) if rest < 1000 => old / 1000 * 1000 + rest,
        (None, None, Some(rest)) => rest,
        (None, Some(micros), rest) if micros < 1000 => {
            old / 1_000_000 * 1_000_000 + micros * 1000 + rest.unwrap_or(0)
        }
        (millis, micros, rest) => {
            let (millis, micros) = (millis.unwrap_or(0), micros.unwrap_or(0));
            millis * 1_000_000 + micros * 1000 + rest.unwrap_or(0)
        }
    };
    Ok(hour * HOUR + minute * MINUTE + second * SECOND + fraction)
}

/// A moment as one of another type: it loses parts, or gets midnight and UTC.
pub fn as_kind(kind: Kind, m: &Moment) -> Moment {
    Moment {
        day: kind.day.then(|| m.day.unwrap_or(0)),
        nanos: kind.time.then(|| m.nanos.unwrap_or(0)),
        offset: kind.zone.then(|| m.offset.unwrap_or(0)),
        zone: m.zone.filter(|_| kind.day && kind.zone),
    }
}

fn at_epoch(nanos: i128) -> Result<Moment, String> {
    let day =
        i64::try_from(nanos.div_euclid(DAY.into())).map_err(|_| "the time is too far away")?;
    let day = super::valid_day(day).ok_or("the time is too far away")?;
    Ok(in_utc(day, nanos.rem_euclid(DAY.into()) as i64))
}

fn in_utc(day: i64, nanos: i64) -> Moment {
    Moment { day: Some(day), nanos: Some(nanos), offset: Some(0), zone: None }
}

/// The moment of a number of nanoseconds since 1970, in UTC.
pub fn from_epoch(nanos: i128) -> Result<Moment, String> {
    at_epoch(nanos)
}

/// The host's time, in UTC.
pub fn now() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos() as i128);
    at_epoch(nanos).unwrap_or(in_utc(0, 0))
}

/// Cuts a moment to a unit, and sets components of the result.
pub fn truncate(kind: Kind, unit: &str, m: &Moment, fields: &mut Fields) -> Result<Moment, String> {
    let cut_day = m.day.map(|day| cut_day(day, unit));
    let (day, nanos) = match cut_day {
        Some(Some(day)) => (Some(day), 0),
        _ => match cut_nanos(m.nanos.unwrap_or(0), unit) {
            Some(nanos) => (m.day, nanos),
            None => return Err(format!("cannot truncate to {unit:?}")),
        },
    };
    if kind.day && day.is_none() {
        return Err("a time has no date to truncate".into());
    }
    let cut = Moment { day, nanos: Some(nanos), offset: m.offset, zone: m.zone };
    fields.date = Some(cut);
    fields.time = Some(match fields.timezone.take() {
        Some(text) => {
            let local = Moment { offset: None, zone: None, ..cut };
            local.moved(place_of(kind, &text)?)
        }
        None => cut,
    });
    build(kind, fields)
}

fn cut_day(day: i64, unit: &str) -> Option<i64> {
    let (year, month, _) = civil(day);
    let cut = |years: i64| days(year.div_euclid(years) * years, 1, 1);
    Some(match unit {
        "millennium" => cut(1000),
        "century" => cut(100),
        "decade" => cut(10),
        "year" => cut(1),
        "weekYear" => week_start(week(day).0),
        "quarter" => days(year, (month - 1) / 3 * 3 + 1, 1),
        "month" => days(year, month, 1),
        "week" => day - week_day(day) + 1,
        "day" => day,
        _ => return None,
    })
}

fn cut_nanos(nanos: i64, unit: &str) -> Option<i64> {
    let size = match unit {
        "day" => DAY,
        "hour" => HOUR,
        "minute" => MINUTE,
        "second" => SECOND,
        "millisecond" => 1_000_000,
        "microsecond" => 1000,
        _ => return None,
    };
    Some(nanos / size * size)
}
