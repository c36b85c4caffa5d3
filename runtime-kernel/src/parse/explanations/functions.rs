//! Errors of functions and of their statements.

use naga::valid::{CallError, FunctionError, LocalVariableError, SubgroupError};
use naga::{AddressSpace, ArraySize, Function, Handle, SwitchValue, Type, TypeInner};

use super::variables::space_name;
use super::{Context, Explanation, or_empty};
use crate::ir::Value;
use crate::ir::variables::{self, Root};

impl Context<'_> {
    pub(super) fn of_function(&self, function: &Function, error: &FunctionError) -> Explanation {
        match error {
            FunctionError::Expression { handle, source } => self.of_expression(function, *handle, source),
            FunctionError::LocalVariable { name, handle, source: LocalVariableError::InvalidType(ty) } => {
                self.of_local(name, *ty).at(Some(function.local_variables.get_span(*handle)))
            }
            FunctionError::InvalidArgumentPointerSpace { name, space, .. } => {
                of_pointer_argument(function, name, *space)
            }
            FunctionError::InvalidReturnType { expression, expected_ty } => {
                self.of_return(function, *expression, *expected_ty)
            }
            FunctionError::InvalidIfType(value) => {
                let value = self.shown(function, *value);
                explain!("a condition is a `bool`, not {value}"; "compare it: `!= 0`")
            }
            FunctionError::ConflictingSwitchCase(value) => {
                let (name, value) = match value {
                    SwitchValue::I32(value) => (or_empty(&function.name), format!("{value}i")),
                    SwitchValue::U32(value) => (or_empty(&function.name), format!("{value}u")),
                    _ => (or_empty(&function.name), "one value".to_owned()),
                };
                explain!("a `switch` of \"{name}\" has two cases for {value}")
                    .at(function.name.as_deref().and_then(|name| self.name_of(name, None)))
            }
            FunctionError::MissingDefaultCase => {
                explain!("a `switch` has no default"; "add `default: {{ }}`")
            }
            FunctionError::InvalidStorePointer(pointer) => self.of_store(function, *pointer),
            FunctionError::InvalidStoreTypes { pointer, value } => {
                let [value, pointer] = [value, pointer].map(|value| self.shown(function, *value));
                explain!("{value} cannot be stored in {pointer}")
            }
            FunctionError::InvalidCall { function: called, error } => {
                self.of_call(function, &self.module.functions[*called], error)
            }
            FunctionError::NonConstructibleReturnType => {
                let result = function.result.as_ref().map(|result| self.type_name(result.ty));
                let (name, result) = (or_empty(&function.name), result.unwrap_or_default());
                explain!("function '{name}' cannot return {result}"; "return a value, or an index")
            }
            FunctionError::InvalidSubgroup(SubgroupError::InvalidOperand(operand)) => {
                explain!("a subgroup operation does not take {}", self.shown(function, *operand))
            }
            FunctionError::InvalidSubgroup(SubgroupError::InvalidInvocationIdExprType(index)) => explain!(
                "the index {} is not a constant", self.text_or_this(function, *index);
                "`subgroupShuffle` takes one that varies"
            ),
            other => self.of_other(Some(function), other),
        }
    }

    fn of_local(&self, name: &str, ty: Handle<Type>) -> Explanation {
        match &self.module.types[ty].inner {
            TypeInner::Pointer { .. } => {
                explain!("\"{name}\" is a variable, which cannot hold a pointer"; "declare it with `let`")
            }
            TypeInner::Array { size: ArraySize::Dynamic, .. } => {
                explain!("\"{name}\" is an array without a length, which only a tensor can be"; "give it a length")
            }
            _ => explain!("\"{name}\" is {}, which a variable cannot hold", self.type_name(ty)),
        }
    }

    fn of_return(
        &self,
        function: &Function,
        value: Option<Value>,
        expected: Option<Handle<Type>>,
    ) -> Explanation {
        let name = or_empty(&function.name);
        match (value, expected.map(|ty| self.type_name(ty))) {
            (None, Some(ty)) => {
                explain!("function '{name}' can end without returning its {ty}"; "end it with a `return`")
            }
            (Some(value), Some(ty)) => {
                let value = self.shown(function, value);
                explain!("function '{name}' returns {value}, but its result is declared {ty}")
            }
            _ => explain!(
                "function '{name}' returns a value, but declares no result";
                "write `-> TYPE` after its arguments"
            ),
        }
    }

    /// A store to what cannot be written.
    fn of_store(&self, function: &Function, pointer: Value) -> Explanation {
        let Root::Global(variable) = variables::root(function, pointer) else {
            let text = self.text_or_this(function, pointer);
            return explain!("{text} is not a variable, so nothing can be stored in it");
        };
        let variable = &self.module.global_variables[variable];
        let (name, space) = (or_empty(&variable.name), space_name(variable.space));
        match variable.space {
            AddressSpace::Storage { .. } => explain!(
                "\"{name}\" is `var<{space}>`, which can only be read";
                "declare `var<storage, read_write> {name}`"
            ),
            _ => explain!("\"{name}\" is `var<{space}>`, which can only be read"; "copy it to a `var`"),
        }
    }

    fn of_call(&self, function: &Function, called: &Function, error: &CallError) -> Explanation {
        let name = or_empty(&called.name);
        match error {
            CallError::ArgumentCount { required, seen } => {
                let plural = if *required == 1 { "" } else { "s" };
                explain!("function '{name}' takes {required} argument{plural}, not {seen}")
            }
            CallError::ArgumentType { index, required, seen_expression } => {
                let argument = called.arguments.get(*index).map_or("", |argument| or_empty(&argument.name));
                let (text, declared) =
                    (self.text_or_this(function, *seen_expression), self.type_name(*required));
                let given = self.exact_type(function, *seen_expression);
                explain!("argument \"{argument}\" of function '{name}' is {declared}, but {text} is {given}")
            }
            other => self.of_other(Some(function), other),
        }
    }
}

/// A pointer that `pointers_to_variables` could not replace.
fn of_pointer_argument(function: &Function, argument: &str, space: AddressSpace) -> Explanation {
    let is_passed_by_value = matches!(space, AddressSpace::Immediate | AddressSpace::Uniform);
    let space = space_name(space).split(',').next().unwrap_or_default();
    let remedy = match is_passed_by_value {
        true => "pass the value: it is only read".to_owned(),
        false => format!("pass the address of a `var<{space}>`, or of a part of one, in each call"),
    };
    explain!(
        "argument \"{argument}\" of function '{}' is a pointer to `{space}`, but the function is not only called with addresses there",
        or_empty(&function.name);
        "{remedy}"
    )
}
