//! What is fixed when a kernel is loaded: `override` constants and the element type.

use std::fmt;

use naga::back::PipelineConstants;
use naga::back::pipeline_constants::{PipelineConstantError, process_overrides};
use naga::valid::ModuleInfo;
use naga::{Module, Scalar, ScalarKind, TypeInner};
use runtime_core::{DType, Error, ErrorKind, Result, suggest};

use crate::interface::Override;
use crate::program::{failed, path_or_wgsl, place};

/// Values for a kernel's `override` constants and its element type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Specialisation {
    /// Name or `@id` of an override, and its value as text.
    pub constants: Vec<(String, String)>,
    /// What replaces `f32` in `alias T = f32;`.
    pub element: Option<DType>,
}

impl Specialisation {
    /// Sets an `override`: `value` is text of its type, such as `64`, `1.5` or `true`.
    #[must_use]
    pub fn constant(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.constants.push((name.to_owned(), format!("{value}")));
        self
    }

    /// Sets the element type.
    #[must_use]
    pub const fn element(mut self, dtype: DType) -> Self {
        self.element = Some(dtype);
        self
    }

    /// Reads `NAME=VALUE`.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no `=`.
    pub fn parse_constant(text: &str) -> Result<(String, String)> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(Error::invalid(format!("constant \"{text}\" is not of the form NAME=VALUE"))),
        }
    }
}

/// The overrides of a module as a user sees them, in the order of the text.
pub(crate) fn overrides(module: &Module, code: &str) -> Vec<Override> {
    let named = module.overrides.iter().filter(|(_, constant)| constant.name.is_some());
    named
        .map(|(_, constant)| Override {
            name: constant.name.clone().unwrap_or_default(),
            id: constant.id,
            type_name: type_name(module, constant).to_owned(),
            default: constant.init.map(|init| {
                let range = module.global_expressions.get_span(init).to_range();
                range.and_then(|range| code.get(range)).unwrap_or("computed").to_owned()
            }),
        })
        .collect()
}

/// Replaces a module's overrides by values; none is left, though an array's size may still lead to its constant by way of
/// one: `ArraySize::resolve` follows that.
///
/// # Errors
/// `InvalidArgument` for an unknown name, a value that is not of the type, or a value that is missing; `CompileFailed` if
/// the kernel is not valid with these values.
pub(crate) fn specialise(
    module: Module,
    info: ModuleInfo,
    code: &str,
    path: &str,
    constants: &[(String, String)],
) -> Result<(Module, ModuleInfo)> {
    if module.overrides.is_empty() && constants.is_empty() {
        return Ok((module, info));
    }
    let mut values = PipelineConstants::default();
    for (name, value) in constants {
        let (key, value) = checked(&module, name, value)?;
        values.insert(key, value);
    }
    match process_overrides(&module, &info, None, &values) {
        Ok((module, info)) => Ok((module.into_owned(), info.into_owned())),
        Err(PipelineConstantError::MissingValue(key)) => Err(missing(&module, &key, code, path)),
        Err(PipelineConstantError::ValidationError(error)) => {
            let text = error.emit_to_string_with_path(code, path_or_wgsl(path));
            Err(failed(format!("{}: with the given constants: {}", path_or_wgsl(path), text.trim_end())))
        }
        Err(error) => Err(failed(format!("{}: with the given constants: {error}", path_or_wgsl(path)))),
    }
}

/// naga's key for an override, and its value.
fn checked(module: &Module, name: &str, value: &str) -> Result<(String, f64)> {
    let id: Option<u16> = name.strip_prefix('@').unwrap_or(name).parse().ok();
    let found = module
        .overrides
        .iter()
        .map(|(_, constant)| constant)
        .find(|constant| constant.name.as_deref() == Some(name) || (id.is_some() && constant.id == id));
    let Some(constant) = found else {
        let names: Vec<_> =
            module.overrides.iter().filter_map(|(_, constant)| constant.name.as_deref()).collect();
        let hint = suggest(name, &names);
        return Err(Error::invalid(format!("the kernel has no override \"{name}\"; {hint}")));
    };
    let number = match module.types[constant.ty].inner {
        TypeInner::Scalar(scalar) => parse_value(scalar, value),
        _ => None,
    };
    let number = number.ok_or_else(|| {
        Error::invalid(format!(
            "constant \"{name}\": \"{value}\" is no value of type {}",
            type_name(module, constant)
        ))
    })?;
    let key = constant.id.map(|id| id.to_string()).or_else(|| constant.name.clone());
    Ok((key.unwrap_or_default(), number))
}

fn parse_value(scalar: Scalar, text: &str) -> Option<f64> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => text.parse::<bool>().ok().map(|flag| f64::from(u8::from(flag))),
        (ScalarKind::Sint, _) => text.parse::<i32>().ok().map(f64::from),
        (ScalarKind::Uint, _) => text.parse::<u32>().ok().map(f64::from),
        (ScalarKind::Float, width) => {
            let most = match width {
                2 => 65504.0,
                4 => f64::from(f32::MAX),
                _ => f64::MAX,
            };
            text.parse::<f64>().ok().filter(|value| value.abs() <= most)
        }
        _ => None,
    }
}

fn missing(module: &Module, key: &str, code: &str, path: &str) -> Error {
    let id: Option<u16> = key.parse().ok();
    let found = module
        .overrides
        .iter()
        .find(|(_, constant)| constant.name.as_deref() == Some(key) || (id.is_some() && constant.id == id));
    let name = found.and_then(|(_, constant)| constant.name.as_deref()).unwrap_or(key);
    let place = found
        .map_or_else(|| path.to_owned(), |(handle, _)| place(code, path, module.overrides.get_span(handle)));
    let message =
        format!("{place}: override \"{name}\" has no default; give it a value: constant \"{name}=VALUE\"");
    Error::new(ErrorKind::InvalidArgument, message)
}

fn type_name(module: &Module, constant: &naga::Override) -> &'static str {
    match module.types[constant.ty].inner {
        TypeInner::Scalar(scalar) => scalar_name(scalar),
        _ => "unknown",
    }
}

/// WGSL's name of a scalar type.
pub(crate) const fn scalar_name(scalar: Scalar) -> &'static str {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => "bool",
        (ScalarKind::Sint, 4) => "i32",
        (ScalarKind::Uint, 4) => "u32",
        (ScalarKind::Float, 4) => "f32",
        (ScalarKind::Float, 2) => "f16",
        (ScalarKind::Float, 8) => "f64",
        (ScalarKind::Sint, 8) => "i64",
        (ScalarKind::Uint, 8) => "u64",
        _ => "unknown",
    }
}
