//! Limits the expanded size of structures and constants. If each declaration uses the previous one twice, the size
//! grows exponentially: naga visits all members wherever a type is used, and copies all values wherever a constant is
//! used.

use naga::{FastHashMap, Span};
use runtime_core::Result;

use super::diagnostics::{failed, location};
use super::tokens::Token;

/// Words of a structure, three per member, including the types that it names.
const MAX_MEMBERS: u64 = 10_000;
/// Words of a constant, including the constants that it names.
const MAX_VALUES: u64 = 200_000;
/// Words of all constants, once per use.
const MAX_COPIES: u64 = 8_000_000;

/// Checks the declarations of `code`, given its tokens.
///
/// # Errors
/// `CompileFailed` for a structure or constant beyond any realistic size.
pub(crate) fn check(tokens: &[Token<'_>], code: &str, path: &str) -> Result<()> {
    let graph = Graph::of(tokens);
    for declaration in &graph.list {
        let max = if declaration.is_constant { MAX_VALUES } else { MAX_MEMBERS };
        if declaration.size > max {
            let (name, place) = (declaration.name, location(code, path, declaration.span));
            return Err(failed(format!(
                "{place}: \"{name}\" expands to {} words with the declarations that it names, more than {max}",
                declaration.size
            )));
        }
    }
    if !graph.list.iter().any(|declaration| declaration.is_constant && declaration.size > 1) {
        return Ok(());
    }
    let mut copies = 0u64;
    for token in tokens {
        copies = copies.saturating_add(graph.constant(token.text));
        if copies > MAX_COPIES {
            let (name, place) = (token.text, location(code, path, token.span()));
            return Err(failed(format!("{place}: \"{name}\" is too large a constant to be used this often")));
        }
    }
    Ok(())
}

/// A structure, an alias, or a constant.
struct Declaration<'a> {
    name: &'a str,
    span: Span,
    is_constant: bool,
    words: Vec<&'a str>,
    /// Whether it may hold more than one value: its initialiser has a call or constructor.
    is_composed: bool,
    /// Its words, including those of what it names; 1 for a single value.
    size: u64,
}

/// Which declaration names which. Functions may declare constants of the same name: each counts as the largest.
struct Graph<'a> {
    list: Vec<Declaration<'a>>,
    names: FastHashMap<&'a str, Vec<usize>>,
}

impl<'a> Graph<'a> {
    fn of(tokens: &[Token<'a>]) -> Self {
        let list = declarations(tokens);
        let mut names: FastHashMap<_, Vec<_>> = FastHashMap::default();
        for (index, declaration) in list.iter().enumerate() {
            names.entry(declaration.name).or_default().push(index);
        }
        let mut graph = Self { list, names };
        let mut seen = vec![false; graph.list.len()];
        for index in 0..graph.list.len() {
            graph.measure(index, &mut seen);
        }
        graph
    }

    fn named(&self, word: &str) -> &[usize] {
        self.names.get(word).map_or(&[], Vec::as_slice)
    }

    fn size(&self, word: &str) -> u64 {
        self.named(word).iter().map(|&index| self.list[index].size).max().unwrap_or(0)
    }

    /// The size of a constant.
    fn constant(&self, word: &str) -> u64 {
        let constants = self.named(word).iter().map(|&index| &self.list[index]);
        constants.filter(|declaration| declaration.is_constant).map(|found| found.size).max().unwrap_or(0)
    }

    /// Computes the size of a declaration after those that it names, without recursion, since chains may be long.
    /// naga rejects cycles.
    fn measure(&mut self, first: usize, seen: &mut [bool]) {
        if std::mem::replace(&mut seen[first], true) {
            return;
        }
        let mut open = vec![(first, 0)];
        while let Some((index, at)) = open.last_mut() {
            let (index, words) = (*index, &self.list[*index].words);
            let Some(&word) = words.get(*at) else {
                let (own, named) = (words.len() as u64, words.iter().map(|word| self.size(word)));
                let size = match (self.list[index].is_composed, named.clone().max()) {
                    (false, None | Some(0 | 1)) => 1,
                    _ => named.fold(own, u64::saturating_add),
                };
                self.list[index].size = size;
                open.pop();
                continue;
            };
            *at += 1;
            for &inner in self.named(word) {
                if !std::mem::replace(&mut seen[inner], true) {
                    open.push((inner, 0));
                }
            }
        }
    }
}

fn is_word(text: &str) -> bool {
    !text.starts_with(|first: char| first.is_ascii_punctuation() && first != '_')
}

fn declarations<'a>(tokens: &[Token<'a>]) -> Vec<Declaration<'a>> {
    let mut list = Vec::new();
    let mut all = tokens.iter();
    while let Some(token) = all.next() {
        let end = match token.text {
            "struct" => "}",
            "alias" | "const" => ";",
            _ => continue,
        };
        let Some(name) = all.next() else { break };
        let text: Vec<_> = all.by_ref().map(|token| token.text).take_while(|text| *text != end).collect();
        let is_constant = token.text == "const";
        let is_composed = !is_constant
            || text.windows(2).any(|pair| pair[1] == "(" && (is_word(pair[0]) || pair[0] == ">"));
        let words = text.into_iter().filter(|text| is_word(text)).collect();
        list.push(Declaration {
            name: name.text,
            span: name.span(),
            is_constant,
            words,
            is_composed,
            size: 0,
        });
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::tokens::tokens;

    fn checked(code: &str) -> Result<()> {
        check(&tokens(code).collect::<Vec<_>>(), code, "a.wgsl")
    }

    fn doubled(times: usize) -> String {
        let double = |n: usize| format!("struct S{} {{ a: S{n}, b: B{n} }}\nalias B{n} = S{n};\n", n + 1);
        (0..times).rev().map(double).chain(["struct S0 { a: u32 }".to_owned()]).collect()
    }

    #[test]
    fn nested_structures_are_counted() {
        assert!(checked(&doubled(10)).is_ok());
        let error = checked(&doubled(30)).unwrap_err();
        assert!(error.to_string().starts_with("a.wgsl:"), "{error}");
        assert!(error.to_string().contains("more than 10000"), "{error}");
        assert!(checked("struct A { b: B } struct B { a: A, b: A } struct").is_ok(), "a cycle is naga's");
        let long = format!("struct L {{ {} }}", (0..3000).map(|n| format!("m{n}: u32,")).collect::<String>());
        assert!(checked(&long).is_ok());
    }

    #[test]
    fn constants_of_constants_and_their_uses_are_counted() {
        let double = |n: usize| format!("const c{} = array(c{n}, c{n});\n", n + 1);
        let doubled = |times| format!("const c0 = 1;\n{}", (0..times).map(double).collect::<String>());
        assert!(checked(&doubled(12)).is_ok());
        let error = checked(&doubled(30)).unwrap_err().to_string();
        assert!(error.starts_with("a.wgsl:") && error.contains("more than 200000"), "{error}");
        let hidden = "fn f() { const c29 = 1; const c30 = 1; }";
        assert!(checked(&format!("{}{hidden}", doubled(30))).is_err());
        let table = format!("const t = array({});\n", "1u, ".repeat(10_000));
        assert!(checked(&format!("{table}fn f() {{ {} }}", "x = t[i];".repeat(500))).is_ok());
        let often = checked(&format!("{table}fn f() {{ {} }}", "x = t[1];\n".repeat(3000))).unwrap_err();
        assert!(often.to_string().contains("\"t\" is too large a constant"), "{often}");
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let chain = |n: usize| format!("struct S{n} {{ a: S{} }}\n", n + 1);
        assert!(checked(&(0..3000).map(chain).collect::<String>()).is_ok());
    }
}
