//! Tables: where their cells lie, and how they look in Markdown.

/// Cells that span more columns are an error of the page, says HTML.
const WIDEST_SPAN: usize = 1_000;

/// Columns behind this one are not kept free for a cell of an earlier row.
const LAST_COVERED: usize = 1 << 12;

/// Larger tables are not filled up with empty cells at the end of their rows.
const MOST_FILLED: usize = 1 << 20;

/// A table whose cells hold Markdown. A cell that spans columns or rows is at its first place. The
/// others stay empty, so that no number is there twice.
#[derive(Default)]
pub struct Grid {
    /// The cells of each row, by their columns.
    rows: Vec<Vec<(usize, String)>>,
    /// For each column, the row where the last cell that covers it ends.
    covered: Vec<usize>,
    column: usize,
}

impl Grid {
    pub fn begin_row(&mut self) {
        self.rows.push(Vec::new());
        self.column = 0;
    }

    /// Cells do not reach into the next group of rows.
    pub fn end_group(&mut self) {
        self.covered.clear();
    }

    /// Puts a cell at the next place of the row that no earlier cell covers.
    pub fn place(&mut self, text: &str, columns: usize, rows: usize) {
        let here = self.rows.len() - 1;
        while self.covered.get(self.column).is_some_and(|end| *end > here) {
            self.column += 1;
        }

        let end = self.column + columns.clamp(1, WIDEST_SPAN);
        if rows > 1 && self.column < LAST_COVERED {
            let last = end.min(LAST_COVERED);
            self.covered.resize(self.covered.len().max(last), 0);
            self.covered[self.column..last].fill(here.saturating_add(rows));
        }
        self.put(text, self.column);
        self.column = end;
    }

    /// Puts a cell where the file says that it begins: right of all others of its row.
    pub fn put(&mut self, text: &str, column: usize) {
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if let Some(row) = self.rows.last_mut() {
            row.push((column, lines.join("\n")));
        }
    }

    pub fn drop_blank_rows(&mut self) {
        self.rows.retain(|row| row.iter().any(|(_, text)| !text.is_empty()));
    }

    pub fn is_blank(&self) -> bool {
        self.rows.iter().flatten().all(|(_, text)| text.is_empty())
    }

    /// The table in Markdown. Its first row is the header.
    pub fn to_markdown(&self) -> String {
        let columns = self.columns();
        let is_filled = self.rows.len().saturating_mul(columns.len()) <= MOST_FILLED;
        let mut out = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut next = 0;
            for (column, text) in row {
                let place = columns.partition_point(|first| first < column);
                out.push_str(&"|  ".repeat(place - next));
                out.push_str("| ");
                out.push_str(&text.replace('|', "\\|").replace('\n', "<br>"));
                out.push(' ');
                next = place + 1;
            }
            if is_filled || index == 0 {
                out.push_str(&"|  ".repeat(columns.len() - next));
            }
            out.push_str("|\n");
            if index == 0 {
                out.push_str(&"| --- ".repeat(columns.len()));
                out.push_str("|\n");
            }
        }
        out.truncate(out.trim_end().len());
        out
    }

    /// The table as lines of a cell around it, for a cell holds no table in Markdown.
    pub fn to_lines(&self) -> String {
        let columns = self.columns();
        let mut lines = Vec::new();
        for row in self.rows.iter().filter(|row| row.iter().any(|(_, text)| !text.is_empty())) {
            let mut texts = Vec::new();
            for (column, text) in row {
                let place = columns.partition_point(|first| first < column);
                texts.resize(place, String::new());
                texts.push(text.replace('\n', " "));
            }
            lines.push(texts.join(" | "));
        }
        lines.join("\n")
    }

    /// The columns in which a cell begins. The others only continue cells.
    fn columns(&self) -> Vec<usize> {
        let mut columns: Vec<_> = self.rows.iter().flatten().map(|(column, _)| *column).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: &[&[(&str, usize, usize)]]) -> Grid {
        let mut grid = Grid::default();
        for row in rows {
            grid.begin_row();
            for (text, columns, rows) in *row {
                grid.place(text, *columns, *rows);
            }
        }
        grid
    }

    #[test]
    fn spans_keep_their_places_free() {
        let table = grid(&[
            &[("City", 1, 2), ("People", 2, 1)],
            &[("2019", 1, 1), ("2020", 1, 1)],
            &[("Oslo", 1, 1), ("681", 1, 1), ("693", 1, 1)],
        ]);
        assert_eq!(
            table.to_markdown(),
            "| City | People |  |\n| --- | --- | --- |\n|  | 2019 | 2020 |\n| Oslo | 681 | 693 |"
        );
    }

    #[test]
    fn lines_of_a_cell_keep_the_places() {
        let table = grid(&[&[("a", 1, 2), ("b\nc", 1, 1)], &[("d", 1, 1)]]);
        assert_eq!(table.to_lines(), "a | b c\n | d");
    }

    #[test]
    fn a_huge_span_makes_no_cells() {
        let huge = usize::MAX;
        let table = grid(&[&[("a", huge, huge), ("b", 1, 1)], &[("c", huge, 1)]]);
        assert!(table.to_markdown().len() < 100);
    }

    #[test]
    fn many_short_rows_below_a_long_one_are_not_filled() {
        let mut table = grid(&[&[("x", 1, 1); 20_000]]);
        for _ in 0..20_000 {
            table.begin_row();
            table.place("y", 1, 1);
        }
        assert!(table.to_markdown().len() < 1 << 20);
    }
}
