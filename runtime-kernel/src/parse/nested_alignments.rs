//! Writes out the alignment of a member whose type is a structure that an `@align` inside raises (§structure-member-layout). naga
//! knows of the attribute only within the structure that has it: <https://github.com/gfx-rs/wgpu/issues/4377>.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use runtime_core::Result;

use super::constants::integer;
use super::diagnostics::{failed, location};
use super::lists::{self, List};
use super::text_edits::{Edit, applied};
use super::tokens::{Token, text, tokens};

/// Expressions in one `@align`, which would otherwise grow with each structure.
const MOST_EXPRESSIONS: usize = 4;

/// `code` with an `@align` for each of these members; lines stay the same.
///
/// # Errors
/// `CompileFailed` if such a member has an `@align` that is less than its type needs.
pub(crate) fn written_out<'a>(code: &'a str, path: &str) -> Result<Cow<'a, str>> {
    if !code.contains("align") {
        return Ok(Cow::Borrowed(code));
    }
    let tokens: Vec<_> = tokens(code).collect();
    let (types, constants) = (types(&tokens), constants(&tokens));
    let text = Text { code, tokens: &tokens, types, constants };
    let alignments = text.alignments();
    let mut edits = Vec::new();
    for member in text.types.iter().flat_map(|(_, members)| members) {
        let needed = text.of_type(member, &alignments);
        if let Some(place) = member.place.filter(|_| needed.is_raised()) {
            let edit = text.edit(member, place, &needed);
            edits.extend(edit.map_err(|error| {
                failed(format!("{}: {error}", location(code, path, tokens[place].span())))
            })?);
        }
    }
    Ok(if edits.is_empty() { Cow::Borrowed(code) } else { Cow::Owned(applied(code, edits)) })
}

/// A member of a structure, or what an alias stands for, which has neither place nor attributes.
struct Member<'a> {
    /// Its first token.
    place: Option<usize>,
    /// The argument of its `@align`.
    align: Option<Range<usize>>,
    /// Its alignment is this many times that of the base.
    factor: u32,
    base: Base<'a>,
}

impl<'a> Member<'a> {
    /// With the type that begins at a token.
    fn new(tokens: &[Token<'a>], place: Option<usize>, align: Option<Range<usize>>, mut ty: usize) -> Self {
        let mut factor = 1_u32;
        loop {
            let name = text(tokens, ty);
            let stem = name.strip_suffix(['f', 'i', 'u', 'h']).filter(|stem| is_vector(stem));
            let letter = stem.map(|stem| &name[stem.len()..]);
            let stem = stem.unwrap_or(name);
            if is_vector(stem) {
                factor = factor.saturating_mul(if stem.ends_with('2') { 2 } else { 4 });
            }
            let base = match (letter, name) {
                (Some("h"), _) | (_, "f16") => Base::Bytes(2),
                (Some(_), _) | (_, "f32" | "i32" | "u32") => Base::Bytes(4),
                (_, "f64" | "i64" | "u64") => Base::Bytes(8),
                _ if text(tokens, ty + 1) == "<" => {
                    ty += 2;
                    continue;
                }
                _ => Base::Named(name),
            };
            return Self { place, align, factor, base };
        }
    }
}

/// What the elements of a type are.
enum Base<'a> {
    /// A scalar.
    Bytes(u32),
    /// A structure or an alias.
    Named(&'a str),
}

/// The structures and aliases of a text, with their members.
fn types<'a>(tokens: &[Token<'a>]) -> Vec<(&'a str, Vec<Member<'a>>)> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        match (text(tokens, at), text(tokens, at + 2)) {
            ("struct", "{") => found.push((text(tokens, at + 1), members(tokens, at + 3))),
            ("alias", "=") => {
                found.push((text(tokens, at + 1), vec![Member::new(tokens, None, None, at + 3)]));
            }
            _ => {}
        }
    }
    found
}

/// The members that begin at a token.
fn members<'a>(tokens: &[Token<'a>], mut at: usize) -> Vec<Member<'a>> {
    let mut found = Vec::new();
    loop {
        let (place, mut align) = (at, None);
        while text(tokens, at) == "@" {
            let is_align = text(tokens, at + 1) == "align";
            at += 2;
            if let Some(list) = List::at(tokens, at) {
                if is_align {
                    align = list.elements.into_iter().next();
                }
                at = list.close + 1;
            }
        }
        if text(tokens, at + 1) != ":" {
            return found;
        }
        found.push(Member::new(tokens, Some(place), align, at + 2));
        at = lists::end_of_type(tokens, at + 2);
        at += usize::from(text(tokens, at) == ",");
    }
}

/// How a type is aligned.
#[derive(Clone, Default, PartialEq)]
struct Alignment<'a> {
    /// Without any `@align`, as naga takes it.
    natural: u32,
    full: u32,
    /// Arguments of `@align` that are no numbers; at most one more than can be written.
    others: BTreeSet<&'a str>,
}

impl<'a> Alignment<'a> {
    fn is_raised(&self) -> bool {
        self.full > self.natural || !self.others.is_empty()
    }

    /// As WGSL.
    fn expression(&self) -> String {
        self.others.iter().fold(self.full.to_string(), |all, other| format!("max({all}, u32({other}))"))
    }

    fn raise(&mut self, other: &Self) {
        self.natural = self.natural.max(other.natural);
        self.full = self.full.max(other.full);
        let room = (MOST_EXPRESSIONS + 1).saturating_sub(self.others.len());
        self.others.extend(other.others.iter().take(room));
    }
}

struct Text<'a, 't> {
    code: &'a str,
    tokens: &'t [Token<'a>],
    types: Vec<(&'a str, Vec<Member<'a>>)>,
    /// The constants that are numbers.
    constants: HashMap<&'a str, u32>,
}

impl<'a> Text<'a, '_> {
    /// The alignments of all structures and aliases, which may be declared in any order.
    fn alignments(&self) -> HashMap<&'a str, Alignment<'a>> {
        let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, (_, members)) in self.types.iter().enumerate() {
            let names = members.iter().filter_map(|member| match member.base {
                Base::Named(name) => Some(name),
                Base::Bytes(_) => None,
            });
            for name in names.collect::<BTreeSet<_>>() {
                users.entry(name).or_default().push(at);
            }
        }
        let mut known: HashMap<&str, Alignment<'a>> = HashMap::new();
        let mut pending: Vec<_> = (0..self.types.len()).collect();
        // Alignments only grow, so that this ends even for types that contain themselves.
        while let Some(at) = pending.pop() {
            let (name, members) = &self.types[at];
            let mut alignment = known.get(name).cloned().unwrap_or_default();
            for member in members {
                alignment.raise(&self.of_type(member, &known));
                alignment.raise(&self.of_attribute(member));
            }
            if known.get(name) != Some(&alignment) {
                known.insert(name, alignment);
                pending.extend(users.get(name).into_iter().flatten());
            }
        }
        known
    }

    /// The alignment of a member's type.
    fn of_type(&self, member: &Member<'a>, known: &HashMap<&str, Alignment<'a>>) -> Alignment<'a> {
        let mut found = match member.base {
            Base::Bytes(bytes) => Alignment { natural: bytes, full: bytes, ..Alignment::default() },
            Base::Named(name) => known.get(name).cloned().unwrap_or_default(),
        };
        found.natural = found.natural.saturating_mul(member.factor);
        found.full = found.full.saturating_mul(member.factor);
        found
    }

    /// What a member's `@align` asks for.
    fn of_attribute(&self, member: &Member<'a>) -> Alignment<'a> {
        let mut found = Alignment::default();
        if let Some(argument) = &member.align {
            match self.number(argument) {
                // Another number is an error.
                Some(number) if number.is_power_of_two() => found.full = number,
                Some(_) => {}
                None => drop(found.others.insert(self.slice(argument))),
            }
        }
        found
    }

    /// The value of an argument that is a number, or a constant that is one.
    fn number(&self, argument: &Range<usize>) -> Option<u32> {
        let [token] = self.tokens.get(argument.clone())? else { return None };
        number(token.text).or_else(|| self.constants.get(token.text).copied())
    }

    /// What gives a member the alignment that its type needs, if its own attribute does not.
    fn edit(
        &self,
        member: &Member<'a>,
        place: usize,
        needed: &Alignment<'_>,
    ) -> Result<Option<Edit>, String> {
        if needed.others.len() > MOST_EXPRESSIONS {
            return Err(
                "the alignment of this member depends on too many expressions; use numbers".to_owned()
            );
        }
        let Some(argument) = &member.align else {
            let place = self.tokens[place].range.start;
            return Ok(Some((place..place, format!("@align({}) ", needed.expression()))));
        };
        match self.number(argument) {
            Some(number) if number < needed.full => {
                Err(format!("`@align({number})` is less than the {} bytes of the member's type", needed.full))
            }
            Some(_) if needed.others.is_empty() => Ok(None),
            _ => {
                let range = self.tokens[argument.start].range.start..self.tokens[argument.end - 1].range.end;
                Ok(Some((range, format!("max(u32({}), {})", self.slice(argument), needed.expression()))))
            }
        }
    }

    fn slice(&self, range: &Range<usize>) -> &'a str {
        &self.code[self.tokens[range.start].range.start..self.tokens[range.end - 1].range.end]
    }
}

/// The constants of the module that are numbers.
fn constants<'a>(tokens: &[Token<'a>]) -> HashMap<&'a str, u32> {
    let mut depth = 0_usize;
    let outside = tokens.windows(5).filter(|five| {
        match five[0].text {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (five[0].text, five[2].text, five[4].text) == ("const", "=", ";")
    });
    outside.filter_map(|five| Some((five[1].text, number(five[3].text)?))).collect()
}

fn number(literal: &str) -> Option<u32> {
    u32::try_from(integer(literal)?).ok()
}

/// Whether a name without the letter of its scalar is that of vectors or matrices.
fn is_vector(stem: &str) -> bool {
    matches!(
        stem.as_bytes(),
        [b'v', b'e', b'c', b'2'..=b'4'] | [b'm', b'a', b't', b'2'..=b'4', b'x', b'2'..=b'4']
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(code: &str) -> String {
        written_out(code, "k.wgsl").unwrap().into_owned()
    }

    #[test]
    fn members_get_what_is_inside_their_types() {
        let inner = "struct I { @align(64) x: u32 } ";
        for (members, expected) in [
            ("a: u32, b: I", "a: u32, @align(64) b: I"),
            (
                "a: vec4<f32>, b: array<array<I, 1 << 2>, 3>, c: u32",
                "a: vec4<f32>, @align(64) b: array<array<I, 1 << 2>, 3>, c: u32",
            ),
            ("@size(128) b: array<I, (4)>,", "@align(64) @size(128) b: array<I, (4)>,"),
            ("@align(128) b: I", "@align(128) b: I"),
            ("@align(N) b: I", "@align(max(u32(N), 64)) b: I"),
            ("@align(K,) b: I", "@align(K,) b: I"),
            ("a: array<u32, N>, b: array<vec3f>", "a: array<u32, N>, b: array<vec3f>"),
        ] {
            let code = |members| format!("{inner} struct O {{ {members} }} const K = 256u; const N = K / 2;");
            assert_eq!(written(&code(members)), code(expected));
        }
    }

    #[test]
    fn alignments_go_through_structures_and_aliases_in_any_order() {
        let code = "struct C { a: u32, b: A } alias A = array<B, 2>; struct B { a: u32, b: I } struct I { @align(1 << 5) x: u32, @align(8) y: u32 }";
        let expected = code.replace("b: A", "@align(max(8, u32(1 << 5))) b: A");
        assert_eq!(written(code), expected.replace("b: I", "@align(max(8, u32(1 << 5))) b: I"));
    }

    #[test]
    fn only_what_the_module_declares_counts() {
        let code =
            "const W = 16; struct I { @align(W) x: u32 } struct O { a: u32, b: I } fn f() { const W = 64; }";
        assert_eq!(written(code), code.replace("b: I", "@align(16) b: I"));
        let code = "struct i { @align(16) x: u32 } struct O { a: u32, b: i }";
        assert_eq!(written(code), code.replace("b: i", "@align(16) b: i"));
    }

    #[test]
    fn attributes_that_raise_nothing_change_nothing() {
        let code = "struct I { @align(16) a: vec3h, @align(8) b: vec2<f32>, m: mat2x4<f32>, @align(4) x: atomic<u32> } struct O { a: u32, b: I }";
        assert_eq!(written(code), code);
        let code = "struct I { @align(16) a: mat4x2f } struct O { b: I }";
        assert_eq!(written(code), code.replace("b: I", "@align(16) b: I"));
        let code = "alias T = f16; struct I { @align(16) a: vec4<T> } struct O { b: I }";
        assert_eq!(written(code), code.replace("b: I", "@align(16) b: I"));
    }

    #[test]
    fn an_alignment_that_is_too_small_is_an_error() {
        let code = "struct I { @align(64) x: u32 }\nstruct O { @align(16) b: I }";
        let error = written_out(code, "k.wgsl").unwrap_err();
        assert!(error.message().starts_with("k.wgsl:2: `@align(16)` is less than the 64 bytes"), "{error}");
    }

    #[test]
    fn texts_that_are_not_valid_end() {
        for code in [
            "struct S { a: S, @align(8) b: S }",
            "struct S { @align(",
            "struct S { a: array<",
            "alias A = A; struct align { a: A }",
            "struct S { a: (>, b: <) }",
            "alias A = vec4<A>; struct S { @align(8) a: A, b: S }",
        ] {
            let _ = written_out(code, "");
        }
    }
}
