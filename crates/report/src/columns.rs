//! Columns of text, for terminals and pipes.

/// Columns as wide as their widest cell, the last one ragged; rows are arrays or vectors of cells.
pub fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let mut widths = Vec::new();
    for row in rows {
        for (place, cell) in row.as_ref().iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(place) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.as_ref().iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text += line.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "b", "c"], ["1 µs", "22", ""]].map(|row| row.map(String::from));
        assert_eq!(aligned(&rows), "a     b   c\n1 µs  22\n");
    }
}
