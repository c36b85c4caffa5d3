//! Type parameters: aliases of plain scalar types, and where a text uses them.
//!
//! naga keeps the name of an alias only on the type itself: `array<T>` shows it, `vec4<T>` and `atomic<T>` do not. So the
//! tokens of the declarations are read, of a text that naga has accepted.

use naga::FastHashMap;
use runtime_core::DType;

use super::source_edits::plain_type;
use super::tokens::{Token, declared_name, text};

/// Aliases of aliases, and types inside types.
const MAX_DEPTH: usize = 64;

/// The types that hold scalars of their first template parameter.
const CONTAINERS: [&str; 14] = [
    "array", "atomic", "vec2", "vec3", "vec4", "mat2x2", "mat2x3", "mat2x4", "mat3x2", "mat3x3", "mat3x4",
    "mat4x2", "mat4x3", "mat4x4",
];

/// The declarations of a text that type parameters occur in.
#[derive(Debug)]
pub(crate) struct TypeParameters<'a> {
    tokens: &'a [Token<'a>],
    /// By alias: the place of its definition among the tokens.
    aliases: FastHashMap<&'a str, usize>,
    /// By variable of the module: the place of its type.
    variables: FastHashMap<&'a str, usize>,
    /// Aliases whose types are chosen.
    chosen: &'a [&'a str],
}

impl<'a> TypeParameters<'a> {
    /// Reads the declarations outside of functions; the aliases in `chosen` are no parameters.
    pub(crate) fn of(tokens: &'a [Token<'a>], chosen: &'a [&'a str]) -> Self {
        let (mut aliases, mut variables) = (FastHashMap::default(), FastHashMap::default());
        let text = |at: usize| text(tokens, at);
        let mut braces = 0usize;
        for (at, token) in tokens.iter().enumerate() {
            match token.text {
                "{" => braces += 1,
                "}" => braces = braces.saturating_sub(1),
                "alias" if braces == 0 && text(at + 2) == "=" => {
                    aliases.insert(text(at + 1), at + 3);
                }
                "var" if braces == 0 => {
                    let name = declared_name(tokens, at);
                    if text(name + 1) == ":" {
                        variables.insert(text(name), name + 2);
                    }
                }
                _ => {}
            }
        }
        Self { tokens, aliases, variables, chosen }
    }

    /// The type parameter that the elements of a variable have, with the type that the text gives it; `None` if their type
    /// is fixed, or not found.
    pub(crate) fn of_variable(&self, name: &str) -> Option<(&'a str, DType)> {
        self.at(*self.variables.get(name)?, MAX_DEPTH)
    }

    /// The type parameter that an alias stands for.
    pub(crate) fn of_alias(&self, name: &str) -> Option<(&'a str, DType)> {
        let (alias, definition) = self.aliases.get_key_value(name)?;
        self.of_definition(alias, *definition, MAX_DEPTH)
    }

    fn of_definition(&self, alias: &'a str, definition: usize, depth: usize) -> Option<(&'a str, DType)> {
        let word = text(self.tokens, definition);
        match plain_type(word).filter(|_| !self.aliases.contains_key(word)) {
            Some(dtype) => (!self.chosen.contains(&alias)).then_some((alias, dtype)),
            None => self.at(definition, depth),
        }
    }

    /// The type parameter inside the type at a place.
    fn at(&self, place: usize, depth: usize) -> Option<(&'a str, DType)> {
        let (depth, word) = (depth.checked_sub(1)?, text(self.tokens, place));
        match self.aliases.get(word) {
            Some(definition) => self.of_definition(word, *definition, depth),
            None if CONTAINERS.contains(&word) && text(self.tokens, place + 1) == "<" => {
                self.at(place + 2, depth)
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    fn of_variable(code: &str, name: &str, chosen: &[&str]) -> Option<String> {
        let tokens: Vec<_> = tokens(code).collect();
        let found = TypeParameters::of(&tokens, chosen).of_variable(name);
        found.map(|(alias, dtype)| format!("{alias} = {dtype}"))
    }

    #[test]
    fn a_parameter_is_found_inside_types_and_aliases() {
        let aliases =
            "alias T = f32; alias U = T; alias V = vec4<U>; alias A = array<V, 3>; alias F = vec2<f32>;";
        for (ty, expected) in [
            ("array<T>", Some("T = f32")),
            ("array<U>", Some("T = f32")),
            ("array<vec2<T>>", Some("T = f32")),
            ("array<mat4x3<T>, 7>", Some("T = f32")),
            ("array<atomic<T>>", Some("T = f32")),
            ("array<array<V, 3>>", Some("T = f32")),
            ("A", Some("T = f32")),
            ("array<f32>", None),
            ("array<F>", None),
            ("array<vec4f>", None),
            ("array<Pair>", None),
        ] {
            let code =
                format!("{aliases} @group(0) @binding(0) var < storage, read_write > /* : T */ x : {ty};");
            assert_eq!(of_variable(&code, "x", &[]).as_deref(), expected, "{ty}");
            assert_eq!(of_variable(&code, "x", &["T"]), None, "{ty}");
        }
    }

    #[test]
    fn other_declarations_are_not_taken_for_those_of_the_module() {
        let code = "alias T = f32; var<storage> x: array<f32>; fn f() { var x: T; alias x = T; }";
        assert_eq!(of_variable(code, "x", &[]), None);
        let code = "alias f32 = i32; alias T = f32; var<private> x: T;";
        assert_eq!(of_variable(code, "x", &[]).as_deref(), Some("f32 = i32"), "the alias hides the type");
    }

    #[test]
    fn odd_texts_end() {
        for code in ["alias A = B; alias B = A; var x: A;", "var<", "alias", "var<storage", "var x:", "}}{"] {
            assert_eq!(of_variable(code, "x", &[]), None, "{code}");
        }
        let deep = format!("alias T = f32; var x: {}T", "array<".repeat(100_000));
        assert_eq!(of_variable(&deep, "x", &[]), None);
    }
}
