//! Compound files: Word, Excel and PowerPoint before 2007, messages of Outlook, and what Office
//! encrypts.

use std::io::Cursor;

use office_oxide::DocumentFormat;
use office_oxide::cfb::CfbReader;

use crate::problem::Problem;
use crate::text::{Text, shorten};
use crate::{html, mail, office, rtf, tnef};

type Compound = CfbReader<Cursor<Vec<u8>>>;

pub fn read(data: Vec<u8>, text: &mut Text, depth: usize) -> Result<(), Problem> {
    let mut file = Compound::new(Cursor::new(data.clone())).map_err(Problem::damaged)?;
    let holds = |name| file.has_stream(name);
    let format = if holds("EncryptedPackage") {
        return Err(Problem::encrypted());
    } else if holds("WordDocument") {
        DocumentFormat::Doc
    } else if holds("Workbook") || holds("Book") {
        DocumentFormat::Xls
    } else if holds("PowerPoint Document") {
        DocumentFormat::Ppt
    } else if holds("__properties_version1.0") {
        drop(data);
        if depth == 0 {
            text.describe("Mail of Outlook")?;
        }
        return read_message(&mut file, "", text, depth);
    } else {
        return Err(Problem::unsupported("it is a compound file of an unknown kind"));
    };
    drop(file);
    office::read(data, format, text)
}

/// Reads the message in a folder of the file, which ends with a slash unless it is the root.
fn read_message(
    file: &mut Compound,
    folder: &str,
    text: &mut Text,
    depth: usize,
) -> Result<(), Problem> {
    let mut header = String::new();
    let sender = find_text(file, folder, "0C1A");
    let address = find_text(file, folder, "5D01").or_else(|| find_text(file, folder, "0C1F"));
    let from = match (sender, address) {
        (Some(name), Some(address)) if name != address => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default(),
    };
    let fields = [
        ("From", Some(from)),
        ("To", find_text(file, folder, "0E04")),
        ("Cc", find_text(file, folder, "0E03")),
        ("Date", find_text(file, folder, "007D").and_then(|h| find_date(&h))),
        ("Subject", find_text(file, folder, "0037")),
    ];
    for (name, value) in fields {
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            header += &format!("{name}: {}  \n", shorten(&value));
        }
    }
    text.block(&header)?;

    let body = find_text(file, folder, "1000").filter(|body| !body.trim().is_empty());
    if let Some(body) = body {
        text.block(&body)?;
    } else if let Some(page) = find(file, folder, "1013", "0102") {
        html::append(&html::decode(&page), text)?;
    } else if let Some(packed) = find(file, folder, "1009", "0102") {
        match tnef::unpack_rtf(&packed) {
            Some(unpacked) => rtf::append(&unpacked, text)?,
            None => text.warn("the message is damaged RTF"),
        }
    }

    // Attachments are numbered. Outlook leaves no gaps, other programs may.
    let mut missing = 0;
    for number in 0.. {
        let attachment = format!("{folder}__attach_version1.0_#{number:08X}/");
        if file.find_entry_by_path(attachment.trim_end_matches('/')).is_none() {
            missing += 1;
            if missing > 16 {
                break;
            }
            continue;
        }
        read_attachment(file, &attachment, text, depth)?;
    }
    Ok(())
}

fn read_attachment(
    file: &mut Compound,
    folder: &str,
    text: &mut Text,
    depth: usize,
) -> Result<(), Problem> {
    let embedded = format!("{folder}__substg1.0_3701000D/");
    if file.find_entry_by_path(embedded.trim_end_matches('/')).is_some() && depth < crate::DEEPEST {
        text.block("### Attached message")?;
        return read_message(file, &embedded, text, depth + 1);
    }
    let name = find_text(file, folder, "3707").or_else(|| find_text(file, folder, "3704"));
    let kind = find_text(file, folder, "370E").unwrap_or_else(|| "unknown type".to_owned());
    let data = find(file, folder, "3701", "0102").unwrap_or_default();
    mail::attach(name.as_deref().unwrap_or("without a name"), &kind, &data, text, depth)
}

/// The text of a property: in UTF-16, or in an encoding of one byte.
fn find_text(file: &mut Compound, folder: &str, property: &str) -> Option<String> {
    let text = match find(file, folder, property, "001F") {
        Some(wide) => encoding_rs::UTF_16LE.decode_without_bom_handling(&wide).0.into_owned(),
        None => html::decode(&find(file, folder, property, "001E")?),
    };
    Some(text.trim_end_matches('\0').to_owned()).filter(|text| !text.is_empty())
}

fn find(file: &mut Compound, folder: &str, property: &str, kind: &str) -> Option<Vec<u8>> {
    file.open_stream_by_path(&format!("{folder}__substg1.0_{property}{kind}")).ok()
}

/// The date in the header that a message had on its way.
fn find_date(header: &str) -> Option<String> {
    let line = header.lines().find(|line| line.to_ascii_lowercase().starts_with("date:"))?;
    Some(line[5..].trim().to_owned())
}
