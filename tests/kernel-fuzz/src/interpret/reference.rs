//! The text that the interpreter parses, where naga does not take a form as WGSL means it.
//!
//! The kernel itself says what the interpreter reads: TEXT, instead of what stands between `/*reference TEXT*/` and
//! `/**/`. Names of types are replaced with the types, which naga tells apart.

use std::collections::HashMap;

const MARK: &str = "/*reference ";
const END: &str = "/**/";

/// Text of a kernel for which the interpreter reads other text.
pub(crate) fn spelt(kernel: &str, reference: &str) -> String {
    format!("{MARK}{reference}*/{kernel}{END}")
}

/// What the interpreter reads for the text of a kernel.
pub(super) fn reference(text: &str) -> String {
    let (mut read, mut rest) = (String::new(), text);
    while let Some((before, marked)) = rest.split_once(MARK)
        && let Some((instead, kernel)) = marked.split_once("*/")
        && let Some((_, after)) = kernel.split_once(END)
    {
        read += before;
        read += instead;
        rest = after;
    }
    without_aliases(&(read + rest))
}

/// The text with types for their names; an alias stands in a line of its own, in front of its uses.
fn without_aliases(text: &str) -> String {
    let mut aliases = HashMap::new();
    let mut read = String::new();
    for line in text.lines() {
        let declared = line.strip_prefix("alias ").and_then(|rest| rest.strip_suffix(';')?.split_once(" = "));
        match declared {
            Some((name, ty)) => _ = aliases.insert(name, substituted(ty, &aliases)),
            None => read += &substituted(line, &aliases),
        }
        read.push('\n');
    }
    read
}

fn substituted(text: &str, aliases: &HashMap<&str, String>) -> String {
    let ends_word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let mut read = String::new();
    for piece in text.split_inclusive(ends_word) {
        let word = piece.trim_end_matches(ends_word);
        read += aliases.get(word).map_or(word, String::as_str);
        read += &piece[word.len()..];
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_aliases_become_what_they_mean() {
        let kernel = format!("{} z = 0;{}", spelt("let", "var"), spelt("", "{"));
        assert_eq!(kernel, "/*reference var*/let/**/ z = 0;/*reference {*//**/");
        let aliases = "alias F = f32;\nalias R = array<F, 2>;\nvar<private> FR: R = R(F(), F());";
        let read = "var z = 0;{\n\n\nvar<private> FR: array<f32, 2> = array<f32, 2>(f32(), f32());\n";
        assert_eq!(reference(&format!("{kernel}\n{aliases}")), read);
    }
}
