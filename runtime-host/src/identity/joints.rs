//! Text with its lines joined, as a preprocessor sees it.

/// The text without what joins lines, which may be in the middle of a word.
pub(super) fn without_joints(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut pieces = text.split('\\');
    let mut joined = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches([' ', '\t', '\r', '\x0b', '\x0c']);
        match rest.strip_prefix('\n') {
            Some(next) => joined.push_str(next),
            None => {
                joined.push('\\');
                joined.push_str(piece);
            }
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_lines_hide_no_word() {
        assert_eq!(without_joints(b"#inc\\\nlude \\ \r\n<a>"), "#include <a>");
        assert_eq!(without_joints(b"'\\n' \\\\\nx \\"), "'\\n' \\x \\");
    }
}
