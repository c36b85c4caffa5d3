//! The entry point that calls the bodies in order.

use naga::{
    BinaryOperator, Binding, Block, BuiltIn, EntryPoint, Expression, Function, FunctionArgument, Handle,
    Scalar, ShaderStage, Statement, Type, TypeInner, VectorSize,
};
use runtime_core::{Error, Result};

use super::{Guard, Merge, MergedLaunch};
use crate::fuse::linear::Variable;
use crate::ir::body_writer::{BodyWriter, WriteBody};
use crate::ir::{Value, declare};

/// A body in the new module, and the types of its source there.
type BodyFunction = (Handle<Function>, Vec<Handle<Type>>);

/// Makes the entry point of the merged module.
pub(super) fn entry_point(
    merge: &mut Merge<'_>,
    parts: &[MergedLaunch<'_>],
    bodies: &[BodyFunction],
    (groups, group_size): (&[[Option<u32>; 3]], [u32; 3]),
) -> Result<EntryPoint> {
    let mut writer = EntryWriter { merge, out: BodyWriter::new(Function::default()), built_ins: Vec::new() };
    writer.arguments(parts);
    let body = writer.nested(|writer| {
        writer.first_indices()?;
        let mut launches = parts.iter().zip(bodies).zip(groups);
        launches.try_for_each(|((part, body), groups)| writer.part(part, body, groups))
    })?;
    let name = parts.iter().map(|part| part.body.point().name.as_str()).collect::<Vec<_>>().join("_");
    Ok(EntryPoint {
        name: name.chars().take(MAX_NAME).collect(),
        stage: ShaderStage::Compute,
        early_depth_test: None,
        workgroup_size: group_size,
        workgroup_size_overrides: None,
        function: writer.out.finish(body),
        mesh_info: None,
        task_payload: None,
        incoming_ray_payload: None,
    })
}

/// Characters of the name of a fused entry point.
const MAX_NAME: usize = 80;

struct EntryWriter<'w, 'a> {
    merge: &'w mut Merge<'a>,
    out: BodyWriter,
    built_ins: Vec<(BuiltIn, Value)>,
}

impl WriteBody for EntryWriter<'_, '_> {
    fn writer(&mut self) -> &mut BodyWriter {
        &mut self.out
    }
}

impl EntryWriter<'_, '_> {
    /// Takes the built-in values that the bodies and guards need.
    fn arguments(&mut self, parts: &[MergedLaunch<'_>]) {
        for part in parts {
            let own = part.body.built_ins();
            let guard = match part.guard {
                Guard::None => None,
                Guard::Groups(_) => Some(BuiltIn::WorkGroupId),
                Guard::Items(_) => Some(BuiltIn::GlobalInvocationId),
            };
            for built_in in own.into_iter().chain(guard) {
                let counts = built_in == BuiltIn::NumWorkGroups && !part.has_all_groups;
                if !counts {
                    self.argument(built_in);
                }
            }
        }
        let promoted = self.merge.promoted.iter().filter_map(|each| each.array.as_ref());
        for (variable, _) in promoted.flat_map(|array| &array.first.terms) {
            match variable {
                Variable::Group(_) => self.argument(BuiltIn::WorkGroupId),
                _ => self.argument(BuiltIn::LocalInvocationId),
            }
        }
    }

    /// Sets the variables with the first indices of arrays of promoted tensors.
    fn first_indices(&mut self) -> Result<()> {
        let promoted = self.merge.promoted;
        for each in promoted {
            let (Some(array), Some(&[_, first])) = (&each.array, self.merge.variables.get(&each.tensor))
            else {
                continue;
            };
            let mut value = self.number(array.first.constant);
            for &(variable, factor) in &array.first.terms {
                let position = self.position(variable)?;
                let factor = self.number(factor);
                let product = self.binary(BinaryOperator::Multiply, position, factor);
                value = self.binary(BinaryOperator::Add, value, product);
            }
            let pointer = self.constant(Expression::GlobalVariable(first));
            self.push(Statement::Store { pointer, value });
        }
        Ok(())
    }

    /// The position of the item, or of its group, along an axis.
    fn position(&mut self, variable: Variable) -> Result<Value> {
        let (built_in, axis) = match variable {
            Variable::Group(axis) => (BuiltIn::WorkGroupId, axis),
            Variable::Local(axis) => (BuiltIn::LocalInvocationId, axis),
            _ => return Err(internal("a position")),
        };
        let base = self.built_in(built_in)?;
        Ok(self.append(Expression::AccessIndex { base, index: axis.into() }))
    }

    /// A built-in value that is taken.
    fn built_in(&self, built_in: BuiltIn) -> Result<Value> {
        let taken = self.built_ins.iter().find(|(known, _)| *known == built_in);
        taken.map(|(_, value)| *value).ok_or_else(|| internal("a built-in value"))
    }

    /// Takes a built-in value, unless it is taken already.
    fn argument(&mut self, built_in: BuiltIn) {
        if self.built_ins.iter().any(|(known, _)| *known == built_in) {
            return;
        }
        let inner = match built_in {
            BuiltIn::GlobalInvocationId
            | BuiltIn::LocalInvocationId
            | BuiltIn::WorkGroupId
            | BuiltIn::NumWorkGroups => TypeInner::Vector { size: VectorSize::Tri, scalar: Scalar::U32 },
            _ => TypeInner::Scalar(Scalar::U32),
        };
        let ty = declare::ty(&mut self.merge.module.types, inner);
        let place = u32::try_from(self.out.function.arguments.len()).unwrap_or(u32::MAX);
        let name = format!("{built_in:?}").chars().filter(char::is_ascii_uppercase).collect::<String>();
        self.out.function.arguments.push(FunctionArgument {
            name: Some(name.to_ascii_lowercase()),
            ty,
            binding: Some(Binding::BuiltIn(built_in)),
        });
        let value = self.constant(Expression::FunctionArgument(place));
        self.built_ins.push((built_in, value));
    }

    fn part(
        &mut self,
        part: &MergedLaunch<'_>,
        (function, types): &BodyFunction,
        groups: &[Option<u32>; 3],
    ) -> Result<()> {
        if part.barrier {
            self.push(Statement::ControlBarrier(naga::Barrier::STORAGE | naga::Barrier::WORK_GROUP));
        }
        let condition = self.guard(part.guard, groups)?;
        let call = |writer: &mut Self| {
            let declared = part.body.function().arguments.iter();
            let passed = declared.map(|argument| (&argument.binding, types[argument.ty.index()]));
            let arguments =
                passed.map(|argument| writer.passed((part, groups), argument)).collect::<Result<_>>()?;
            writer.push(Statement::Call { function: *function, arguments, result: None });
            Ok(())
        };
        let Some(condition) = condition else { return call(self) };
        let accept = self.nested(call)?;
        self.push(Statement::If { condition, accept, reject: Block::new() });
        Ok(())
    }

    /// The value of an argument of a body.
    fn passed(
        &mut self,
        (part, groups): (&MergedLaunch<'_>, &[Option<u32>; 3]),
        (binding, ty): (&Option<Binding>, Handle<Type>),
    ) -> Result<Value> {
        let components = match binding {
            Some(Binding::BuiltIn(BuiltIn::NumWorkGroups)) if !part.has_all_groups => {
                groups.iter().map(|member| self.member(*member)).collect::<Result<_>>()?
            }
            Some(Binding::BuiltIn(built_in)) => return self.built_in(*built_in),
            _ => {
                let TypeInner::Struct { members, .. } = self.merge.module.types[ty].inner.clone() else {
                    return Err(internal("a binding"));
                };
                let values = members.iter().map(|member| (&member.binding, member.ty));
                values.map(|member| self.passed((part, groups), member)).collect::<Result<_>>()?
            }
        };
        Ok(self.append(Expression::Compose { ty, components }))
    }

    /// The value of a member of the immediates.
    fn member(&mut self, member: Option<u32>) -> Result<Value> {
        let (Some(index), Some(immediates)) = (member, self.merge.immediates) else {
            return Err(internal("the number of groups"));
        };
        let base = self.constant(Expression::GlobalVariable(immediates));
        let pointer = self.append(Expression::AccessIndex { base, index });
        Ok(self.append(Expression::Load { pointer }))
    }

    fn guard(&mut self, guard: Guard, groups: &[Option<u32>; 3]) -> Result<Option<Value>> {
        let (built_in, axes, factor) = match guard {
            Guard::None => return Ok(None),
            Guard::Groups(axes) => (BuiltIn::WorkGroupId, axes, None),
            Guard::Items(size) => (BuiltIn::GlobalInvocationId, [true, false, false], Some(size)),
        };
        let base = self.built_in(built_in)?;
        let mut all = None;
        for ((_, group), index) in axes.into_iter().zip(groups).zip(0..).filter(|((needed, _), _)| *needed) {
            let left = self.append(Expression::AccessIndex { base, index });
            let mut right = self.member(*group)?;
            if let Some(size) = factor {
                let size = self.number(size);
                right = self.binary(BinaryOperator::Multiply, right, size);
            }
            let less = self.binary(BinaryOperator::Less, left, right);
            all = Some(all.map_or(less, |before| self.binary(BinaryOperator::LogicalAnd, before, less)));
        }
        Ok(all)
    }
}

fn internal(what: &str) -> Error {
    Error::unsupported(format!("a fused kernel without {what} is not supported"))
}
