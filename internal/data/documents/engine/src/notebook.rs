//! Notebooks of Jupyter: text and code, with what the code printed.

use serde_json::Value;

use crate::html;
use crate::problem::Problem;
use crate::text::{Text, count};

pub fn read(data: &[u8], text: &mut Text) -> Result<(), Problem> {
    let notebook: Value = serde_json::from_slice(data).map_err(Problem::damaged)?;
    let sheets = notebook["worksheets"].as_array(); // of format 3
    let cells: Vec<&Value> = match (notebook["cells"].as_array(), sheets) {
        (Some(cells), _) => cells.iter().collect(),
        (None, Some(sheets)) => {
            sheets.iter().filter_map(|s| s["cells"].as_array()).flatten().collect()
        }
        (None, None) => return Err(Problem::damaged("it has no cells")),
    };

    let about = &notebook["metadata"];
    let language = about["language_info"]["name"]
        .as_str()
        .or(about["kernelspec"]["language"].as_str())
        .unwrap_or("python");
    text.describe(&format!("Notebook, {}, {language}", count(cells.len(), "cell")))?;
    for cell in cells {
        text.mark("cell", cell["cell_type"].as_str().unwrap_or_default());
        read_cell(cell, language, text)?;
    }
    Ok(())
}

fn read_cell(cell: &Value, language: &str, text: &mut Text) -> Result<(), Problem> {
    let source = if cell["source"].is_null() { &cell["input"] } else { &cell["source"] };
    let source = join(source);
    match cell["cell_type"].as_str() {
        Some("code") => {
            text.block(&fence(&source, language))?;
            for output in cell["outputs"].as_array().into_iter().flatten() {
                read_output(output, text)?;
            }
            Ok(())
        }
        Some("heading") => {
            let level = cell["level"].as_u64().unwrap_or(1).clamp(1, 6) as usize;
            text.block(&format!("{} {source}", "#".repeat(level)))
        }
        _ => text.block(&source),
    }
}

fn read_output(output: &Value, text: &mut Text) -> Result<(), Problem> {
    if let Some(name) = output["ename"].as_str() {
        let error = format!("{name}: {}", join(&output["evalue"]));
        let lines = output["traceback"].as_array().into_iter().flatten();
        let lines = lines.filter_map(Value::as_str).map(strip_colours).collect::<Vec<_>>().join("\n");
        let is_named = lines.contains(error.trim());
        let whole = if is_named { lines } else { format!("{lines}\n{error}") };
        return text.block(&fence(whole.trim_start_matches('\n'), ""));
    }
    let data = if output["data"].is_object() { &output["data"] } else { output };
    let find = |names: [&str; 2]| names.iter().map(|n| join(&data[*n])).find(|t| !t.is_empty());

    if let Some(markdown) = find(["text/markdown", "text/latex"]) {
        text.block(&markdown)?;
    } else if let Some(page) = find(["text/html", "html"]).filter(|page| page.contains("<table")) {
        text.block(&html::to_markdown(&page)?)?;
    } else if let Some(plain) = find(["text/plain", "text"]) {
        text.block(&fence(&plain, ""))?;
    }
    for kind in ["image/png", "image/jpeg", "image/svg+xml", "png", "jpeg", "svg"] {
        if !data[kind].is_null() {
            text.block(&format!("[picture: {}]", kind.trim_start_matches("image/")))?;
        }
    }
    Ok(())
}

/// A text, which notebooks may keep as a list of lines.
fn join(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

/// A text without the escapes of terminals, such as `ESC[0;31m`.
fn strip_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_end = |c: char| ('@'..='~').contains(&c);
        out += piece.split_once(is_end).map_or("", |(_, rest)| rest);
    }
    out
}

/// A block of code, with a fence that does not occur in it.
fn fence(code: &str, language: &str) -> String {
    if code.trim().is_empty() {
        return String::new();
    }
    let mut fence = "```".to_owned();
    while code.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}", code.trim_end())
}
