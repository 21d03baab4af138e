//! Mail: single messages and mailboxes. Attachments that are documents are read, too.

use std::io::BufRead;

use mail_parser::mailbox::mbox::MessageIterator;
use mail_parser::{
    Address, ContentType, HeaderName, Message, MessageParser, MessagePart, MimeHeaders, PartType,
};

use crate::problem::{Kind, Problem};
use crate::text::{Text, shorten};
use crate::{convert, find_kind, html, mime};

/// Names of files whose content is text, whatever their types say.
const TEXTS: &[&str] = &[
    ".txt", ".csv", ".tsv", ".log", ".md", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".ics", ".vcf",
    ".patch", ".diff", ".ini", ".sql",
];

pub fn read(data: &[u8], text: &mut Text, depth: usize) -> Result<(), Problem> {
    let message = MessageParser::default()
        .parse(data)
        .ok_or_else(|| Problem::damaged("it has no header of a message"))?;
    if depth == 0 {
        text.describe("Mail")?;
    }
    read_message(&message, text, depth)
}

/// Reads message after message, so that a mailbox may be larger than the memory.
pub fn read_mailbox(input: impl BufRead, text: &mut Text) -> Result<(), Problem> {
    text.describe("Mailbox")?;
    for found in MessageIterator::new(input) {
        let found = found.map_err(|_| Problem::damaged("it cannot be read to its end"))?;
        match MessageParser::default().parse(found.contents()) {
            Some(message) => {
                let head = read_head(&message, message.root_part());
                let subject = head.as_ref().and_then(|head| head.subject()).unwrap_or_default();
                text.part("message", subject)?;
                read_message(&message, text, 0)?;
            }
            None => text.warn(format!("cannot read message {}", text.parts.len() + 1)),
        }
    }
    if text.parts.is_empty() {
        return Err(Problem::damaged("it has no messages"));
    }
    Ok(())
}

fn read_message(message: &Message, text: &mut Text, depth: usize) -> Result<(), Problem> {
    let head = read_head(message, message.root_part());
    let head = head.as_ref().unwrap_or(message);
    let mut header = String::new();
    let addresses = [("From", head.from()), ("To", head.to()), ("Cc", head.cc())];
    for (name, found) in addresses {
        if let Some(found) = found {
            header += &format!("{name}: {}  \n", list(found));
        }
    }
    if let Some(date) = head.date().filter(|date| date.is_valid()) {
        header += &format!("Date: {date}  \n");
    } else if let Some(date) = head.header_raw(HeaderName::Date) {
        header += &format!("Date: {}  \n", shorten(date));
    }
    if let Some(subject) = head.subject() {
        header += &format!("Subject: {}  \n", shorten(subject));
    }
    text.block(&header)?;

    let mut parts = Parts::default();
    parts.sort(message, 0, false);
    // Parts of a damaged message may lie in no other part.
    for number in 0..message.parts.len() {
        parts.sort(message, number as u32, false);
    }
    for number in parts.bodies {
        append_body(message, number, text)?;
    }
    for number in parts.attachments {
        read_attachment(message, number, text, depth)?;
    }
    Ok(())
}

/// The parts of a message that a reader sees, by their numbers.
#[derive(Default)]
struct Parts {
    bodies: Vec<u32>,
    attachments: Vec<u32>,
    seen: Vec<bool>,
}

impl Parts {
    /// Sorts a part and those in it. `is_resource` says that a page refers to it.
    fn sort(&mut self, message: &Message, number: u32, is_resource: bool) {
        self.seen.resize(message.parts.len(), false);
        let Some(part) = message.part(number) else { return };
        if std::mem::replace(&mut self.seen[number as usize], true) {
            return;
        }
        let (kind, subtype) = find_type(part);
        let PartType::Multipart(inner) = &part.body else {
            let is_text = matches!(part.body, PartType::Text(_) | PartType::Html(_));
            let is_attached = part.content_disposition().is_some_and(ContentType::is_attachment);
            let is_body = kind == "text" && matches!(subtype.as_str(), "plain" | "html" | "enriched");
            let is_named = part.attachment_name().is_some() && number != 0;
            if is_text && is_body && !is_attached && !is_named && !is_resource {
                self.bodies.push(number);
            } else if !(is_resource && is_look(&kind, &subtype)) {
                self.attachments.push(number);
            }
            return;
        };

        match subtype.as_str() {
            "alternative" => {
                let chosen = choose(message, inner);
                for part in inner {
                    if Some(*part) == chosen || !is_version(&message.parts[*part as usize]) {
                        self.sort(message, *part, is_resource);
                    } else {
                        self.skip(message, *part);
                    }
                }
            }
            "related" => {
                let root = part.content_type().and_then(|t| t.attribute("start"));
                let is_root = |part: &&u32| {
                    let id = message.parts[**part as usize].content_id();
                    root.is_some_and(|root| id == Some(root.trim_matches(['<', '>'])))
                };
                let root = inner.iter().find(is_root).or(inner.first());
                for part in inner {
                    self.sort(message, *part, is_resource || Some(part) != root);
                }
            }
            _ => inner.iter().for_each(|part| self.sort(message, *part, is_resource)),
        }
    }

    /// Leaves out texts that another part says as well. What is attached to them is kept.
    fn skip(&mut self, message: &Message, number: u32) {
        let Some(part) = message.part(number) else { return };
        if std::mem::replace(&mut self.seen[number as usize], true) {
            return;
        }
        match &part.body {
            PartType::Multipart(inner) => inner.iter().for_each(|part| self.skip(message, *part)),
            PartType::Text(_) | PartType::Html(_) => {}
            _ => self.attachments.push(number),
        }
    }
}

/// Reports whether a part is for the look of a page alone.
fn is_look(kind: &str, subtype: &str) -> bool {
    kind == "font" || subtype.contains("javascript") || matches!(subtype, "css" | "x-font")
}

/// Reports whether a part says in another way what the other alternatives say.
fn is_version(part: &MessagePart) -> bool {
    let (kind, subtype) = find_type(part);
    kind == "multipart" || (kind == "text" && !matches!(subtype.as_str(), "calendar" | "csv"))
}

/// Chooses among alternatives: the plain text, unless it is blank or says much less than the page.
fn choose(message: &Message, inner: &[u32]) -> Option<u32> {
    const SHORT: usize = 50; // a page of fewer words may repeat a short text
    let is_plain = |part: &&u32| {
        let part = &message.parts[**part as usize];
        matches!(part.body, PartType::Text(_)) && find_type(part).1 == "plain"
    };
    let is_page = |part: &&u32| {
        let part = &message.parts[**part as usize];
        let (kind, subtype) = find_type(part);
        kind == "multipart" || matches!(subtype.as_str(), "html" | "enriched")
    };
    let plain = inner.iter().find(is_plain).copied();
    let page = inner.iter().filter(is_page).next_back().copied();
    let (Some(plain), Some(page)) = (plain, page) else { return plain.or(page) };

    let (words, page_words) = (count_words(message, plain, 0), count_words(message, page, 0));
    let says_less = page_words > SHORT && words < page_words / 4;
    Some(if page_words > 0 && (words == 0 || says_less) { page } else { plain })
}

/// How many words there are in a part, about.
fn count_words(message: &Message, number: u32, depth: usize) -> usize {
    let Some(part) = message.part(number) else { return 0 };
    match &part.body {
        PartType::Text(text) => count(text),
        PartType::Html(page) => {
            let mut words = 0;
            let mut rest = page.as_ref();
            while let Some((before, tag)) = rest.split_once('<') {
                words += count(before);
                let is_hidden = ["style", "script", "head", "title"].iter().find(|name| {
                    tag.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                });
                let end = is_hidden.and_then(|name| {
                    [format!("</{name}"), format!("</{}", name.to_ascii_uppercase())]
                        .iter()
                        .filter_map(|end| tag.find(end.as_str()))
                        .min()
                });
                rest = tag[end.unwrap_or(0)..].split_once('>').map_or("", |(_, after)| after);
            }
            words + count(rest)
        }
        PartType::Multipart(inner) if depth < 16 => {
            inner.iter().map(|part| count_words(message, *part, depth + 1)).sum()
        }
        _ => 0,
    }
}

/// How many words with letters or digits a text has.
fn count(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

fn append_body(message: &Message, number: u32, text: &mut Text) -> Result<(), Problem> {
    let part = &message.parts[number as usize];
    let (body, rest) = decode_part(message, part);
    if find_type(part).1 == "html" {
        html::append(&body, text)?;
    } else {
        text.block(&body)?;
    }
    text.block(&rest)
}

/// The text of a part, and what follows its data.
fn decode_part(message: &Message, part: &MessagePart) -> (String, String) {
    let range = part.raw_body_offset() as usize..part.raw_end_offset() as usize;
    let raw = message.raw_message.get(range).unwrap_or_default();
    let encoding = part.content_transfer_encoding().unwrap_or_default();
    let (data, rest) = mime::decode_body(raw, encoding);
    let kind = part.content_type();
    let charset = kind.and_then(|kind| kind.attribute("charset"));
    let rest = mime::decode_text(&rest, charset);
    if find_type(part).1 == "html" && charset.is_none() {
        return (html::decode(&data), rest);
    }

    let text = mime::decode_text(&data, charset);
    let is = |name, value: &str| {
        kind.and_then(|kind| kind.attribute(name)).is_some_and(|v| v.eq_ignore_ascii_case(value))
    };
    if find_type(part).1 == "plain" && is("format", "flowed") {
        return (mime::join_flowed(&text, is("delsp", "yes")), rest);
    }
    (text, rest)
}

/// The type of a part in lower case, such as "text" and "plain".
fn find_type(part: &MessagePart) -> (String, String) {
    let found = part.content_type().map(|found| {
        let subtype = found.subtype().unwrap_or_default();
        (found.ctype().to_ascii_lowercase(), subtype.to_ascii_lowercase())
    });
    found.unwrap_or_else(|| match part.body {
        PartType::Multipart(_) => ("multipart".to_owned(), "mixed".to_owned()),
        _ => ("text".to_owned(), "plain".to_owned()),
    })
}

/// Parses the header of a part once more, after it was cleaned.
fn read_head<'a>(message: &'a Message, part: &'a MessagePart) -> Option<Message<'static>> {
    let range = part.raw_header_offset() as usize..part.raw_body_offset() as usize;
    let raw = message.raw_message.get(range)?;
    // What is neither ASCII nor UTF-8 is in the character set of the text, as a rule.
    let find = |part: &'a MessagePart| part.content_type()?.attribute("charset");
    let charset = find(part).or_else(|| message.parts.iter().find_map(find));
    let clean = mime::clean_header(raw.trim_ascii_end(), charset);
    MessageParser::default().parse(&clean).map(|head| head.into_owned())
}

/// "Ada Lovelace <ada@example.com>, bob@example.com".
fn list(addresses: &Address) -> String {
    let all: Vec<_> = addresses
        .iter()
        .map(|a| match (a.name(), a.address()) {
            (Some(name), Some(address)) => format!("{name} <{address}>"),
            (name, address) => address.or(name).unwrap_or_default().to_owned(),
        })
        .collect();
    all.join(", ")
}

fn read_attachment(
    message: &Message,
    number: u32,
    text: &mut Text,
    depth: usize,
) -> Result<(), Problem> {
    let part = &message.parts[number as usize];
    if let PartType::Message(inner) = &part.body {
        text.block("### Attached message")?;
        if depth < crate::DEEPEST {
            return read_message(inner, text, depth + 1);
        }
        text.warn("a message lies too deep in other messages");
        return Ok(());
    }

    let head = read_head(message, part);
    let head = head.as_ref().map_or(part, |head| head.root_part());
    let name = head.attachment_name().or(part.attachment_name()).unwrap_or("without a name");
    let (kind, subtype) = find_type(part);
    let kind = match part.content_type() {
        Some(_) if subtype.is_empty() => kind,
        Some(_) => format!("{kind}/{subtype}"),
        None => "unknown type".to_owned(),
    };
    let is_sealed = subtype == "pgp-encrypted" || subtype.ends_with("pkcs7-mime");
    if is_sealed && !name.ends_with(".p7s") {
        text.warn("the message is encrypted or signed in a way that hides its text");
    }

    // What is a document keeps its bytes. A text is decoded by its character set.
    match &part.body {
        PartType::Text(_) | PartType::Html(_) => {
            let (body, rest) = decode_part(message, part);
            attach(name, &kind, body.as_bytes(), text, depth)?;
            text.block(&rest)
        }
        _ => attach(name, &kind, part.contents(), text, depth),
    }
}

/// Appends an attachment: its text, if it is a document or a text, else what it is.
pub fn attach(
    name: &str,
    kind: &str,
    data: &[u8],
    text: &mut Text,
    depth: usize,
) -> Result<(), Problem> {
    let name = shorten(name);
    text.block(&format!("### Attachment {name} ({kind}, {} bytes)", data.len()))?;
    let found = find_kind(&name, data);
    if found.is_empty() {
        let lower = name.to_lowercase();
        let is_text = ["text/", "message/"].iter().any(|start| kind.starts_with(start))
            || TEXTS.iter().any(|end| lower.ends_with(end));
        if !is_text || data.contains(&0) {
            return Ok(());
        }
        return text.block(&mime::decode_text(data, None));
    }

    match convert(found, data.to_vec(), text, depth + 1) {
        Err(problem) if problem.kind == Kind::TooLarge => Err(problem),
        Err(problem) => {
            let why = match problem.kind {
                Kind::Encrypted => "it is encrypted".to_owned(),
                _ => problem.message,
            };
            text.warn(format!("cannot read the attachment {name}: {why}"));
            Ok(())
        }
        done => done,
    }
}
