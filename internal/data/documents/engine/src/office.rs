//! Word, Excel and PowerPoint, of today and before 2007. Their sheets are in `sheets.rs`.

use std::io::{Cursor, Read, Seek};

use office_oxide::ir::{DocumentIR, Metadata, Section};
use office_oxide::options::ParseOptions;
use office_oxide::{Document, DocumentFormat, OfficeError};
use zip::ZipArchive;

use crate::problem::Problem;
use crate::sheets;
use crate::text::{Text, count};

/// Finds the format by the main part of a package.
pub fn find_format<R: Read + Seek>(package: &ZipArchive<R>) -> Option<DocumentFormat> {
    package.index_for_name("[Content_Types].xml")?;
    package.file_names().find_map(|name| match name.ok()?.split('/').next()? {
        "word" => Some(DocumentFormat::Docx),
        "xl" => Some(DocumentFormat::Xlsx),
        "ppt" => Some(DocumentFormat::Pptx),
        _ => None,
    })
}

pub fn read(data: Vec<u8>, format: DocumentFormat, text: &mut Text) -> Result<(), Problem> {
    match format {
        DocumentFormat::Xlsx => return sheets::read_new(data, text),
        DocumentFormat::Xls => return sheets::read_old(data, text),
        _ => {}
    }
    let mut options = ParseOptions::default();
    options.limits.package_bytes = text.room;
    options.limits.part_bytes = text.room;
    let reader = Cursor::new(data);
    let document = Document::from_reader_with(reader, format, &options).map_err(explain)?;
    let DocumentIR { metadata, sections } = document.to_ir();
    drop(document);
    for warning in &metadata.warnings {
        text.warn(warning);
    }
    if metadata.text_truncated {
        text.warn("the end of the text is missing");
    }

    text.describe(&describe(&metadata, &sections))?;
    for section in sections {
        read_section(&metadata, section, text)?;
    }
    Ok(())
}

/// "Excel workbook, 2 sheets (Sales, Costs): Its title".
pub fn describe(metadata: &Metadata, sections: &[Section]) -> String {
    let about = match metadata.format {
        DocumentFormat::Docx | DocumentFormat::Doc => "Word document".to_owned(),
        DocumentFormat::Pptx | DocumentFormat::Ppt => {
            format!("PowerPoint presentation, {}", count(sections.len(), "slide"))
        }
        DocumentFormat::Xlsx | DocumentFormat::Xls => {
            let names: Vec<_> =
                sections.iter().take(50).filter_map(|s| s.title.as_deref()).collect();
            let sheets = count(sections.len(), "sheet");
            format!("Excel workbook, {sheets} ({})", names.join(", "))
        }
    };
    match metadata.title.as_deref().map(str::trim) {
        Some(title) if !title.is_empty() => format!("{about}: {title}"),
        _ => about,
    }
}

fn read_section(metadata: &Metadata, mut section: Section, text: &mut Text) -> Result<(), Problem> {
    let has_slides = matches!(metadata.format, DocumentFormat::Pptx | DocumentFormat::Ppt);
    if has_slides {
        let title = section.title.take().unwrap_or_default();
        let hidden = if section.hidden { " (hidden)" } else { "" };
        text.part("slide", &format!("{title}{hidden}"))?;
    }
    let whole = DocumentIR { metadata: metadata.clone(), sections: vec![section] };
    let markdown = whole.to_markdown();
    if has_slides { text.block(&markdown) } else { text.sections(&markdown) }
}

pub fn explain(error: OfficeError) -> Problem {
    let message = error.to_string();
    let lower = message.to_lowercase();
    if lower.contains("encrypted") || lower.contains("password") {
        return Problem::encrypted();
    }
    if lower.contains("decompression limit") || lower.contains("package limit") {
        return Problem::too_large();
    }
    match error {
        OfficeError::UnsupportedFormat(what) => Problem::unsupported(what),
        _ => Problem::damaged(message),
    }
}
