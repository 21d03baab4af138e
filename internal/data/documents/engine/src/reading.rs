//! The order in which people read areas: from the top, then from the left, and columns one after
//! the other.

use std::cmp::Ordering;
use std::collections::HashMap;

/// With more areas, or where they lie deeper in each other, only their upper left corners count.
const MOST: usize = 500;
const DEEPEST: usize = 64;

/// Areas may overlap by this part of their width or height on each side.
const OVERLAP: f64 = 0.1;

/// Cells of one table are not higher than this many of the others.
const AS_HIGH: f64 = 1.5;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

/// An area and the number by which the caller knows it.
type Item = (usize, Area);

impl Area {
    fn join(self, other: Self) -> Self {
        Self {
            left: self.left.min(other.left),
            right: self.right.max(other.right),
            top: self.top.min(other.top),
            bottom: self.bottom.max(other.bottom),
        }
    }

    fn holds(&self, other: &Self) -> bool {
        self != other
            && self.left <= other.left
            && self.right >= other.right
            && self.top <= other.top
            && self.bottom >= other.bottom
    }

    fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// What of it may not overlap, on an axis.
    fn side(&self, axis: Axis) -> (f64, f64) {
        let (from, to) = match axis {
            Axis::Across => (self.left, self.right),
            Axis::Down => (self.top, self.bottom),
        };
        let edge = OVERLAP * (to - from);
        (from + edge, to - edge)
    }
}

#[derive(Clone, Copy)]
enum Axis {
    Across,
    Down,
}

/// The numbers of areas in the order in which they are read.
pub fn order(items: &[Item]) -> Vec<usize> {
    let mut out = Vec::with_capacity(items.len());
    if items.len() > MOST {
        sort(items.to_vec(), &mut out);
    } else {
        nest(items.to_vec(), 0, &mut out);
    }
    out
}

/// Puts what lies in an area behind it, as the texts on a background.
fn nest(items: Vec<Item>, depth: usize, out: &mut Vec<usize>) {
    let is_outside = |item: &Item| !items.iter().any(|other| other.1.holds(&item.1));
    let (outer, mut inner) = items.iter().partition::<Vec<Item>, _>(|item| is_outside(item));
    if inner.is_empty() || depth > DEEPEST {
        return divide(items, 0, out);
    }

    let mut outer_order = Vec::with_capacity(outer.len());
    divide(outer.clone(), 0, &mut outer_order);
    let areas: HashMap<usize, Area> = outer.into_iter().collect();
    for number in outer_order {
        out.push(number);
        let (inside, rest) = inner.into_iter().partition(|item| areas[&number].holds(&item.1));
        nest(inside, depth + 1, out);
        inner = rest;
    }
}

/// Divides areas where a line across or down the page meets none of them.
fn divide(items: Vec<Item>, depth: usize, out: &mut Vec<usize>) {
    if items.len() < 2 || depth > DEEPEST {
        return sort(items, out);
    }
    let rows: Vec<_> = split(items, Axis::Down);
    let mut bands = join(rows);
    if bands.len() > 1 {
        for band in bands {
            divide(band.concat(), depth + 1, out);
        }
        return;
    }

    let rows = bands.pop().unwrap_or_default();
    let columns = split(rows.concat(), Axis::Across);
    let parts = if is_table(&rows, columns.len()) { rows } else { columns };
    match parts.len() {
        1 => sort(parts.concat(), out),
        _ => parts.into_iter().for_each(|part| divide(part, depth + 1, out)),
    }
}

/// Groups areas between which there is a gap on an axis, in the order of that axis.
fn split(mut items: Vec<Item>, axis: Axis) -> Vec<Vec<Item>> {
    let order = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    items.sort_by(|a, b| order(a.1.side(axis).0, b.1.side(axis).0));
    let mut parts: Vec<Vec<Item>> = Vec::new();
    let mut end = f64::MIN;
    for item in items {
        let (from, to) = item.1.side(axis);
        match parts.last_mut() {
            Some(part) if from < end => part.push(item),
            _ => parts.push(vec![item]),
        }
        end = end.max(to);
    }
    parts
}

/// Joins rows below each other that have gaps at the same places: they are columns, or a table. A
/// single area below others begins anew, unless several rows above have the gap.
fn join(rows: Vec<Vec<Item>>) -> Vec<Vec<Vec<Item>>> {
    let mut bands: Vec<Vec<Vec<Item>>> = Vec::new();
    let mut gaps: Vec<(f64, f64)> = Vec::new();
    let mut wide = 0; // rows of the last band with several columns
    for row in rows {
        let columns = split(row.clone(), Axis::Across);
        let left = free(&gaps, &row);
        let is_wide = columns.len() > 1;
        match bands.last_mut() {
            Some(band) if !left.is_empty() && (is_wide || wide > 1) => {
                band.push(row);
                gaps = left;
                wide += usize::from(is_wide);
            }
            _ => {
                let sides = columns.windows(2).map(|pair| (end(&pair[0]), start(&pair[1])));
                gaps = sides.collect();
                wide = usize::from(is_wide);
                bands.push(vec![row]);
            }
        }
    }
    bands
}

fn start(part: &[Item]) -> f64 {
    part.iter().map(|item| item.1.side(Axis::Across).0).fold(f64::MAX, f64::min)
}

fn end(part: &[Item]) -> f64 {
    part.iter().map(|item| item.1.side(Axis::Across).1).fold(f64::MIN, f64::max)
}

/// What a row leaves free of gaps.
fn free(gaps: &[(f64, f64)], row: &[Item]) -> Vec<(f64, f64)> {
    let mut left = gaps.to_vec();
    for item in row {
        let (start, end) = item.1.side(Axis::Across);
        let around = |(from, to): (f64, f64)| {
            if end <= from || start >= to {
                vec![(from, to)]
            } else {
                vec![(from, start), (end, to)]
            }
        };
        left = left.into_iter().flat_map(around).filter(|(from, to)| from < to).collect();
    }
    left
}

/// Reports whether rows are those of a table: each has all columns, and all are as high.
fn is_table(rows: &[Vec<Item>], columns: usize) -> bool {
    let (mut lowest, mut highest) = (f64::MAX, 0f64);
    for row in rows {
        let cells = split(row.clone(), Axis::Across);
        if cells.len() != columns {
            return false;
        }
        for cell in cells {
            let area = cell.iter().map(|item| item.1).reduce(Area::join);
            let height = area.map_or(0.0, |area| area.height());
            (lowest, highest) = (lowest.min(height), highest.max(height));
        }
    }
    rows.len() > 1 && columns > 1 && highest <= AS_HIGH * lowest
}

fn compare(a: &Item, b: &Item) -> Ordering {
    let corner = |item: &Item| (item.1.top, item.1.left);
    corner(a).partial_cmp(&corner(b)).unwrap_or(Ordering::Equal)
}

fn sort(mut items: Vec<Item>, out: &mut Vec<usize>) {
    items.sort_by(compare);
    out.extend(items.iter().map(|item| item.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_areas_end() {
        let area = |at: usize| Area {
            left: at as f64,
            right: 2000.0 - at as f64,
            top: at as f64,
            bottom: 2000.0 - at as f64,
        };
        let nested: Vec<Item> = (0..MOST).map(|at| (at, area(at))).collect();
        assert_eq!(order(&nested), (0..MOST).collect::<Vec<_>>());
        let stairs = nested.iter().map(|(at, area)| {
            let (left, top) = (area.left, 2.0 * area.top);
            (*at, Area { left, right: left + 9.0, top, bottom: top + 1.0 })
        });
        assert_eq!(order(&stairs.collect::<Vec<_>>()), (0..MOST).collect::<Vec<_>>());
        let same = vec![(7, area(1)); 2 * MOST];
        assert_eq!(order(&same).len(), 2 * MOST);
    }
}
