//! Time zones by name, such as `Europe/Berlin`. The host has IANA's database.

use std::cell::RefCell;

use super::{Moment, SECOND, offset};
use crate::host;

/// A zone that the host knows: its place among those that were asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone(u16);

thread_local! {
    /// The host knows some hundred names.
    static NAMES: RefCell<Vec<Box<str>>> = const { RefCell::new(Vec::new()) };
}

impl Zone {
    /// The zone of a name. None: the host has none of it.
    fn named(name: &str) -> Option<Self> {
        NAMES.with_borrow_mut(|names| {
            let known = names.iter().position(|known| **known == *name);
            let at = match known {
                Some(at) => at,
                None => {
                    host::zone_offset(name, 0, false)?;
                    names.push(name.into());
                    names.len() - 1
                }
            };
            u16::try_from(at).ok().map(Self)
        })
    }

    pub fn number(self) -> u16 {
        self.0
    }

    pub fn name(self) -> String {
        NAMES.with_borrow(|names| names[usize::from(self.0)].to_string())
    }

    /// The offset in seconds, at a number of seconds since 1970 in UTC or in local time.
    fn offset(self, seconds: i64, is_local: bool) -> i32 {
        host::zone_offset(&self.name(), seconds, is_local).unwrap_or(0)
    }
}

/// Where a time is: an offset, or a zone that has one for each instant.
#[derive(Clone, Copy)]
pub enum Place {
    Offset(i32),
    Zone(Zone),
}

impl Place {
    /// Reads an offset or the name of a zone.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(offset) = offset(text) {
            return Ok(Self::Offset(offset));
        }
        Zone::named(text).map(Self::Zone).ok_or_else(|| {
            format!(
                "the time zone {text:?} is unknown: give one such as 'Europe/Paris' or '+01:00'"
            )
        })
    }
}

impl Moment {
    /// The same instant in another place. A local time gets the place.
    pub fn moved(&self, place: Place) -> Self {
        let seconds = |nanos: i128| nanos.div_euclid(SECOND.into()) as i64;
        match place {
            Place::Offset(offset) => Self { zone: None, ..self.shifted(offset) },
            Place::Zone(zone) => {
                let offset =
                    self.offset.unwrap_or_else(|| zone.offset(seconds(self.local()), true));
                let known = Self { offset: Some(offset), ..*self };
                let shifted = known.shifted(zone.offset(seconds(known.instant()), false));
                Self { zone: Some(zone), ..shifted }
            }
        }
    }

    /// The moment with its zone's offset, if it has a zone, after its local time has changed.
    pub fn settled(&self) -> Self {
        match self.zone {
            Some(zone) => Self { offset: None, ..*self }.moved(Place::Zone(zone)),
            None => *self,
        }
    }
}
