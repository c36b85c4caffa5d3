//! Text of drivers and tools as it is shown: without what a terminal would obey.

use std::ops::RangeInclusive;

/// Characters that change the direction of a text.
const DIRECTIONS: [RangeInclusive<char>; 4] =
    ['\u{202a}'..='\u{202e}', '\u{2066}'..='\u{2069}', '\u{200e}'..='\u{200f}', '\u{61c}'..='\u{61c}'];

/// A line with marks in place of what a terminal would obey.
pub(crate) fn plain(line: &str) -> String {
    line.chars().map(|character| if is_obeyed(character) { '\u{fffd}' } else { character }).collect()
}

/// The end of an output as one line of at most `max_characters`: a tool says last why it fails.
pub(crate) fn last_words(output: &str, max_characters: usize) -> String {
    let lines: Vec<_> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = plain(&lines.join("; "));
    match text.char_indices().rev().nth(max_characters.saturating_sub(1)) {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text,
    }
}

fn is_obeyed(character: char) -> bool {
    character != '\t' && (character.is_control() || DIRECTIONS.iter().any(|range| range.contains(&character)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(plain("K300\x1b[2J\u{2066}\tz\u{9b}\u{fc}"), "K300\u{fffd}[2J\u{fffd}\tz\u{fffd}\u{fc}");
        assert_eq!(last_words(" a\r\n\n\x07b\n", 9), "a; \u{fffd}b");
    }

    #[test]
    fn the_end_of_a_long_output_is_shown() {
        assert_eq!(last_words("0123456789", 4), "…6789");
        assert_eq!(last_words("0123", 4), "0123");
        assert_eq!(last_words("äöü", 2), "…öü");
        assert_eq!((&*last_words("", 4), &*last_words("\n\n", 0)), ("", ""));
    }
}
