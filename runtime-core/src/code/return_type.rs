//! Finds the return type of a kernel in the text of C, OpenCL C or CUDA C, if the text leaves no doubt.
//!
//! No preprocessor runs. So a definition counts only if no macro of the text and no condition of the preprocessor can
//! change it, and its type only if it consists of words that mean a type wherever they occur.

use std::collections::HashSet;

use crate::CodeFormat;

/// Words of a definition that are no part of its return type.
const SPECIFIERS: &str = "extern static inline __inline __inline__ __forceinline__ __noinline__ __global__ __device__ __host__ \
    __kernel kernel const volatile register constexpr _Noreturn __extension__ __restrict__";
/// Specifiers that are followed by arguments in brackets.
const WITH_ARGUMENTS: [&str; 6] =
    ["__attribute__", "__attribute", "__launch_bounds__", "__cluster_dims__", "__declspec", "__maxnreg__"];
/// Types, without the numbers at the end of vectors.
const TYPES: &str = "void bool _Bool char short int long signed unsigned float double half uchar ushort uint ulong \
    longlong ulonglong size_t ptrdiff_t intptr_t uintptr_t int8_t int16_t int32_t int64_t uint8_t \
    uint16_t uint32_t uint64_t __half __nv_bfloat _Float __int _Complex __fp";
const TAGS: [&str; 3] = ["struct", "union", "enum"];

fn has_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// The return type of the definition of `entry`, if it is not `void`. `None` also if the text defines no such function, or
/// leaves any doubt.
pub(crate) fn returned_type(format: &CodeFormat, text: &str, entry: &str) -> Option<String> {
    let is_c = [CodeFormat::C, CodeFormat::OPENCL_C, CodeFormat::CUDA_C].contains(format);
    // Other spellings of brackets and of `#`.
    let is_odd =
        WITH_ARGUMENTS.contains(&entry) || ["<%", "%:", "??"].iter().any(|other| text.contains(other));
    if !is_c || is_odd {
        return None;
    }
    let Scanned { tokens, macros } = scan(text)?;
    let brackets = Brackets::of(&tokens)?;
    let mut types = Vec::new();
    for at in 0..tokens.len() {
        if tokens[at].kind == Kind::Text(entry) && brackets.is_outside[at] && brackets.opens_body(&tokens, at)
        {
            types.push(type_before(&tokens, &macros, at)?);
        }
    }
    let first = types.first()?;
    let is_certain = types.iter().all(|other| other == first) && !macros.contains(entry);
    (is_certain && first != "void").then(|| first.clone())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    /// A word, or a single symbol.
    Text(&'a str),
    /// A string or character.
    Literal,
    /// A line of the preprocessor.
    Directive,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: Kind<'a>,
    /// Whether a condition of the preprocessor decides on it.
    is_conditional: bool,
}

struct Scanned<'a> {
    tokens: Vec<Token<'a>>,
    /// The names of the macros that the text defines.
    macros: HashSet<&'a str>,
}

/// Splits a text into tokens, without comments; `None` if it ends within one, or has a raw string, or a comment that begins in
/// a line of the preprocessor and goes on.
fn scan(text: &str) -> Option<Scanned<'_>> {
    let (mut tokens, mut macros) = (Vec::<Token<'_>>::new(), HashSet::new());
    let (mut at, mut conditions, mut begins_line) = (0, 0usize, true);
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let mut add = |kind| tokens.push(Token { kind, is_conditional: conditions > 0 });
        let length = match first {
            '\n' => {
                begins_line = true;
                at += 1;
                continue;
            }
            _ if first.is_whitespace() || first == '\\' => {
                at += first.len_utf8();
                continue;
            }
            '/' if rest.starts_with("//") => {
                at += line(rest);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                at += 2 + rest[2..].find("*/")? + 2;
                continue;
            }
            '#' if begins_line => {
                add(Kind::Directive);
                let length = line(rest);
                directive(&rest[1..length], &mut conditions, &mut macros)?;
                length
            }
            '"' | '\'' => {
                add(Kind::Literal);
                literal(rest)?
            }
            _ => {
                let length = word(rest).max(first.len_utf8());
                let is_raw = rest[..length].ends_with('R') && rest[length..].starts_with('"');
                if is_raw {
                    return None;
                }
                add(Kind::Text(&rest[..length]));
                length
            }
        };
        begins_line = false;
        at += length;
    }
    Some(Scanned { tokens, macros })
}

/// The length of a line that a backslash may continue, without its end.
fn line(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_end = |&at: &usize| bytes[at] == b'\n' && !text[..at].trim_end_matches('\r').ends_with('\\');
    (0..bytes.len()).find(is_end).unwrap_or(bytes.len())
}

/// Takes note of a line of the preprocessor, without its `#`; `None` if a comment goes on behind it.
fn directive<'a>(line: &'a str, conditions: &mut usize, macros: &mut HashSet<&'a str>) -> Option<()> {
    if line.rsplit_once("/*").is_some_and(|(_, comment)| !comment.contains("*/")) {
        return None;
    }
    let line = line.trim_start();
    let (name, rest) = line.split_at(word(line));
    match name {
        "if" | "ifdef" | "ifndef" => *conditions += 1,
        "endif" => *conditions = conditions.saturating_sub(1),
        "define" => {
            let rest = rest.trim_start();
            macros.insert(&rest[..word(rest)]);
        }
        _ => {}
    }
    Some(())
}

/// The length of the word at the start of a text.
fn word(text: &str) -> usize {
    text.find(|letter: char| !(letter == '_' || letter == '$' || letter.is_alphanumeric()))
        .unwrap_or(text.len())
}

/// The length of the string or character at the start of a text; `None` if it does not end on its line.
fn literal(text: &str) -> Option<usize> {
    let mut letters = text.char_indices();
    let (_, quote) = letters.next()?;
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '\n' => return None,
            _ if letter == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The brackets of a text.
struct Brackets {
    /// By token: the place of the bracket that closes it.
    closing: Vec<Option<usize>>,
    /// By token: whether it is outside of all brackets but those of `extern "C" { … }`.
    is_outside: Vec<bool>,
}

impl Brackets {
    /// `None` if they do not match.
    fn of(tokens: &[Token<'_>]) -> Option<Self> {
        let mut closing = vec![None; tokens.len()];
        let mut is_outside = Vec::with_capacity(tokens.len());
        // The open brackets, and how many of them are not those of `extern "C"`.
        let (mut open, mut inner) = (Vec::<(usize, &str, bool)>::new(), 0usize);
        for (at, token) in tokens.iter().enumerate() {
            is_outside.push(inner == 0);
            let Kind::Text(text) = token.kind else { continue };
            let close = match text {
                "(" => ")",
                "[" => "]",
                "{" => "}",
                ")" | "]" | "}" => {
                    let (place, expected, is_inner) = open.pop()?;
                    (expected == text).then_some(())?;
                    closing[place] = Some(at);
                    inner -= usize::from(is_inner);
                    continue;
                }
                _ => continue,
            };
            let is_linkage = text == "{"
                && matches!(tokens[..at], [.., a, b] if a.kind == Kind::Text("extern") && b.kind == Kind::Literal);
            open.push((at, close, !is_linkage));
            inner += usize::from(!is_linkage);
        }
        open.is_empty().then_some(Self { closing, is_outside })
    }

    /// Whether the name at a place is followed by parameters and the body of a function.
    fn opens_body(&self, tokens: &[Token<'_>], name: usize) -> bool {
        let text = |at: usize| tokens.get(at).map(|token| token.kind);
        let closing = |at: usize| self.closing.get(at).copied().flatten();
        if text(name + 1) != Some(Kind::Text("(")) {
            return false;
        }
        let mut after = closing(name + 1).map(|end| end + 1);
        while let Some(at) = after {
            match text(at) {
                Some(Kind::Text("{")) => return true,
                Some(Kind::Text(word)) if WITH_ARGUMENTS.contains(&word) => {
                    after = closing(at + 1).map(|end| end + 1);
                }
                Some(Kind::Text("noexcept")) => after = Some(at + 1),
                _ => return false,
            }
        }
        false
    }
}

/// The return type in front of the name of a function; `None` if in doubt.
fn type_before(tokens: &[Token<'_>], macros: &HashSet<&str>, name: usize) -> Option<String> {
    let ends = |token: &Token<'_>| matches!(token.kind, Kind::Text(";" | "{" | "}") | Kind::Directive);
    let first = tokens[..name].iter().rposition(ends).map_or(0, |before| before + 1);
    // A directive may also stand within a definition.
    let before = tokens[..first].iter().rev().find(|token| token.kind != Kind::Directive);
    if before.is_some_and(|token| !matches!(token.kind, Kind::Text(";" | "{" | "}"))) {
        return None;
    }
    let head = &tokens[first..name];
    let is_plain = |token: &Token<'_>| match token.kind {
        Kind::Text(text) => !token.is_conditional && !macros.contains(text),
        Kind::Literal => !token.is_conditional,
        Kind::Directive => false,
    };
    if tokens[name].is_conditional || !head.iter().all(is_plain) {
        return None;
    }
    named_type(&without_specifiers(head)?)
}

/// The words of a type and its stars.
fn without_specifiers<'a>(head: &[Token<'a>]) -> Option<Vec<&'a str>> {
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some(token) = head.get(at) {
        at += 1;
        match token.kind {
            // The language of `extern "C"`.
            Kind::Literal => {}
            Kind::Directive => return None,
            Kind::Text(word) if has_word(SPECIFIERS, word) => {}
            Kind::Text(word) if WITH_ARGUMENTS.contains(&word) => at = after_brackets(head, at)?,
            Kind::Text("[") => at = after_brackets(head, at - 1)?,
            Kind::Text(word) => words.push(word),
        }
    }
    Some(words)
}

/// The place after the brackets that open at a place.
fn after_brackets(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Text("(" | "[") => depth += 1,
            Kind::Text(")" | "]") => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// The text of a type that consists of known words; `None` for anything else.
fn named_type(words: &[&str]) -> Option<String> {
    let stars = words.iter().rev().take_while(|word| **word == "*").count();
    let (base, stars) = words.split_at(words.len() - stars);
    let is_type = |word: &str| {
        has_word(TYPES, word.trim_end_matches(|last: char| last.is_ascii_digit())) || has_word(TYPES, word)
    };
    let is_known = match base {
        [] => false,
        [tag, name] if TAGS.contains(tag) => word(name) == name.len(),
        _ => base.iter().all(|word| is_type(word)),
    };
    let void_and_more = base.len() > 1 && base.contains(&"void");
    if !is_known || void_and_more {
        return None;
    }
    let base = base.join(" ");
    Some(if stars.is_empty() { base } else { format!("{base} {}", stars.concat()) })
}

#[cfg(test)]
#[path = "return_type_tests.rs"]
mod tests;
