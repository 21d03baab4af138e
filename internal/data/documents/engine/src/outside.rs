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
    // A string that begins inside may go on outside, and others may follow it.
    let (left, bottom, right, top) = visible;
    let is_near = |span: &TextSpan| {
        let (b, size) = (&span.bbox, span.font_size.abs());
        b.x - size < left
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
    page: Matrix,
    saved: Vec<Matrix>,
    line: Matrix,
    leading: f32,
    is_outside: bool,
}

impl Pen {
    /// A gap within a string that is wider, in thousandths of the font's size, leads elsewhere.
    const GAP: f32 = 2000.0;

    fn new(visible: Visible) -> Self {
        let (page, line) = (Matrix::identity(), Matrix::identity());
        Self { visible, page, saved: Vec::new(), line, leading: 0.0, is_outside: false }
    }

    fn follow(&mut self, operator: &Operator) {
        match *operator {
            Operator::SaveState => self.saved.push(self.page),
            Operator::RestoreState => self.page = self.saved.pop().unwrap_or(self.page),
            Operator::Cm { a, b, c, d, e, f } => {
                self.page = Matrix { a, b, c, d, e, f }.multiply(&self.page);
            }
            Operator::BeginText => self.line = Matrix::identity(),
            Operator::Tm { a, b, c, d, e, f } => self.line = Matrix { a, b, c, d, e, f },
            Operator::Td { tx, ty } => self.step(tx, ty),
            Operator::TD { tx, ty } => {
                self.leading = -ty;
                self.step(tx, ty);
            }
            Operator::TL { leading } => self.leading = leading,
            Operator::TStar => self.step(0.0, -self.leading),
            Operator::Tj { .. } => self.draw(),
            Operator::TJ { ref array } => {
                let leads_away =
                    |one: &_| matches!(one, TextElement::Offset(gap) if gap.abs() > Self::GAP);
                self.is_outside |= array.iter().any(leads_away);
                self.draw();
            }
            Operator::Quote { .. } | Operator::DoubleQuote { .. } => {
                self.step(0.0, -self.leading);
                self.draw();
            }
            // It may draw text anywhere.
            Operator::Do { .. } => self.is_outside = true,
            _ => {}
        }
    }

    fn step(&mut self, x: f32, y: f32) {
        self.line = Matrix::translation(x, y).multiply(&self.line);
    }

    fn draw(&mut self) {
        let at = self.line.multiply(&self.page);
        let (left, bottom, right, top) = self.visible;
        let is_inside = (left..=right).contains(&at.e) && (bottom..=top).contains(&at.f);
        self.is_outside |= !is_inside;
    }
}
