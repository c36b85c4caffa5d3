//! Placeholders in the words of a command.

/// A word with each of `placeholders` replaced by the value at its index. A value with a placeholder in it stays as it is.
#[must_use]
pub fn fill_placeholders(word: &str, placeholders: &[&str], values: &[&str]) -> String {
    let (mut text, mut rest) = (String::new(), word);
    while let Some(brace) = rest.find('{') {
        text.push_str(&rest[..brace]);
        rest = &rest[brace..];
        let found = placeholders.iter().zip(values).find(|(placeholder, _)| rest.starts_with(**placeholder));
        let (placeholder, value) = found.unwrap_or((&"{", &"{"));
        text.push_str(value);
        rest = &rest[placeholder.len()..];
    }
    text + rest
}
