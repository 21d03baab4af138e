//! TNEF, the winmail.dat of Outlook: a message and its attachments in one file.

use crate::problem::Problem;
use crate::text::{Text, shorten};
use crate::{html, mail, mime, rtf};

const SIGNATURE: [u8; 4] = [0x78, 0x9f, 0x3e, 0x22];

/// Texts unpacked from compressed RTF are cut behind this length.
const LONGEST_RTF: usize = 64 << 20;

// Numbers of attributes.
const SUBJECT: u16 = 0x8004;
const BODY: u16 = 0x800c;
const ATTACHMENT_DATA: u16 = 0x800f;
const ATTACHMENT_TITLE: u16 = 0x8010;
const ATTACHMENT_START: u16 = 0x9002;
const PROPERTIES: u16 = 0x9003;
const ATTACHMENT_PROPERTIES: u16 = 0x9005;
const CODE_PAGE: u16 = 0x9007;

// Numbers of properties.
const PLAIN_BODY: u16 = 0x1000;
const RTF_BODY: u16 = 0x1009;
const HTML_BODY: u16 = 0x1013;
const TITLE: u16 = 0x0037;
const DATA: u16 = 0x3701;
const SHORT_NAME: u16 = 0x3704;
const LONG_NAME: u16 = 0x3707;
const TYPE: u16 = 0x370e;

/// Reports whether these bytes begin a TNEF.
pub fn is_tnef(data: &[u8]) -> bool {
    data.starts_with(&SIGNATURE)
}

/// What the attributes say about the message, or about one of its attachments.
#[derive(Default)]
struct Part {
    title: String,
    plain: String,
    page: Vec<u8>,
    rtf: Vec<u8>,
    name: String,
    kind: String,
    data: Vec<u8>,
}

pub fn read(data: &[u8], text: &mut Text, depth: usize) -> Result<(), Problem> {
    let mut message = Part::default();
    let mut attachments: Vec<Part> = Vec::new();
    let mut page = 1252;
    let mut rest = data.get(6..).unwrap_or_default();
    let mut is_cut = false;
    while !rest.is_empty() {
        let Some((name, content, after)) = next_attribute(rest) else {
            is_cut = true;
            break;
        };
        rest = after;
        let line = || decode(content, page);
        match name {
            CODE_PAGE => page = number(content, 0).unwrap_or(1252),
            SUBJECT if message.title.is_empty() => message.title = line(),
            BODY if message.plain.is_empty() => message.plain = line(),
            PROPERTIES => read_properties(content, page, &mut message),
            ATTACHMENT_START => attachments.push(Part::default()),
            _ => {
                let Some(last) = attachments.last_mut() else { continue };
                match name {
                    ATTACHMENT_TITLE if last.name.is_empty() => last.name = line(),
                    ATTACHMENT_DATA => last.data = content.to_vec(),
                    ATTACHMENT_PROPERTIES => read_properties(content, page, last),
                    _ => {}
                }
            }
        }
    }

    if !message.title.trim().is_empty() {
        text.block(&format!("Subject: {}", shorten(&message.title)))?;
    }
    if !message.plain.trim().is_empty() {
        text.block(&message.plain)?;
    } else if !message.page.is_empty() {
        html::append(&html::decode(&message.page), text)?;
    } else if let Some(unpacked) = unpack_rtf(&message.rtf) {
        rtf::append(&unpacked, text)?;
    }
    for part in attachments {
        let name = if part.name.trim().is_empty() { "without a name" } else { part.name.trim() };
        let kind = if part.kind.is_empty() { "unknown type" } else { &part.kind };
        mail::attach(name, kind, &part.data, text, depth)?;
    }
    if is_cut {
        text.warn("a winmail.dat is cut short");
    }
    Ok(())
}

/// The name and the content of the first attribute, and what follows it.
fn next_attribute(data: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let name = number(data, 1)? as u16;
    let length = number(data, 5)? as usize;
    let content = data.get(9..)?.get(..length)?;
    let after = data.get(9 + length + 2..).unwrap_or_default(); // behind a checksum
    Some((name, content, after))
}

/// Reads properties, up to the first that is damaged.
fn read_properties(data: &[u8], page: u32, part: &mut Part) {
    let mut rest = data.get(4..).unwrap_or_default();
    let _ = (|| -> Option<()> {
        for _ in 0..number(data, 0)? {
            let kind = number(rest, 0)? as u16;
            let name = (number(rest, 0)? >> 16) as u16;
            rest = rest.get(4..)?;
            if name >= 0x8000 {
                rest = skip_name(rest)?;
            }
            let is_variable = matches!(kind & 0x0fff, 0x1e | 0x1f | 0x102 | 0x0d);
            let is_list = kind & 0x1000 != 0;
            let values = if is_variable || is_list { number(rest, 0)? } else { 1 };
            if is_variable || is_list {
                rest = rest.get(4..)?;
            }
            for _ in 0..values {
                let length = match kind & 0x0fff {
                    2 | 3 | 4 | 0xa | 0xb => 4,
                    5 | 6 | 7 | 0x14 | 0x40 => 8,
                    0x48 => 16,
                    _ if is_variable => {
                        let length = number(rest, 0)? as usize;
                        rest = rest.get(4..)?;
                        length
                    }
                    _ => return None,
                };
                let value = rest.get(..length)?;
                rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
                keep(part, name, kind & 0x0fff, value, page);
            }
        }
        Some(())
    })();
}

/// What follows the name of a named property.
fn skip_name(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.get(16..)?;
    if number(rest, 0)? == 0 {
        return rest.get(8..);
    }
    let length = number(rest, 4)? as usize;
    rest.get(8..)?.get(length.next_multiple_of(4)..)
}

fn keep(part: &mut Part, name: u16, kind: u16, value: &[u8], page: u32) {
    let line = || match kind {
        0x1f => {
            let wide = encoding_rs::UTF_16LE.decode_without_bom_handling(value).0;
            wide.trim_end_matches('\0').to_owned()
        }
        _ => decode(value, page),
    };
    match name {
        TITLE => part.title = line(),
        PLAIN_BODY => part.plain = line(),
        HTML_BODY => part.page = value.to_vec(),
        RTF_BODY => part.rtf = value.to_vec(),
        DATA if part.data.is_empty() => {
            // An embedded message is a TNEF behind the number of its interface.
            let inner = if kind == 0x0d { value.get(16..).unwrap_or(value) } else { value };
            part.data = inner.to_vec();
        }
        LONG_NAME => part.name = line(),
        SHORT_NAME if part.name.is_empty() => part.name = line(),
        TYPE => part.kind = line(),
        _ => {}
    }
}

fn decode(data: &[u8], page: u32) -> String {
    let charset = match page {
        65001 => "utf-8".to_owned(),
        932 => "shift_jis".to_owned(),
        936 => "gbk".to_owned(),
        949 => "euc-kr".to_owned(),
        950 => "big5".to_owned(),
        _ => format!("windows-{page}"),
    };
    mime::decode_text(data, Some(&charset)).trim_end_matches('\0').to_owned()
}

fn number(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// What compressed RTF begins with, by its specification, so that it is found again.
const KNOWN: &[u8] = b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \
    \\fmodern \\fscript \\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\
    \\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx";

/// Unpacks the compressed RTF of Outlook.
pub fn unpack_rtf(data: &[u8]) -> Option<Vec<u8>> {
    const WINDOW: usize = 4096;
    let content = data.get(16..)?;
    if number(data, 8)? == 0x414c_454d {
        return Some(content.to_vec()); // not compressed
    }
    if number(data, 8)? != 0x7546_5a4c {
        return None;
    }

    let most = (number(data, 4)? as usize).min(LONGEST_RTF);
    let mut window = [b' '; WINDOW];
    window[..KNOWN.len()].copy_from_slice(KNOWN);
    let mut at = KNOWN.len();
    let mut out = Vec::new();
    let mut bytes = content.iter().copied();
    'all: while out.len() < most {
        let Some(flags) = bytes.next() else { break };
        for bit in 0..8 {
            let Some(first) = bytes.next() else { break 'all };
            if flags >> bit & 1 == 0 {
                out.push(first);
                window[at] = first;
                at = (at + 1) % WINDOW;
                continue;
            }
            let Some(second) = bytes.next() else { break 'all };
            let from = usize::from(first) << 4 | usize::from(second >> 4);
            if from == at {
                break 'all; // the end
            }
            for step in 0..usize::from(second & 15) + 2 {
                let byte = window[(from + step) % WINDOW];
                out.push(byte);
                window[at] = byte;
                at = (at + 1) % WINDOW;
            }
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_rtf() {
        // The example of the specification, MS-OXRTFCP.
        let packed = [
            0x2d, 0, 0, 0, 0x2b, 0, 0, 0, 0x4c, 0x5a, 0x46, 0x75, 0xf1, 0xc5, 0xc7, 0xa7, 0x03, 0x00,
            0x0a, 0x00, 0x72, 0x63, 0x70, 0x67, 0x31, 0x32, 0x35, 0x42, 0x32, 0x0a, 0xf3, 0x20, 0x68,
            0x65, 0x6c, 0x09, 0x00, 0x20, 0x62, 0x77, 0x05, 0xb0, 0x6c, 0x64, 0x7d, 0x0a, 0x80, 0x0f,
            0xa0,
        ];
        let want = b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n";
        assert_eq!(unpack_rtf(&packed).unwrap(), want);
        for end in 0..packed.len() {
            unpack_rtf(&packed[..end]);
        }
    }

    #[test]
    fn damaged_properties_end() {
        for data in [&[0xff; 40][..], &[1, 0, 0, 0, 0x1e, 0, 0, 0x80], &[]] {
            read_properties(data, 1252, &mut Part::default());
        }
    }
}
