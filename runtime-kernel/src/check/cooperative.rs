//! Where cooperative matrices may be: the elements of an array of a tensor or of work-group memory.

use naga::valid::FunctionInfo;
use naga::{
    AddressSpace, CooperativeData, Expression, Function, Handle, Module, Scalar, ScalarKind, Span, Type,
    TypeInner, VectorSize,
};
use runtime_core::{Error, ErrorKind, Result};

use crate::ir::cooperative::{self, Matrix, ROW_ALIGNMENT};
use crate::ir::variables::array_of;
use crate::ir::{Value, declare};
use crate::program::Program;

/// Checks every `coopLoad` and `coopStore` of a program.
///
/// # Errors
/// `CompileFailed`, naming the line.
pub(crate) fn check(program: &Program) -> Result<()> {
    let module = &program.module;
    for (handle, variable) in module.global_variables.iter() {
        if variable.space != AddressSpace::Private && has_matrix(module, variable.ty) {
            let span = module.global_variables.get_span(handle);
            return Err(failed(program, span, NOT_IN_MEMORY));
        }
    }
    program.functions().try_for_each(|(function, info)| check_function(program, function, info))
}

/// Fails if work-groups with operations on matrices have a subgroup with fewer than `size` invocations.
///
/// # Errors
/// `InvalidArgument`, naming the entry point.
pub(crate) fn check_full_subgroups(program: &Program, size: u32, subgroups: &str) -> Result<()> {
    let module = &program.module;
    for (interface, entry) in program.interfaces.iter().zip(&module.entry_points) {
        let items: u32 = interface.group_size.iter().product();
        if !items.is_multiple_of(size.max(1)) && cooperative::is_reached(module, &entry.function) {
            return Err(Error::invalid(format!(
                "entry point \"{}\" uses matrix units, but its work-groups of {items} items are not a multiple of the {size} items \
                 of {subgroups}",
                interface.name
            )));
        }
    }
    Ok(())
}

fn check_function(program: &Program, function: &Function, info: &FunctionInfo) -> Result<()> {
    for (matrix, span) in cooperative::types(&program.module, function, info) {
        if Matrix::of(matrix).is_none() {
            return Err(failed(program, span, UNSUPPORTED));
        }
    }
    for (data, span) in cooperative::accesses(function) {
        check_access(program, (function, info), data).map_err(|message| failed(program, span, message))?;
    }
    Ok(())
}

fn failed(program: &Program, span: Span, message: &str) -> Error {
    Error::new(ErrorKind::CompileFailed, format!("{}: {message}", program.location(span)))
}

/// Whether a type is or has a cooperative matrix.
fn has_matrix(module: &Module, ty: Handle<Type>) -> bool {
    declare::has_part(module, ty, &|_, inner| matches!(inner, TypeInner::CooperativeMatrix { .. }))
}

const NOT_IN_MEMORY: &str =
    "a cooperative matrix belongs to a subgroup; store its elements by `coopStore` instead";

fn check_access(
    program: &Program,
    (function, info): (&Function, &FunctionInfo),
    data: CooperativeData,
) -> std::result::Result<(), &'static str> {
    let module = &program.module;
    let inner = |value: Value| info[value].ty.inner_with(&module.types);
    let index = match function.expressions[data.pointer] {
        Expression::Access { index, .. } => Some(index),
        Expression::AccessIndex { .. } => None,
        _ => return Err(NO_ARRAY),
    };
    let is_number = match *inner(data.pointer) {
        TypeInner::Pointer { base, .. } => is_number(&module.types[base].inner),
        TypeInner::ValuePointer { size, .. } => size != Some(VectorSize::Tri),
        _ => false,
    };
    if !is_number {
        return Err(
            "a cooperative matrix is loaded from and stored to arrays of numbers or of vectors of 2 or 4",
        );
    }
    let array = place((module, function), array_of(function, data.pointer));
    match array.filter(|(_, ty)| matches!(module.types[*ty].inner, TypeInner::Array { .. })) {
        None => return Err(NO_ARRAY),
        Some((offset, _)) if offset % ROW_ALIGNMENT != 0 => return Err(MISALIGNED),
        Some(_) => {}
    }
    let is_word = |value| {
        matches!(
            *inner(value),
            TypeInner::Scalar(Scalar { kind: ScalarKind::Uint | ScalarKind::Sint, width: 4 })
        )
    };
    if !index.is_none_or(is_word) || !is_word(data.stride) {
        return Err("the index and the stride of a cooperative matrix must be u32 or i32");
    }
    Ok(())
}

const NO_ARRAY: &str = "a cooperative matrix must start at an element of an array, which is a tensor or a variable in work-group \
    memory: write `&name[index]`";

const MISALIGNED: &str = "the array of a cooperative matrix must begin at a multiple of 16 bytes in its variable: move the member to \
    the front, or align it by `@align(16)`";

const UNSUPPORTED: &str = "a cooperative matrix other than coop_mat16x16 with factors of f16 and sums of f16 or f32 is not supported";

const fn is_number(element: &TypeInner) -> bool {
    matches!(
        element,
        TypeInner::Scalar(_) | TypeInner::Vector { size: VectorSize::Bi | VectorSize::Quad, .. }
    )
}

/// The offset in bytes of a part of a variable in storage or work-group memory, and its type.
fn place((module, function): (&Module, &Function), part: Value) -> Option<(u32, Handle<Type>)> {
    match function.expressions[part] {
        Expression::GlobalVariable(variable) => {
            let variable = &module.global_variables[variable];
            let is_memory = matches!(variable.space, AddressSpace::Storage { .. } | AddressSpace::WorkGroup);
            is_memory.then_some((0, variable.ty))
        }
        Expression::AccessIndex { base, index } => {
            let (offset, ty) = place((module, function), base)?;
            let (inside, ty) = match &module.types[ty].inner {
                TypeInner::Struct { members, .. } => {
                    let member = members.get(index as usize)?;
                    (member.offset, member.ty)
                }
                TypeInner::Array { base, stride, .. } => (stride.checked_mul(index)?, *base),
                _ => return None,
            };
            Some((offset.checked_add(inside)?, ty))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Program, Specialisation};

    fn check(load: &str) -> Result<(), String> {
        let code = format!(
            "enable f16; enable wgpu_cooperative_matrix;
             struct Rows {{ n: vec4u, at: array<f16> }}
             struct Tile {{ n: f16, at: array<f16, 256>, @align(16) other: array<f16, 256> }}
             @group(0) @binding(0) var<storage, read> a: Rows;
             @group(0) @binding(1) var<storage, read_write> c: array<f32>;
             var<workgroup> tile: array<f16, 512>;
             var<workgroup> part: Tile;
             var<workgroup> rows: array<array<f16, 260>, 3>;
             var<workgroup> threes: array<vec3<f16>, 256>;
             @group(0) @binding(2) var<storage, read_write> matrices: array<mat3x3<f32>>;
             @group(0) @binding(3) var<storage, read> words: array<u32>;
             var<private> own: array<f16, 256>;
             @compute @workgroup_size(32)
             fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {{
                 {load}
             }}"
        );
        Program::parse(&code, "", &Specialisation::default())
            .map(|_| ())
            .map_err(|error| error.message().to_owned())
    }

    #[test]
    fn matrices_are_elements_of_tensors_and_of_work_group_memory() {
        for place in ["&tile[0]", "&tile[g.x]", "&a.at[i32(g.x)]"] {
            check(&format!("let m = coopLoad<coop_mat16x16<f16, A>>({place}, 16u); _ = m;")).unwrap();
        }
        check("let m = coopLoad<coop_mat16x16<f16, A>>(&part.other[0], 16u); _ = m;").unwrap();
        check("let m = coopLoad<coop_mat16x16<f16, A>>(&rows[2][0], 16u); _ = m;").unwrap();
        for place in ["&part.at[0]", "&rows[1][0]"] {
            let load = format!("let m = coopLoad<coop_mat16x16<f16, A>>({place}, 16u); _ = m;");
            assert!(check(&load).unwrap_err().contains("a multiple of 16 bytes"), "{place}");
        }
        for place in ["&rows[g.x % 3u][0]", "&threes[0]"] {
            check(&format!("let m = coopLoad<coop_mat16x16<f16, A>>({place}, 16u); _ = m;")).unwrap_err();
        }
        check("coopStoreT(coop_mat16x16<f32, C>(), &matrices[0], 1u);").unwrap_err();
        for place in ["&own[0]", "&a.n", "&tile"] {
            check(&format!("let m = coopLoad<coop_mat16x16<f16, A>>({place}, 16u); _ = m;")).unwrap_err();
        }
        let error = check("let m = coopLoad<coop_mat16x16<f16, A>>(&own[0], 16u); _ = m;").unwrap_err();
        assert!(error.contains("write `&name[index]`"), "{error}");
    }

    #[test]
    fn matrices_that_no_unit_has_are_refused() {
        for load in [
            "let m = coopLoadT<coop_mat8x8<f32, C>>(&c[0], 8u); _ = m;",
            "let m = coopLoadT<coop_mat16x16<f32, A>>(&c[0], 16u); _ = m;",
            "let m = coopLoadT<coop_mat16x16<f16, A>>(&words[0], 16u); _ = m;",
            "var m: coop_mat8x8<f16, C>; let n = m; _ = n;",
        ] {
            assert!(check(load).unwrap_err().contains("other than coop_mat16x16"), "{load}");
        }
    }

    #[test]
    fn a_matrix_is_no_part_of_a_tensor() {
        let code = "enable wgpu_cooperative_matrix;
             @group(0) @binding(0) var<storage, read_write> c: array<coop_mat16x16<f32, C>>;
             @compute @workgroup_size(32) fn main() { let m = c[0]; _ = m; }";
        let error = Program::parse(code, "k.wgsl", &Specialisation::default()).unwrap_err();
        assert!(error.message().contains("k.wgsl:2: a cooperative matrix belongs to a subgroup"), "{error}");
    }

    #[test]
    fn all_invocations_of_a_group_take_part() {
        let load = "let m = coopLoad<coop_mat16x16<f32, C>>(&c[0], 16u); coopStore(m, &c[256], 16u);";
        check(load).unwrap();
        check(&format!("if g.x == 3u {{ {load} }}")).unwrap();
        // naga finds most of these.
        for body in
            ["if i == 3u { LOAD }", "if i == 3u { return; } LOAD", "for (var k = 0u; k < i; k++) { LOAD }"]
        {
            let error = check(&body.replace("LOAD", load)).unwrap_err();
            assert!(error.contains("niform") || error.contains("all invocations"), "{body}: {error}");
        }
    }
}
