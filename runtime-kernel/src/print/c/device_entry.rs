//! Entry points of OpenCL C and CUDA C++, which run one invocation each.

use naga::{AddressSpace, Binding, BuiltIn, EntryPoint, Expression, GlobalVariable, Span, TypeInner};
use runtime_core::Result;

use super::invocation::environment::{Environment, Plain};
use super::invocation::statement::Printer;
use super::writer::Writer;
use crate::ir::Global;
use crate::program::{Dialect, Feature};

impl Writer<'_> {
    /// Defines entry point `index` and returns its symbol.
    pub(super) fn entry_point(&mut self, index: usize) -> Result<String> {
        let program = self.program;
        let entry = &program.module.entry_points[index];
        let group_size = program.interfaces[index].group_size;
        let context = self.bounds.entry(program, index);
        let mut printer = Printer::new(self, context, Plain { entry: true });
        printer.lines = printer.writer.lines_at(1, |lines| lines.of_entry(index));
        let directive = printer.lines.directive();
        let scalars = printer.scalar_names(index);
        let parameters = printer.parameters(index, &scalars)?;
        printer.lengths(index)?;
        printer.immediate(index, &scalars)?;
        printer.arguments(entry, group_size)?;
        printer.group_extents(group_size);
        printer.variables()?;
        let body = printer.writer.lines_at(1, |lines| lines.of_entry(index));
        let before = std::mem::replace(&mut printer.lines, body).into_text();
        printer.locals()?;
        printer.body(&entry.function.body)?;
        let body = printer.body_with_unchecked_variant();
        let [x, y, z] = group_size;
        let words = match self.dialect {
            Dialect::OpenCl => format!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))"),
            _ => {
                let least = match program.min_groups {
                    0 => String::new(),
                    groups => format!(", {groups}"),
                };
                format!("extern \"C\" __global__ __launch_bounds__({}{least})", x * y * z)
            }
        };
        let name = self.names.entry(index).to_owned();
        let parameters = parameters.join(",\n    ");
        let head = [&words, "\nvoid ", &name, "(", &parameters, ")\n{\n"].concat();
        self.functions.extend(["\n", &directive, &head, &before, &body, "}\n"]);
        Ok(name)
    }

    /// Declares the length of a runtime-sized array, computed from the size of its buffer in bytes.
    pub(crate) fn length_of(&mut self, variable: Global, size: &str) -> Result<Option<String>> {
        let Some((offset, stride)) = self.runtime_array(variable) else { return Ok(None) };
        self.scalar(naga::Scalar::U32)?;
        self.scalar(naga::Scalar::U64)?;
        let function = self.library("array_length".to_owned(), |_, name| {
            Ok(format!(
                "u32 {name}(u64 size, u64 offset, u64 stride)\n{{\n    \
                 const u64 length = size < offset ? 0 : (size - offset) / stride;\n    \
                 return length < 0xffffffffu ? (u32)length : 0xffffffffu;\n}}"
            ))
        })?;
        let name = self.names.length(variable);
        Ok(Some(format!("const u32 {name} = {function}({size}, {offset}, {stride});")))
    }
}

/// The name of a scalar without the brackets and dots of layouts.
fn identifier(name: &str) -> String {
    name.replace(['.', '['], "_").replace(']', "")
}

impl<E: Environment> Printer<'_, '_, E> {
    /// The names of the scalar parameters.
    pub(super) fn scalar_names(&mut self, index: usize) -> Vec<String> {
        let interface = &self.writer.program.interfaces[index];
        let names = interface.scalars.iter();
        names.map(|scalar| self.plan.named(&self.writer.names, &identifier(&scalar.name))).collect()
    }

    /// The parameters: tensors, scalars, and the tensors' sizes.
    pub(super) fn parameters(&mut self, index: usize, scalars: &[String]) -> Result<Vec<String>> {
        let interface = &self.writer.program.interfaces[index];
        let mut parameters = Vec::new();
        for tensor in &interface.tensors {
            parameters.push(self.writer.parameter(tensor.variable)?);
        }
        if let Some(immediate) = interface.immediate {
            let mut types = Vec::with_capacity(scalars.len());
            self.writer.scalar_types(self.context.module.global_variables[immediate].ty, &mut types);
            for (ty, name) in types.into_iter().zip(scalars) {
                parameters.push(format!("{} {name}", self.writer.type_name(ty)?));
            }
        }
        self.writer.scalar(naga::Scalar::U64)?;
        let sizes = interface.tensors.iter();
        parameters.extend(sizes.map(|tensor| format!("u64 {}", self.writer.names.size(tensor.variable))));
        Ok(parameters)
    }

    /// The lengths of runtime-sized arrays.
    fn lengths(&mut self, index: usize) -> Result<()> {
        for tensor in &self.writer.program.interfaces[index].tensors {
            if self.writer.takes_length(self.context.info, tensor.variable) {
                let size = self.writer.names.size(tensor.variable).to_owned();
                if let Some(text) = self.writer.length_of(tensor.variable, &size)? {
                    self.lines.line(&text);
                }
            }
        }
        Ok(())
    }

    /// The structure of the scalars.
    pub(super) fn immediate(&mut self, index: usize, scalars: &[String]) -> Result<()> {
        let Some(variable) = self.writer.program.interfaces[index].immediate else { return Ok(()) };
        let ty = self.context.module.global_variables[variable].ty;
        let type_name = self.writer.type_name(ty)?;
        let value = self.writer.composed_of_scalars(ty, &mut scalars.iter().cloned())?;
        self.lines.line(&["const ", &type_name, " ", self.writer.names.global(variable), " = ", &value, ";"]);
        Ok(())
    }

    /// Declares the built-in values that are used.
    fn arguments(&mut self, entry: &EntryPoint, group_size: [u32; 3]) -> Result<()> {
        // A module that already has both variants has an expression in each.
        let mut declared = vec![false; entry.function.arguments.len()];
        for (handle, expression) in entry.function.expressions.iter() {
            let Expression::FunctionArgument(index) = *expression else { continue };
            if !self.plan.is_used(handle) || std::mem::replace(&mut declared[index as usize], true) {
                continue;
            }
            let argument = &entry.function.arguments[index as usize];
            let span = self.span(handle);
            let value = match (&argument.binding, &self.context.module.types[argument.ty].inner) {
                (Some(Binding::BuiltIn(built_in)), _) => self.writer.built_in(*built_in, group_size, span)?,
                (_, TypeInner::Struct { members, .. }) => {
                    let mut values = Vec::with_capacity(members.len());
                    for member in members {
                        match member.binding {
                            Some(Binding::BuiltIn(built_in)) => {
                                values.push(self.writer.built_in(built_in, group_size, span)?);
                            }
                            _ => return Err(self.writer.unsupported("this kind of argument", span)),
                        }
                    }
                    self.writer.composed(argument.ty, values)?
                }
                _ => return Err(self.writer.unsupported("this kind of argument", span)),
            };
            let type_name = self.writer.type_name(argument.ty)?;
            self.lines.line(&["const ", &type_name, " ", self.plan.argument(index), " = ", &value, ";"]);
        }
        Ok(())
    }

    /// States the extents of a group, which NVRTC (12 and 13) does not take from `__launch_bounds__`: a loop from the position of the
    /// item in steps of the group has a constant number of iterations only with them.
    fn group_extents(&mut self, group_size: [u32; 3]) {
        let is_cuda = self.writer.dialect == Dialect::Cuda;
        for (axis, extent) in
            ["x", "y", "z"].into_iter().zip(group_size).filter(|(_, extent)| is_cuda && *extent > 1)
        {
            self.lines.line(&format!("__builtin_assume(threadIdx.{axis} < {extent}u);"));
        }
    }

    /// Declares workgroup and private variables.
    fn variables(&mut self) -> Result<()> {
        for variable in self.writer.used_by(self.context.info) {
            let GlobalVariable { space, ty, init, .. } = self.context.module.global_variables[variable];
            let type_name = self.writer.type_name(ty)?;
            let name = self.writer.names.global(variable).to_owned();
            match space {
                AddressSpace::WorkGroup => {
                    // `ldmatrix` reads rows of 16 bytes.
                    let has_matrices = self.writer.program.features().contains(&Feature::MatrixUnits);
                    let before = match self.writer.dialect {
                        Dialect::OpenCl => "__local",
                        _ if has_matrices => "__shared__ __align__(16)",
                        _ => "__shared__",
                    };
                    self.lines.line(&[before, " ", &type_name, " ", &name, ";"]);
                }
                AddressSpace::Private => {
                    let value = match init {
                        Some(init) => self.writer.initialiser(init)?,
                        None => {
                            let ty = naga::proc::TypeResolution::Handle(ty);
                            self.writer.zero(&ty, Span::UNDEFINED)?.0
                        }
                    };
                    self.lines.line(&[&type_name, " ", &name, " = ", &value, ";"]);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Writer<'_> {
    /// A built-in value, as an initialiser.
    fn built_in(&self, built_in: BuiltIn, [x, y, z]: [u32; 3], span: Span) -> Result<String> {
        let size = [x, y, z];
        let each = |of: &dyn Fn(usize) -> String| format!("{{{}, {}, {}}}", of(0), of(1), of(2));
        let axes = ["x", "y", "z"];
        let cuda = self.dialect == Dialect::Cuda;
        let index = |axis: usize| {
            if cuda { format!("threadIdx.{}", axes[axis]) } else { format!("get_local_id({axis})") }
        };
        let extents = (u64::from(x), u64::from(x) * u64::from(y), u64::from(x) * u64::from(y) * u64::from(z));
        let linear = match (y, z) {
            (1, 1) => index(0),
            (_, 1) => format!("{} + {} * {x}u", index(0), index(1)),
            _ => format!("{} + {} * {x}u + {} * {}u", index(0), index(1), index(2), extents.1),
        };
        Ok(match built_in {
            BuiltIn::GlobalInvocationId if cuda => each(&|axis| match size[axis] {
                1 => format!("blockIdx.{}", axes[axis]),
                extent => format!("blockIdx.{0} * {extent}u + threadIdx.{0}", axes[axis]),
            }),
            BuiltIn::GlobalInvocationId => each(&|axis| format!("get_global_id({axis})")),
            BuiltIn::LocalInvocationId => each(&index),
            BuiltIn::LocalInvocationIndex => linear,
            BuiltIn::WorkGroupId if cuda => each(&|axis| format!("blockIdx.{}", axes[axis])),
            BuiltIn::WorkGroupId => each(&|axis| format!("get_group_id({axis})")),
            BuiltIn::WorkGroupSize => each(&|axis| format!("{}u", size[axis])),
            BuiltIn::NumWorkGroups if cuda => each(&|axis| format!("gridDim.{}", axes[axis])),
            BuiltIn::NumWorkGroups => each(&|axis| format!("get_num_groups({axis})")),
            BuiltIn::SubgroupSize if cuda => "32u".to_owned(),
            BuiltIn::SubgroupSize => "get_max_sub_group_size()".to_owned(),
            BuiltIn::NumSubgroups if cuda => format!("{}u", extents.2.div_ceil(32)),
            BuiltIn::NumSubgroups => "get_num_sub_groups()".to_owned(),
            BuiltIn::SubgroupId if cuda => format!("({linear}) / 32u"),
            BuiltIn::SubgroupId => "get_sub_group_id()".to_owned(),
            BuiltIn::SubgroupInvocationId if cuda => format!("({linear}) % 32u"),
            BuiltIn::SubgroupInvocationId => "get_sub_group_local_id()".to_owned(),
            _ => return Err(self.unsupported("this built-in value", span)),
        })
    }
}
