//! Signatures of native code as text: `"x: read T, y: write T, n: u32"`.

use crate::model::signature::{ElementType, SignatureKind, SignatureParam};
use crate::{Access, DType, Error, Result};

/// Dimensions of the structure `Layout` that native code receives.
pub(super) const LAYOUT_RANK: usize = 4;

/// Parses a signature: parameters separated by commas, each `[NAME:] [read|write|read_write] TYPE [strided]`. A type is an
/// element type such as `f32`, the name of a type parameter, `any` (a tensor of any type), `bytes`, or `local`.
///
/// # Errors
/// `InvalidArgument` that quotes the parameter.
pub(super) fn parse(text: &str) -> Result<Vec<SignatureParam>> {
    let mut params = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, rest) = part.split_once(':').unwrap_or(("", part));
        let name = name.trim().to_owned();
        let words: Vec<_> = rest.split_whitespace().collect();
        let (kind, strided) = kind(&words).ok_or_else(|| malformed(part))?;
        params.push(SignatureParam { name, kind });
        if strided {
            let tensor = params.len() - 1;
            let name = format!("{}_layout", params[tensor].name);
            params.push(SignatureParam { name, kind: SignatureKind::Layout { tensor, rank: LAYOUT_RANK } });
        }
    }
    Ok(params)
}

fn kind(words: &[&str]) -> Option<(SignatureKind, bool)> {
    let tensor = |access, name| Some(SignatureKind::Tensor { access, element: element(name)? });
    let access = |word: &str| match word {
        "read" => Some(Access::Read),
        "write" => Some(Access::Write),
        "read_write" => Some(Access::ReadWrite),
        _ => None,
    };
    Some(match *words {
        ["bytes"] => (SignatureKind::Bytes, false),
        ["local"] => (SignatureKind::Local, false),
        [mode, name, "strided"] => (tensor(access(mode)?, name)?, true),
        [mode, name] => (tensor(access(mode)?, name)?, false),
        ["any" | "read" | "write" | "read_write"] => return None,
        [name] => (SignatureKind::Scalar(element(name)?), false),
        _ => return None,
    })
}

fn element(name: &str) -> Option<ElementType> {
    if let Ok(dtype) = name.parse::<DType>() {
        return Some(ElementType::Fixed(dtype));
    }
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|other| other.is_ascii_alphanumeric() || other == '_');
    match name {
        "any" => Some(ElementType::Any),
        _ => is_name.then(|| ElementType::Parameter(name.to_owned())),
    }
}

fn malformed(part: &str) -> Error {
    Error::invalid(format!(
        "parameter \"{part}\" of the signature is malformed; write [NAME:] [read|write|read_write] TYPE [strided], where TYPE is \
         an element type such as f32, a type parameter such as T, any, bytes or local"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_names_accesses_and_types() {
        let tensor = |access, element| SignatureKind::Tensor { access, element };
        let t = || ElementType::Parameter("T".to_owned());
        let params = parse("x: read T, write T strided, n: u32, scale: T,\n local, bytes, read any").unwrap();
        let kinds: Vec<_> = params.iter().map(|param| param.kind.clone()).collect();
        let expected = [
            tensor(Access::Read, t()),
            tensor(Access::Write, t()),
            SignatureKind::Layout { tensor: 1, rank: 4 },
            SignatureKind::Scalar(ElementType::Fixed(DType::U32)),
            SignatureKind::Scalar(t()),
            SignatureKind::Local,
            SignatureKind::Bytes,
            tensor(Access::Read, ElementType::Any),
        ];
        assert_eq!(kinds, expected);
        assert_eq!((params[0].name.as_str(), params[3].name.as_str()), ("x", "n"));
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn a_malformed_parameter_is_quoted() {
        for text in [
            "read",
            "any",
            "x: reed T",
            "read 1T",
            "read T stride",
            "x: read T strided y",
            "read f32 f32 f32",
        ] {
            let error = parse(&format!("u32, {text}")).unwrap_err();
            assert!(error.message().contains(&format!("\"{text}\"")), "{error}");
        }
    }
}
