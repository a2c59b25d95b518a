//! Run times of batch jobs, from a log in the Standard Workload Format (Parallel Workloads
//! Archive): comments begin with `;`, a job is a line of numbers of which the fourth is its run
//! time in seconds; or from a table with a column `run`.
//!
//! Jobs without a run time (-1, or 0) are left out.

use std::io::{self, BufRead};

/// Place of the run time in a line of the Standard Workload Format.
const RUN_PLACE: usize = 3;

/// A log that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum JobLogError {
    /// Reading stopped in the middle.
    #[error(
        "cannot read on after line {line}: {source}; correct the path, or fetch the file again"
    )]
    Read {
        /// Last line that was read whole.
        line: usize,
        /// What went wrong.
        source: io::Error,
    },
    /// A line is broken.
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// No job ran.
    #[error("no job with a run time above 0; a log needs at least one")]
    Empty,
}

/// Whether a file of this name is such a log.
pub fn is_named(name: &str) -> bool {
    let ends = [".swf", ".swf.gz", ".jobs.csv", ".jobs.csv.gz"];
    ends.iter().any(|end| name.ends_with(end))
}

/// How the fields of a line are told apart, and which one is the run time.
#[derive(Clone, Copy)]
enum Form {
    Spaces,
    Commas(usize),
}

/// Run times in the order of the log, in seconds, all above 0.
pub fn read(log: impl BufRead) -> Result<Vec<f64>, JobLogError> {
    let mut form = None;
    let mut run_s = Vec::new();
    // Comments may be in any encoding.
    for (number, line) in (1..).zip(log.split(b'\n')) {
        let line = line.map_err(|source| JobLogError::Read {
            line: number - 1,
            source,
        })?;
        let line = String::from_utf8_lossy(&line);
        let text = line.trim();
        if text.is_empty() || text.starts_with(';') {
            continue;
        }
        let broken = |problem: String| JobLogError::Line {
            line: number,
            problem,
        };
        let form = match form {
            Some(form) => form,
            None => {
                let found = form_of(text).map_err(broken)?;
                form = Some(found);
                if matches!(found, Form::Commas(_)) {
                    continue;
                }
                found
            }
        };
        let time = time_of(text, form).map_err(broken)?;
        run_s.extend((time > 0.0).then_some(time));
    }
    if run_s.is_empty() {
        Err(JobLogError::Empty)
    } else {
        Ok(run_s)
    }
}

/// Of the first line that is no comment.
fn form_of(line: &str) -> Result<Form, String> {
    if !line.contains(',') {
        return Ok(Form::Spaces);
    }
    let place = line.split(',').position(|name| name.trim() == "run");
    place
        .map(Form::Commas)
        .ok_or_else(|| "no column `run`; name the columns, as in submit,run,procs".into())
}

fn time_of(line: &str, form: Form) -> Result<f64, String> {
    let (field, place) = match form {
        Form::Spaces => (line.split_ascii_whitespace().nth(RUN_PLACE), RUN_PLACE),
        Form::Commas(place) => (line.split(',').nth(place), place),
    };
    let field = field.ok_or_else(|| format!("no field {}, the run time", place + 1))?;
    let time: Option<f64> = field.trim().parse().ok();
    time.filter(|time| time.is_finite() && time.abs() <= 1e15)
        .ok_or_else(|| {
            let shown: String = field
                .chars()
                .take(40)
                .flat_map(char::escape_default)
                .collect();
            format!("the run time `{shown}` is not a number of seconds")
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(log: &str) -> Result<Vec<f64>, String> {
        read(log.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_are_read() {
        let standard = "; Computer: SP2\n 1 0 5 120 8 -1 -1 8 600 -1 1 1 1 1 1 -1 -1 -1\n\n2 9 5 -1 8\n3 9 5 0.5 8\n";
        assert_eq!(of(standard), Ok(vec![120.0, 0.5]));
        assert_eq!(
            of("submit,run,procs\n0,1451,128\n7,0,1\n"),
            Ok(vec![1451.0])
        );
    }

    #[test]
    fn comments_may_be_in_any_encoding() {
        let times = read(&b"; Universit\xe4t\n1 0 5 120\n"[..]).expect("a log");
        assert_eq!(times, [120.0]);
    }

    #[test]
    fn a_mistake_has_its_line() {
        for (log, words) in [
            ("", "no job with a run time"),
            ("; only words\n", "no job with a run time"),
            ("1 2 3 4\n1 2 3\n", "line 2: no field 4, the run time"),
            ("1 2 3 x\n", "line 1: the run time `x` is not a number"),
            ("1 2 3 inf\n", "line 1: the run time `inf`"),
            ("submit,procs\n", "line 1: no column `run`"),
            ("run,procs\n\u{1b},4\n", "line 2: the run time `\\u{1b}`"),
        ] {
            let message = of(log).expect_err(log);
            assert!(message.contains(words), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_log_or_a_mistake_on_one_line(text in "[0-9 ;,runx.e\n-]{0,80}|.{0,80}") {
            match of(&text) {
                Ok(times) => prop_assert!(times.iter().all(|time| *time > 0.0)),
                Err(message) => prop_assert_eq!(message.lines().count(), 1),
            }
        }
    }
}
