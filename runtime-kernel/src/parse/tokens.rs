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

/// The text of a token; empty beyond the end.
pub(crate) fn text<'a>(tokens: &[Token<'a>], at: usize) -> &'a str {
    tokens.get(at).map_or("", |token| token.text)
}

/// An address space with more tokens is left to naga.
const MOST_TOKENS: usize = 8;

/// The place of the name that the `let`, `const` or `var` at a place declares.
pub(crate) fn declared_name(tokens: &[Token<'_>], at: usize) -> usize {
    let template = text(tokens, at + 1) == "<";
    let end = tokens[at..].iter().take(MOST_TOKENS).position(|token| token.text == ">").filter(|_| template);
    at + end.unwrap_or(0) + 1
}

pub(crate) const fn tokens(code: &str) -> Tokens<'_> {
    Tokens { code, at: 0 }
}

/// An iterator over the tokens of a text.
#[derive(Clone, Debug)]
pub(crate) struct Tokens<'a> {
    code: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    #[inline]
    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.code.as_bytes();
        let mut at = self.at;
        loop {
            let first = *bytes.get(at)?;
            let range = match first {
                b'\t'..=b'\r' | b' ' => {
                    at += 1;
                    continue;
                }
                b'/' | 0x80.. => match self.special(at) {
                    Special::Skipped(length) => {
                        at += length;
                        continue;
                    }
                    Special::Token(length) => at..at + length,
                },
                _ if !WORD[usize::from(first)] => at..at + 1,
                _ => at..at + word(&self.code[at..], first),
            };
            self.at = range.end;
            return Some(Token { text: &self.code[range.clone()], range });
        }
    }
}

/// What begins with `/`, or with a character beyond ASCII.
enum Special {
    /// A comment or blank of this length.
    Skipped(usize),
    Token(usize),
}

impl Tokens<'_> {
    fn special(&self, at: usize) -> Special {
        let rest = &self.code[at..];
        if rest.starts_with("//") {
            return Special::Skipped(rest.find(ends_line).unwrap_or(rest.len()));
        }
        match rest.chars().next() {
            _ if rest.starts_with("/*") => Special::Skipped(block_comment(rest)),
            Some(blank) if blank.is_whitespace() => Special::Skipped(blank.len_utf8()),
            Some('/') | None => Special::Token(1),
            Some(_) => Special::Token(word(rest, 0x80)),
        }
    }
}

/// The length of the word at the start of a text, whose first byte is given.
#[inline]
fn word(rest: &str, first: u8) -> usize {
    let number = first.is_ascii_digit();
    let bytes = rest.as_bytes();
    let goes_on = |next: u8| WORD[usize::from(next)] || number && next == b'.';
    let ascii = bytes.iter().position(|&next| !goes_on(next)).unwrap_or(bytes.len());
    match bytes.get(ascii) {
        // A letter beyond ASCII, or a blank.
        Some(next) if !next.is_ascii() => {
            let ends = |next| !(is_word(next) || number && next == '.');
            ascii + rest[ascii..].find(ends).unwrap_or(rest.len() - ascii)
        }
        _ => ascii,
    }
}

/// By byte: whether it is an ASCII letter of words.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte.is_ascii() {
        table[byte as usize] = is_word(byte as char);
        byte += 1;
    }
    table
};

const fn is_word(letter: char) -> bool {
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
