//! The bytes of mail as text, also where its headers do not say the truth.

use encoding_rs::Encoding;
use mail_parser::decoders::charsets::map::charset_decoder;

/// Longer encoded words are no words. The standard allows 75 bytes.
const LONGEST_WORD: usize = 1 << 11;

/// Decodes the body of a part. What follows the data, such as the footer of a mailing list below
/// base64, is the second result.
pub fn decode_body(raw: &[u8], encoding: &str) -> (Vec<u8>, Vec<u8>) {
    match encoding.trim().to_ascii_lowercase().as_str() {
        "base64" => decode_base64_lines(raw),
        "quoted-printable" => (decode_quoted(raw, false), Vec::new()),
        _ => (raw.to_vec(), Vec::new()),
    }
}

fn decode_base64_lines(raw: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let is_data = |line: &[u8]| line.iter().all(|c| is_base64(*c) || *c == b'=');
    let lines: Vec<&[u8]> = raw.split(|c| *c == b'\n').map(<[u8]>::trim_ascii).collect();
    let first_bad = lines.iter().position(|line| !is_data(line)).unwrap_or(lines.len());
    // A footer begins behind an empty line, or behind the end of the data.
    let mut end = first_bad;
    if first_bad < lines.len() {
        let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(0);
        let blank = (first..first_bad).find(|at| lines[*at].is_empty());
        let padded = (first..first_bad).find(|at| lines[*at].ends_with(b"="));
        end = first_bad.min(blank.unwrap_or(end)).min(padded.map_or(end, |at| at + 1));
    }

    let mut data = Vec::new();
    let mut chunk = Vec::new();
    for line in &lines[..end] {
        chunk.extend_from_slice(line);
        if line.ends_with(b"=") {
            data.append(&mut decode_base64(&chunk));
            chunk.clear();
        }
    }
    data.append(&mut decode_base64(&chunk));
    let rest = lines[end..].join(&b'\n').trim_ascii().to_vec();
    (data, rest)
}

fn is_base64(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'+' || c == b'/'
}

/// Decodes base64, and ignores what is none.
fn decode_base64(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0u32, 0);
    for c in data {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

/// Decodes quoted-printable: of a body, or of a word in a header, where `_` is a space.
fn decode_quoted(data: &[u8], is_word: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first == b'_' && is_word {
            out.push(b' ');
            continue;
        }
        if first != b'=' {
            out.push(first);
            continue;
        }
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            out.push(byte);
            rest = &tail[2..];
            continue;
        }
        // A line that goes on in the next one.
        let blank = tail.iter().take_while(|c| matches!(c, b' ' | b'\t' | b'\r')).count();
        match tail.get(blank) {
            Some(b'\n') => rest = &tail[blank + 1..],
            None => rest = &[],
            Some(_) => out.push(first),
        }
    }
    out
}

/// Decodes a text by the name of its character set. Programs that do not know the set name one of
/// the first three in vain, so UTF-8 is taken for what it is.
pub fn decode_text(data: &[u8], charset: Option<&str>) -> String {
    if let Some((encoding, length)) = Encoding::for_bom(data) {
        return encoding.decode_without_bom_handling(&data[length..]).0.into_owned();
    }
    let name = charset.unwrap_or_default().trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    let encoding = Encoding::for_label(name.as_bytes());
    let decoder = charset_decoder(name.as_bytes()).filter(|_| !name.is_empty());
    let is_guess = encoding.is_none_or(|encoding| {
        encoding == encoding_rs::WINDOWS_1252
            || encoding == encoding_rs::UTF_8
            || encoding == encoding_rs::ISO_8859_15
    });
    if (is_guess && (encoding.is_some() || decoder.is_none())) || name.contains("ascii") {
        if let Ok(text) = std::str::from_utf8(data) {
            let is_japanese = text.contains("\x1b$B") || text.contains("\x1b$@");
            return match is_japanese {
                true => encoding_rs::ISO_2022_JP.decode(data).0.into_owned(),
                false => text.to_owned(),
            };
        }
        // Bytes that are mostly UTF-8 were cut. Others are older than it.
        let lossy = String::from_utf8_lossy(data);
        let broken = lossy.matches('\u{fffd}').count();
        let whole = lossy.chars().filter(|c| !c.is_ascii() && *c != '\u{fffd}').count();
        let is_utf8 = whole > broken;
        return match encoding {
            Some(other) if other != encoding_rs::UTF_8 => other.decode(data).0.into_owned(),
            _ if is_utf8 => lossy.into_owned(),
            _ => encoding_rs::WINDOWS_1252.decode(data).0.into_owned(),
        };
    }
    match (decoder, encoding) {
        (Some(decode), _) => decode(data),
        (None, Some(encoding)) => encoding.decode(data).0.into_owned(),
        (None, None) => String::from_utf8_lossy(data).into_owned(),
    }
}

/// Rewrites the header of a message or a part, so that a strict parser reads it: all is ASCII or
/// UTF-8, and each text is one encoded word, for old programs split characters between two.
pub fn clean_header(header: &[u8], charset: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(header.len() + 2);
    let lossless = match std::str::from_utf8(header) {
        Ok(_) => header.to_vec(),
        Err(_) => {
            // Each line may come from another program.
            let lines = header.split_inclusive(|c| *c == b'\n');
            lines.flat_map(|line| decode_text(line, charset).into_bytes()).collect()
        }
    };
    let mut rest = lossless.as_slice();
    while let Some(at) = find(rest, b"=?") {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let Some((mut word, mut tail)) = parse_word(rest) else {
            out.extend_from_slice(b"=?");
            rest = &rest[2..];
            continue;
        };
        while let Some((next, after)) = parse_word(skip_space(tail)) {
            word.add(next);
            tail = after;
        }
        let text = word.finish();
        if text.is_ascii() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ') {
            out.extend_from_slice(text.as_bytes());
        } else {
            out.extend_from_slice(b"=?utf-8?B?");
            encode_base64(text.as_bytes(), &mut out);
            out.extend_from_slice(b"?=");
        }
        rest = tail;
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(b"\r\n\r\n");
    out
}

/// Words of a header with the same character set are decoded together.
struct Word {
    charset: String,
    data: Vec<u8>,
    done: String,
}

impl Word {
    fn add(&mut self, next: Self) {
        if next.charset != self.charset {
            self.done += &decode_text(&std::mem::take(&mut self.data), Some(&self.charset));
            self.charset = next.charset;
        }
        self.data.extend_from_slice(&next.data);
    }

    fn finish(mut self) -> String {
        self.done += &decode_text(&self.data, Some(&self.charset));
        self.done.retain(|c| c >= ' ');
        self.done
    }
}

/// Parses `=?utf-8?B?…?=` at the start, and returns what follows it.
fn parse_word(text: &[u8]) -> Option<(Word, &[u8])> {
    let rest = text.strip_prefix(b"=?")?;
    let (charset, rest) = split(rest, b'?')?;
    let (encoding, rest) = split(rest, b'?')?;
    let is_name = |c: &u8| c.is_ascii_graphic();
    if charset.is_empty() || charset.len() > 64 || !charset.iter().all(is_name) {
        return None;
    }
    let end = find(&rest[..rest.len().min(LONGEST_WORD)], b"?=")?;
    let data = &rest[..end];
    let data = match encoding {
        b"B" | b"b" => decode_base64(data),
        b"Q" | b"q" => decode_quoted(data, true),
        _ => return None,
    };
    let charset = String::from_utf8_lossy(charset).to_ascii_lowercase();
    let charset = charset.split('*').next().unwrap_or_default().to_owned();
    Some((Word { charset, data, done: String::new() }, &rest[end + 2..]))
}

fn encode_base64(data: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in data.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at)) as usize & 63];
            out.push(if at > group.len() { b'=' } else { digit });
        }
    }
}

fn skip_space(text: &[u8]) -> &[u8] {
    let rest = text.trim_ascii_start();
    // A line without space at its start begins another field.
    let is_next = rest.len() < text.len() && text[text.len() - rest.len() - 1] == b'\n';
    if is_next { &[] } else { rest }
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let end = text.iter().take(128).position(|c| *c == at)?;
    Some((&text[..end], &text[end + 1..]))
}

fn find(text: &[u8], wanted: &[u8; 2]) -> Option<usize> {
    text.windows(2).position(|two| two == wanted)
}

/// Joins the lines of `format=flowed`: a line that ends with a space goes on in the next one.
pub fn join_flowed(text: &str, is_space_lost: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open = None; // how deep the line is quoted that goes on
    for line in text.lines() {
        let quotes = line.len() - line.trim_start_matches('>').len();
        let content = &line[quotes..];
        let content = content.strip_prefix(' ').unwrap_or(content);
        let is_signature = content == "-- ";
        if open.is_some_and(|depth| depth != quotes || is_signature) {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            open = None;
        }
        if open.is_none() {
            out.push_str(&">".repeat(quotes));
            out.push_str(if quotes > 0 && !content.is_empty() { " " } else { "" });
        }
        let goes_on = content.ends_with(' ') && !is_signature;
        let kept = if goes_on && is_space_lost { &content[..content.len() - 1] } else { content };
        out.push_str(kept);
        open = goes_on.then_some(quotes);
        if !goes_on {
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_words_are_decoded_together() {
        for (header, want) in [
            ("S: =?utf-8?B?5pel5pys6Kqe4w==?=\r\n =?utf-8?B?ga7ku7blkI3jg4bjgrnjg4g=?=", "日本語の件名テスト"),
            ("S: =?utf-8?Q?caf=C3?= =?utf-8?Q?=A9_x?=", "café x"),
            ("S: =?iso-8859-1?Q?R=E9s?=\n =?utf-8?Q?um=C3=A9?=", "Résumé"),
        ] {
            let clean = clean_header(header.as_bytes(), None);
            let clean = String::from_utf8(clean).unwrap();
            let word = clean.trim_start_matches("S: =?utf-8?B?").split('?').next().unwrap();
            assert_eq!(String::from_utf8(decode_base64(word.as_bytes())).unwrap(), want);
        }
    }

    #[test]
    fn fields_stay_apart() {
        let header = b"From: =?utf-8?Q?=C3=A9?=\r\nSubject: =?utf-8?Q?=C3=A8?=\r\nX: R\xe9s =? b";
        let clean = String::from_utf8(clean_header(header, Some("iso-8859-1"))).unwrap();
        assert_eq!(clean, "From: =?utf-8?B?w6k=?=\r\nSubject: =?utf-8?B?w6g=?=\r\nX: Rés =? b\r\n\r\n");
    }

    #[test]
    fn charsets_that_are_not_true() {
        let e = "café naïve";
        let latin = b"caf\xe9 na\xefve";
        for charset in [None, Some("us-ascii"), Some("iso-8859-1"), Some("nonsense"), Some("utf-8")] {
            assert_eq!(decode_text(e.as_bytes(), charset), e);
            assert_eq!(decode_text(latin, charset), e);
        }
        assert_eq!(decode_text(b"\xcf\xf0\xe8\xe2\xe5\xf2", Some("windows-1251")), "Привет");
        assert_eq!(decode_text(b"\xf0\xd2\xc9\xd7\xc5\xd4", Some("koi8-r")), "Привет");
    }

    #[test]
    fn footers_below_base64() {
        let (data, rest) = decode_body(b"SGVsbG8gd8O2cmxk\r\n\r\n-- \r\nfooter\r\n", "Base64");
        assert_eq!((data.as_slice(), rest.as_slice()), ("Hello wörld".as_bytes(), &b"--\nfooter"[..]));
        let (data, rest) = decode_body(b"SGVsbG8=\nlist footer", "base64");
        assert_eq!((data.as_slice(), rest.as_slice()), (&b"Hello"[..], &b"list footer"[..]));
        let (data, rest) = decode_body(b"SGVs\nbG8=\n\nSGVsbG8\n", "base64");
        assert_eq!((data.as_slice(), rest.as_slice()), (&b"HelloHello"[..], &b""[..]));
    }

    #[test]
    fn flowed_lines() {
        let text = "One line \nthat goes on.\n> quoted \n> text\nback\n  stuffed\n-- \nAda";
        let want = "One line that goes on.\n> quoted text\nback\n stuffed\n-- \nAda\n";
        assert_eq!(join_flowed(text, false), want);
        assert_eq!(join_flowed("日本 \n語", true), "日本語\n");
    }
}
