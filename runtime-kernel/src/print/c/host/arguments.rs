//! The built-in values of invocations.

use naga::{Handle, Span, TypeInner};
use runtime_core::{Error, Result};

use super::entry::Entry;

impl Entry<'_, '_, '_> {
    /// Declares an argument of the entry point for the invocation at a given position in the group.
    pub(super) fn argument(&mut self, index: u32, place: [&str; 3]) -> Result<()> {
        let argument = &self.function.arguments[index as usize];
        let type_name = self.printer.writer.type_name(argument.ty)?;
        let name = self.printer.plan.argument(index).to_owned();
        let value = match (&argument.binding, &self.module.types[argument.ty].inner) {
            (Some(binding), _) => self.built_in(binding, argument.ty, place)?,
            (None, TypeInner::Struct { members, .. }) => {
                let mut parts = Vec::with_capacity(members.len());
                for (number, member) in members.iter().enumerate() {
                    let Some(binding) = &member.binding else { continue };
                    let value = self.built_in(binding, member.ty, place)?;
                    let number = u32::try_from(number).unwrap_or_default();
                    parts.push(format!(
                        ".{} = {value}",
                        self.printer.writer.names.member(argument.ty, number)
                    ));
                }
                format!("{{{}}}", parts.join(", "))
            }
            _ => return Err(self.unsupported("an argument without a built-in value")),
        };
        self.line(&["const ", &type_name, " ", &name, " = ", &value, ";"]);
        Ok(())
    }

    fn built_in(
        &mut self,
        binding: &naga::Binding,
        ty: Handle<naga::Type>,
        place: [&str; 3],
    ) -> Result<String> {
        use naga::BuiltIn as B;
        let naga::Binding::BuiltIn(built_in) = binding else {
            return Err(self.unsupported("an argument without a built-in value"));
        };
        let [sx, sy, sz] = self.group_size();
        let [x, y, z] = self.local_ids(place);
        let values = match built_in {
            B::LocalInvocationId => [x, y, z],
            B::GlobalInvocationId => [("x", sx, x), ("y", sy, y), ("z", sz, z)]
                .map(|(axis, size, at)| format!("group_{axis}_ * {size}u + {at}")),
            B::WorkGroupId => ["group_x_", "group_y_", "group_z_"].map(str::to_owned),
            B::NumWorkGroups if self.work_items.is_some() => {
                ["0", "1", "2"].map(|axis| ["(unsigned int)get_num_groups(", axis, ")"].concat())
            }
            B::NumWorkGroups => ["groups_[0]", "groups_[1]", "groups_[2]"].map(str::to_owned),
            B::WorkGroupSize => [sx, sy, sz].map(|size| format!("{size}u")),
            B::LocalInvocationIndex => return Ok(format!("({z} * {sy}u + {y}) * {sx}u + {x}")),
            _ => return Err(self.unsupported(self.printer.writer.subgroup_operation())),
        };
        let type_name = self.printer.writer.type_name(ty)?;
        Ok(["(", &type_name, "){", &values.join(", "), "}"].concat())
    }

    /// The extents of a group.
    fn group_size(&self) -> [u32; 3] {
        let counts = self.work_items.unwrap_or([1; 3]);
        [0, 1, 2].map(|axis| self.size[axis] * counts[axis])
    }

    /// The position in the group of the invocation at a position in its loops.
    fn local_ids(&self, place: [&str; 3]) -> [String; 3] {
        let counts = self.work_items.unwrap_or([1; 3]);
        [(0, "x"), (1, "y"), (2, "z")].map(|(axis, name)| match counts[axis] {
            1 => ["(unsigned int)(", place[axis], ")"].concat(),
            _ => ["(first_", name, "_ + (unsigned int)(", place[axis], "))"].concat(),
        })
    }

    fn unsupported(&self, what: &str) -> Error {
        self.printer.writer.unsupported(what, Span::UNDEFINED)
    }
}
