//! The drawer of package pageimages: a page of a PDF becomes a PNG, in one WebAssembly module.
//!
//! The module reads the document with the host's `read`, and answers with the picture.

#[allow(dead_code)] // the answer is the output
#[path = "../../../../machine/rustmodule/guest.rs"]
mod guest;

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use guest::put_text;
use hayro::hayro_interpret::font::FontQuery;
use hayro::hayro_interpret::{InterpreterSettings, InterpreterWarning};
use hayro::hayro_syntax::Pdf;
use hayro::hayro_syntax::{DecryptionError, LoadPdfError};
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};

/// Bounds of a picture. The drawer multiplies before it checks, so the checks are here.
const MAX_SIDE: f64 = 4096.0;
const MAX_PIXELS: f64 = 16e6;

/// The bits of what a picture lacks.
const LACKS_FONT: u8 = 1;
const LACKS_IMAGE: u8 = 2;
const LACKS_ANNOTATION: u8 = 4;

/// Draws a page: see `internal/data/pageimages/pageimages.go`.
#[unsafe(no_mangle)]
pub extern "C" fn call(_operation: u32) -> u64 {
    let request = guest::take_request();
    guest::reply(draw(&request).unwrap_or_else(|problem| {
        let mut out = vec![1];
        put_text(&mut out, &problem.0);
        out
    }))
}

/// Why a page has no picture.
struct Problem(String);

impl<E: Display> From<E> for Problem {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The request has the size of the document, the number of the page from 0, the dots per inch, and the most
/// bytes of a picture. The answer has a 0, what the picture lacks, and the PNG.
fn draw(request: &[u8]) -> Result<Vec<u8>, Problem> {
    let (pdf, rest) = open(request)?;
    let (number, rest) = take_u32(rest)?;
    let (dpi, rest) = take_u32(rest)?;
    let (most, _) = take_u32(rest)?;

    let pages = pdf.pages();
    let page = pages.get(number as usize).ok_or_else(|| {
        let page = u64::from(number) + 1;
        Problem(format!("the drawer finds {} pages, but not page {page}", pages.len()))
    })?;
    let scale = f64::from(dpi) / 72.0;
    let (width, height) = page.render_dimensions();
    check_size(f64::from(width) * scale, f64::from(height) * scale, dpi)?;

    let lacks = Arc::new(AtomicU8::new(0));
    let settings = watch(&lacks);
    let scale = scale as f32;
    let to = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let drawn = render(page, &RenderCache::new(), &settings, &RenderSettings::default(), &to);
    let png = drawn.into_png()?;
    if png.len() > most as usize {
        return Err(Problem(format!(
            "its picture has {} bytes at {dpi} dpi, and {most} are allowed: lower dpi",
            png.len()
        )));
    }

    let mut out = vec![0, lacks.load(Ordering::Relaxed)];
    out.extend_from_slice(&png);
    Ok(out)
}

/// Settings that collect what a picture lacks.
fn watch(lacks: &Arc<AtomicU8>) -> InterpreterSettings {
    let (of_fonts, of_others) = (lacks.clone(), lacks.clone());
    let usual = InterpreterSettings::default();
    let resolve = usual.font_resolver.clone();
    InterpreterSettings {
        // The standard fonts stand in for others, but have no signs of such a collection.
        font_resolver: Arc::new(move |query| {
            if let FontQuery::Fallback(font) = query
                && font.character_collection.is_some()
            {
                of_fonts.fetch_or(LACKS_FONT, Ordering::Relaxed);
            }
            resolve(query)
        }),
        warning_sink: Arc::new(move |warning| {
            of_others.fetch_or(bit_of(warning), Ordering::Relaxed);
        }),
        ..usual
    }
}

/// Opens the document, and returns the rest of the request.
fn open(request: &[u8]) -> Result<(Pdf, &[u8]), Problem> {
    let (size, rest) = request.split_first_chunk::<8>().ok_or_else(short)?;
    let pdf = Pdf::new(read_whole(u64::from_le_bytes(*size))?).map_err(explain)?;
    Ok((pdf, rest))
}

fn take_u32(request: &[u8]) -> Result<(u32, &[u8]), Problem> {
    let (number, rest) = request.split_first_chunk::<4>().ok_or_else(short)?;
    Ok((u32::from_le_bytes(*number), rest))
}

fn short() -> Problem {
    Problem("the request is short".to_owned())
}

/// The whole document, which must fit into the memory.
fn read_whole(size: u64) -> Result<Vec<u8>, Problem> {
    let size = usize::try_from(size)?;
    let mut data = Vec::new();
    data.try_reserve_exact(size)?;
    data.resize(size, 0);
    match unsafe { guest::read(data.as_mut_ptr(), size) } {
        count if usize::try_from(count) == Ok(size) => Ok(data),
        _ => Err(Problem("the document cannot be read".to_owned())),
    }
}

fn check_size(width: f64, height: f64, dpi: u32) -> Result<(), Problem> {
    // A size that is not a number fails the comparisons.
    if width >= 1.0 && height >= 1.0 && width <= MAX_SIDE && height <= MAX_SIDE
        && width * height <= MAX_PIXELS
    {
        return Ok(());
    }
    Err(Problem(format!(
        "at {dpi} dpi its page has {width:.0} x {height:.0} pixels; allowed are 1 to {MAX_SIDE} \
         on each side, and {} million: change dpi",
        MAX_PIXELS / 1e6
    )))
}

fn explain(error: LoadPdfError) -> Problem {
    Problem(match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => {
            "it is encrypted with a password".to_owned()
        }
        LoadPdfError::Decryption(_) => "it is encrypted in a way that is not supported".to_owned(),
        LoadPdfError::Invalid => "it is damaged".to_owned(),
    })
}

fn bit_of(warning: InterpreterWarning) -> u8 {
    match warning {
        InterpreterWarning::UnsupportedFont => LACKS_FONT,
        InterpreterWarning::ImageDecodeFailure => LACKS_IMAGE,
        _ => LACKS_ANNOTATION,
    }
}
