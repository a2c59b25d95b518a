//! What holds in a block: what it says itself, else what the blocks around it say.

use super::tree::Directive;

/// A block and those around it.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// The outermost first.
    levels: Vec<&'a [Directive]>,
}

impl<'a> Scope<'a> {
    /// A block within this one.
    pub fn within(&self, level: &'a [Directive]) -> Self {
        let mut levels = self.levels.clone();
        levels.push(level);
        Self { levels }
    }

    /// What the block says itself.
    pub fn own(&self) -> &'a [Directive] {
        self.levels.last().copied().unwrap_or_default()
    }

    /// Whether it is a block within a server.
    pub fn is_location(&self) -> bool {
        self.levels.len() > 2
    }

    /// The block around this one.
    pub fn outside(&self) -> Self {
        let levels = self.levels.split_last().map(|(_, outer)| outer.to_vec());
        Self {
            levels: levels.unwrap_or_default(),
        }
    }

    /// The first of this name that the block says itself.
    pub fn own_one(&self, name: &str) -> Option<&'a Directive> {
        self.own().iter().find(|directive| directive.name == name)
    }

    /// What the block and those around it say.
    pub fn everywhere(&self) -> impl Iterator<Item = &'a Directive> {
        self.levels.iter().copied().flatten()
    }

    /// All of these names, of the innermost block that has any.
    pub fn all(&self, names: &[&str]) -> Vec<&'a Directive> {
        let is_one = |directive: &&Directive| names.contains(&directive.name.as_str());
        let levels = self.levels.iter().rev();
        let mut found = levels.map(|level| level.iter().filter(is_one).collect::<Vec<_>>());
        found.find(|all| !all.is_empty()).unwrap_or_default()
    }

    /// The one that holds.
    pub fn one(&self, name: &str) -> Option<&'a Directive> {
        self.all(&[name]).last().copied()
    }

    /// A text with the variables that `set` gives a fixed text.
    pub fn expanded(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let levels = self.levels.iter().rev();
        let set = levels.flat_map(|level| level.iter().filter(|own| own.name == "set"));
        for directive in set {
            let [name, value] = directive.args.as_slice() else {
                continue;
            };
            if value.contains('$') || !name.starts_with('$') {
                continue;
            }
            let braced = format!("${{{}}}", &name[1..]);
            text = replaced(&text.replace(&braced, value), name, value);
        }
        text
    }
}

/// Replaces `$name`, and not the beginning of `$name_of_another`.
pub fn replaced(text: &str, name: &str, value: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let behind = &rest[at + name.len()..];
        let is_longer =
            behind.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        replaced.push_str(&rest[..at]);
        replaced.push_str(if is_longer { name } else { value });
        rest = behind;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_the_beginning_of_another() {
        assert_eq!(replaced("$a/$ab/$a", "$a", "x"), "x/$ab/x");
    }
}
