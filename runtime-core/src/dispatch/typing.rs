//! Arguments against a signature: their number, kinds and element types, and what its type parameters stand for.

use crate::dispatch::arg_type::ArgType;
use crate::model::counted::counted;
use crate::model::signature::{ElementType, SignatureKind, SignatureParam};
use crate::{DType, Error, Result};

/// What the type parameters of a signature stand for, in the order in which the arguments give them.
pub(super) type Bindings = Vec<(String, DType)>;

/// Checks the types of arguments against a signature.
///
/// # Errors
/// `InvalidArgument` that names the argument, and the one that it must agree with.
pub(super) fn bind(kernel: &str, signature: &[SignatureParam], types: &[ArgType]) -> Result<Bindings> {
    let params: Vec<_> = signature.iter().enumerate().filter(|(_, param)| !param.is_layout()).collect();
    if params.len() != types.len() {
        let (takes, got) = (counted(params.len(), "argument"), types.len());
        return Err(Error::invalid(format!("\"{kernel}\" takes {takes}, got {got}")));
    }
    // Each type parameter, with the argument that gave it.
    let mut bound: Vec<(String, DType, usize)> = Vec::new();
    for (index, ((position, param), given)) in params.iter().zip(types).enumerate() {
        let at = Place { kernel, index, name: &param.name };
        let element = at.check_kind(&param.kind, given)?;
        at.check_strides(signature, *position, given)?;
        let (Some(element), Some(dtype)) = (element, given.dtype()) else { continue };
        // A complex number is two scalars.
        let scalar = dtype.complex_part().unwrap_or(dtype);
        match element {
            ElementType::Any => {}
            ElementType::Fixed(wanted) if *wanted == dtype || *wanted == scalar => {}
            ElementType::Fixed(wanted) => {
                return Err(at.error(&format!("is {dtype}, but the kernel takes {wanted}")));
            }
            ElementType::Parameter(name) => match bound.iter().find(|(known, ..)| known == name) {
                None => bound.push((name.clone(), scalar, index)),
                Some((_, known, _)) if *known == scalar => {}
                Some((_, known, first)) => {
                    return Err(at.error(&format!(
                        "is {dtype}, but argument {first} is {known}; both have the element type {name} of the kernel"
                    )));
                }
            },
        }
    }
    Ok(bound.into_iter().map(|(name, dtype, _)| (name, dtype)).collect())
}

/// An argument, for errors.
struct Place<'a> {
    kernel: &'a str,
    index: usize,
    name: &'a str,
}

impl Place<'_> {
    fn error(&self, what: &str) -> Error {
        let Self { kernel, index, name } = self;
        let name = if name.is_empty() { String::new() } else { format!(" ({name})") };
        Error::invalid(format!("argument {index}{name} of \"{kernel}\" {what}"))
    }

    /// Checks the kind of argument; returns the element type of the parameter.
    fn check_kind<'p>(&self, kind: &'p SignatureKind, given: &ArgType) -> Result<Option<&'p ElementType>> {
        match (kind, given) {
            (SignatureKind::Tensor { element, .. }, ArgType::Tensor { .. })
            | (SignatureKind::Scalar(element), ArgType::Scalar(_)) => Ok(Some(element)),
            (SignatureKind::Bytes, ArgType::Bytes) | (SignatureKind::Local, ArgType::Local) => Ok(None),
            _ => Err(self.error(&format!("is {}, but the kernel takes {}", describe(given), takes(kind)))),
        }
    }

    fn check_strides(&self, signature: &[SignatureParam], position: usize, given: &ArgType) -> Result<()> {
        let has_layout = |param: &SignatureParam| param.is_layout_of(position);
        match given {
            ArgType::Tensor { contiguous: false, .. } if !signature.iter().any(has_layout) => Err(self.error(
                "is not contiguous, and the kernel does not declare its `Layout`; pass a copy that `Queue::contiguous` makes of it",
            )),
            _ => Ok(()),
        }
    }
}

const fn describe(given: &ArgType) -> &'static str {
    match given {
        ArgType::Tensor { .. } => "a tensor",
        ArgType::Scalar(_) => "a scalar",
        ArgType::Bytes => "a structure",
        ArgType::Local => "work-group memory",
    }
}

const fn takes(kind: &SignatureKind) -> &'static str {
    match kind {
        SignatureKind::Tensor { .. } => "a tensor",
        SignatureKind::Scalar(_) => "a scalar",
        SignatureKind::Layout { .. } => "a layout",
        SignatureKind::Bytes => "a structure",
        SignatureKind::Local => "work-group memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::signature_text::parse;

    fn bound(signature: &str, types: &[ArgType]) -> Result<Bindings> {
        bind("k", &parse(signature).unwrap(), types)
    }

    fn message(signature: &str, types: &[ArgType]) -> String {
        bound(signature, types).unwrap_err().message().to_owned()
    }

    #[test]
    fn type_parameters_are_bound_by_their_first_argument() {
        let tensor = |dtype| ArgType::tensor(dtype, 1);
        let pair = bound(
            "read T, write U, T",
            &[tensor(DType::F32), tensor(DType::I8), ArgType::Scalar(DType::F32)],
        );
        assert_eq!(pair.unwrap(), [("T".to_owned(), DType::F32), ("U".to_owned(), DType::I8)]);
        let complex = bound("read T, read f32", &[tensor(DType::COMPLEX128), tensor(DType::COMPLEX64)]);
        assert_eq!(complex.unwrap(), [("T".to_owned(), DType::F64)]);
        assert_eq!(bound("read any", &[tensor(DType::FP8_E4M3)]).unwrap(), []);
    }

    #[test]
    fn arguments_that_do_not_fit_are_named() {
        let tensor = |dtype| ArgType::tensor(dtype, 1);
        assert_eq!(message("read T, n: u32", &[]), "\"k\" takes 2 arguments, got 0");
        assert_eq!(message("u32", &[]), "\"k\" takes 1 argument, got 0");
        let kind = message("read T, n: u32", &[tensor(DType::F32), tensor(DType::U32)]);
        assert_eq!(kind, "argument 1 (n) of \"k\" is a tensor, but the kernel takes a scalar");
        assert_eq!(
            message("u32", &[ArgType::Scalar(DType::I32)]),
            "argument 0 of \"k\" is i32, but the kernel takes u32"
        );
        let differ = message("x: read T, y: write T", &[tensor(DType::F32), tensor(DType::F64)]);
        assert_eq!(
            differ,
            "argument 1 (y) of \"k\" is f64, but argument 0 is f32; both have the element type T of the kernel"
        );
    }

    #[test]
    fn a_view_with_gaps_needs_a_layout() {
        let view = ArgType::Tensor { dtype: DType::F32, rank: 2, contiguous: false, space: String::new() };
        assert!(message("read f32", std::slice::from_ref(&view)).contains("`Queue::contiguous`"));
        assert!(bound("read f32 strided", std::slice::from_ref(&view)).is_ok());
    }
}
