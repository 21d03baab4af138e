//! Functions that make dates, times and durations.

use super::aggregate::number;
use super::eval::{Reader, Result, wrong};
use super::functions::Function;
use super::value::Val;
use crate::cypher::{Token, depth_after};
use crate::temporal::{
    Duration, Fields, Kind, Moment, Place, Span, as_kind, between, build, from_epoch, parse,
    truncate,
};

/// The function of a name. `.` in it is written `_`: see [`dotless`].
pub fn find(name: &str, count: usize) -> Option<Function> {
    Some(match (name, count) {
        ("date", 0 | 1) => |r, args| moment(r, "date", args),
        ("localtime", 0 | 1) => |r, args| moment(r, "localtime", args),
        ("time", 0 | 1) => |r, args| moment(r, "time", args),
        ("localdatetime", 0 | 1) => |r, args| moment(r, "localdatetime", args),
        ("datetime", 0 | 1) => |r, args| moment(r, "datetime", args),
        ("duration", 1) => |_, args| duration(&args[0]),
        ("date_truncate", 2 | 3) => |_, args| truncated("date", args),
        ("localtime_truncate", 2 | 3) => |_, args| truncated("localtime", args),
        ("time_truncate", 2 | 3) => |_, args| truncated("time", args),
        ("localdatetime_truncate", 2 | 3) => |_, args| truncated("localdatetime", args),
        ("datetime_truncate", 2 | 3) => |_, args| truncated("datetime", args),
        ("duration_between", 2) => |_, args| difference(args, Span::All),
        ("duration_inmonths", 2) => |_, args| difference(args, Span::Months),
        ("duration_indays", 2) => |_, args| difference(args, Span::Days),
        ("duration_inseconds", 2) => |_, args| difference(args, Span::Seconds),
        ("datetime_fromepoch", 2) => |_, args| epoch(&args[0], &args[1]),
        ("datetime_fromepochmillis", 1) => |_, args| match &args[0] {
            Val::Int(millis) => at(i128::from(*millis) * 1_000_000),
            _ => Err(wrong("datetime.fromepochmillis needs an integer")),
        },
        ("timestamp", 0) => |r, _| Ok(Val::Int((r.clock.instant() / 1_000_000) as i64)),
        _ => return clock(name, count),
    })
}

/// The functions `date.transaction` and so on: all give the host's time.
fn clock(name: &str, count: usize) -> Option<Function> {
    let (kind, of) = name.split_once('_')?;
    if count > 1 || !matches!(of, "transaction" | "statement" | "realtime") {
        return None;
    }
    Some(match kind {
        "date" => |r, args| current(r, "date", args),
        "localtime" => |r, args| current(r, "localtime", args),
        "time" => |r, args| current(r, "time", args),
        "localdatetime" => |r, args| current(r, "localdatetime", args),
        "datetime" => |r, args| current(r, "datetime", args),
        _ => return None,
    })
}

/// The second parts of names that have a dot.
const DOTTED: [&str; 10] = [
    "truncate",
    "between",
    "inmonths",
    "indays",
    "inseconds",
    "fromepoch",
    "fromepochmillis",
    "transaction",
    "statement",
    "realtime",
];
pub const KINDS: [&str; 6] = ["date", "localtime", "time", "localdatetime", "datetime", "duration"];

/// A query with `_` for `.` in the names of functions, which the parser does not read.
pub fn dotless(query: &str, tokens: &[Token]) -> String {
    let mut bytes = query.as_bytes().to_vec();
    for next in tokens.windows(4) {
        let (kind, name) = (next[0].text.to_lowercase(), next[2].text.to_lowercase());
        if next[1].is(&["."])
            && next[3].is(&["("])
            && KINDS.contains(&kind.as_str())
            && DOTTED.contains(&name.as_str())
        {
            bytes[next[1].start] = b'_';
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| query.to_owned())
}

/// The last token of a function of dates that begins at a token.
pub fn constant_end(tokens: &[Token], at: usize) -> Option<usize> {
    let is_name = KINDS.contains(&tokens[at].text.to_lowercase().as_str());
    let is_start = at == 0 || !tokens[at - 1].is(&[".", "$", "AS"]);
    let open = match tokens.get(at + 1)? {
        next if next.is(&["("]) => at + 1,
        next if next.is(&["."]) && tokens.get(at + 3)?.is(&["("]) => at + 3,
        _ => return None,
    };
    if !is_name || !is_start {
        return None;
    }
    let mut depth = 0;
    let length = tokens[open..].iter().position(|token| {
        depth = depth_after(depth, token);
        depth == 0
    });
    length.map(|length| open + length)
}

fn kind_of(name: &str) -> Kind {
    Kind::named(name).unwrap_or(Kind { day: true, time: true, zone: true })
}

/// When the query began, in UTC or with an offset.
fn current(r: &Reader, name: &str, args: &[Val]) -> Result<Val> {
    let moment = match args.first() {
        None => r.clock,
        Some(Val::Null) => return Ok(Val::Null),
        Some(Val::Str(zone)) => r.clock.moved(Place::parse(zone).map_err(wrong)?),
        Some(other) => {
            return Err(wrong(format!("a time zone must be a text, not {}", other.kind())));
        }
    };
    Ok(Val::Moment(as_kind(kind_of(name), &moment).into()))
}

fn moment(r: &Reader, name: &str, args: &[Val]) -> Result<Val> {
    let kind = kind_of(name);
    let built = match args.first() {
        None => return current(r, name, args),
        Some(Val::Null) => return Ok(Val::Null),
        Some(Val::Str(text)) => {
            let moment = parse(text, kind)
                .map_err(|why| wrong(why.unwrap_or_else(|| format!("{text:?} is no {name}"))));
            return Ok(Val::Moment(moment?.into()));
        }
        Some(Val::Moment(other)) => {
            let lacks =
                kind.day && other.day.is_none() || kind.time && !kind.day && other.nanos.is_none();
            if lacks {
                return Err(wrong(format!("a {name} cannot be made of {other}")));
            }
            build(kind, &Fields { date: Some(**other), time: Some(**other), ..Fields::default() })
        }
        Some(Val::Map(_)) => build(kind, &fields(&args[0])?),
        Some(other) => return Err(wrong(format!("a {name} cannot be made of {}", other.kind()))),
    };
    Ok(Val::Moment(built.map_err(wrong)?.into()))
}

/// The components that a map gives.
fn fields(value: &Val) -> Result<Fields> {
    let mut fields = Fields::default();
    let Val::Map(map) = value else { return Ok(fields) };
    for (key, value) in map.iter() {
        match (key.as_str(), value) {
            ("timezone", Val::Str(zone)) => fields.timezone = Some(zone.to_string()),
            ("date", Val::Moment(m)) if m.day.is_some() => fields.date = Some(**m),
            ("time", Val::Moment(m)) if m.nanos.is_some() => fields.time = Some(**m),
            ("datetime", Val::Moment(m)) if m.day.is_some() => {
                (fields.date, fields.time) = (Some(**m), Some(**m));
            }
            (_, Val::Int(number)) => fields.numbers.push((key.to_string(), *number)),
            (key, other) => {
                return Err(wrong(format!("the component {key} cannot be {}", other.kind())));
            }
        }
    }
    Ok(fields)
}

fn truncated(name: &str, args: &[Val]) -> Result<Val> {
    let (unit, value) = (&args[0], &args[1]);
    let (Val::Str(unit), Val::Moment(moment)) = (unit, value) else {
        if unit.is_null() || value.is_null() {
            return Ok(Val::Null);
        }
        return Err(wrong("truncate needs a unit and a date or a time"));
    };
    let mut fields = args.get(2).map_or_else(|| Ok(Fields::default()), fields)?;
    let kind = kind_of(name);
    let cut = truncate(kind, unit, moment, &mut fields).map_err(wrong)?;
    Ok(Val::Moment(cut.into()))
}

fn duration(value: &Val) -> Result<Val> {
    let too_long = || wrong("the duration is too long");
    let made = match value {
        Val::Null => return Ok(Val::Null),
        Val::Duration(_) => return Ok(value.clone()),
        Val::Str(text) => {
            Duration::parse(text).ok_or_else(|| wrong(format!("{text:?} is no duration")))?
        }
        Val::Map(map) => {
            let (mut months, mut days, mut seconds, mut nanos) = (0.0, 0.0, 0.0, 0.0);
            for (key, value) in map.iter() {
                let value = number(value)?;
                match key.as_str() {
                    "years" => months += value * 12.0,
                    "quarters" => months += value * 3.0,
                    "months" => months += value,
                    "weeks" => days += value * 7.0,
                    "days" => days += value,
                    "hours" => seconds += value * 3600.0,
                    "minutes" => seconds += value * 60.0,
                    "seconds" => seconds += value,
                    "milliseconds" => nanos += value * 1e6,
                    "microseconds" => nanos += value * 1e3,
                    "nanoseconds" => nanos += value,
                    other => return Err(wrong(format!("a duration has no component {other:?}"))),
                }
            }
            Duration::of_parts(months, days, seconds, nanos).ok_or_else(too_long)?
        }
        other => return Err(wrong(format!("a duration cannot be made of {}", other.kind()))),
    };
    Ok(Val::Duration(made.into()))
}

fn difference(args: &[Val], span: Span) -> Result<Val> {
    let (Val::Moment(from), Val::Moment(to)) = (&args[0], &args[1]) else {
        if args.iter().any(Val::is_null) {
            return Ok(Val::Null);
        }
        return Err(wrong("a difference needs two dates or times"));
    };
    let found = between(from, to, span).ok_or_else(|| wrong("the duration is too long"))?;
    Ok(Val::Duration(found.into()))
}

fn epoch(seconds: &Val, nanos: &Val) -> Result<Val> {
    let (Val::Int(seconds), Val::Int(nanos)) = (seconds, nanos) else {
        return Err(wrong("datetime.fromepoch needs two integers"));
    };
    at(i128::from(*seconds) * 1_000_000_000 + i128::from(*nanos))
}

fn at(nanos: i128) -> Result<Val> {
    let moment: Moment = from_epoch(nanos).map_err(wrong)?;
    Ok(Val::Moment(moment.into()))
}
