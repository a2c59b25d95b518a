//! Figures of kept rows, as an experiment.toml writes them: `median(us_per_request@ours) /
//! median(us_per_request@nginx)`.
//!
//! A name is a field of the rows (`run.all.mean_response_ms`), all values in the order of their
//! turns; `@WAY` and `#CASE` say of which way and case, and without them those that a table or a
//! claim is about. `+ - * /` hold pairs of turns against each other, and a single number against
//! all. Functions make one number of many, but for `each_mean`, which makes one of the list in
//! every row.

use std::fmt;
use std::ops::RangeInclusive;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A number as it stands.
    Number(f64),
    /// A field of the rows, or a key of the way, the case or the measurement.
    Field(Field),
    /// `+ - * /`.
    Pair(char, Box<Expression>, Box<Expression>),
    /// A function and its arguments.
    Call(Function, Vec<Expression>),
}

/// Where values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Points between the names; a number is a place in a list.
    pub path: String,
    /// The way's id.
    pub way: Option<String>,
    /// The case's id.
    pub case: Option<String>,
}

/// What is made of many values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// The middle one.
    Median,
    /// The mean.
    Mean,
    /// The sum.
    Sum,
    /// The least of all arguments.
    Least,
    /// The greatest of all arguments.
    Most,
    /// Distance from 0.
    Abs,
    /// The sum of the one over the sum of the other.
    Ratio,
    /// Half of the 95 % interval of that ratio.
    HalfWidth,
    /// For every row the mean of a list in it, of the places alone that a second list marks by 1.
    EachMean,
}

/// With how many arguments each takes.
const FUNCTIONS: [(&str, Function, RangeInclusive<usize>); 9] = [
    ("median", Function::Median, 1..=1),
    ("mean", Function::Mean, 1..=1),
    ("sum", Function::Sum, 1..=1),
    ("least", Function::Least, 1..=usize::MAX),
    ("most", Function::Most, 1..=usize::MAX),
    ("abs", Function::Abs, 1..=1),
    ("ratio", Function::Ratio, 2..=2),
    ("half_width", Function::HalfWidth, 2..=2),
    ("each_mean", Function::EachMean, 1..=2),
];

/// Where values come from.
pub trait Values {
    /// Those of a field, one or more a row; an error says that there is no such way or case.
    fn series(&self, field: &Field) -> Result<Vec<f64>, String>;
    /// Those of a field that is a list, a list a row.
    fn lists(&self, field: &Field) -> Result<Vec<Vec<f64>>, String>;
}

impl Expression {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Expression, String> {
        let mut parser = Parser { rest: text.trim() };
        let all = parser.sum()?;
        match parser.rest {
            "" => Ok(all),
            rest => Err(format!("\"{rest}\" is left over in \"{text}\"")),
        }
    }

    /// Its values: one, or one a turn.
    pub fn values(&self, from: &impl Values) -> Result<Vec<f64>, String> {
        match self {
            Expression::Number(number) => Ok(vec![*number]),
            Expression::Field(field) => from.series(field),
            Expression::Pair(sign, one, other) => {
                pairs(*sign, &one.values(from)?, &other.values(from)?)
            }
            Expression::Call(Function::EachMean, arguments) => each_mean(arguments, from),
            Expression::Call(function, arguments) => {
                let all = arguments.iter().map(|argument| argument.values(from));
                let all = all.collect::<Result<Vec<_>, _>>()?;
                function.of(&all)
            }
        }
    }

    /// The one value that it has.
    pub fn value(&self, from: &impl Values) -> Result<f64, String> {
        match self.values(from)?[..] {
            [value] => Ok(value),
            [] => Ok(f64::NAN),
            _ => Err("it has a value for every turn; take its median, say".into()),
        }
    }

    /// Calls `look` with every field in it.
    pub fn fields(&self, look: &mut impl FnMut(&Field)) {
        match self {
            Expression::Number(_) => {}
            Expression::Field(field) => look(field),
            Expression::Pair(_, one, other) => {
                one.fields(look);
                other.fields(look);
            }
            Expression::Call(_, arguments) => {
                arguments.iter().for_each(|argument| argument.fields(look));
            }
        }
    }
}

impl Function {
    fn of(self, all: &[Vec<f64>]) -> Result<Vec<f64>, String> {
        let (first, second) = (&all[0][..], all.get(1).map_or(&[][..], Vec::as_slice));
        let everything = || all.iter().flatten().copied();
        let one = match self {
            Function::Median => median(first),
            Function::Mean | Function::EachMean => mean(first),
            Function::Sum => first.iter().sum(),
            // NaN passes no claim.
            Function::Least => everything().reduce(least).unwrap_or(f64::NAN),
            Function::Most => everything()
                .reduce(|a, b| -least(-a, -b))
                .unwrap_or(f64::NAN),
            Function::Abs => return Ok(first.iter().map(|value| value.abs()).collect()),
            Function::Ratio | Function::HalfWidth => {
                let (ratio, half_width) = ratio_of_turns(first, second)?;
                if self == Function::Ratio {
                    ratio
                } else {
                    half_width
                }
            }
        };
        Ok(vec![one])
    }
}

fn least(one: f64, other: f64) -> f64 {
    if one.is_nan() || other.is_nan() {
        f64::NAN
    } else {
        one.min(other)
    }
}

fn each_mean(arguments: &[Expression], from: &impl Values) -> Result<Vec<f64>, String> {
    let Some(Expression::Field(field)) = arguments.first() else {
        return Err("each_mean takes a field that is a list".into());
    };
    let marks = arguments
        .get(1)
        .map(|marks| marks.values(from))
        .transpose()?;
    let of_row = |list: Vec<f64>| match &marks {
        None => mean(&list),
        Some(marks) => {
            let marked = list.iter().zip(marks).filter(|(_, mark)| **mark != 0.0);
            mean(&marked.map(|(value, _)| *value).collect::<Vec<_>>())
        }
    };
    Ok(from.lists(field)?.into_iter().map(of_row).collect())
}

/// How many pairs two series have. A single number is held against all of the other one, and what
/// was not measured gives nothing; a turn that only one of them has would go unseen.
fn turns(one: &[f64], other: &[f64]) -> Result<usize, String> {
    match (one.len(), other.len()) {
        (1, count) | (count, 1) => Ok(count),
        (0, _) | (_, 0) => Ok(0),
        (one, other) if one == other => Ok(one),
        (one, other) => Err(format!(
            "{one} values cannot be held against {other}; both need one in every turn"
        )),
    }
}

fn pairs(sign: char, one: &[f64], other: &[f64]) -> Result<Vec<f64>, String> {
    let count = turns(one, other)?;
    let at = |values: &[f64], index: usize| values[if values.len() == 1 { 0 } else { index }];
    let of_pair = |index| {
        let (one, other) = (at(one, index), at(other, index));
        match sign {
            '+' => one + other,
            '-' => one - other,
            '*' => one * other,
            _ => one / other,
        }
    };
    Ok((0..count).map(of_pair).collect())
}

/// The middle of the figures; NaN without any.
pub fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => (sorted[even / 2 - 1] + sorted[even / 2]) / 2.0,
    }
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len() as f64
}

/// The sum of the one over the sum of the other, and half of its 95 % interval: the error of a
/// ratio estimator (Cochran 1977, 6.4).
pub fn ratio(one: &[f64], other: &[f64]) -> (f64, f64) {
    let other = match other {
        [single] => &vec![*single; one.len()][..],
        _ => other,
    };
    let count = one.len() as f64;
    let ratio = one.iter().sum::<f64>() / other.iter().sum::<f64>();
    let pairs = one.iter().zip(other);
    let squares: f64 = pairs
        .map(|(one, other)| (one - ratio * other).powi(2))
        .sum();
    let error = (squares / (count * (count - 1.0).max(1.0))).sqrt() / mean(other);
    (ratio, 2.0 * error)
}

/// The same of two series of the same turns; NaN where one has none.
pub fn ratio_of_turns(one: &[f64], other: &[f64]) -> Result<(f64, f64), String> {
    Ok(match turns(one, other)? {
        0 => (f64::NAN, f64::NAN),
        _ => ratio(one, other),
    })
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(sign) = self.one_of("+-") {
            left = Expression::Pair(sign, Box::new(left), Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.factor()?;
        while let Some(sign) = self.one_of("*/") {
            left = Expression::Pair(sign, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression, String> {
        if self.one_of("(").is_some() {
            let inner = self.sum()?;
            return match self.one_of(")") {
                Some(_) => Ok(inner),
                None => Err(format!("a bracket is open before \"{}\"", self.rest)),
            };
        }
        let word = self.word(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if word.is_empty() {
            return Err(format!("no figure is \"{}\"", self.rest));
        }
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse().map(Expression::Number);
            return number.map_err(|_| format!("{word} is not a number"));
        }
        if self.one_of("(").is_some() {
            return self.call(word);
        }
        Ok(Expression::Field(self.field(word)))
    }

    fn field(&mut self, path: &str) -> Field {
        let mut id = |mark: &str| {
            self.rest.strip_prefix(mark).map(|rest| {
                self.rest = rest;
                self.word(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
                    .to_owned()
            })
        };
        Field {
            path: path.into(),
            way: id("@"),
            case: id("#"),
        }
    }

    fn call(&mut self, word: &str) -> Result<Expression, String> {
        let known = FUNCTIONS.iter().find(|(name, ..)| *name == word);
        let Some((_, function, counts)) = known else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            return Err(format!(
                "there is no function {word}; there are {}",
                names.join(", ")
            ));
        };
        let mut arguments = vec![self.sum()?];
        while self.one_of(",").is_some() {
            arguments.push(self.sum()?);
        }
        if self.one_of(")").is_none() {
            return Err(format!("{word}( is not closed"));
        }
        if !counts.contains(&arguments.len()) {
            let wanted = match (counts.start(), counts.end()) {
                (least, most) if least == most => least.to_string(),
                (least, most) => format!("{least} to {most}"),
            };
            let given = arguments.len();
            return Err(format!("{word} takes {wanted} arguments, and not {given}"));
        }
        Ok(Expression::Call(*function, arguments))
    }

    /// The next character if it is one of these, spaces skipped.
    fn one_of(&mut self, wanted: &str) -> Option<char> {
        let rest = self.rest.trim_start();
        let next = rest.chars().next().filter(|next| wanted.contains(*next))?;
        self.rest = &rest[next.len_utf8()..];
        Some(next)
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Turns;

    impl Values for Turns {
        fn series(&self, field: &Field) -> Result<Vec<f64>, String> {
            match (field.path.as_str(), field.way.as_deref()) {
                ("cost", Some("ours")) => Ok(vec![1.0, 6.0, 3.0]),
                ("cost", None) => Ok(vec![2.0, 3.0, 4.0]),
                ("limit", _) => Ok(vec![10.0]),
                ("short", _) => Ok(vec![1.0, 2.0]),
                ("none", _) => Ok(Vec::new()),
                ("marks", _) => Ok(vec![1.0, 0.0, 1.0]),
                _ => Err(format!("no {field}")),
            }
        }

        fn lists(&self, _: &Field) -> Result<Vec<Vec<f64>>, String> {
            Ok(vec![vec![1.0, 2.0, 3.0], vec![3.0, 9.0, 9.0]])
        }
    }

    fn value(text: &str) -> Result<f64, String> {
        Expression::parse(text)?.value(&Turns)
    }

    #[test]
    fn figures_are_held_against_each_other() {
        for (text, expected) in [
            ("1 + 2 * 3 - 4 / 2", 5.0),
            ("median(cost@ours)", 3.0),
            ("median(cost@ours / cost)", 0.75),
            ("median(cost@ours) / median(cost)", 1.0),
            ("most(cost, cost@ours)", 6.0),
            ("least(median(cost), 2.5)", 2.5),
            ("sum(cost) - limit", -1.0),
            ("abs(1 - 3)", 2.0),
            ("ratio(cost@ours, 2)", 5.0 / 3.0),
            ("mean(each_mean(ms))", 4.5),
            ("median(each_mean(ms, marks))", 4.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, words) in [
            ("median(cost", "not closed"),
            ("ratio(cost)", "ratio takes 2 arguments, and not 1"),
            ("half_width(cost)", "takes 2 arguments"),
            ("ratio(cost, 1, 2)", "takes 2 arguments"),
            ("median(cost, 1)", "takes 1 arguments"),
            ("each_mean(ms, marks, 1)", "takes 1 to 2 arguments"),
            ("median(cost / short)", "3 values cannot be held against 2"),
            ("ratio(short, cost)", "2 values cannot be held against 3"),
            ("medium(cost)", "there is no function medium"),
            ("cost cost", "left over"),
            ("(1 + 2", "a bracket is open"),
            ("1 +", "no figure"),
            ("cost", "value for every turn"),
            ("speed", "no speed"),
        ] {
            let problem = value(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    #[test]
    fn what_was_not_measured_gives_nothing() {
        for text in [
            "median(none - cost)",
            "median(limit * none)",
            "ratio(none, cost)",
            "ratio(cost, none)",
            "least(none)",
            "most(none)",
        ] {
            assert!(value(text).expect(text).is_nan(), "{text}");
        }
    }

    #[test]
    fn the_interval_of_a_ratio_is_that_of_its_estimator() {
        assert_eq!(ratio(&[2.0, 4.0], &[1.0, 2.0]), (2.0, 0.0));
        let (ratio, half) = ratio(&[1.0, 3.0], &[2.0, 2.0]);
        assert_eq!((ratio, half), (1.0, 1.0));
    }
}
