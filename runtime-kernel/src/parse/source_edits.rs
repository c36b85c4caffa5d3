//! Edits of the text before it is parsed: sets the element type (`alias T = f32;`) and removes extensions unknown
//! to naga.

use std::borrow::Cow;

use runtime_core::{DType, Error, ErrorKind, Result};

use super::diagnostics::place;
use super::tokens::{Token, tokens};

const TYPES: [(&str, DType); 7] = [
    ("f32", DType::F32),
    ("f16", DType::F16),
    ("f64", DType::F64),
    ("i32", DType::I32),
    ("u32", DType::U32),
    ("i64", DType::I64),
    ("u64", DType::U64),
];

/// `code` with `element` as its element type; line numbers stay the same.
///
/// # Errors
/// `InvalidArgument` if WGSL has no such type, or the code no `alias T`; `CompileFailed` if that alias is not a
/// plain type.
pub(crate) fn with_element<'a>(code: &'a str, path: &str, element: Option<DType>) -> Result<Cow<'a, str>> {
    let Some(element) = element else { return Ok(Cow::Borrowed(code)) };
    let (name, _) = TYPES.into_iter().find(|(_, dtype)| *dtype == element).ok_or_else(|| {
        let names = TYPES.map(|(name, _)| name).join(", ");
        Error::invalid(format!("element type {element} does not exist in WGSL (valid: {names})"))
    })?;
    let old = alias(code).ok_or_else(|| {
        Error::invalid(format!(
            "element type {element} was requested, but the kernel has no line `alias T = f32;` to replace; add it, \
             and write T for the element type"
        ))
    })?;
    if !TYPES.iter().any(|(name, _)| *name == old.text) {
        let message =
            format!("{}: `alias T` must name a plain type such as f32", place(code, path, old.span()));
        return Err(Error::new(ErrorKind::CompileFailed, message));
    }
    let enable = if element == DType::F16 && !enables_f16(code) { "enable f16; " } else { "" };
    Ok(Cow::Owned(format!("{enable}{}{name}{}", &code[..old.range.start], &code[old.range.end..])))
}

/// `code` without `subgroups` in its `enable` directives. WGSL requires it there, but naga supports subgroup
/// operations without it and does not know the name. All offsets stay the same.
pub(crate) fn without_subgroups(code: &str) -> Cow<'_, str> {
    let mut enabling: Option<Vec<Token<'_>>> = None;
    let mut edited = Cow::Borrowed(code);
    let list = code.contains("subgroups").then(|| tokens(code));
    for token in list.into_iter().flatten() {
        match &mut enabling {
            None if token.text == "enable" => enabling = Some(vec![token]),
            None => {}
            Some(directive) => {
                let ends = token.text == ";";
                directive.push(token);
                if ends {
                    blank_subgroups(directive, edited.to_mut());
                    enabling = None;
                }
            }
        }
    }
    edited
}

/// Blanks out the whole directive, or the name and one comma next to it.
fn blank_subgroups(directive: &[Token<'_>], code: &mut String) {
    let Some(at) = directive.iter().position(|token| token.text == "subgroups") else { return };
    let gone = match directive[at + 1].text {
        "," => at..at + 2,
        _ if at >= 3 => at - 1..at + 1,
        _ => 0..directive.len(),
    };
    for token in &directive[gone] {
        code.replace_range(token.range.clone(), &" ".repeat(token.range.len()));
    }
}

/// The type after `alias T =`.
fn alias(code: &str) -> Option<Token<'_>> {
    let mut list = tokens(code);
    while let Some(token) = list.next() {
        if token.text == "alias" && list.next()?.text == "T" && list.next()?.text == "=" {
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
        with_element(code, "k.wgsl", Some(element)).map(Cow::into_owned)
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
        assert_eq!(with_element(code, "", None).unwrap(), code);
    }

    #[test]
    fn an_extension_that_naga_lacks_is_blanked_out() {
        let cases = [
            ("enable subgroups; x", "                  x"),
            ("enable f16, subgroups; x", "enable f16           ; x"),
            ("enable subgroups, f16; x", "enable            f16; x"),
            ("enable f16; // subgroups", "enable f16; // subgroups"),
            ("enable f16; enable /* a */ subgroups;", "enable f16;        /* a */           "),
            ("enable subgroups", "enable subgroups"),
        ];
        for (code, expected) in cases {
            assert_eq!(without_subgroups(code), expected);
        }
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
