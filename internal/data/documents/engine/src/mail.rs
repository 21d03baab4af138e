//! Mail: single messages and mailboxes. Attachments that are documents are read, too.

use std::io::BufRead;

use mail_parser::mailbox::mbox::MessageIterator;
use mail_parser::{Address, Message, MessageParser, MessagePart, MimeHeaders, PartType};

use crate::problem::{Kind, Problem};
use crate::text::{Text, shorten};
use crate::{convert, find_kind, html};

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
                text.part("message", message.subject().unwrap_or_default())?;
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
    let mut header = String::new();
    let addresses = [("From", message.from()), ("To", message.to()), ("Cc", message.cc())];
    for (name, found) in addresses {
        if let Some(found) = found {
            header += &format!("{name}: {}  \n", list(found));
        }
    }
    if let Some(date) = message.date() {
        header += &format!("Date: {date}  \n");
    }
    if let Some(subject) = message.subject() {
        header += &format!("Subject: {}  \n", shorten(subject));
    }
    text.block(&header)?;

    for part in message.text_bodies() {
        match &part.body {
            PartType::Text(body) => text.block(body)?,
            PartType::Html(body) => html::append(body, text)?,
            _ => {}
        }
    }
    for part in message.attachments() {
        read_attachment(part, text, depth)?;
    }
    Ok(())
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

fn read_attachment(part: &MessagePart, text: &mut Text, depth: usize) -> Result<(), Problem> {
    if let PartType::Message(message) = &part.body {
        text.block("### Attached message")?;
        return if depth < crate::DEEPEST {
            read_message(message, text, depth + 1)
        } else {
            Ok(())
        };
    }
    let name = part.attachment_name().unwrap_or("without a name");
    let kind = part.content_type().map(|t| match t.subtype() {
        Some(subtype) => format!("{}/{subtype}", t.ctype()),
        None => t.ctype().to_owned(),
    });
    let kind = kind.unwrap_or_else(|| "unknown type".to_owned());
    attach(name, &kind, part.contents(), text, depth)
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
        return match std::str::from_utf8(data) {
            Ok(plain) if kind.starts_with("text/") => text.block(plain),
            _ => Ok(()),
        };
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
