//! Subgroup operations: warps in CUDA C++, `cl_khr_subgroup*` in OpenCL C.

use naga::{
    CollectiveOperation, Direction, GatherMode, Scalar, ScalarKind, Span, Statement, SubgroupOperation,
    VectorSize,
};
use runtime_core::Result;

use super::environment::Environment;
use super::statement::Printer;
use crate::ir::Value;
use crate::ir::declare::scalar_name;
use crate::print::c::form::{Form, level};
use crate::print::c::library::vector::Shape;
use crate::print::c::writer::Writer;
use crate::program::Dialect;

const fn word(operation: SubgroupOperation) -> &'static str {
    use SubgroupOperation as S;
    match operation {
        S::All => "all",
        S::Any => "any",
        S::Add => "add",
        S::Mul => "mul",
        S::Min => "min",
        S::Max => "max",
        S::And => "and",
        S::Or => "or",
        S::Xor => "xor",
    }
}

impl<E: Environment> Printer<'_, '_, E> {
    /// A subgroup operation.
    pub(crate) fn subgroup(&mut self, statement: &Statement, span: Span) -> Result<()> {
        if self.writer.has_loops {
            return Err(self.writer.unsupported(self.writer.subgroup_operation(), span));
        }
        match *statement {
            Statement::SubgroupBallot { result, predicate } => {
                let predicate = match predicate {
                    Some(predicate) => self.value(predicate)?,
                    None => "true".to_owned(),
                };
                let form = self.writer.ballot()?;
                self.define(result, &form.join(&[predicate]))
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let Some(shape) = Shape::of(self.context.inner(argument)) else {
                    return Err(self.writer.unsupported("this subgroup operation", span));
                };
                let form = self.writer.collective(op, collective_op, shape, span)?;
                let argument = self.value(argument)?;
                self.define(result, &form.join(&[argument]))
            }
            Statement::SubgroupGather { mode, argument, result } => self.gather(mode, argument, result),
            _ => Err(self.writer.unsupported("this kind of statement", span)),
        }
    }

    fn gather(&mut self, mode: GatherMode, argument: Value, result: Value) -> Result<()> {
        let Some(shape) = Shape::of(self.context.inner(argument)) else {
            return Err(self.unsupported("this subgroup operation", argument));
        };
        let mut operands = vec![self.value(argument)?];
        let (name, index) = match mode {
            GatherMode::BroadcastFirst => ("broadcast_first", None),
            GatherMode::Broadcast(index) => ("broadcast", Some(self.operand(index, level::ANY)?)),
            GatherMode::Shuffle(index) => ("shuffle", Some(self.operand(index, level::ANY)?)),
            GatherMode::ShuffleDown(index) => ("shuffle_down", Some(self.operand(index, level::ANY)?)),
            GatherMode::ShuffleUp(index) => ("shuffle_up", Some(self.operand(index, level::ANY)?)),
            GatherMode::ShuffleXor(index) => ("shuffle_xor", Some(self.operand(index, level::ANY)?)),
            GatherMode::QuadBroadcast(index) => ("quad_broadcast", Some(self.operand(index, level::ANY)?)),
            GatherMode::QuadSwap(Direction::X) => ("shuffle_xor", Some("1u".to_owned())),
            GatherMode::QuadSwap(Direction::Y) => ("shuffle_xor", Some("2u".to_owned())),
            GatherMode::QuadSwap(Direction::Diagonal) => ("shuffle_xor", Some("3u".to_owned())),
        };
        let form = self.writer.gathered(name, shape, index.is_some())?;
        operands.extend(index);
        self.define(result, &form.join(&operands))
    }
}

impl Writer<'_> {
    fn ballot(&mut self) -> Result<Form> {
        let vector = self.vector(VectorSize::Quad, Scalar::U32)?;
        let define = |writer: &mut Self, name: &str| {
            let body = match writer.dialect {
                Dialect::OpenCl => {
                    "const uint4 b = sub_group_ballot(a); return (vec4u){b.s0, b.s1, b.s2, b.s3};".to_owned()
                }
                _ => "return vec4u{__ballot_sync(__activemask(), a), 0u, 0u, 0u};".to_owned(),
            };
            Ok(format!("{vector} {name}(bool a) {{ {body} }}"))
        };
        self.library("bool_subgroup_ballot".to_owned(), define).map(Form::call)
    }

    fn collective(
        &mut self,
        operation: SubgroupOperation,
        collective: CollectiveOperation,
        shape: Shape,
        span: Span,
    ) -> Result<Form> {
        let scalar = shape.scalar;
        let name = format!(
            "subgroup_{}{}",
            match collective {
                CollectiveOperation::Reduce => "",
                CollectiveOperation::InclusiveScan => "inclusive_",
                CollectiveOperation::ExclusiveScan => "exclusive_",
            },
            word(operation)
        );
        let text = match (self.dialect, operation) {
            (Dialect::OpenCl, _) => self.open_cl_collective(operation, collective),
            (_, SubgroupOperation::All) => "$T $N($T a) { return __all_sync(__activemask(), a); }".to_owned(),
            (_, SubgroupOperation::Any) => "$T $N($T a) { return __any_sync(__activemask(), a); }".to_owned(),
            _ => self.warp_collective(operation, collective, scalar, span)?,
        };
        self.scalar(scalar)?;
        let define = |writer: &mut Self, name: &str| Ok(writer.expand(&text, name, scalar));
        let function = self.library(format!("{}_{name}", scalar_name(scalar)), define)?;
        self.mapped(&name, &[shape], scalar, Form::Call(function))
    }

    fn open_cl_collective(
        &mut self,
        operation: SubgroupOperation,
        collective: CollectiveOperation,
    ) -> String {
        use SubgroupOperation as S;
        self.extension("cl_khr_subgroups");
        let how = match collective {
            CollectiveOperation::Reduce => "reduce",
            CollectiveOperation::InclusiveScan => "scan_inclusive",
            CollectiveOperation::ExclusiveScan => "scan_exclusive",
        };
        let word = word(operation);
        let call = match operation {
            S::All | S::Any => format!("sub_group_{word}(a) != 0"),
            S::Add | S::Min | S::Max => format!("sub_group_{how}_{word}(a)"),
            S::Mul | S::And | S::Or | S::Xor => {
                format!("sub_group_non_uniform_{how}_{word}(a)")
            }
        };
        format!("$T $N($T a) {{ return {call}; }}")
    }

    /// A reduction or scan over the active lanes of a warp: in five steps if all are active, lane by lane
    /// otherwise.
    fn warp_collective(
        &mut self,
        operation: SubgroupOperation,
        collective: CollectiveOperation,
        scalar: Scalar,
        span: Span,
    ) -> Result<String> {
        use naga::BinaryOperator as B;
        let form = match operation {
            SubgroupOperation::Add => self.binary(B::Add, scalar)?,
            SubgroupOperation::Mul => self.binary(B::Multiply, scalar)?,
            SubgroupOperation::And => self.binary(B::And, scalar)?,
            SubgroupOperation::Or => self.binary(B::InclusiveOr, scalar)?,
            SubgroupOperation::Xor => self.binary(B::ExclusiveOr, scalar)?,
            SubgroupOperation::Min | SubgroupOperation::Max if scalar.kind == ScalarKind::Float => {
                Form::Call(self.float(word(operation), scalar)?)
            }
            SubgroupOperation::Min | SubgroupOperation::Max => {
                Form::Call(self.integer(word(operation), scalar)?)
            }
            _ => return Err(self.unsupported("this subgroup operation", span)),
        };
        let shuffle = self.shuffle(scalar)?;
        let combined = |other: &str| form.join(&["b".to_owned(), other.to_owned()]);
        let lane = format!("{shuffle}(a, __ffs(rest) - 1)");
        Ok(match collective {
            CollectiveOperation::Reduce => format!(
                "$T $N($T a)\n{{\n    const u32 active = __activemask();\n    $T b = a;\n    \
                 if (active == 0xffffffffu) {{\n        \
                 for (u32 step = 16; step > 0; step >>= 1) b = {};\n        return b;\n    }}\n    \
                 u32 rest = active;\n    b = {lane};\n    \
                 for (rest &= rest - 1; rest != 0; rest &= rest - 1) b = {};\n    return b;\n}}",
                combined(&format!("{shuffle}(b, warp_lane() ^ step)")),
                combined(&lane)
            ),
            scan => {
                let neutral = u8::from(operation == SubgroupOperation::Mul);
                let neutral = self.literal_of(scalar, neutral)?.0;
                let compare = if scan == CollectiveOperation::InclusiveScan { "<=" } else { "<" };
                format!(
                    "$T $N($T a)\n{{\n    const u32 lane = warp_lane();\n    $T b = {neutral};\n    \
                     for (u32 rest = __activemask(); rest != 0; rest &= rest - 1) {{\n        \
                     const $T c = {lane};\n        if (__ffs(rest) - 1 {compare} lane) b = {};\n    }}\n    return b;\n}}",
                    combined("c")
                )
            }
        })
    }

    /// Reads the value of another lane of a warp.
    fn shuffle(&mut self, scalar: Scalar) -> Result<String> {
        self.scalar(scalar)?;
        self.scalar(Scalar::U32)?;
        self.library("warp_lane".to_owned(), |_, name| {
            Ok(format!("u32 {name}() {{ u32 a; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(a)); return a; }}"))
        })?;
        self.library(format!("{}_subgroup_shuffle", scalar_name(scalar)), |writer, name| {
            let call = match (scalar.kind, scalar.width) {
                (ScalarKind::Float, 2) => {
                    "f16{(unsigned short)__shfl_sync(__activemask(), (unsigned int)a.bits, lane)}"
                }
                (ScalarKind::Bool, _) => "__shfl_sync(__activemask(), (int)a, lane) != 0",
                _ => "__shfl_sync(__activemask(), a, lane)",
            };
            Ok(writer.expand(&format!("$T $N($T a, u32 lane) {{ return {call}; }}"), name, scalar))
        })
    }

    /// Reads the value of another invocation.
    fn gathered(&mut self, name: &str, shape: Shape, indexed: bool) -> Result<Form> {
        let scalar = shape.scalar;
        let text = match self.dialect {
            Dialect::OpenCl => self.open_cl_gather(name),
            _ => {
                let shuffle = self.shuffle(scalar)?;
                let lane = match name {
                    "broadcast_first" => "__ffs(__activemask()) - 1",
                    "shuffle_down" => "warp_lane() + i",
                    "shuffle_up" => "warp_lane() - i",
                    "shuffle_xor" => "warp_lane() ^ i",
                    "quad_broadcast" => "(warp_lane() & ~3u) | i",
                    _ => "i",
                };
                format!("{shuffle}(a, {lane})")
            }
        };
        self.scalar(scalar)?;
        self.scalar(Scalar::U32)?;
        let parameters = if indexed { "$T a, u32 i" } else { "$T a" };
        let define = |writer: &mut Self, name: &str| {
            Ok(writer.expand(&format!("$T $N({parameters}) {{ return {text}; }}"), name, scalar))
        };
        let function = self.library(format!("{}_gather_{name}", scalar_name(scalar)), define)?;
        let mut shapes = vec![shape];
        shapes.extend(indexed.then_some(Shape { scalar: Scalar::U32, size: None }));
        self.mapped(&format!("gather_{name}"), &shapes, scalar, Form::Call(function))
    }

    fn open_cl_gather(&mut self, name: &str) -> String {
        self.extension("cl_khr_subgroups");
        match name {
            "broadcast_first" => "sub_group_broadcast_first(a)".to_owned(),
            "quad_broadcast" => "sub_group_shuffle(a, (get_sub_group_local_id() & ~3u) | i)".to_owned(),
            _ => format!("sub_group_{name}(a, i)"),
        }
    }
}
