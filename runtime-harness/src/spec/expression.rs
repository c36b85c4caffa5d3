//! Expressions over shapes, scalars and constants: `2 * A[0] * A[1] * B[1]`, `len(A) + bytes(B)`, `ceil(n / TILE)`,
//! `TILE * TILE <= 1024 and n % TILE == 0`. A condition is 1 if it is true, else 0.

use std::collections::BTreeMap;

use runtime_core::backend::{counted, did_you_mean};

/// The meaning of a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Symbol {
    /// A tensor: extents, and bytes of one element.
    Shape(Vec<usize>, usize),
    /// The value of a scalar argument or of a constant.
    Value(f64),
}

/// The symbols available to an expression.
pub(crate) type Symbols = BTreeMap<String, Symbol>;

const MAX_CHARACTERS: usize = 1000;
const MAX_DEPTH: usize = 100;

/// A comparison of two numbers.
type Comparison = fn(&f64, &f64) -> bool;

/// The comparisons. A symbol comes before its prefix.
const COMPARISONS: [(&str, Comparison); 6] =
    [("<=", f64::le), (">=", f64::ge), ("==", f64::eq), ("!=", f64::ne), ("<", f64::lt), (">", f64::gt)];

fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

/// Evaluates an expression. Errors name the column.
pub(crate) fn evaluate(text: &str, names: &Symbols) -> Result<f64, String> {
    // The parser recurses per parenthesis and sign; the limits bound its stack.
    if text.len() > MAX_CHARACTERS {
        return Err(format!("the expression is longer than {MAX_CHARACTERS} characters"));
    }
    let mut parser = Parser { text, position: 0, depth: 0, names };
    let value = parser.disjunction()?;
    parser.skip_blanks();
    match parser.rest().chars().next() {
        None => Ok(value),
        Some(extra) => Err(parser.fail(&format!("unexpected \"{extra}\""))),
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    /// Parentheses that are open.
    depth: usize,
    names: &'a Symbols,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn fail(&self, message: &str) -> String {
        format!("{message} at column {} of \"{}\"", self.position + 1, self.text)
    }

    fn skip_blanks(&mut self) {
        self.position += self.rest().len() - self.rest().trim_start().len();
    }

    fn accept(&mut self, symbol: char) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(symbol);
        self.position += if found { symbol.len_utf8() } else { 0 };
        found
    }

    fn expect(&mut self, symbol: char) -> Result<(), String> {
        match self.accept(symbol) {
            true => Ok(()),
            false => Err(self.fail(&format!("missing \"{symbol}\""))),
        }
    }

    /// Accepts a word such as `and`, which is not the beginning of a longer name.
    fn accept_word(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
        let found = self.rest().strip_prefix(word).is_some_and(|rest| !goes_on(rest));
        self.position += if found { word.len() } else { 0 };
        found
    }

    fn disjunction(&mut self) -> Result<f64, String> {
        let mut value = self.conjunction()?;
        while self.accept_word("or") {
            let other = self.conjunction()?;
            value = truth(value != 0.0 || other != 0.0);
        }
        Ok(value)
    }

    fn conjunction(&mut self) -> Result<f64, String> {
        let mut value = self.comparison()?;
        while self.accept_word("and") {
            let other = self.comparison()?;
            value = truth(value != 0.0 && other != 0.0);
        }
        Ok(value)
    }

    fn comparison(&mut self) -> Result<f64, String> {
        let left = self.sum()?;
        self.skip_blanks();
        let Some((symbol, holds)) = COMPARISONS.iter().find(|(symbol, _)| self.rest().starts_with(symbol))
        else {
            return Ok(left);
        };
        self.position += symbol.len();
        let right = self.sum()?;
        Ok(truth(holds(&left, &right)))
    }

    fn sum(&mut self) -> Result<f64, String> {
        let mut value = self.product()?;
        loop {
            if self.accept('+') {
                value += self.product()?;
            } else if self.accept('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, String> {
        let mut value = self.factor()?;
        loop {
            if self.accept('*') {
                value *= self.factor()?;
            } else if self.accept('/') {
                value /= self.factor()?;
            } else if self.accept('%') {
                value %= self.factor()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn factor(&mut self) -> Result<f64, String> {
        if self.accept('-') {
            return Ok(-self.factor()?);
        }
        if self.accept('(') {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                return Err(self.fail(&format!("more than {MAX_DEPTH} parentheses are open")));
            }
            let value = self.disjunction()?;
            self.depth -= 1;
            self.expect(')')?;
            return Ok(value);
        }
        match self.rest().chars().next() {
            Some(first) if first.is_ascii_digit() || first == '.' => self.number(),
            Some(first) if first.is_ascii_alphabetic() || first == '_' => self.named(),
            Some(other) => Err(self.fail(&format!("unexpected \"{other}\""))),
            None => Err(self.fail("expected an operand")),
        }
    }

    fn number(&mut self) -> Result<f64, String> {
        let rest = self.rest();
        let mut previous = ' ';
        let end = rest.find(|next: char| {
            let exponent_sign = matches!(next, '+' | '-') && matches!(previous, 'e' | 'E');
            previous = next;
            !(next.is_ascii_alphanumeric() || matches!(next, '.' | '_') || exponent_sign)
        });
        let digits = &rest[..end.unwrap_or(rest.len())];
        let value = digits.replace('_', "").parse();
        let value = value.map_err(|_| self.fail(&format!("\"{digits}\" is not a number")))?;
        self.position += digits.len();
        Ok(value)
    }

    fn name(&mut self) -> &'a str {
        self.skip_blanks();
        let rest = self.rest();
        let end = rest.find(|next: char| !(next.is_ascii_alphanumeric() || next == '_'));
        let name = &rest[..end.unwrap_or(rest.len())];
        self.position += name.len();
        name
    }

    fn named(&mut self) -> Result<f64, String> {
        let start = self.position;
        let name = self.name();
        if self.accept('(') {
            return self.function(name, start);
        }
        let symbol = self.symbol(name, start)?;
        match symbol {
            Symbol::Value(value) => Ok(*value),
            Symbol::Shape(extents, _) => {
                if !self.accept('[') {
                    self.position = start;
                    return Err(self.fail(&format!(
                        "{name} is a tensor: write {name}[0], len({name}) or bytes({name})"
                    )));
                }
                let value = self.extent(name, extents)?;
                self.expect(']')?;
                Ok(value)
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "extents are far below 2^53")]
    fn extent(&mut self, name: &str, extents: &[usize]) -> Result<f64, String> {
        self.skip_blanks();
        let start = self.position;
        let index = self.name();
        let extent = index.parse::<usize>().ok().and_then(|index| extents.get(index));
        extent.map(|&extent| extent as f64).ok_or_else(|| {
            self.position = start;
            self.fail(&format!("{name} has {}, there is no [{index}]", counted(extents.len(), "dimension")))
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "element counts are far below 2^53")]
    fn function(&mut self, function: &str, start: usize) -> Result<f64, String> {
        if function == "ceil" {
            let value = self.sum()?.ceil();
            self.expect(')')?;
            return Ok(value);
        }
        self.skip_blanks();
        let argument_start = self.position;
        let name = self.name();
        let scale = match function {
            "len" => |_: usize| 1,
            "bytes" => |element_bytes: usize| element_bytes,
            _ => {
                self.position = start;
                return Err(self.fail(&format!(
                    "unknown function \"{function}\"; {}",
                    did_you_mean(function, &["len", "bytes", "ceil"])
                )));
            }
        };
        let value = match self.symbol(name, argument_start)? {
            Symbol::Shape(extents, bytes) => extents.iter().product::<usize>() as f64 * scale(*bytes) as f64,
            Symbol::Value(_) => {
                self.position = argument_start;
                return Err(self.fail(&format!("{function}() takes a tensor; \"{name}\" is not one")));
            }
        };
        self.expect(')')?;
        Ok(value)
    }

    fn symbol(&mut self, name: &str, start: usize) -> Result<&'a Symbol, String> {
        self.names.get(name).ok_or_else(|| {
            let valid: Vec<_> = self.names.keys().map(String::as_str).collect();
            self.position = start;
            self.fail(&format!("unknown name \"{name}\"; {}", did_you_mean(name, &valid)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64, String> {
        let names = [
            ("A".to_owned(), Symbol::Shape(vec![2, 3], 4)),
            ("alpha".to_owned(), Symbol::Value(0.5)),
            ("empty".to_owned(), Symbol::Shape(vec![], 8)),
        ];
        evaluate(text, &names.into_iter().collect())
    }

    #[test]
    fn operators_have_the_usual_precedence() {
        for (text, expected) in [
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("8 / 2 / 2", 2.0),
            ("5 - 2 - 1", 2.0),
            ("-2 * -3", 6.0),
            ("1e3 + 2.5E-1", 1000.25),
            ("1_000", 1000.0),
            (" 2 * A[0] * A[ 1 ]", 12.0),
            ("len(A) + bytes( A )", 30.0),
            ("alpha * 2", 1.0),
            ("len(empty)", 1.0),
            ("ceil(A[1] / 2) * 2", 4.0),
            ("ceil(4 / 2)", 2.0),
            ("7 % 4 * 2", 6.0),
            ("A[0] < A[1]", 1.0),
            ("2 <= 2", 1.0),
            ("2 >= 2 and 1 != 1", 0.0),
            ("2 > 2 or 1+1 == 2", 1.0),
            ("1 or 0 and 0", 1.0),
            ("(1 or 0) and 0", 0.0),
            ("(1 <= 2) + (2 <= 1)", 1.0),
        ] {
            assert_eq!(value(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_name_the_column_and_suggest_a_fix() {
        for (text, message) in [
            (
                "2 * a[0]",
                "unknown name \"a\"; did you mean \"A\"? (valid: A, alpha, empty) at column 5 of \"2 * a[0]\"",
            ),
            ("A[2]", "A has 2 dimensions, there is no [2] at column 3 of \"A[2]\""),
            ("A", "A is a tensor: write A[0], len(A) or bytes(A) at column 1 of \"A\""),
            ("size(A)", "unknown function \"size\"; valid: len, bytes, ceil at column 1 of \"size(A)\""),
            ("len(alpha)", "len() takes a tensor; \"alpha\" is not one at column 5 of \"len(alpha)\""),
            ("(1 + 2", "missing \")\" at column 7 of \"(1 + 2\""),
            ("1 +", "expected an operand at column 4 of \"1 +\""),
            ("2x", "\"2x\" is not a number at column 1 of \"2x\""),
            ("1 = 2", "unexpected \"=\" at column 3 of \"1 = 2\""),
            ("1 < 2 < 3", "unexpected \"<\" at column 7 of \"1 < 2 < 3\""),
            ("1 andy", "unexpected \"a\" at column 3 of \"1 andy\""),
            ("1 $ 2", "unexpected \"$\" at column 3 of \"1 $ 2\""),
        ] {
            assert_eq!(value(text), Err(message.to_owned()), "{text}");
        }
        assert!(value(&"(".repeat(100_000)).unwrap_err().contains("longer than"));
        assert!(value(&"(".repeat(MAX_CHARACTERS)).unwrap_err().contains("more than 100 parentheses"));
        assert!(value(&"-".repeat(MAX_CHARACTERS)).unwrap_err().contains("expected an operand"));
        assert!(value(&"ceil(".repeat(200)).unwrap_err().contains("expected an operand"));
        let deep = format!("{}1{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH));
        assert_eq!(value(&deep), Ok(1.0));
    }
}
