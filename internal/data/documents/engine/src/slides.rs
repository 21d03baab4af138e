//! The order of what is on a slide of PowerPoint.
//!
//! office_oxide sorts shapes by the places that they have themselves. A placeholder often has none:
//! its layout has it, or the master of that. And two columns of shapes are read one after the
//! other. So this finds the place of each shape, and writes the order into the slide.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::rc::Rc;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::package::{Package, read_bounded};
use crate::problem::Problem;
use crate::reading::{self, Area};

/// Slides with more shapes stay as they are, and slides with groups that lie deeper.
const MOST_SHAPES: usize = 10_000;
const DEEPEST: usize = 64;

/// The types of placeholders at the edge of a slide.
const EDGES: [&str; 4] = ["dt", "ftr", "hdr", "sldNum"];

/// Farther away, in units of 1/914,400 inch, is nothing: a kilometre.
const FARTHEST: f64 = 3.6e10;

/// The layouts and masters that slides have used, by the names of their parts.
#[derive(Default)]
pub struct Slides {
    layouts: HashMap<String, Rc<Layout>>,
}

/// Where the placeholders of a layout or a master stand: each by its kind and number, and the first
/// of each kind without a number.
#[derive(Default)]
struct Layout {
    areas: HashMap<(Kind, Option<u32>), Option<Area>>,
    master: Option<Rc<Layout>>,
}

/// A shape that is not a group.
#[derive(Default)]
struct Shape {
    /// Where the file has it, before the groups around it move it.
    own: Option<(f64, f64)>,
    area: Option<Area>,
    placeholder: Option<Placeholder>,
    has_text: bool,
    /// The bytes of its place, or where one may be inserted.
    at: Option<Edit>,
}

#[derive(Clone, Copy)]
struct Placeholder {
    kind: Kind,
    index: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Title,
    Body,
    /// The date, the number and the like, at the edge of a slide.
    Edge(&'static str),
}

/// The bytes that a place replaces, and what stands around it there.
#[derive(Default)]
struct Edit {
    start: usize,
    end: usize,
    size: String,
    before: String,
    after: String,
}

impl Slides {
    /// A slide whose shapes are sorted as they are read, None if they already are. What it reads
    /// of the package takes from the room.
    pub fn order(
        &mut self,
        name: &str,
        xml: &[u8],
        package: &mut Package,
        room: &mut u64,
    ) -> Result<Option<Vec<u8>>, Problem> {
        let Some(mut shapes) = read_shapes(xml) else { return Ok(None) };
        if shapes.iter().filter(|shape| shape.is_shown()).count() < 2 {
            return Ok(None);
        }
        if shapes.iter().any(|shape| shape.area.is_none() && shape.placeholder.is_some()) {
            let layout = self.find_layout(name, "slideLayout", package, room)?;
            shapes.iter_mut().for_each(|shape| shape.inherit(layout.as_deref()));
        }

        let order = sort(&shapes);
        Ok((!is_sorted(&shapes, &order)).then(|| write(xml, &shapes, &order)))
    }

    /// The layout that a part is made with, or the master of a layout.
    fn find_layout(
        &mut self,
        name: &str,
        kind: &str,
        package: &mut Package,
        room: &mut u64,
    ) -> Result<Option<Rc<Layout>>, Problem> {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        let relations = read_bounded(package, &format!("{folder}/_rels/{file}.rels"), room)?;
        let Some(part) = relations.and_then(|xml| find_target(&xml, kind, folder)) else {
            return Ok(None);
        };
        if let Some(known) = self.layouts.get(&part) {
            return Ok(Some(known.clone()));
        }
        let Some(xml) = read_bounded(package, &part, room)? else { return Ok(None) };
        let mut layout = Layout::new(&read_shapes(&xml).unwrap_or_default());
        if kind == "slideLayout" {
            layout.master = self.find_layout(&part, "slideMaster", package, room)?;
        }
        let layout = Rc::new(layout);
        self.layouts.insert(part, layout.clone());
        Ok(Some(layout))
    }
}

impl Layout {
    fn new(shapes: &[Shape]) -> Self {
        let mut layout = Self::default();
        for shape in shapes {
            let Some(Placeholder { kind, index }) = shape.placeholder else { continue };
            layout.areas.entry((kind, Some(index))).or_insert(shape.area);
            layout.areas.entry((kind, None)).or_insert(shape.area);
        }
        layout
    }

    /// Where a placeholder stands: the one with its number, or else the first of its kind.
    fn find(&self, wanted: Placeholder) -> Option<Area> {
        let find = |index| self.areas.get(&(wanted.kind, index));
        let found = find(Some(wanted.index)).or_else(|| find(None)).copied().flatten();
        // Those of a master have other numbers.
        found.or_else(|| self.master.as_ref()?.find(wanted))
    }
}

impl Shape {
    fn inherit(&mut self, layout: Option<&Layout>) {
        if self.area.is_none()
            && let Some(placeholder) = self.placeholder
        {
            self.area = layout.and_then(|layout| layout.find(placeholder));
        }
    }

    fn is_title(&self) -> bool {
        self.placeholder.as_ref().is_some_and(|placeholder| placeholder.kind == Kind::Title)
    }

    fn is_at_edge(&self) -> bool {
        self.placeholder.as_ref().is_some_and(|p| matches!(p.kind, Kind::Edge(_)))
    }

    /// Reports whether it has anything that is read.
    fn is_shown(&self) -> bool {
        self.has_text && self.at.is_some()
    }
}

/// The numbers of all shapes in the order in which they are read: the title, then what is between
/// the edges, then the rest.
fn sort(shapes: &[Shape]) -> Vec<usize> {
    let all = || 0..shapes.len();
    let mut order: Vec<usize> = all().filter(|at| shapes[*at].is_title()).collect();
    let is_inside = |at: &usize| !shapes[*at].is_title() && !shapes[*at].is_at_edge();
    let placed = all().filter(is_inside).filter_map(|at| Some((at, shapes[at].area?)));
    let (shown, blank) = placed.partition::<Vec<_>, _>(|(at, _)| shapes[*at].is_shown());
    order.extend(reading::order(&shown));
    order.extend(blank.iter().map(|(at, _)| *at));
    order.extend(all().filter(is_inside).filter(|at| shapes[*at].area.is_none()));
    let mut edge: Vec<usize> = all().filter(|at| shapes[*at].is_at_edge()).collect();
    edge.sort_by(|a, b| {
        let left = |at: usize| shapes[at].area.map_or(f64::MAX, |area| area.left);
        left(*a).partial_cmp(&left(*b)).unwrap_or(Ordering::Equal)
    });
    order.extend(edge);
    order
}

/// Reports whether office_oxide reads the shapes in an order: it sorts them by what the file says,
/// from the top, and puts those without a place behind them.
fn is_sorted(shapes: &[Shape], order: &[usize]) -> bool {
    let read = |at: &&usize| shapes[**at].is_shown() && !shapes[**at].is_title();
    let mut before: Option<(usize, Option<(f64, f64)>)> = None;
    order.iter().filter(read).all(|at| {
        let place = shapes[*at].own;
        let is_behind = before.is_none_or(|(last, above)| match (above, place) {
            (Some((left, top)), Some((x, y))) => {
                (top, left) < (y, x) || ((top, left) == (y, x) && last < *at)
            }
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => last < *at,
        });
        before = Some((*at, place));
        is_behind
    })
}

/// Writes the rank of each shape as its place.
fn write(xml: &[u8], shapes: &[Shape], order: &[usize]) -> Vec<u8> {
    let mut ranks = vec![0; shapes.len()];
    order.iter().enumerate().for_each(|(rank, at)| ranks[*at] = rank);
    let mut out = Vec::with_capacity(xml.len() + shapes.len() * 64);
    let mut done = 0;
    for (shape, rank) in shapes.iter().zip(ranks) {
        let Some(edit) = &shape.at else { continue };
        let Edit { start, end, size, before, after } = edit;
        out.extend_from_slice(&xml[done..*start]);
        let place = format!("<a:xfrm><a:off x=\"0\" y=\"{rank}\"/>{size}</a:xfrm>");
        out.extend_from_slice(format!("{before}{place}{after}").as_bytes());
        done = *end;
    }
    out.extend_from_slice(&xml[done..]);
    out
}

/// How a group moves and scales what is in it: on each axis a factor and a shift.
#[derive(Clone, Copy)]
struct Transform([(f64, f64); 2]);

impl Transform {
    const NONE: Self = Self([(1.0, 0.0); 2]);

    /// That of a group in another one.
    fn of(outer: Self, place: &Place) -> Self {
        let axis = |at: usize| {
            let (scale, shift) = outer.0[at];
            let (from, to) = (place.inner_offset[at], place.offset[at]);
            let is_empty = place.inner_size[at] <= 0.0 || place.size[at] <= 0.0;
            let factor = if is_empty { 1.0 } else { place.size[at] / place.inner_size[at] };
            let (factor, start) =
                if place.flips[at] { (-factor, to + place.size[at]) } else { (factor, to) };
            (scale * factor, scale * (start - from * factor) + shift)
        };
        Self([axis(0), axis(1)])
    }

    fn apply(self, place: &Place) -> Area {
        let mut sides = [[0.0; 2]; 2];
        // What is turned by a quarter is as wide as it is high without.
        let size = if place.is_turned { [place.size[1], place.size[0]] } else { place.size };
        for (at, (scale, shift)) in self.0.into_iter().enumerate() {
            let start = place.offset[at] + (place.size[at] - size[at]) / 2.0;
            let ends = [start, start + size[at]].map(|end| end * scale + shift);
            let ends = ends.map(|end| end.clamp(-FARTHEST, FARTHEST));
            sides[at] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        }
        let [[left, right], [top, bottom]] = sides;
        Area { left, right, top, bottom }
    }
}

/// An element `xfrm`.
#[derive(Default)]
struct Place {
    offset: [f64; 2],
    size: [f64; 2],
    inner_offset: [f64; 2],
    inner_size: [f64; 2],
    flips: [bool; 2],
    is_turned: bool,
}

impl Place {
    fn begin(e: &BytesStart) -> Self {
        let is_set = |name| find(e, name).is_some_and(|value| value == "1" || value == "true");
        let angle = number(e, "rot") / 60_000.0;
        Self {
            flips: [is_set("flipH"), is_set("flipV")],
            is_turned: (angle / 90.0).round().rem_euclid(2.0) == 1.0,
            ..Self::default()
        }
    }

    fn add(&mut self, e: &BytesStart) {
        match e.local_name().as_ref() {
            "off" => self.offset = ["x", "y"].map(|name| number(e, name)),
            "ext" => self.size = ["cx", "cy"].map(|name| number(e, name).max(0.0)),
            "chOff" => self.inner_offset = ["x", "y"].map(|name| number(e, name)),
            "chExt" => self.inner_size = ["cx", "cy"].map(|name| number(e, name).max(0.0)),
            _ => {}
        }
    }
}

fn find(e: &BytesStart, name: &str) -> Option<String> {
    let mut all = e.attributes().flatten();
    all.find(|a| a.key.local_name().as_ref() == name).map(|a| a.value.to_string())
}

fn number(e: &BytesStart, name: &str) -> f64 {
    let number = find(e, name).and_then(|value| value.trim().parse::<i64>().ok()).unwrap_or(0);
    (number as f64).clamp(-FARTHEST, FARTHEST)
}

/// The shapes of a part in the order of the file, None if it is damaged or has too many.
fn read_shapes(xml: &[u8]) -> Option<Vec<Shape>> {
    let mut reader = Reader::from_reader(xml);
    let mut shapes = Vec::new();
    let mut groups = vec![Transform::NONE];
    let mut in_properties = false; // of a group, but not of the tree of all shapes
    loop {
        match reader.read_event().ok()? {
            Event::Start(e) => match e.local_name().as_ref() {
                "sp" | "pic" | "graphicFrame" if shapes.len() < MOST_SHAPES => {
                    let name = e.name().as_ref().to_owned();
                    shapes.push(read_shape(&mut reader, &name, *groups.last()?)?);
                }
                "sp" | "pic" | "graphicFrame" => return None,
                "grpSp" if groups.len() <= DEEPEST => groups.push(*groups.last()?),
                "grpSp" => return None,
                "grpSpPr" => in_properties = groups.len() > 1,
                "xfrm" if in_properties => {
                    let mut place = Place::begin(&e);
                    read_place(&mut reader, &mut place)?;
                    let outer = groups.pop()?;
                    groups.push(Transform::of(outer, &place));
                }
                _ => {}
            },
            Event::End(e) => match e.local_name().as_ref() {
                "grpSp" if groups.len() > 1 => drop(groups.pop()),
                "grpSpPr" => in_properties = false,
                _ => {}
            },
            Event::Eof => return Some(shapes),
            _ => {}
        }
    }
}

/// Reads up to the end of an `xfrm`.
fn read_place(reader: &mut Reader<&[u8]>, place: &mut Place) -> Option<()> {
    loop {
        match reader.read_event().ok()? {
            Event::Start(e) | Event::Empty(e) => place.add(&e),
            Event::End(e) if e.local_name().as_ref() == "xfrm" => return Some(()),
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// Reads up to the end of a shape.
fn read_shape(reader: &mut Reader<&[u8]>, name: &str, group: Transform) -> Option<Shape> {
    let mut shape = Shape::default();
    let mut depth = 0;
    let mut in_text = false;
    loop {
        let start = reader.buffer_position() as usize;
        let event = reader.read_event().ok()?;
        let end = reader.buffer_position() as usize;
        match &event {
            Event::Start(e) | Event::Empty(e) => match e.local_name().as_ref() {
                "ph" if shape.placeholder.is_none() => {
                    let kind = find_kind(&find(e, "type").unwrap_or_default());
                    let index = find(e, "idx").and_then(|index| index.parse().ok()).unwrap_or(0);
                    shape.placeholder = Some(Placeholder { kind, index });
                }
                "cNvPr" => {
                    shape.has_text |= find(e, "descr").is_some_and(|text| !text.trim().is_empty());
                }
                "graphicData" => shape.has_text = true, // a table, a chart, a diagram
                "spPr" if shape.at.is_none() => {
                    let name = e.name().as_ref().to_owned();
                    let is_empty = matches!(event, Event::Empty(_));
                    shape.at = Some(match is_empty {
                        false => Edit { start: end, end, ..Edit::default() },
                        true => Edit {
                            start,
                            end,
                            before: format!("<{name}>"),
                            after: format!("</{name}>"),
                            ..Edit::default()
                        },
                    });
                }
                "xfrm" if shape.own.is_none() && matches!(event, Event::Start(_)) => {
                    let mut place = Place::begin(e);
                    read_place(reader, &mut place)?;
                    let [width, height] = place.size;
                    let size = format!("<a:ext cx=\"{width}\" cy=\"{height}\"/>");
                    let end = reader.buffer_position() as usize;
                    shape.at = Some(Edit { start, end, size, ..Edit::default() });
                    shape.own = Some((place.offset[0], place.offset[1]));
                    shape.area = Some(group.apply(&place));
                    continue;
                }
                "t" => in_text = true,
                _ => {}
            },
            Event::Text(t) if in_text => shape.has_text |= !t.trim_ascii().is_empty(),
            Event::GeneralRef(_) | Event::CData(_) if in_text => shape.has_text = true,
            Event::End(e) if e.local_name().as_ref() == "t" => in_text = false,
            Event::Eof => return None,
            _ => {}
        }
        match &event {
            Event::Start(e) if e.name().as_ref() == name => depth += 1,
            Event::End(e) if e.name().as_ref() == name && depth == 0 => return Some(shape),
            Event::End(e) if e.name().as_ref() == name => depth -= 1,
            _ => {}
        }
    }
}

fn find_kind(name: &str) -> Kind {
    match name {
        "title" | "ctrTitle" => Kind::Title,
        _ => EDGES.into_iter().find(|edge| *edge == name).map_or(Kind::Body, Kind::Edge),
    }
}

/// The part that a relationship leads to.
fn find_target(relations: &[u8], kind: &str, folder: &str) -> Option<String> {
    let mut reader = Reader::from_reader(relations);
    loop {
        match reader.read_event().ok()? {
            Event::Start(e) | Event::Empty(e) if e.local_name().as_ref() == "Relationship" => {
                let is_wanted = find(&e, "Type")?.rsplit('/').next() == Some(kind);
                if is_wanted {
                    return Some(resolve(folder, &find(&e, "Target")?));
                }
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

fn resolve(folder: &str, target: &str) -> String {
    if let Some(whole) = target.strip_prefix('/') {
        return whole.to_owned();
    }
    let mut path: Vec<&str> = folder.split('/').collect();
    for step in target.split('/') {
        match step {
            ".." => drop(path.pop()),
            "." => {}
            step => path.push(step),
        }
    }
    path.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(kind: &str, index: u32, top: Option<f64>) -> Shape {
        let area = top.map(|top| Area { left: 0.0, right: 1.0, top, bottom: top + 1.0 });
        let placeholder = Some(Placeholder { kind: find_kind(kind), index });
        Shape { area, placeholder, ..Shape::default() }
    }

    #[test]
    fn places_are_those_of_the_layout_then_of_its_master() {
        let master = [shape("title", 0, Some(1.0)), shape("dt", 2, Some(2.0))];
        let shapes = [
            shape("body", 1, Some(3.0)),
            shape("body", 2, Some(4.0)),
            shape("body", 2, Some(5.0)),
            shape("title", 0, None),
            shape("sldNum", 4, None),
        ];
        let mut layout = Layout::new(&shapes);
        layout.master = Some(Rc::new(Layout::new(&master)));
        for (kind, index, want) in [
            ("body", 1, Some(3.0)),
            ("", 2, Some(4.0)), // the first of those with its number
            ("subTitle", 9, Some(3.0)),
            ("ctrTitle", 7, Some(1.0)), // it has no place in the layout
            ("dt", 10, Some(2.0)),
            ("sldNum", 4, None),
            ("ftr", 3, None),
        ] {
            let found = layout.find(Placeholder { kind: find_kind(kind), index });
            assert_eq!(found.map(|area| area.top), want, "{kind} {index}");
        }
    }

    /// A search through all placeholders for each one would take minutes here.
    #[test]
    fn many_placeholders_are_found() {
        const MANY: u32 = 1 << 19;
        let shapes: Vec<_> = (0..MANY).map(|at| shape("body", at, Some(f64::from(at)))).collect();
        let layout = Layout::new(&shapes);
        for index in 0..MANY {
            let found = layout.find(Placeholder { kind: Kind::Body, index });
            assert_eq!(found.map(|area| area.top), Some(f64::from(index)));
        }
    }
}
