//! Interfaces of small modules, assembled word by word.

use ::spirv::{Capability, Decoration, ExecutionMode, ExecutionModel, MAGIC_NUMBER, Op};

use super::*;
use crate::spirv::words;

const STORAGE_BUFFER: u32 = StorageClass::StorageBuffer as u32;
const WORKGROUP: u32 = StorageClass::Workgroup as u32;
const PUSH_CONSTANT: u32 = StorageClass::PushConstant as u32;

/// An instruction.
fn op(op: Op, operands: &[u32]) -> Vec<u32> {
    let length = u32::try_from(operands.len() + 1).unwrap();
    [&[length << 16 | op as u32], operands].concat()
}

/// An instruction whose last operand is a name.
fn named(op_with_name: Op, operands: &[u32], name: &str) -> Vec<u32> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.resize(name.len() / 4 * 4 + 4, 0);
    let words = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    op(op_with_name, &operands.iter().copied().chain(words).collect::<Vec<_>>())
}

fn decorate(target: u32, decoration: Decoration, operands: &[u32]) -> Vec<u32> {
    op(Op::Decorate, &[&[target, decoration as u32], operands].concat())
}

fn function(id: u32, body: &[Vec<u32>]) -> Vec<u32> {
    let begin = [op(Op::Function, &[2, id, 0, 3]), op(Op::Label, &[id + 100])].concat();
    [begin, body.concat(), op(Op::Return, &[]), op(Op::FunctionEnd, &[])].concat()
}

/// Parses a header and these instructions.
fn parse(instructions: &[u32]) -> SpirvModule {
    SpirvModule::parse(&[&[MAGIC_NUMBER, 0x0001_0300, 0, 100, 0], instructions].concat()).unwrap()
}

/// Two entry points, `a` (90) and `b` (91), with buffers of their own (30 and 31) at binding 0; `b` also has one
/// (32) at binding 2, which it only stores to through a function that it calls (92).
fn two_entries() -> SpirvModule {
    let element = |result: u32, variable: u32| op(Op::AccessChain, &[14, result, variable, 20, 20]);
    let text = [
        op(Op::Capability, &[Capability::Shader as u32]),
        named(Op::EntryPoint, &[ExecutionModel::GLCompute as u32, 90], "a"),
        named(Op::EntryPoint, &[ExecutionModel::GLCompute as u32, 91], "b"),
        op(Op::ExecutionMode, &[90, ExecutionMode::LocalSize as u32, 8, 4, 1]),
        op(Op::ExecutionModeId, &[91, ExecutionMode::LocalSizeId as u32, 40, 20, 21]),
        named(Op::Name, &[40], "WIDTH"),
        decorate(40, Decoration::SpecId, &[7]),
        decorate(10, Decoration::Block, &[]),
        decorate(11, Decoration::ArrayStride, &[4]),
        op(Op::MemberDecorate, &[10, 0, Decoration::Offset as u32, 0]),
        decorate(30, Decoration::NonWritable, &[]),
        [30, 31, 32].map(|id| decorate(id, Decoration::DescriptorSet, &[0])).concat(),
        [(30, 0), (31, 0), (32, 2)]
            .map(|(id, binding)| decorate(id, Decoration::Binding, &[binding]))
            .concat(),
        op(Op::TypeVoid, &[2]),
        op(Op::TypeFunction, &[3, 2]),
        op(Op::TypeFloat, &[4, 32]),
        op(Op::TypeInt, &[5, 32, 0]),
        op(Op::TypeRuntimeArray, &[11, 4]),
        op(Op::TypeStruct, &[10, 11]),
        op(Op::TypePointer, &[12, STORAGE_BUFFER, 10]),
        op(Op::TypePointer, &[14, STORAGE_BUFFER, 4]),
        op(Op::TypeArray, &[15, 4, 40]),
        op(Op::TypePointer, &[16, WORKGROUP, 15]),
        op(Op::Constant, &[5, 20, 0]),
        op(Op::Constant, &[5, 21, 1]),
        op(Op::SpecConstant, &[5, 40, 16]),
        [30, 31, 32].map(|id| op(Op::Variable, &[12, id, STORAGE_BUFFER])).concat(),
        op(Op::Variable, &[16, 33, WORKGROUP]),
        function(90, &[element(50, 30), op(Op::Load, &[4, 51, 50])]),
        function(
            91,
            &[
                element(52, 31),
                op(Op::Load, &[4, 53, 52]),
                op(Op::Store, &[52, 53]),
                op(Op::FunctionCall, &[2, 54, 92]),
            ],
        ),
        function(92, &[element(55, 32), op(Op::Store, &[55, 53]), op(Op::AccessChain, &[14, 56, 33, 20])]),
    ];
    parse(&text.concat())
}

#[test]
fn each_entry_point_has_its_own_buffers() {
    let code = two_entries();
    assert_eq!(code.entry_names().unwrap(), ["a", "b"]);
    let a = code.interface("a", &[]).unwrap();
    assert_eq!((a.tensors.len(), a.required_tensors, a.group_size, a.shared_bytes), (1, 1, [8, 4, 1], 0));
    assert_eq!(a.tensors[0], TensorParam { access: Access::Read, dtype: Some(DType::F32) });
    let b = code.interface("b", &[]).unwrap();
    let accesses: Vec<_> = b.tensors.iter().map(|tensor| tensor.access).collect();
    assert_eq!(
        accesses,
        [Access::ReadWrite, Access::Read, Access::Write],
        "the middle one is never accessed"
    );
    assert_eq!(code.interface("c", &[]).unwrap_err().kind(), ErrorKind::NotFound);
}

/// An entry point that loads from one buffer (30, words after a float) and stores to another (31, floats), both at
/// binding 0, with push constants (32) that are a matrix of two columns and three rows.
fn one_binding_twice(row_major: bool) -> SpirvModule {
    let order = if row_major { Decoration::RowMajor } else { Decoration::ColMajor };
    let element = |result: u32, ty: u32, variable: u32| op(Op::AccessChain, &[ty, result, variable, 20, 20]);
    let text = [
        op(Op::Capability, &[Capability::Shader as u32]),
        named(Op::EntryPoint, &[ExecutionModel::GLCompute as u32, 90], "main"),
        op(Op::ExecutionMode, &[90, ExecutionMode::LocalSize as u32, 1, 1, 1]),
        [10, 11, 18].map(|id| decorate(id, Decoration::Block, &[])).concat(),
        op(Op::MemberDecorate, &[11, 1, Decoration::Offset as u32, 4]),
        [30, 31]
            .map(|id| {
                [decorate(id, Decoration::DescriptorSet, &[0]), decorate(id, Decoration::Binding, &[0])]
                    .concat()
            })
            .concat(),
        op(Op::MemberDecorate, &[18, 0, order as u32]),
        op(Op::MemberDecorate, &[18, 0, Decoration::MatrixStride as u32, 16]),
        op(Op::TypeVoid, &[2]),
        op(Op::TypeFunction, &[3, 2]),
        op(Op::TypeFloat, &[4, 32]),
        op(Op::TypeInt, &[5, 32, 0]),
        op(Op::TypeRuntimeArray, &[6, 4]),
        op(Op::TypeRuntimeArray, &[7, 5]),
        op(Op::TypeStruct, &[10, 6]),
        op(Op::TypeStruct, &[11, 4, 7]),
        op(Op::TypeVector, &[16, 4, 3]),
        op(Op::TypeMatrix, &[17, 16, 2]),
        op(Op::TypeStruct, &[18, 17]),
        [(12, 11), (13, 10), (14, 5), (15, 4)]
            .map(|(id, to)| op(Op::TypePointer, &[id, STORAGE_BUFFER, to]))
            .concat(),
        op(Op::TypePointer, &[19, PUSH_CONSTANT, 18]),
        op(Op::Constant, &[5, 20, 0]),
        op(Op::Variable, &[12, 30, STORAGE_BUFFER]),
        op(Op::Variable, &[13, 31, STORAGE_BUFFER]),
        op(Op::Variable, &[19, 32, PUSH_CONSTANT]),
        op(Op::Function, &[2, 90, 0, 3]),
        op(Op::Label, &[91]),
        [element(50, 14, 30), op(Op::Load, &[5, 51, 50])].concat(),
        [element(52, 15, 31), op(Op::Store, &[52, 20])].concat(),
        [op(Op::AccessChain, &[19, 53, 32]), op(Op::Return, &[]), op(Op::FunctionEnd, &[])].concat(),
    ];
    parse(&text.concat())
}

#[test]
fn buffers_at_one_binding_are_one_tensor() {
    let main = one_binding_twice(false).interface("main", &[]).unwrap();
    assert_eq!(main.tensors, [TensorParam { access: Access::ReadWrite, dtype: None }]);
    assert_eq!(main.required_tensors, 1);
}

#[test]
fn rows_of_a_matrix_lie_a_stride_apart() {
    let bytes = |row_major| one_binding_twice(row_major).interface("main", &[]).unwrap().push_constants.bytes;
    assert_eq!([bytes(false), bytes(true)], [32, 48]);
}

#[test]
fn spec_constants_set_group_size_and_work_group_memory() {
    let code = two_entries();
    let plain = code.interface("b", &[]).unwrap();
    assert_eq!((plain.group_size, plain.shared_bytes), ([16, 0, 1], 64));
    for given in ["WIDTH=32", "7=32"] {
        let values = [code.parse_spec_value(given).unwrap()];
        assert_eq!(values, [(7, vec![32, 0, 0, 0])]);
        let b = code.interface("b", &values).unwrap();
        assert_eq!((b.group_size, b.shared_bytes), ([32, 0, 1], 128));
    }
    let twice = code.parse_spec_values(["WIDTH=32", "7=64"].into_iter()).unwrap_err();
    assert!(twice.message().contains("given twice"), "{twice}");
    for (given, message) in
        [("WIDHT=3", "did you mean"), ("WIDTH", "write NAME=VALUE"), ("WIDTH=-1", "not a value")]
    {
        let error = code.parse_spec_value(given).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn push_constants_are_read_from_compiled_code() {
    let code = SpirvModule::parse(&words(include_bytes!("../../builtin/fill.spv")).unwrap()).unwrap();
    let fill = code.interface("main", &[]).unwrap();
    assert_eq!((fill.push_constants.bytes, fill.group_size, fill.required_tensors), (24, [256, 1, 1], 1));
    assert_eq!(fill.tensors, [TensorParam { access: Access::Write, dtype: None }], "words may hold any type");
    let offsets: Vec<_> =
        fill.push_constants.members.iter().map(|member| (member.offset, member.bytes)).collect();
    assert_eq!(offsets, [(0, 4), (4, 4), (8, 4), (12, 4), (16, 4), (20, 4)]);
    assert!(fill.push_constants.members.iter().all(|member| member.dtype == Some(DType::U32)));
}
