//! The hidden scalar with the number of work-groups that the launch of a coarsened kernel asked for.

use naga::{AddressSpace, Module, Span, StructMember, Type, TypeInner};
use runtime_core::DType;

use crate::interface::{self, Interface};
use crate::ir::{Global, declare};

/// What every Vulkan device accepts as push constants.
const MAX_BYTES: u32 = 128;

/// The variable of the scalars, and the new member of its struct.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchScalar {
    /// The variable without the member.
    pub(super) replaces: Option<Global>,
    pub(super) variable: Global,
    pub(super) member: u32,
}

/// Adds the scalar to an entry point: to a copy of its variable, which other entry points may use. `None` if there is no room.
pub(super) fn add(module: &mut Module, interface: &mut Interface) -> Option<LaunchScalar> {
    let bytes = |scalar: &interface::Scalar| u32::try_from(scalar.dtype.bytes()).unwrap_or(u32::MAX);
    let end = interface.scalars.last().map_or(0, |last| last.offset_bytes + bytes(last));
    let offset = end.next_multiple_of(4);
    let alignment = interface.scalars.iter().map(bytes).max().unwrap_or(4).max(4);
    let span = (offset + 4).next_multiple_of(alignment);
    if span > MAX_BYTES {
        return None;
    }
    let mut members =
        match interface.immediate.map(|old| &module.types[module.global_variables[old].ty].inner) {
            Some(TypeInner::Struct { members, .. }) => members.clone(),
            Some(_) => return None,
            None => Vec::new(),
        };
    let member = u32::try_from(members.len()).ok()?;
    let ty = declare::word(&mut module.types);
    members.push(StructMember { name: Some("launch_groups".to_owned()), ty, binding: None, offset });
    let inner = TypeInner::Struct { members, span };
    let ty = module.types.insert(Type { name: Some("LaunchScalars".to_owned()), inner }, Span::UNDEFINED);
    let name = interface.immediate.and_then(|old| module.global_variables[old].name.clone());
    let variable = declare::variable(name.as_deref().unwrap_or("launch"), AddressSpace::Immediate, ty);
    let variable = module.global_variables.append(variable, Span::UNDEFINED);
    interface.scalars.push(interface::Scalar {
        name: "launch_groups".to_owned(),
        dtype: DType::U32,
        offset_bytes: offset,
    });
    let replaces = interface.immediate.replace(variable);
    Some(LaunchScalar { replaces, variable, member })
}
