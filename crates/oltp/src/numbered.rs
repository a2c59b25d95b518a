//! Statements with names, which are their numbers among those that a session prepares.

/// Makes constants of names and texts, and `ALL` of the texts.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "they count the constants below and have their names")]
        enum Number { $($name),* }
        $($(#[$doc])* pub const $name: usize = Number::$name as usize;)*
        /// All of them.
        pub const ALL: &[&str] = &[$($text),*];
    };
}

pub(crate) use statements;
