//! Parses a module's words into tables.

use ::spirv::{BuiltIn, Decoration, ExecutionMode, ExecutionModel, MAGIC_NUMBER, Op, StorageClass};
use runtime_core::{Error, ErrorKind, Result};

use super::access::Function;
use super::{Constant, EntryPoint, Id, SpirvModule, Type, TypeExtent, Variable, WorkGroupSize};

const HEADER_WORDS: usize = 5;
/// Deepest nesting of types (SPIR-V's universal limit), and most leaves of one: types of untrusted code are walked
/// recursively.
const MAX_TYPE_DEPTH: u32 = 255;
const MAX_TYPE_LEAVES: u32 = 4096;

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::CompileFailed, format!("not SPIR-V: {what}; see `spirv-val`"))
}

/// The code as words in host byte order.
///
/// # Errors
/// `CompileFailed` if it is not SPIR-V.
pub(crate) fn words(code: &[u8]) -> Result<Vec<u32>> {
    if !code.len().is_multiple_of(4) || code.len() < 4 * HEADER_WORDS {
        return Err(malformed(&format!("{} bytes are not a header and whole words", code.len())));
    }
    let decode = |word: fn([u8; 4]) -> u32| -> Vec<u32> {
        code.chunks_exact(4).map(|bytes| word([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
    };
    let words = decode(u32::from_le_bytes);
    match words[0] {
        MAGIC_NUMBER => Ok(words),
        other if other.swap_bytes() == MAGIC_NUMBER => Ok(decode(u32::from_be_bytes)),
        other => Err(malformed(&format!("it begins with {other:#010x}"))),
    }
}

/// Whether an instruction declares a type that may contain others.
fn declares_type(op: Op) -> bool {
    (Op::TypeVoid..=Op::TypeFunction).contains(&op) || op == Op::TypeCooperativeMatrixKHR
}

/// Whether an instruction declares a constant.
fn declares_constant(op: Op) -> bool {
    (Op::ConstantTrue..=Op::SpecConstantOp).contains(&op)
}

impl SpirvModule {
    /// Parses a module.
    ///
    /// # Errors
    /// `CompileFailed` if it is truncated or malformed; `Unsupported` for types that are too large.
    pub(crate) fn parse(words: &[u32]) -> Result<Self> {
        let mut module = Self::default();
        let mut rest = words.get(HEADER_WORDS..).ok_or_else(|| malformed("it has no header"))?;
        let mut function = None;
        while let Some(&first) = rest.first() {
            let (length, opcode) = ((first >> 16) as usize, first & 0xffff);
            if length == 0 || length > rest.len() {
                let left = rest.len();
                return Err(malformed(&format!("an instruction of {length} words with {left} left")));
            }
            let (instruction, behind) = rest.split_at(length);
            // Instructions that the `spirv` crate does not have do not matter here.
            if let Some(op) = Op::from_u32(opcode) {
                module.visit(&mut function, op, &instruction[1..])?;
            }
            rest = behind;
        }
        Ok(module)
    }

    fn visit(&mut self, function: &mut Option<(Id, Function)>, op: Op, operands: &[u32]) -> Result<()> {
        let begins_or_ends_function = (Op::Function..=Op::FunctionEnd).contains(&op);
        if begins_or_ends_function || function.is_some() {
            self.visit_in_function(function, op, operands);
            return Ok(());
        }
        if declares_type(op) {
            self.check_type_extent(op, operands)?;
        }
        self.visit_declaration(op, operands)
            .ok_or_else(|| malformed(&format!("instruction {} has {} operands", op as u32, operands.len())))
    }

    fn visit_in_function(&mut self, current: &mut Option<(Id, Function)>, op: Op, operands: &[u32]) {
        match (op, current.as_mut()) {
            (Op::Function, _) => *current = operands.get(1).map(|&id| (id, Function::default())),
            (Op::FunctionEnd, _) => self.functions.extend(current.take()),
            (_, Some((_, function))) => {
                let variables = &self.variables;
                function.visit(op, operands, |id| variables.contains_key(&id));
            }
            _ => {}
        }
    }

    /// Visits an instruction outside functions; `None` if operands are missing.
    fn visit_declaration(&mut self, op: Op, operands: &[u32]) -> Option<()> {
        let operand = |index: usize| operands.get(index).copied();
        let xyz = || Some([operand(2)?, operand(3)?, operand(4)?]);
        match op {
            Op::Name => {
                self.names.insert(operand(0)?, text(&operands[1..]));
            }
            Op::EntryPoint if operand(0)? == ExecutionModel::GLCompute as u32 => {
                let (function, name) = (operand(1)?, text(operands.get(2..)?));
                self.entry_points.push(EntryPoint { name, function });
            }
            Op::ExecutionMode if operand(1)? == ExecutionMode::LocalSize as u32 => {
                self.work_group_sizes.insert(operand(0)?, WorkGroupSize::Literal(xyz()?));
            }
            Op::ExecutionModeId if operand(1)? == ExecutionMode::LocalSizeId as u32 => {
                self.work_group_sizes.insert(operand(0)?, WorkGroupSize::Constants(xyz()?));
            }
            Op::Capability => self.capabilities.push(operand(0)?),
            Op::Variable => {
                let storage_class = StorageClass::from_u32(operand(2)?);
                self.variables.insert(operand(1)?, Variable { ty: operand(0)?, storage_class });
            }
            Op::Decorate => self.decorate(operand(0)?, operand(1)?, operand(2)),
            Op::MemberDecorate => {
                self.decorate_member((operand(0)?, operand(1)?), operand(2)?, operand(3));
            }
            _ if declares_type(op) => self.visit_type(op, operands)?,
            _ if declares_constant(op) => self.visit_constant(op, operands)?,
            _ => {}
        }
        Some(())
    }

    /// Records a type's extent. The types in it were declared before, so that none contains itself.
    fn check_type_extent(&mut self, op: Op, operands: &[u32]) -> Result<()> {
        let Some(&id) = operands.first() else { return Ok(()) };
        let element_types = match op {
            Op::TypeVector | Op::TypeMatrix | Op::TypeArray | Op::TypeRuntimeArray => operands.get(1..2),
            Op::TypeStruct => operands.get(1..),
            _ => None,
        };
        let leaf = TypeExtent { depth: 1, leaves: 1 };
        let mut extent = leaf;
        for element in element_types.unwrap_or_default() {
            // Not declared yet: a pointer declared later, or a type that does not matter here.
            self.types.entry(*element).or_insert(Type::Other);
            let inner = self.type_extents.get(element).copied().unwrap_or(leaf);
            extent.depth = extent.depth.max(inner.depth + 1);
            extent.leaves = extent.leaves.saturating_add(inner.leaves);
        }
        if op != Op::TypePointer && self.types.contains_key(&id) {
            return Err(malformed(&format!("type {id} is declared twice, or contains itself")));
        }
        if extent.depth > MAX_TYPE_DEPTH || extent.leaves > MAX_TYPE_LEAVES {
            let message = format!(
                "type {id} has more than {MAX_TYPE_LEAVES} parts, or is nested more than {MAX_TYPE_DEPTH} deep; use \
                 arrays, or several buffers"
            );
            return Err(Error::unsupported(message));
        }
        self.type_extents.insert(id, extent);
        Ok(())
    }

    fn visit_type(&mut self, op: Op, operands: &[u32]) -> Option<()> {
        let operand = |index: usize| operands.get(index).copied();
        let ty = match op {
            Op::TypeBool => Type::Bool,
            Op::TypeInt => Type::Int { bits: operand(1)?, signed: operand(2)? != 0 },
            // With an encoding operand (bfloat16, …) it is a type that kernels cannot take.
            Op::TypeFloat if operands.len() == 2 => Type::Float { bits: operand(1)? },
            Op::TypeVector => Type::Vector { of: operand(1)?, count: operand(2)? },
            Op::TypeMatrix => Type::Matrix { of: operand(1)?, columns: operand(2)? },
            Op::TypeArray => Type::Array { of: operand(1)?, length: operand(2)? },
            Op::TypeRuntimeArray => Type::RuntimeArray { of: operand(1)? },
            Op::TypeStruct => Type::Struct { members: operands.get(1..)?.to_vec() },
            Op::TypePointer => {
                Type::Pointer { storage_class: StorageClass::from_u32(operand(1)?), to: operand(2)? }
            }
            _ => Type::Other,
        };
        self.types.insert(operand(0)?, ty);
        Some(())
    }

    fn visit_constant(&mut self, op: Op, operands: &[u32]) -> Option<()> {
        let operand = |index: usize| operands.get(index).copied();
        let ty = operand(0)?;
        let scalar = |bits: u64, is_spec: bool| Constant::Scalar { ty, bits, is_spec };
        let literal = || Some(u64::from(operand(2)?) | u64::from(operand(3).unwrap_or(0)) << 32);
        let constant = match op {
            Op::ConstantTrue => scalar(1, false),
            Op::ConstantFalse => scalar(0, false),
            Op::Constant => scalar(literal()?, false),
            Op::ConstantComposite | Op::SpecConstantComposite => {
                Constant::Composite(operands.get(2..)?.to_vec())
            }
            Op::SpecConstantTrue => scalar(1, true),
            Op::SpecConstantFalse => scalar(0, true),
            Op::SpecConstant => scalar(literal()?, true),
            _ => Constant::Computed,
        };
        self.constants.insert(operand(1)?, constant);
        Some(())
    }

    fn decorate(&mut self, target: Id, decoration: u32, operand: Option<u32>) {
        let known = self.decorations.entry(target).or_default();
        match Decoration::from_u32(decoration) {
            Some(Decoration::SpecId) => known.spec_id = operand,
            Some(Decoration::BufferBlock) => known.buffer_block = true,
            Some(Decoration::ArrayStride) => known.array_stride = operand,
            Some(Decoration::BuiltIn) => {
                known.is_work_group_size = operand == Some(BuiltIn::WorkgroupSize as u32);
            }
            Some(Decoration::NonWritable) => known.read_only = true,
            Some(Decoration::NonReadable) => known.write_only = true,
            Some(Decoration::Binding) => known.binding = operand,
            Some(Decoration::DescriptorSet) => known.set = operand,
            _ => {}
        }
    }

    fn decorate_member(&mut self, member: (Id, u32), decoration: u32, operand: Option<u32>) {
        let known = self.member_decorations.entry(member).or_default();
        match Decoration::from_u32(decoration) {
            Some(Decoration::RowMajor) => known.row_major = true,
            Some(Decoration::MatrixStride) => known.matrix_stride = operand.unwrap_or(0),
            Some(Decoration::NonWritable) => known.read_only = true,
            Some(Decoration::NonReadable) => known.write_only = true,
            Some(Decoration::Offset) => known.offset = operand.unwrap_or(0),
            _ => {}
        }
    }
}

/// A literal string: null-terminated UTF-8 in words.
fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_code_is_refused_with_a_reason() {
        let refused = |code: &[u8], reason: &str| {
            let error = words(code).and_then(|words| SpirvModule::parse(&words)).unwrap_err();
            assert!(error.kind() == ErrorKind::CompileFailed && error.message().contains(reason), "{error}");
        };
        let capability = Op::Capability as u32;
        refused(b"", "0 bytes");
        refused(&[1; 21], "21 bytes");
        refused(&[1; 20], "it begins with 0x01010101");
        let mut cut = [0_u32; 7].map(u32::to_le_bytes);
        cut[0] = MAGIC_NUMBER.to_le_bytes();
        cut[5] = (3_u32 << 16 | capability).to_le_bytes();
        refused(cut.as_flattened(), "an instruction of 3 words with 2 left");
        cut[5] = capability.to_le_bytes();
        refused(cut.as_flattened(), "an instruction of 0 words");
        cut[5] = (1_u32 << 16 | capability).to_le_bytes();
        refused(cut.as_flattened(), "instruction 17 has 0 operands");
    }

    /// Parses a header and these declarations.
    fn parse(declarations: &[(Op, &[u32])]) -> Result<SpirvModule> {
        let mut code = vec![MAGIC_NUMBER, 0x0001_0300, 0, 9999, 0];
        for (op, operands) in declarations {
            code.push(u32::try_from(operands.len() + 1).unwrap() << 16 | *op as u32);
            code.extend(*operands);
        }
        SpirvModule::parse(&code)
    }

    #[test]
    fn no_type_contains_itself() {
        const PHYSICAL_STORAGE_BUFFER: u32 = StorageClass::PhysicalStorageBuffer as u32;
        let refused = |declarations: &[(Op, &[u32])]| {
            let error = parse(declarations).unwrap_err();
            assert!(error.message().contains("contains itself"), "{error}");
        };
        let forward: (Op, &[u32]) = (Op::TypeForwardPointer, &[10, PHYSICAL_STORAGE_BUFFER]);
        refused(&[(Op::TypeArray, &[15, 15, 40])]);
        refused(&[(Op::TypeStruct, &[10, 11]), (Op::TypeRuntimeArray, &[11, 10])]);
        refused(&[forward, (Op::TypeStruct, &[11, 10]), (Op::TypeArray, &[10, 11, 40])]);
        let pointer: (Op, &[u32]) = (Op::TypePointer, &[10, PHYSICAL_STORAGE_BUFFER, 11]);
        let linked = parse(&[forward, (Op::TypeStruct, &[11, 10]), pointer]);
        assert!(linked.is_ok(), "a list is linked by pointers");
    }

    #[test]
    fn types_that_double_are_refused() {
        let pairs: Vec<[u32; 3]> = (0..40).map(|step| [step + 101, step + 100, step + 100]).collect();
        let all: Vec<(Op, &[u32])> = pairs.iter().map(|pair| (Op::TypeStruct, pair.as_slice())).collect();
        assert!(parse(&all[..8]).is_ok());
        let error = parse(&all).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }

    #[test]
    fn big_endian_code_is_converted() {
        let swapped: Vec<u8> =
            [MAGIC_NUMBER, 0x0001_0300, 0, 9, 0].into_iter().flat_map(u32::to_be_bytes).collect();
        assert_eq!(words(&swapped).unwrap()[..2], [MAGIC_NUMBER, 0x0001_0300]);
    }
}
