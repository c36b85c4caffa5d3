//! The entry point that calls the bodies in order.

use naga::{
    BinaryOperator, Binding, Block, BuiltIn, EntryPoint, Expression, Function, FunctionArgument, Handle,
    Literal, Range, Scalar, ShaderStage, Span, Statement, Type, TypeInner, VectorSize,
};
use runtime_core::{Error, Result};

use super::{Guard, Merge, Part};
use crate::fuse::linear::Variable;
use crate::ir::{Value, declare};

/// A body in the new module, and the types of its source there.
type BodyFunction = (Handle<Function>, Vec<Handle<Type>>);

/// Makes the entry point of the merged module.
pub(super) fn entry_point(
    merge: &mut Merge<'_>,
    parts: &[Part<'_>],
    bodies: &[BodyFunction],
    (groups, group_size): (&[[Option<u32>; 3]], [u32; 3]),
) -> Result<EntryPoint> {
    let mut writer = EntryWriter { merge, function: Function::default(), built_ins: Vec::new() };
    let mut block = Block::new();
    writer.arguments(parts);
    writer.first_indices(&mut block)?;
    for ((part, body), groups) in parts.iter().zip(bodies).zip(groups) {
        writer.part(part, body, groups, &mut block)?;
    }
    writer.function.body = block;
    let name = parts.iter().map(|part| part.body.point().name.as_str()).collect::<Vec<_>>().join("_");
    Ok(EntryPoint {
        name: name.chars().take(MAX_NAME).collect(),
        stage: ShaderStage::Compute,
        early_depth_test: None,
        workgroup_size: group_size,
        workgroup_size_overrides: None,
        function: writer.function,
        mesh_info: None,
        task_payload: None,
        incoming_ray_payload: None,
    })
}

/// Characters of the name of a fused entry point.
const MAX_NAME: usize = 80;

struct EntryWriter<'w, 'a> {
    merge: &'w mut Merge<'a>,
    function: Function,
    built_ins: Vec<(BuiltIn, Value)>,
}

impl EntryWriter<'_, '_> {
    fn append(&mut self, expression: Expression) -> Value {
        self.function.expressions.append(expression, Span::UNDEFINED)
    }

    /// Appends an expression that is evaluated here.
    fn emit(&mut self, expression: Expression, block: &mut Block) -> Value {
        let handle = self.append(expression);
        block.push(Statement::Emit(Range::new_from_bounds(handle, handle)), Span::UNDEFINED);
        handle
    }

    /// Takes the built-in values that the bodies and guards need.
    fn arguments(&mut self, parts: &[Part<'_>]) {
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
    fn first_indices(&mut self, block: &mut Block) -> Result<()> {
        let promoted = self.merge.promoted;
        for each in promoted {
            let (Some(array), Some(&[_, first])) = (&each.array, self.merge.variables.get(&each.tensor))
            else {
                continue;
            };
            let mut value = self.append(Expression::Literal(Literal::U32(array.first.constant)));
            for &(variable, factor) in &array.first.terms {
                let position = self.position(variable, block)?;
                let factor = self.append(Expression::Literal(Literal::U32(factor)));
                let product = self.emit(binary(BinaryOperator::Multiply, position, factor), block);
                value = self.emit(binary(BinaryOperator::Add, value, product), block);
            }
            let pointer = self.append(Expression::GlobalVariable(first));
            block.push(Statement::Store { pointer, value }, Span::UNDEFINED);
        }
        Ok(())
    }

    /// The position of the item, or of its group, along an axis.
    fn position(&mut self, variable: Variable, block: &mut Block) -> Result<Value> {
        let (built_in, axis) = match variable {
            Variable::Group(axis) => (BuiltIn::WorkGroupId, axis),
            Variable::Local(axis) => (BuiltIn::LocalInvocationId, axis),
            _ => return Err(internal("a position")),
        };
        let base = self.built_ins.iter().find(|(known, _)| *known == built_in).map(|(_, value)| *value);
        let base = base.ok_or_else(|| internal("a built-in value"))?;
        Ok(self.emit(Expression::AccessIndex { base, index: axis.into() }, block))
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
        let place = u32::try_from(self.function.arguments.len()).unwrap_or(u32::MAX);
        let name = format!("{built_in:?}").chars().filter(char::is_ascii_uppercase).collect::<String>();
        self.function.arguments.push(FunctionArgument {
            name: Some(name.to_ascii_lowercase()),
            ty,
            binding: Some(Binding::BuiltIn(built_in)),
        });
        let value = self.append(Expression::FunctionArgument(place));
        self.built_ins.push((built_in, value));
    }

    fn part(
        &mut self,
        part: &Part<'_>,
        (function, types): &BodyFunction,
        groups: &[Option<u32>; 3],
        block: &mut Block,
    ) -> Result<()> {
        if part.barrier {
            let both = naga::Barrier::STORAGE | naga::Barrier::WORK_GROUP;
            block.push(Statement::ControlBarrier(both), Span::UNDEFINED);
        }
        let condition = self.guard(part.guard, groups, block)?;
        let mut call = Block::new();
        let mut arguments = Vec::new();
        for argument in &part.body.function().arguments {
            let ty = types[argument.ty.index()];
            arguments.push(self.passed((part, groups), (&argument.binding, ty), &mut call)?);
        }
        call.push(Statement::Call { function: *function, arguments, result: None }, Span::UNDEFINED);
        match condition {
            Some(condition) => {
                block.push(Statement::If { condition, accept: call, reject: Block::new() }, Span::UNDEFINED);
            }
            None => block.append(&mut call),
        }
        Ok(())
    }

    /// The value of an argument of a body.
    fn passed(
        &mut self,
        (part, groups): (&Part<'_>, &[Option<u32>; 3]),
        (binding, ty): (&Option<Binding>, Handle<Type>),
        block: &mut Block,
    ) -> Result<Value> {
        match binding {
            Some(Binding::BuiltIn(BuiltIn::NumWorkGroups)) if !part.has_all_groups => {
                let mut components = Vec::with_capacity(3);
                for member in groups {
                    components.push(self.member(*member, block)?);
                }
                Ok(self.emit(Expression::Compose { ty, components }, block))
            }
            Some(Binding::BuiltIn(built_in)) => {
                let known = self.built_ins.iter().find(|(known, _)| known == built_in);
                known.map(|(_, value)| *value).ok_or_else(|| internal("a built-in value"))
            }
            _ => {
                let TypeInner::Struct { members, .. } = self.merge.module.types[ty].inner.clone() else {
                    return Err(internal("a binding"));
                };
                let mut components = Vec::with_capacity(members.len());
                for member in &members {
                    components.push(self.passed((part, groups), (&member.binding, member.ty), block)?);
                }
                Ok(self.emit(Expression::Compose { ty, components }, block))
            }
        }
    }

    /// The value of a member of the immediates.
    fn member(&mut self, member: Option<u32>, block: &mut Block) -> Result<Value> {
        let (Some(index), Some(immediates)) = (member, self.merge.immediates) else {
            return Err(internal("the number of groups"));
        };
        let base = self.append(Expression::GlobalVariable(immediates));
        let pointer = self.emit(Expression::AccessIndex { base, index }, block);
        Ok(self.emit(Expression::Load { pointer }, block))
    }

    fn guard(&mut self, guard: Guard, groups: &[Option<u32>; 3], block: &mut Block) -> Result<Option<Value>> {
        let (built_in, axes, factor) = match guard {
            Guard::None => return Ok(None),
            Guard::Groups(axes) => (BuiltIn::WorkGroupId, axes, None),
            Guard::Items(size) => (BuiltIn::GlobalInvocationId, [true, false, false], Some(size)),
        };
        let base = self.built_ins.iter().find(|(known, _)| *known == built_in).map(|(_, value)| *value);
        let base = base.ok_or_else(|| internal("a built-in value"))?;
        let mut all = None;
        for (axis, index) in [0, 1, 2].into_iter().zip(0u32..) {
            if !axes[axis] {
                continue;
            }
            let left = self.emit(Expression::AccessIndex { base, index }, block);
            let mut right = self.member(groups[axis], block)?;
            if let Some(size) = factor {
                let size = self.append(Expression::Literal(Literal::U32(size)));
                right = self.emit(binary(BinaryOperator::Multiply, right, size), block);
            }
            let less = self.emit(binary(BinaryOperator::Less, left, right), block);
            all = Some(match all {
                None => less,
                Some(before) => self.emit(binary(BinaryOperator::LogicalAnd, before, less), block),
            });
        }
        Ok(all)
    }
}

const fn binary(op: BinaryOperator, left: Value, right: Value) -> Expression {
    Expression::Binary { op, left, right }
}

fn internal(what: &str) -> Error {
    Error::unsupported(format!("a fused kernel without {what} is not supported"))
}
