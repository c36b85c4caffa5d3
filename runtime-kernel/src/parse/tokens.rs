//! Splits WGSL text into words and symbols with their positions, without comments and blanks.

use std::ops::Range;

use naga::Span;

/// A word (identifier, keyword, number) or a single symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) range: Range<usize>,
}

impl Token<'_> {
    pub(crate) fn span(&self) -> Span {
        let at = |place| u32::try_from(place).unwrap_or(u32::MAX);
        Span::new(at(self.range.start), at(self.range.end))
    }
}

pub(crate) fn tokens(code: &str) -> impl Iterator<Item = Token<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = &code[at..];
            let first = rest.chars().next()?;
            if first.is_whitespace() {
                at += first.len_utf8();
            } else if rest.starts_with("//") {
                at += rest.find(ends_line).unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                at += block_comment(rest);
            } else {
                let range = at..at + length(rest, first);
                at = range.end;
                return Some(Token { text: &code[range.clone()], range });
            }
        }
    })
}

/// The length of the word or symbol that starts with `first`.
fn length(rest: &str, first: char) -> usize {
    if !is_word(first) {
        return first.len_utf8();
    }
    let number = first.is_ascii_digit();
    rest.find(|next| !(is_word(next) || number && next == '.')).unwrap_or(rest.len())
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_ascii_alphanumeric() || !letter.is_ascii() && !letter.is_whitespace()
}

/// A line comment ends at any of WGSL's line breaks.
const fn ends_line(letter: char) -> bool {
    matches!(letter, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The length of the block comment at the start of a text; comments nest, and an unterminated one takes the rest.
fn block_comment(text: &str) -> usize {
    let (bytes, mut depth, mut at) = (text.as_bytes(), 1, 2);
    while depth > 0 && at < bytes.len() {
        at += match bytes[at..] {
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            _ => 1,
        };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_not_tokens() {
        let words = |code| tokens(code).map(|token| token.text).collect::<Vec<_>>().join(" ");
        assert_eq!(words("alias T // f32\n = /* a /* b */ c */ f32;"), "alias T = f32 ;");
        assert_eq!(words("a/b*c/ /**/1.5e3+é"), "a / b * c / 1.5e3 + é");
        assert_eq!(words("x /* never closed"), "x");
        assert_eq!(words("// only\u{2028}y"), "y");
    }
}
