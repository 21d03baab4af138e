//! What a reader of sheets does not see, told in warnings.

use crate::text::{Text, count};
pub use crate::xlsb::Unseen;

/// The last column of workbooks before 2007, from 0.
const LAST_COLUMN: u16 = 255;

impl Unseen {
    /// Counts the hidden rows and columns of a workbook before 2007. See MS-XLS, 2.4.53 and 2.4.221.
    pub fn read_old(records: &[u8]) -> Self {
        const ENCRYPTED: u16 = 0x002f;
        const COLUMNS: u16 = 0x007d;
        const ROW: u16 = 0x0208;

        let mut unseen = Self::default();
        let mut rest = records;
        while let Some((head, after)) = rest.split_first_chunk::<4>() {
            let kind = u16::from_le_bytes([head[0], head[1]]);
            let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
            let Some((body, after)) = after.split_at_checked(length) else { break };
            rest = after;
            let flags = |at: usize| body.get(at).copied().unwrap_or(0);
            match kind {
                ENCRYPTED => return Self::default(),
                ROW if flags(12) & 0x20 != 0 => unseen.rows += 1,
                COLUMNS if flags(8) & 1 != 0 => {
                    let first = u16::from_le_bytes([flags(0), flags(1)]);
                    let last = u16::from_le_bytes([flags(2), flags(3)]);
                    // Up to the last column of all, nothing is hidden but the end of the sheet.
                    if first <= last && last < LAST_COLUMN {
                        unseen.columns += usize::from(last - first) + 1;
                    }
                }
                _ => {}
            }
        }
        unseen
    }

    /// Says what there is, and what the cells of formulas without a saved value show.
    pub fn tell(&self, shown: &str, text: &mut Text) {
        if self.formulas > 0 {
            let formulas = count(self.formulas, "formula");
            text.warn(format!("{formulas} without a saved value{shown}"));
        }
        for (number, noun) in [(self.rows, "hidden row"), (self.columns, "hidden column")] {
            if number > 0 {
                text.warn(format!("the text and the rows include {}", count(number, noun)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut out = kind.to_le_bytes().to_vec();
        out.extend((body.len() as u16).to_le_bytes());
        out.extend(body);
        out
    }

    #[test]
    fn hidden_rows_and_columns_are_counted() {
        let row = |flags: u8| {
            let mut body = [0; 16];
            body[12] = flags;
            record(0x0208, &body)
        };
        let columns = |first: u8, last: u8, flags: u8| {
            record(0x007d, &[first, 0, last, 0, 0, 0, 0, 0, flags, 0, 0, 0])
        };
        let all = [row(0x20), row(0), row(0x60), columns(2, 4, 1), columns(5, 6, 0)].concat();
        let unseen = Unseen::read_old(&all);
        assert_eq!((unseen.rows, unseen.columns), (2, 3));
        let end = Unseen::read_old(&[columns(9, 255, 1), columns(5, 2, 1), vec![8, 2, 9]].concat());
        assert_eq!((end.rows, end.columns), (0, 0));
        let secret = Unseen::read_old(&[row(0x20), record(0x002f, &[0; 6])].concat());
        assert_eq!(secret.rows, 0);
    }
}
