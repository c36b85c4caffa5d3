//! Rust code as tokens, as far as imports need them: words, `::` and single characters.

/// The tokens of `text`, without comments, strings, characters, lifetimes, and what is compiled only for unit tests.
pub(crate) fn of_product_code(text: &str) -> Vec<&str> {
    let all = tokens(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < all.len() {
        if is_test_attribute(&all[at..]) {
            at += tested(&all[at..]);
        } else {
            found.push(all[at]);
            at += 1;
        }
    }
    found
}

fn tokens(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest).or_else(|| literal(rest));
        let length = skipped.unwrap_or_else(|| match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        });
        if skipped.is_none() && !first.is_whitespace() {
            found.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the comment that `text` begins with.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let (mut depth, mut at) = (0, 0);
    while text.starts_with("/*") {
        let next = text[at..].find("/*").map(|begin| (begin, 1));
        let end = text[at..].find("*/").map(|end| (end, -1));
        let (length, change) = next.into_iter().chain(end).min()?;
        at += length + 2;
        depth += change;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The length of the string, the character or the lifetime that `text` begins with.
fn literal(text: &str) -> Option<usize> {
    let prefix = text.len() - text.trim_start_matches(['b', 'c']).len();
    if let Some(raw) = text[prefix..].strip_prefix('r') {
        let hashes = &raw[..raw.len() - raw.trim_start_matches('#').len()];
        let content = raw[hashes.len()..].strip_prefix('"');
        return content.map(|content| {
            let end = format!("\"{hashes}");
            let length = content.find(&end).map_or(content.len(), |at| at + end.len());
            text.len() - content.len() + length
        });
    }
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let second = text[1..].chars().next()?;
    if quote == '\'' && second != '\\' && !text[1 + second.len_utf8()..].starts_with('\'') {
        return Some(1 + text[1..].find(|c| !is_word(c)).unwrap_or(text.len() - 1));
    }
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(end.map_or(text.len(), |end| end + 2))
}

fn is_test_attribute(tokens: &[&str]) -> bool {
    [&["#", "[", "cfg", "(", "test", ")", "]"] as &[_], &["#", "[", "cfg", "(", "all", "(", "test", ","]]
        .iter()
        .any(|attribute| tokens.starts_with(attribute))
}

/// The number of tokens of an attribute and of the item, field or statement after it.
fn tested(tokens: &[&str]) -> usize {
    let (mut depth, mut is_item, mut in_attribute) = (0_usize, false, false);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "#" if depth == 0 => in_attribute = true,
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" if depth == 0 => return at,
            "]" if depth == 1 && in_attribute => (depth, in_attribute) = (0, false),
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            // Not the comma between the parameters of a generic item.
            "," if depth == 0 && !is_item => return at + 1,
            "fn" | "impl" | "struct" | "enum" | "trait" | "type" | "use" => is_item |= depth == 0,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_no_tokens() {
        assert_eq!(tokens("a // b\n/* c /* d */ e */ f::g"), ["a", "f", "::", "g"]);
        assert_eq!(
            tokens(r##"x("a\" b", r#"c" d"#, b"e", br"f\", '"', '\'', 'g') y"##).join(""),
            "x(,,b,,,,)y"
        );
        assert_eq!(tokens("&'a str, 'b: loop r#type crate").join(" "), "& str , : loop r # type crate");
    }

    #[test]
    fn code_for_unit_tests_is_left_out_wherever_it_stands() {
        let left = |text| of_product_code(text).join(" ");
        assert_eq!(left("a #[cfg(test)] mod tests { { } } b"), "a b");
        assert_eq!(left("#[cfg(test)] #[path = \"x.rs\"] mod tests; b"), "b");
        assert_eq!(left("#[cfg(test)] fn f<A, B>(a: A) -> [u8; 2] { a } b"), "b");
        assert_eq!(left("{ #[cfg(test)] a: A<B>, b: B }"), "{ b : B }");
        assert_eq!(left("{ a, #[cfg(test)] b }"), "{ a , }");
        assert_eq!(left("#[cfg(all(test, unix))] use a::{b, c}; #[cfg(unix)] b"), "; # [ cfg ( unix ) ] b");
    }
}
