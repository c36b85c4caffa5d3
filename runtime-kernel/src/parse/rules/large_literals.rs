//! A number without a suffix becomes an `i32` where a variable takes its type from it (§type-rules); naga takes the first type
//! that has the number, be it `u32` or `f32`.

use super::Violation;
use crate::parse::constants::abstract_integer;
use crate::parse::tokens::{Token, declared_name, text};

const WORDS: &str =
    "this number does not fit `i32`, the type of a number without a suffix; add `u`, or declare the type";

/// The numbers that are too large for the type.
pub(super) fn beyond_i32(tokens: &[Token<'_>]) -> Vec<Violation> {
    let declarations = (0..tokens.len()).filter(|&at| matches!(tokens[at].text, "let" | "var"));
    let found = declarations.filter_map(|at| {
        let equals = declared_name(tokens, at) + 1;
        let minus = usize::from(text(tokens, equals + 1) == "-");
        let number = equals + minus + 1;
        if text(tokens, equals) != "=" || text(tokens, number + 1) != ";" {
            return None;
        }
        let most = i128::from(i32::MAX) + i128::from(minus == 1);
        let is_beyond = abstract_integer(tokens[number].text)? > most;
        is_beyond.then(|| Violation { place: tokens[number].span(), text: WORDS.to_owned() })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    #[test]
    fn only_variables_without_a_type() {
        let count = |code| beyond_i32(&tokens(code).collect::<Vec<_>>()).len();
        for valid in [
            "let a = 2147483647;",
            "var a = -2147483648;",
            "var<private> a = 4294967295u;",
            "let a: u32 = 4294967295;",
            "const a = 4294967295;",
            "let a = 4294967295 - 1;",
            "var a = 0x7fffffff;",
            "let a = 4294967296.0;",
        ] {
            assert_eq!(count(valid), 0, "{valid}");
        }
        for wrong in ["let a = 2147483648;", "var a = -2147483649;", "var<private> a = 0xffffffff;"] {
            assert_eq!(count(wrong), 1, "{wrong}");
        }
    }
}
