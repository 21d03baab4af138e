//! Why a document did not become text.

use std::fmt::Display;
use std::io;

use crate::text::count;

/// The kinds, as `internal/data/documents/answer.go` numbers them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Damaged = 1,
    Encrypted = 2,
    /// It is pictures alone, or empty.
    NoText = 3,
    Unsupported = 4,
    /// More would be unpacked or written than the host allows.
    TooLarge = 5,
}

pub struct Problem {
    pub kind: Kind,
    pub message: String,
    /// The pages of a PDF that has no text.
    pub pages: usize,
}

impl Problem {
    pub fn damaged(reason: impl Display) -> Self {
        Self { kind: Kind::Damaged, message: reason.to_string(), pages: 0 }
    }

    pub fn encrypted() -> Self {
        Self { kind: Kind::Encrypted, message: String::new(), pages: 0 }
    }

    pub fn no_text(message: impl Into<String>) -> Self {
        Self { kind: Kind::NoText, message: message.into(), pages: 0 }
    }

    pub fn no_text_on(pages: usize) -> Self {
        let message = format!(
            "no text on its {}: pictures, as of a scanner, or nothing at all",
            count(pages, "page")
        );
        Self { kind: Kind::NoText, message, pages }
    }

    pub fn too_large() -> Self {
        Self { kind: Kind::TooLarge, message: String::new(), pages: 0 }
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self { kind: Kind::Unsupported, message: message.into(), pages: 0 }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::OutOfMemory {
            return Self::unsupported("it needs more memory than a document may have");
        }
        Self::damaged(error)
    }
}

impl From<quick_xml::Error> for Problem {
    fn from(error: quick_xml::Error) -> Self {
        Self::damaged(error)
    }
}
