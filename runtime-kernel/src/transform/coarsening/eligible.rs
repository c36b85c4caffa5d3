//! Which entry points are coarsened, and how much: element-wise ones, whose time is that of their loads and stores.

use naga::valid::{FunctionInfo, GlobalUse};
use naga::{
    AddressSpace, Binding, Block, BuiltIn, EntryPoint, Expression, Function, Handle, Module, Statement, Type,
    TypeInner,
};

use crate::ir::operands::operands;
use crate::ir::variables::root;
use crate::ir::{Value, blocks, declare};
use crate::program::Program;
use crate::transform::inline::return_elimination::{strip_trailing, structured};

/// Bytes of loads in flight that an invocation should have per buffer.
const BYTES: u32 = 16;
/// More invocations together gain nothing: on an H200, eight loads of 2 or 4 bytes are not faster than four.
const MAX_ITEMS: u32 = 4;
/// Loads of one invocation that stay in registers.
const MAX_LOADS: u32 = 32;
/// Expressions that all copies may have together.
const MAX_EXPRESSIONS: usize = 1024;
const MAX_VARIABLES: usize = 16;

/// How an entry point is coarsened.
#[derive(Debug)]
pub(super) struct Plan {
    /// Invocations whose work one does.
    pub(super) items: u32,
    /// The body, which returns at its end only.
    pub(super) body: Block,
}

/// Whether an entry point may be coarsened: a cheap check before its calls are inlined.
pub(super) fn may_be(point: &EntryPoint) -> bool {
    !blocks::has_barrier(&point.function.body)
}

/// How to coarsen an entry point of a program whose calls are inlined; `None` to leave it as it is.
pub(super) fn plan(program: &Program, index: usize, items: Option<u32>) -> Option<Plan> {
    let (module, info) = (&program.module, program.info.get_entry_point(index));
    let function = &module.entry_points[index].function;
    let known = function.arguments.iter().all(|argument| match argument.binding {
        Some(Binding::BuiltIn(built_in)) => is_supported(built_in),
        _ => false,
    });
    if !known || !memory_is_plain(module, info) || !variables_are_small(module, function) {
        return None;
    }
    if blocks::any(&function.body, &mut |statement| !is_element_wise(statement))
        || uses_whole_scalars(module, function)
    {
        return None;
    }
    let mut body = function.body.clone();
    strip_trailing(&mut body);
    let mut body = structured(body)?;
    strip_trailing(&mut body);
    let none_left = !body.iter().any(blocks::has_return);
    let traffic = Traffic::of(module, function, info, &body);
    let items = items.unwrap_or_else(|| traffic.items());
    let fits = traffic.expressions.saturating_mul(items as usize) <= MAX_EXPRESSIONS;
    (none_left && fits && items > 1 && traffic.loads > 0 && traffic.stores > 0)
        .then_some(Plan { items, body })
}

const fn is_supported(built_in: BuiltIn) -> bool {
    use BuiltIn as B;
    matches!(
        built_in,
        B::GlobalInvocationId
            | B::LocalInvocationId
            | B::LocalInvocationIndex
            | B::WorkGroupId
            | B::WorkGroupSize
            | B::NumWorkGroups
    )
}

/// Whether a kernel uses no memory that invocations share other than buffers, and no atomic one.
fn memory_is_plain(module: &Module, info: &FunctionInfo) -> bool {
    let mut used = module.global_variables.iter().filter(|(handle, _)| info[*handle] != GlobalUse::empty());
    used.all(|(_, variable)| match variable.space {
        AddressSpace::Immediate => true,
        AddressSpace::Storage { .. } => !declare::has_atomics(module, variable.ty),
        _ => false,
    })
}

fn variables_are_small(module: &Module, function: &Function) -> bool {
    let is_small = |ty: Handle<Type>| {
        matches!(
            module.types[ty].inner,
            TypeInner::Scalar(_) | TypeInner::Vector { .. } | TypeInner::Matrix { .. }
        )
    };
    function.local_variables.len() <= MAX_VARIABLES
        && function.local_variables.iter().all(|(_, variable)| is_small(variable.ty))
}

const fn is_element_wise(statement: &Statement) -> bool {
    use Statement as S;
    matches!(statement, S::Emit(_) | S::Block(_) | S::If { .. } | S::Store { .. } | S::Return { value: None })
}

/// Whether the struct of the scalars is used other than by its members.
fn uses_whole_scalars(module: &Module, function: &Function) -> bool {
    let is_scalars = |operand| match function.expressions[operand] {
        Expression::GlobalVariable(variable) => {
            module.global_variables[variable].space == AddressSpace::Immediate
        }
        _ => false,
    };
    function.expressions.iter().any(|(_, expression)| {
        !matches!(expression, Expression::AccessIndex { .. }) && operands(expression).any(is_scalars)
    })
}

/// What a body reads from and writes to buffers.
#[derive(Default)]
struct Traffic {
    loads: u32,
    stores: u32,
    /// Bytes of the largest value that is loaded or stored at once.
    widest: u32,
    /// Expressions that are evaluated.
    expressions: usize,
}

impl Traffic {
    fn of(module: &Module, function: &Function, info: &FunctionInfo, body: &Block) -> Self {
        let mut traffic = Self::default();
        let size = |value: Value| info[value].ty.inner_with(&module.types).size(module.to_ctx());
        let is_buffer = |pointer| root(function, pointer).is_buffer(module);
        blocks::each(body, &mut |statement| match statement {
            Statement::Emit(range) => {
                for handle in range.clone() {
                    traffic.expressions += 1;
                    if let Expression::Load { pointer } = function.expressions[handle]
                        && is_buffer(pointer)
                    {
                        traffic.loads += 1;
                        traffic.widest = traffic.widest.max(size(handle));
                    }
                }
            }
            Statement::Store { pointer, value } if is_buffer(*pointer) => {
                traffic.stores += 1;
                traffic.widest = traffic.widest.max(size(*value));
            }
            _ => {}
        });
        traffic
    }

    fn items(&self) -> u32 {
        let mut items = (BYTES / self.widest.max(1)).clamp(1, MAX_ITEMS);
        while items > 1 && items * self.loads > MAX_LOADS {
            items /= 2;
        }
        items
    }
}
