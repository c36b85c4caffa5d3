//! Where cooperative matrices may be: the elements of an array of a tensor or of work-group memory.

use naga::valid::FunctionInfo;
use naga::{
    AddressSpace, CooperativeData, Expression, Function, Handle, Module, Scalar, ScalarKind, Span, Statement,
    Type, TypeInner,
};
use runtime_core::{Error, ErrorKind, Result};

use crate::ir::blocks;
use crate::ir::variables::array_of;
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
    for (handle, function) in module.functions.iter() {
        check_function(program, function, &program.info[handle])?;
    }
    for (index, entry) in module.entry_points.iter().enumerate() {
        check_function(program, &entry.function, program.info.get_entry_point(index))?;
    }
    Ok(())
}

fn check_function(program: &Program, function: &Function, info: &FunctionInfo) -> Result<()> {
    let mut accesses = Vec::new();
    for (handle, expression) in function.expressions.iter() {
        if let Expression::CooperativeLoad { data, .. } = *expression {
            accesses.push((data, function.expressions.get_span(handle)));
        }
    }
    blocks::each(&function.body, &mut |statement| {
        if let Statement::CooperativeStore { data, .. } = *statement {
            accesses.push((data, function.expressions.get_span(data.pointer)));
        }
    });
    for (data, span) in accesses {
        check_access(program, (function, info), data).map_err(|message| failed(program, span, message))?;
    }
    Ok(())
}

fn failed(program: &Program, span: Span, message: &str) -> Error {
    Error::new(ErrorKind::CompileFailed, format!("{}: {message}", program.place(span)))
}

/// Whether a type is or has a cooperative matrix.
fn has_matrix(module: &Module, ty: Handle<Type>) -> bool {
    match module.types[ty].inner {
        TypeInner::CooperativeMatrix { .. } => true,
        TypeInner::Array { base, .. } => has_matrix(module, base),
        TypeInner::Struct { ref members, .. } => members.iter().any(|member| has_matrix(module, member.ty)),
        _ => false,
    }
}

const NOT_IN_MEMORY: &str =
    "a cooperative matrix belongs to a subgroup; store its elements by `coopStore` instead";

fn check_access(
    program: &Program,
    (function, info): (&Function, &FunctionInfo),
    data: CooperativeData,
) -> std::result::Result<(), &'static str> {
    let module = &program.module;
    let inner = |value: Handle<Expression>| info[value].ty.inner_with(&module.types);
    let index = match function.expressions[data.pointer] {
        Expression::Access { index, .. } => Some(index),
        Expression::AccessIndex { .. } => None,
        _ => return Err(NO_ARRAY),
    };
    if !is_array_of_variable(module, function, array_of(function, data.pointer)) {
        return Err(NO_ARRAY);
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

/// Whether an expression is an array that is a variable in storage or work-group memory, or a member of one.
fn is_array_of_variable(module: &Module, function: &Function, array: Handle<Expression>) -> bool {
    match function.expressions[array] {
        Expression::GlobalVariable(variable) => {
            let variable = &module.global_variables[variable];
            matches!(variable.space, AddressSpace::Storage { .. } | AddressSpace::WorkGroup)
                && !matches!(module.types[variable.ty].inner, TypeInner::Scalar(_) | TypeInner::Vector { .. })
        }
        Expression::AccessIndex { base, .. } => is_array_of_variable(module, function, base),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Program, Specialisation};

    fn check(load: &str) -> Result<(), String> {
        let code = format!(
            "enable f16; enable wgpu_cooperative_matrix;
             struct Rows {{ n: u32, at: array<f16> }}
             @group(0) @binding(0) var<storage, read> a: Rows;
             @group(0) @binding(1) var<storage, read_write> c: array<f32>;
             var<workgroup> tile: array<f16, 512>;
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
        for place in ["&own[0]", "&a.n", "&tile"] {
            check(&format!("let m = coopLoad<coop_mat16x16<f16, A>>({place}, 16u); _ = m;")).unwrap_err();
        }
        let error = check("let m = coopLoad<coop_mat16x16<f16, A>>(&own[0], 16u); _ = m;").unwrap_err();
        assert!(error.contains("write `&name[index]`"), "{error}");
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
        let error = check(&format!("if i == 3u {{ {load} }}")).unwrap_err();
        assert!(error.contains("all invocations of a work-group"), "{error}");
        check("if i == 3u { return; } let m = coopLoad<coop_mat16x16<f32, C>>(&c[0], 16u); _ = m;")
            .unwrap_err();
    }
}
