//! Text from elsewhere, such as names and compilers' messages, without what a terminal would obey.

/// Whether a character is an instruction rather than text: a control character, which could reprogram the terminal, or a mark
/// that changes the direction of text, which could disguise a name.
#[must_use]
pub fn is_obeyed(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text on one line.
#[must_use]
pub fn printable(text: &str) -> String {
    text.replace(is_obeyed, " ")
}

/// Text of several lines, with its tabs.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    text.replace(|character| is_obeyed(character) && !matches!(character, '\n' | '\t'), "\u{fffd}")
}

/// Indents all lines but the first, so that none of them can be taken for a line of the report.
#[must_use]
pub fn indented(text: &str) -> String {
    printable_lines(text.trim_end()).replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "\u{1b}[2Ja\r\n\tb\u{9b}c\u{202e}d\0";

    #[test]
    fn nothing_is_left_that_a_terminal_obeys() {
        assert_eq!(printable(HOSTILE), " [2Ja   b c d ");
        assert_eq!(printable_lines(HOSTILE), "\u{fffd}[2Ja\u{fffd}\n\tb\u{fffd}c\u{fffd}d\u{fffd}");
        assert_eq!(indented("a\nb\r\n\n"), "a\n    b");
        assert_eq!(indented(HOSTILE), "\u{fffd}[2Ja\u{fffd}\n    \tb\u{fffd}c\u{fffd}d\u{fffd}");
        for plain in ["\u{e4}\u{6f22}\u{2192} 1.5", ""] {
            assert_eq!((printable(plain), printable_lines(plain)), (plain.to_owned(), plain.to_owned()));
        }
    }
}
