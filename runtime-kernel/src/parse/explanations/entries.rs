//! Errors of entry points.

use naga::common::wgsl::TryToWgsl as _;
use naga::valid::{EntryPointError, VaryingError};
use naga::{BuiltIn, EntryPoint};

use super::variables::space_name;
use super::{Context, Explanation, or_empty};

impl Context<'_> {
    pub(super) fn of_entry(&self, name: &str, error: &EntryPointError) -> Explanation {
        let Some(entry) = self.module.entry_points.iter().find(|entry| entry.name == name) else {
            return self.of_other(None, error);
        };
        let explanation = match error {
            EntryPointError::Function(error) => self.of_function(&entry.function, error),
            EntryPointError::Argument(index, error) => {
                return self.of_argument(entry, *index as usize, error);
            }
            EntryPointError::Result(_) => {
                explain!("compute shader \"{name}\" returns a value"; "store it in a tensor")
            }
            EntryPointError::OutOfRangeWorkgroupSize => {
                let size = entry.workgroup_size;
                explain!(
                    "the work-group size of \"{name}\" is out of range: {size:?}; each extent is from 1 to 16384"
                )
            }
            EntryPointError::ForbiddenStageOperations => explain!(
                "\"{name}\" uses `discard`, a derivative or a sampled texture, which only fragment shaders have";
                "return instead of `discard`; read textures by `textureLoad`"
            ),
            EntryPointError::InvalidGlobalUsage(variable, _) => {
                let variable = &self.module.global_variables[*variable];
                let (second, space) = (or_empty(&variable.name), space_name(variable.space));
                explain!(
                    "\"{name}\" changes \"{second}\", but that is `var<{space}>`, which can only be read";
                    "declare `var<storage, read_write> {second}`"
                )
            }
            EntryPointError::MoreThanOneImmediateUsed => {
                explain!("\"{name}\" uses two variables of `var<immediate>`"; "make all scalars members of one struct")
            }
            EntryPointError::BindingCollision(variable) => {
                let variable = &self.module.global_variables[*variable];
                let binding = variable.binding.as_ref().map(|binding| (binding.group, binding.binding));
                let ((group, binding), second) = (binding.unwrap_or_default(), or_empty(&variable.name));
                explain!(
                    "\"{name}\" uses two variables with the binding {binding} of group {group}: \"{second}\" is the second"
                )
            }
            other => self.of_other(Some(&entry.function), other),
        };
        if explanation.place.is_some() { explanation } else { explanation.at(self.name_of(name, None)) }
    }

    fn of_argument(&self, entry: &EntryPoint, index: usize, error: &VaryingError) -> Explanation {
        let name = entry.function.arguments.get(index).and_then(|argument| argument.name.as_deref());
        let shown = name.unwrap_or_default();
        let explanation = match error {
            VaryingError::InvalidBuiltInType(built_in, found) => {
                let (name, found) = (wgsl_name(*built_in), self.inner_name(found));
                explain!("\"{shown}\" is declared {found}, but `{name}` is `{}`", expected_type(*built_in))
            }
            VaryingError::InvalidBuiltInStage(built_in) => {
                explain!("a compute shader has no built-in value `{}`", wgsl_name(*built_in))
            }
            VaryingError::DuplicateBuiltIn(built_in) => {
                explain!("two arguments are `{}`", wgsl_name(*built_in))
            }
            VaryingError::MissingBinding | VaryingError::MemberMissingBinding(_) => explain!(
                "\"{shown}\" has no `@builtin(…)`: arguments of entry points are built-in values";
                "make a scalar of a launch a member of the `var<immediate>` struct"
            ),
            VaryingError::UnsupportedCapability(_) => {
                explain!("\"{shown}\" is a built-in value that portable kernels do not have")
            }
            other => self.of_other(Some(&entry.function), other),
        };
        explanation.at(self.name_of(&entry.name, name))
    }
}

/// The name of a built-in value in WGSL.
fn wgsl_name(built_in: BuiltIn) -> &'static str {
    built_in.try_to_wgsl().unwrap_or("of another language")
}

/// The type of a built-in value of compute shaders.
const fn expected_type(built_in: BuiltIn) -> &'static str {
    match built_in {
        BuiltIn::GlobalInvocationId
        | BuiltIn::LocalInvocationId
        | BuiltIn::WorkGroupId
        | BuiltIn::NumWorkGroups => "vec3<u32>",
        _ => "u32",
    }
}
