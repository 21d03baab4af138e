//! Documents that are zip archives: of Office, OpenDocument and EPUB.

use std::io::{Cursor, ErrorKind, Read};

use office_oxide::DocumentFormat;
use zip::ZipArchive;
use zip::result::ZipError;

use crate::problem::Problem;
use crate::text::Text;
use crate::{epub, office, opendocument, spelled, xlsb};

/// A zip archive in memory.
pub type Package = ZipArchive<Cursor<Vec<u8>>>;

pub fn read(data: Vec<u8>, text: &mut Text) -> Result<(), Problem> {
    let mut package = ZipArchive::new(Cursor::new(data)).map_err(explain)?;
    if let Some(format) = office::find_format(&package) {
        let data = match format {
            DocumentFormat::Xlsx => {
                let (data, unseen) = xlsb::spell_out(package, text.room).map_err(explain)?;
                let others = unseen.formulas - unseen.computed;
                let shown = format!(
                    ": {} computed here, {others} not simple enough, whose cells show the 0 that is \
                     in the file",
                    unseen.computed
                );
                unseen.tell(&shown, text);
                data
            }
            _ => spelled::spell_out(package, text.room)?,
        };
        return office::read(data, format, text);
    }

    let kind = read_member(&mut package, "mimetype", text).unwrap_or_default();
    match String::from_utf8_lossy(&kind).trim() {
        "application/epub+zip" => epub::read(package, text),
        kind if kind.starts_with("application/vnd.oasis.opendocument.") => {
            opendocument::read(package, kind, text)
        }
        _ => Err(Problem::unsupported("it is an archive of an unknown kind")),
    }
}

/// Reports whether a zip archive is a document.
pub fn is_document(data: &[u8]) -> bool {
    ZipArchive::new(Cursor::new(data)).is_ok_and(|package| {
        package.index_for_name("mimetype").is_some() || office::find_format(&package).is_some()
    })
}

/// The bytes of a member, which take from the room of the text.
pub fn read_member(
    package: &mut Package,
    name: &str,
    text: &mut Text,
) -> Result<Vec<u8>, Problem> {
    let member = package.by_name(name).map_err(explain)?;
    let mut data = Vec::new();
    member.take(text.room.saturating_add(1)).read_to_end(&mut data)?;
    text.charge(data.len() as u64)?;
    Ok(data)
}

/// The bytes of a member, which take from a room; None if there is none that can be read.
pub fn read_bounded(
    package: &mut Package,
    name: &str,
    room: &mut u64,
) -> Result<Option<Vec<u8>>, Problem> {
    let Ok(member) = package.by_name(name) else { return Ok(None) };
    let mut data = Vec::new();
    let end = member.take(room.saturating_add(1)).read_to_end(&mut data);
    *room = room.checked_sub(data.len() as u64).ok_or_else(Problem::too_large)?;
    Ok(end.is_ok().then_some(data))
}

pub fn explain(error: ZipError) -> Problem {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Problem::encrypted(),
        ZipError::Io(error) if error.kind() == ErrorKind::FileTooLarge => Problem::too_large(),
        other => Problem::damaged(other),
    }
}
