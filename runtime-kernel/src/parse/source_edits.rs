//! Sets element types (`alias T = f32;`) in the text before it is parsed.

use std::borrow::Cow;

use runtime_core::{DType, Error, Result};

use super::diagnostics::{failed, location};
use super::text_edits::applied;
use super::tokens::{Token, tokens};
use crate::ir::declare::{ELEMENTS, scalar_name, scalar_of};

/// The type that a plain scalar type's name stands for.
pub(crate) fn plain_type(name: &str) -> Option<DType> {
    ELEMENTS.into_iter().find(|(_, scalar)| scalar_name(*scalar) == name).map(|(dtype, _)| dtype)
}

/// `code` with other definitions of the aliases with these names; line numbers stay the same.
///
/// # Errors
/// `InvalidArgument` if WGSL has no such type, or the code no such alias; `CompileFailed` if the alias is not a plain
/// type.
pub(crate) fn with_elements<'a>(
    code: &'a str,
    path: &str,
    elements: &[(&str, DType)],
) -> Result<Cow<'a, str>> {
    if elements.is_empty() {
        return Ok(Cow::Borrowed(code));
    }
    let edits = elements.iter().map(|&(alias, element)| {
        definition(code, path, alias, element).map(|(old, name)| (old.range, name.to_owned()))
    });
    let new = applied(code, edits.collect::<Result<_>>()?);
    let adds_f16 = elements.iter().any(|(_, element)| *element == DType::F16) && !enables_f16(code);
    Ok(Cow::Owned(if adds_f16 { format!("enable f16; {new}") } else { new }))
}

/// The definition of an alias in the text, and the name of the type that replaces it.
fn definition<'a>(
    code: &'a str,
    path: &str,
    alias: &str,
    element: DType,
) -> Result<(Token<'a>, &'static str)> {
    let name = scalar_of(element).map(scalar_name).ok_or_else(|| {
        let names = ELEMENTS.map(|(_, scalar)| scalar_name(scalar)).join(", ");
        Error::invalid(format!("element type {element} does not exist in WGSL (valid: {names})"))
    })?;
    let old = alias_definition(code, alias).ok_or_else(|| {
        Error::invalid(format!(
            "element type {element} was requested, but the kernel has no line `alias {alias} = f32;` to replace; add it, \
             and write {alias} for the element type"
        ))
    })?;
    if plain_type(old.text).is_none() {
        let place = location(code, path, old.span());
        return Err(failed(format!("{place}: `alias {alias}` must name a plain type such as f32")));
    }
    Ok((old, name))
}

/// The type after `alias NAME =`.
fn alias_definition<'a>(code: &'a str, name: &str) -> Option<Token<'a>> {
    let mut list = tokens(code);
    while let Some(token) = list.next() {
        if token.text == "alias" && list.next()?.text == name && list.next()?.text == "=" {
            return list.next();
        }
    }
    None
}

fn enables_f16(code: &str) -> bool {
    let mut enabling = false;
    tokens(code).any(|token| {
        enabling = token.text == "enable" || (enabling && token.text != ";");
        enabling && token.text == "f16"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(code: &str, element: DType) -> Result<String> {
        with_elements(code, "k.wgsl", &[("T", element)]).map(Cow::into_owned)
    }

    #[test]
    fn the_alias_is_replaced_in_place() {
        let code = "// alias T = f32;\nalias /* T = i32 */ T = f32; // T\nvar<private> x: T;";
        let halved = "enable f16; // alias T = f32;\nalias /* T = i32 */ T = f16; // T\nvar<private> x: T;";
        assert_eq!(replaced(code, DType::F16).unwrap(), halved);
        assert_eq!(replaced(halved, DType::F64).unwrap(), halved.replace("T = f16", "T = f64"));
        assert_eq!(
            replaced("enable subgroups, f16;alias T=u32;", DType::F16).unwrap(),
            "enable subgroups, f16;alias T=f16;"
        );
        assert_eq!(with_elements(code, "", &[]).unwrap(), code);
    }

    #[test]
    fn several_aliases_are_replaced_in_any_order() {
        let code = "alias T = f32;\nalias U = i32; alias V = f32;";
        let replaced = |elements: &[_]| with_elements(code, "", elements).unwrap().into_owned();
        let elements = [("U", DType::F16), ("T", DType::U64)];
        assert_eq!(replaced(&elements), "enable f16; alias T = u64;\nalias U = f16; alias V = f32;");
        assert_eq!(replaced(&elements[..1]), "enable f16; alias T = f32;\nalias U = f16; alias V = f32;");
        let error = with_elements(code, "", &[("T", DType::F64), ("W", DType::F64)]).unwrap_err();
        assert!(error.message().contains("no line `alias W = f32;`"), "{error}");
    }

    #[test]
    fn an_element_type_that_cannot_be_set_is_an_error() {
        let error = replaced("alias U = f32;", DType::F16).unwrap_err();
        assert!(error.message().contains("no line `alias T = f32;`"), "{error}");
        let error = replaced("alias T = f32;", DType::BF16).unwrap_err();
        assert!(error.message().contains("bf16 does not exist in WGSL (valid: f32, f16,"), "{error}");
        let error = replaced("\nalias T = vec4<f32>;", DType::F16).unwrap_err();
        assert!(error.message().starts_with("k.wgsl:2: `alias T` must name a plain type"), "{error}");
    }
}
