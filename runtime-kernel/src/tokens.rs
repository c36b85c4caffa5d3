//! Words and symbols of a WGSL text with their places; comments and blanks are passed over.

use std::iter::Peekable;
use std::ops::Range;
use std::str::CharIndices;

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
    let mut rest = code.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (start, first) = rest.next()?;
            if first == '/' && rest.next_if(|&(_, next)| next == '/').is_some() {
                while rest.next_if(|&(_, next)| !ends_line(next)).is_some() {}
            } else if first == '/' && rest.next_if(|&(_, next)| next == '*').is_some() {
                skip_block(&mut rest);
            } else if !first.is_whitespace() {
                let number = first.is_ascii_digit();
                let mut end = start + first.len_utf8();
                while is_word(first)
                    && let Some((at, next)) =
                        rest.next_if(|&(_, next)| is_word(next) || (number && next == '.'))
                {
                    end = at + next.len_utf8();
                }
                return Some(Token { text: &code[start..end], range: start..end });
            }
        }
    })
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric() || !letter.is_ascii() && !letter.is_whitespace()
}

/// A line comment ends at any of WGSL's line breaks.
const fn ends_line(letter: char) -> bool {
    matches!(letter, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Block comments nest.
fn skip_block(rest: &mut Peekable<CharIndices<'_>>) {
    let mut depth = 1;
    while depth > 0
        && let Some((_, letter)) = rest.next()
    {
        if letter == '*' && rest.next_if(|&(_, next)| next == '/').is_some() {
            depth -= 1;
        } else if letter == '/' && rest.next_if(|&(_, next)| next == '*').is_some() {
            depth += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_tokens() {
        let words = |code| tokens(code).map(|token| token.text).collect::<Vec<_>>().join(" ");
        assert_eq!(words("alias T // f32\n = /* a /* b */ c */ f32;"), "alias T = f32 ;");
        assert_eq!(words("a/b*c/ /**/1.5e3+é"), "a / b * c / 1.5e3 + é");
        assert_eq!(words("x /* never closed"), "x");
        assert_eq!(words("// only\u{2028}y"), "y");
    }
}
