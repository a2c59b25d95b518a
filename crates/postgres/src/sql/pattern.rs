//! Patterns of shapes: a whole shape, or the beginning of one with `*` behind it. One that no shape
//! can fit is a mistake, and would go unnoticed.

use super::shape::{KEPT_BYTES, shape_of_shape};

/// Why nothing fits a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NeverFits {
    /// It is not written as shapes are.
    #[error(
        "{written:?} matches no statement, because shapes are written another way (SHOW STATEMENTS has them); write {right:?}"
    )]
    Written {
        /// The pattern.
        written: String,
        /// As it would fit.
        right: String,
    },
    /// No statement has such a shape.
    #[error(
        "{written:?} matches no statement: BEGIN, SET and their like have no shape; write one that SHOW STATEMENTS has"
    )]
    NoStatement {
        /// The pattern.
        written: String,
    },
}

/// Whether some statement's shape can fit the pattern, as far as its own words say it.
pub fn check_pattern(written: &str) -> Result<(), NeverFits> {
    let (beginning, star) = match written.strip_suffix('*') {
        Some("") => return Ok(()),
        Some(beginning) => (beginning, "*"),
        None => (written, ""),
    };
    let written = written.to_owned();
    let is_cut = star.is_empty() && beginning.len() >= KEPT_BYTES;
    // What is cut off ends anywhere, even with a space.
    let Some(right) = beginning_of_shape(beginning, !star.is_empty() || is_cut) else {
        return Err(NeverFits::NoStatement { written });
    };
    if with_operators(&right) != with_operators(beginning) {
        let right = right + star;
        return Err(NeverFits::Written { written, right });
    }
    // A byte that is no text is shown as three.
    let may_be_cut = beginning.len() <= KEPT_BYTES || beginning.contains('\u{fffd}');
    if may_be_cut {
        return Ok(());
    }
    let kept = right.floor_char_boundary(KEPT_BYTES);
    let right = format!("{}*", &right[..kept]);
    Err(NeverFits::Written { written, right })
}

/// As a shape would have it, with a space at its end where one is there and something may follow.
fn beginning_of_shape(beginning: &str, has_more: bool) -> Option<String> {
    let shape = |text: &str| {
        let bytes = shape_of_shape(text)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let more = format!("{beginning}x");
    if has_more && beginning.ends_with(' ') && shape(beginning).is_some() {
        shape(&more)?.strip_suffix('x').map(str::to_owned)
    } else {
        None
    }
    .or_else(|| shape(beginning))
}

/// In `@?` and `^?` it is no constant that stands behind an operator.
fn with_operators(text: &str) -> String {
    text.replace("@ ?", "@?").replace("^ ?", "^?")
}

#[cfg(test)]
mod tests {
    use super::super::shape;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_shapes_begin_with_is_a_pattern() {
        for pattern in [
            "*",
            "s*",
            "select *",
            "select count(*)",
            "select count(*)*",
            "select count*",
            "select abalance from pgbench_accounts*",
            "select abal*",
            "select a from t where id = ?",
            "select a from t where id = ?*",
            "select a from t where id = *",
            "insert into t values(?)",
            "insert into t values(?, now()),(?*",
            "select x in(?), ?",
            "select ?, *",
            "select \"Name\" :: int from \"T\"",
            "select \"Na*",
            "select a - - b / * c",
            "select a -> ? #>> ? ? ?",
            "select a @? ? and b ^ ? and c ^? d",
            "select - ?",
            "select n, e from x",
        ] {
            assert_eq!(check_pattern(pattern), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn what_no_shape_fits_is_said_with_the_right_form() {
        for (pattern, right) in [
            ("SELECT * FROM t*", "select * from t*"),
            ("SELECT * FROM *", "select * from *"),
            ("select x in (?)", "select x in(?)"),
            ("select x in(?, ?)*", "select x in(?)*"),
            (
                "select a from t where id = 5",
                "select a from t where id = ?",
            ),
            ("select a from t where id=?", "select a from t where id = ?"),
            (
                "select a from t where id = $1*",
                "select a from t where id = ?*",
            ),
            (
                "select a from t where b = 'x*",
                "select a from t where b = ?*",
            ),
            ("select  a", "select a"),
            ("select a ", "select a"),
            ("select count( *", "select count(*"),
            ("begin; update t*", "update t*"),
            ("select a; select b", "select a"),
            ("select a /* x */ from t", "select a from t"),
        ] {
            let written = pattern.to_owned();
            let right = right.to_owned();
            assert_eq!(check_pattern(&right), Ok(()), "{right}");
            let expected = Err(NeverFits::Written { written, right });
            assert_eq!(check_pattern(pattern), expected);
        }
        for pattern in ["", " ", "begin", "set*", "set *", "commit", ";*", "-- x"] {
            let written = pattern.to_owned();
            let expected = Err(NeverFits::NoStatement { written });
            assert_eq!(check_pattern(pattern), expected);
        }
    }

    #[test]
    fn of_a_long_shape_the_beginning_is_kept() {
        let long = format!("select {}", "a, ".repeat(300));
        let kept = shape(long.as_bytes()).unwrap().text;
        assert_eq!(check_pattern(&kept), Ok(()));
        let Err(NeverFits::Written { right, .. }) = check_pattern(long.trim_end()) else {
            panic!("longer than any that is kept");
        };
        assert_eq!(right, format!("{kept}*"));
        assert_eq!(check_pattern(&right), Ok(()));
    }

    proptest! {
        #[test]
        fn every_shape_is_a_pattern_and_so_is_its_beginning(
            sql in "(SELECT|update|[a-z]{1,3})([a-zE'0-9 $.,()<>=+*/@|:&-]{0,20}(\"[A-Z ']{1,5}\")?){0,4}",
            kept in any::<prop::sample::Index>(),
        ) {
            if let Some(shape) = shape(sql.as_bytes()) {
                prop_assert_eq!(check_pattern(&shape.text), Ok(()), "{}", sql);
                let kept = kept.index(shape.text.len()) + 1;
                let beginning = format!("{}*", &shape.text[..kept]);
                prop_assert_eq!(check_pattern(&beginning), Ok(()), "{}", sql);
            }
        }
    }
}
