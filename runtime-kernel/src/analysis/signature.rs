//! The signature of an entry point whose element types are not chosen yet.

use naga::TypeInner;
use runtime_core::backend::did_you_mean;
use runtime_core::lowering::{ElementType, SignatureKind, SignatureParam};
use runtime_core::{DType, Error, ErrorKind, Result};

use crate::interface::{Interface, Scalar};
use crate::parse::type_parameters::TypeParameters;
use crate::program::Program;

/// The parameters of an entry point, in the order of the arguments.
///
/// # Errors
/// `NotFound`, with the entry points that exist.
pub(crate) fn of_entry(
    program: &Program,
    entry: &str,
    parameters: &TypeParameters<'_>,
) -> Result<Vec<SignatureParam>> {
    let interfaces = program.interfaces();
    let interface = interfaces.iter().find(|interface| interface.name == entry).ok_or_else(|| {
        let names: Vec<_> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
        let message = format!("no entry point \"{entry}\"; {}", did_you_mean(entry, &names));
        Error::new(ErrorKind::NotFound, message)
    })?;
    let tensors = interface.tensors.iter().map(|tensor| {
        let element = match tensor.dtype {
            Some(dtype) => element(dtype, parameters.of_variable(&tensor.name)),
            None => ElementType::Any,
        };
        let kind = SignatureKind::Tensor { access: tensor.access, element };
        SignatureParam { name: tensor.name.clone(), kind }
    });
    Ok(tensors.chain(scalars(program, interface, parameters)).collect())
}

/// The parameters after the tensors, one for each member of the struct of scalars.
fn scalars(program: &Program, interface: &Interface, parameters: &TypeParameters<'_>) -> Vec<SignatureParam> {
    let (mut list, mut at) = (Vec::new(), 0);
    while let Some(scalar) = interface.scalars.get(at) {
        let layout = interface.layouts.iter().find(|layout| layout.first_scalar == at);
        let (name, kind) = match layout {
            Some(layout) => {
                let name = scalar.name.split('.').next().unwrap_or_default();
                (name, SignatureKind::Layout { tensor: layout.tensor, rank: layout.rank })
            }
            None => {
                let alias = alias(program, interface, scalar);
                let found = alias.and_then(|alias| parameters.of_alias(alias));
                (scalar.name.as_str(), SignatureKind::Scalar(element(scalar.dtype, found)))
            }
        };
        list.push(SignatureParam { name: name.to_owned(), kind });
        at += layout.map_or(1, |layout| 2 * layout.rank);
    }
    list
}

/// The alias that declares the type of a scalar.
fn alias<'p>(program: &'p Program, interface: &Interface, scalar: &Scalar) -> Option<&'p str> {
    let module = &program.module;
    let variable = &module.global_variables[interface.immediate?];
    let TypeInner::Struct { members, .. } = &module.types[variable.ty].inner else { return None };
    let member = members.iter().find(|member| member.name.as_deref() == Some(&scalar.name))?;
    module.types[member.ty].name.as_deref()
}

/// The type parameter, if its type in the text is that of the module, and the type of the module otherwise.
fn element(dtype: DType, found: Option<(&str, DType)>) -> ElementType {
    match found {
        Some((name, default)) if default == dtype => ElementType::Parameter(name.to_owned()),
        _ => ElementType::Fixed(dtype),
    }
}
