//! A number without a suffix becomes an `i32` where a variable takes its type from it (§type-rules); naga takes the first type that
//! has the number, be it `u32` or `f32`.

use super::Violation;
use crate::parse::tokens::{Token, text};

/// The numbers that are too large for the type.
pub(super) fn beyond_i32(tokens: &[Token<'_>]) -> Vec<Violation> {
    let declarations = (0..tokens.len()).filter(|&at| matches!(tokens[at].text, "let" | "var"));
    let found = declarations.filter_map(|at| {
        let template = if text(tokens, at + 1) == "<" { tokens[at..].iter().position(|token| token.text == ">")? } else { 0 };
        let equals = at + template + 2;
        let minus = usize::from(text(tokens, equals + 1) == "-");
        let number = equals + minus + 1;
        if text(tokens, equals) != "=" || text(tokens, number + 1) != ";" {
            return None;
        }
        let digits = text(tokens, number);
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => digits.parse::<u64>().ok()?,
        };
        let most = u64::from(i32::MIN.unsigned_abs()) - u64::from(minus == 0);
        let text = "this number does not fit `i32`, the type of a number without a suffix; add `u`, or declare the type";
        (value > most).then(|| Violation { place: tokens[number].span(), text: text.to_owned() })
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
