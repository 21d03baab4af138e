//! Text that lies outside the part of a page that is shown. pdf_oxide leaves it out.

use pdf_oxide::PdfDocument;
use pdf_oxide::content::{Matrix, Operator, TextElement, parse_and_execute_text_only};
use pdf_oxide::layout::{TextChar, TextSpan};

/// The tolerance of pdf_oxide, in points.
const TOLERANCE: f32 = 2.0;

/// What a page shows: left, bottom, right and top, in points.
type Visible = (f32, f32, f32, f32);

/// Reports whether a page may have text that lies outside what it shows. It follows where strings
/// begin, and does not decode them, which takes a small part of the time of `extract_chars`.
pub fn may_exist(document: &PdfDocument, index: usize, spans: &[TextSpan]) -> bool {
    let Ok(visible) = document.get_page_visible_box(index) else { return false };
    // A string that begins inside may go on outside, and others may follow it. A turned one goes on
    // elsewhere than its box says.
    let (left, bottom, right, top) = visible;
    let is_near = |span: &TextSpan| {
        let (b, size) = (&span.bbox, span.font_size.abs());
        let is_turned = span.rotation_degrees != 0.0 || span.mirrored || span.wmode != 0;
        is_turned
            || b.x - size < left
            || b.x + b.width + size > right
            || b.y - size < bottom
            || b.y + b.height + size > top
    };
    if spans.iter().any(is_near) {
        return true;
    }

    let Ok(content) = document.get_page_content_data(index) else { return false };
    let mut pen = Pen::new(visible);
    let read = parse_and_execute_text_only(&content, |operator| {
        pen.follow(&operator);
        Ok(())
    });
    read.is_err() || pen.is_outside
}

/// Reports whether characters of a page lie outside what it shows.
pub fn exists(document: &PdfDocument, index: usize, chars: &[TextChar]) -> bool {
    let Ok((left, bottom, right, top)) = document.get_page_visible_box(index) else { return false };
    chars.iter().filter(|c| !c.char.is_whitespace()).any(|c| {
        let b = &c.bbox;
        b.x + b.width < left - TOLERANCE
            || b.x > right + TOLERANCE
            || b.y + b.height < bottom - TOLERANCE
            || b.y > top + TOLERANCE
    })
}

/// The place where the next string begins.
struct Pen {
    visible: Visible,
    now: State,
    saved: Vec<State>,
    /// How far it was moved without a sign since the last one, in thousandths of the font's size.
    gap: f32,
    is_outside: bool,
}

#[derive(Clone, Copy)]
struct State {
    page: Matrix,
    line: Matrix,
    leading: f32,
    size: f32,
    /// The width of signs, 1 as usual.
    scale: f32,
}

impl Pen {
    /// A wider gap leads elsewhere: `is_near` finds only what lies within the size of a sign.
    const WIDEST: f32 = 1000.0;

    fn new(visible: Visible) -> Self {
        let (page, line) = (Matrix::identity(), Matrix::identity());
        let now = State { page, line, leading: 0.0, size: 1.0, scale: 1.0 };
        Self { visible, now, saved: Vec::new(), gap: 0.0, is_outside: false }
    }

    fn follow(&mut self, operator: &Operator) {
        match *operator {
            Operator::SaveState => self.saved.push(self.now),
            Operator::RestoreState => self.now = self.saved.pop().unwrap_or(self.now),
            Operator::Cm { a, b, c, d, e, f } => {
                self.now.page = Matrix { a, b, c, d, e, f }.multiply(&self.now.page);
            }
            Operator::BeginText => self.place(Matrix::identity()),
            Operator::Tm { a, b, c, d, e, f } => self.place(Matrix { a, b, c, d, e, f }),
            Operator::Td { tx, ty } => self.step(tx, ty),
            Operator::TD { tx, ty } => {
                self.now.leading = -ty;
                self.step(tx, ty);
            }
            Operator::TL { leading } => self.now.leading = leading,
            Operator::Tf { size, .. } => self.now.size = size,
            Operator::Tz { scale } => self.now.scale = scale / 100.0,
            // Signs that stand far apart, or go to the left.
            Operator::Tc { char_space: space } | Operator::Tw { word_space: space } => {
                let size = self.now.size.abs();
                self.is_outside |= !(-0.3 * size..=size).contains(&space);
            }
            Operator::TStar => self.step(0.0, -self.now.leading),
            Operator::Tj { ref text } => self.draw(text),
            Operator::TJ { ref array } => {
                for element in array {
                    match element {
                        TextElement::String(text) => self.draw(text),
                        TextElement::Offset(gap) => self.skip(*gap),
                    }
                }
            }
            Operator::Quote { ref text } => {
                self.step(0.0, -self.now.leading);
                self.draw(text);
            }
            // They are rare, and may draw text anywhere.
            Operator::DoubleQuote { .. } | Operator::Do { .. } => self.is_outside = true,
            _ => {}
        }
    }

    fn place(&mut self, line: Matrix) {
        self.now.line = line;
        self.gap = 0.0;
    }

    fn step(&mut self, x: f32, y: f32) {
        self.place(Matrix::translation(x, y).multiply(&self.now.line));
    }

    fn skip(&mut self, gap: f32) {
        self.gap += gap.abs() * self.now.scale.abs();
    }

    fn draw(&mut self, text: &[u8]) {
        let at = self.now.line.multiply(&self.now.page);
        let (left, bottom, right, top) = self.visible;
        let is_inside = (left..=right).contains(&at.e) && (bottom..=top).contains(&at.f);
        let is_forward = self.now.scale > 0.0 && self.now.size > 0.0;
        self.is_outside |= !is_inside || !is_forward || self.gap > Self::WIDEST;
        let blank = text.iter().all(|byte| matches!(byte, 0 | b' '));
        if blank {
            self.skip(1000.0 * text.len() as f32);
        } else {
            self.gap = 0.0;
        }
    }
}
