//! Response times as the percentile tables of HdrHistogram, which its plotters read.

use hdrhistogram::Histogram;
use std::fmt::Write;

/// Longest time that is told apart, ns: an hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Significant digits.
const DIGITS: u8 = 3;
/// Behind this share there is no row but that of all.
const LAST_SHARE: f64 = 1.0 - 1e-12;
/// Rows for each halving of what lies above, as the table's other writers have it.
const ROWS_A_HALVING: u32 = 5;

/// A histogram of times in ns, up to an hour, with three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("constants that are allowed")
}

struct Row {
    share: f64,
    value_ns: u64,
    count: u64,
}

/// So many rows for each halving of what lies above, until every time is counted.
fn rows(times: &Histogram<u64>) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut share: f64 = 0.0;
    while !times.is_empty() {
        let value_ns = times.value_at_quantile(share);
        let count = times.count_between(0, value_ns);
        // However the counts are: shares come nearer to 1 until doubles tell no difference.
        let is_last = count >= times.len() || share >= LAST_SHARE;
        rows.push(Row {
            share: if is_last { 1.0 } else { share },
            value_ns,
            count,
        });
        if is_last {
            break;
        }
        let halvings = (1.0 / (1.0 - share)).log2().floor() + 1.0;
        share += 1.0 / (f64::from(ROWS_A_HALVING) * halvings.exp2());
    }
    rows
}

/// Percentiles of `times` (ns) as a table in ms.
pub fn table(times: &Histogram<u64>) -> String {
    let ms = |ns: f64| ns / 1e6;
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for row in rows(times) {
        let Row {
            share,
            value_ns,
            count,
        } = row;
        let value = ms(value_ns as f64);
        // Writing to a text cannot fail.
        let _ = if share < 1.0 {
            let inverse = 1.0 / (1.0 - share);
            writeln!(
                text,
                "{value:>12.3} {share:>2.12} {count:>10} {inverse:>14.2}"
            )
        } else {
            writeln!(text, "{value:>12.3} {share:>2.12} {count:>10}")
        };
    }
    let _ = write!(
        text,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {:>12}]\n",
        ms(times.mean()),
        ms(times.stdev()),
        ms(times.max() as f64),
        times.len(),
        times.buckets(),
        2048
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_counts_up_to_all_and_ends_at_the_longest() {
        let mut times = histogram();
        for ms in 1..=1000 {
            times.record(ms * 1_000_000).expect("within an hour");
        }
        let text = table(&times);
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                line.split_whitespace()
                    .map(|word| word.parse().expect(line))
                    .collect()
            })
            .collect();
        let last = rows.last().expect("rows");
        assert_eq!((last[1], last[2], last.len()), (1.0, 1000.0, 3));
        assert!((last[0] - 1000.0).abs() < 1.0, "{last:?}");
        let median = rows.iter().find(|row| row[1] == 0.5).expect("a row");
        assert!(
            (median[0] - 500.0).abs() < 1.0 && median[2] == 500.0,
            "{median:?}"
        );
        assert_eq!(median[3], 2.0);
        assert!(
            rows.is_sorted_by(|a, b| a[0] <= b[0] && a[2] <= b[2]),
            "{text}"
        );
        assert!(text.contains("#[Max     =     1000."), "{text}");
        assert!(text.contains("Total count    =         1000]"), "{text}");
    }

    #[test]
    fn few_times_and_many_end_with_all_of_them() {
        for count in [1, 2, 3, 10, 100_000] {
            let mut times = histogram();
            for nth in 0..count {
                times.record(nth * nth + 1).expect("within an hour");
            }
            let rows = rows(&times);
            let last = rows.last().expect("rows");
            assert_eq!((last.share, last.count), (1.0, count));
            assert!(rows.len() <= 100, "{count} times: {} rows", rows.len());
            let before_last = rows.iter().filter(|row| row.share < 1.0);
            assert!(before_last.clone().all(|row| row.count < count));
        }
    }

    #[test]
    fn nothing_measured_is_a_table_without_rows() {
        assert!(table(&histogram()).contains("Total count    =            0]"));
    }
}
