//! Errors of functions and of their statements.

use naga::valid::{CallError, FunctionError, LocalVariableError};
use naga::{AddressSpace, ArraySize, Expression, Function, Handle, SwitchValue, Type, TypeInner};

use super::variables::space_name;
use super::{Context, Explanation};
use crate::ir::variables::{self, Root};

impl Context<'_> {
    pub(super) fn of_function(&self, function: &Function, error: &FunctionError) -> Explanation {
        match error {
            FunctionError::Expression { handle, source } => self.of_expression(function, *handle, source),
            FunctionError::LocalVariable { name, handle, source: LocalVariableError::InvalidType(ty) } => {
                self.of_local(name, *ty).at(Some(function.local_variables.get_span(*handle)))
            }
            FunctionError::InvalidArgumentPointerSpace { name, space, .. } => {
                self.of_pointer_argument(function, name, *space)
            }
            FunctionError::InvalidReturnType { expression, expected_ty } => {
                self.of_return(function, *expression, *expected_ty)
            }
            FunctionError::InvalidIfType(value) => {
                Explanation::new(format!("a condition is a `bool`, not {}", self.shown(function, *value)))
                    .remedy("compare it: `!= 0`")
            }
            FunctionError::ConflictingSwitchCase(value) => {
                let value = match value {
                    SwitchValue::I32(value) => format!("{value}i"),
                    SwitchValue::U32(value) => format!("{value}u"),
                    _ => "one value".to_owned(),
                };
                Explanation::new(format!("a `switch` of \"{}\" has two cases for {value}", name_of(function)))
                    .at(function.name.as_deref().and_then(|name| self.name_of(name, None)))
            }
            FunctionError::MissingDefaultCase => {
                Explanation::new("a `switch` has no default").remedy("add `default: { }`")
            }
            FunctionError::InvalidStorePointer(pointer) => self.of_store(function, *pointer),
            FunctionError::InvalidStoreTypes { pointer, value } => Explanation::new(format!(
                "{} cannot be stored in {}",
                self.shown(function, *value),
                self.shown(function, *pointer)
            )),
            FunctionError::InvalidCall { function: called, error } => {
                self.of_call(function, &self.module.functions[*called], error)
            }
            FunctionError::NonConstructibleReturnType => {
                let result = function.result.as_ref().map(|result| self.type_name(result.ty));
                Explanation::new(format!(
                    "function '{}' cannot return {}",
                    name_of(function),
                    result.unwrap_or_default()
                ))
                .remedy("return a value, or an index")
            }
            other => self.of_other(Some(function), other),
        }
    }

    fn of_local(&self, name: &str, ty: Handle<Type>) -> Explanation {
        match &self.module.types[ty].inner {
            TypeInner::Pointer { .. } => {
                Explanation::new(format!("\"{name}\" is a variable, which cannot hold a pointer"))
                    .remedy("declare it with `let`")
            }
            TypeInner::Array { size: ArraySize::Dynamic, .. } => Explanation::new(format!(
                "\"{name}\" is an array without a length, which only a tensor can be"
            ))
            .remedy("give it a length"),
            _ => Explanation::new(format!(
                "\"{name}\" is {}, which a variable cannot hold",
                self.type_name(ty)
            )),
        }
    }

    /// A pointer that `pointers_to_variables` could not replace.
    fn of_pointer_argument(&self, function: &Function, name: &str, space: AddressSpace) -> Explanation {
        let is_passed_by_value = matches!(space, AddressSpace::Immediate | AddressSpace::Uniform);
        let space = space_name(space).split(',').next().unwrap_or_default();
        Explanation::new(format!(
            "argument \"{name}\" of function '{}' is a pointer to `{space}`, but the function is not only called with addresses there",
            name_of(function),
        ))
        .remedy(match is_passed_by_value {
            true => "pass the value: it is only read".to_owned(),
            false => format!("pass the address of a `var<{space}>`, or of a part of one, in each call"),
        })
    }

    fn of_return(
        &self,
        function: &Function,
        value: Option<Handle<Expression>>,
        expected: Option<Handle<Type>>,
    ) -> Explanation {
        let name = name_of(function);
        match (value, expected) {
            (None, Some(ty)) => Explanation::new(format!(
                "function '{name}' can end without returning its {}",
                self.type_name(ty)
            ))
            .remedy("end it with a `return`"),
            (Some(value), Some(ty)) => Explanation::new(format!(
                "function '{name}' returns {}, but its result is declared {}",
                self.shown(function, value),
                self.type_name(ty)
            )),
            _ => Explanation::new(format!("function '{name}' returns a value, but declares no result"))
                .remedy("write `-> TYPE` after its arguments"),
        }
    }

    /// A store to what cannot be written.
    fn of_store(&self, function: &Function, pointer: Handle<Expression>) -> Explanation {
        let Root::Global(variable) = variables::root(function, pointer) else {
            let text = self.text_of(function, pointer).unwrap_or_else(|| "this".to_owned());
            return Explanation::new(format!("{text} is not a variable, so nothing can be stored in it"));
        };
        let variable = &self.module.global_variables[variable];
        let name = variable.name.as_deref().unwrap_or_default();
        let text = format!("\"{name}\" is `var<{}>`, which can only be read", space_name(variable.space));
        match variable.space {
            AddressSpace::Storage { .. } => {
                Explanation::new(text).remedy(format!("declare `var<storage, read_write> {name}`"))
            }
            _ => Explanation::new(text).remedy("copy it to a `var`"),
        }
    }

    fn of_call(&self, function: &Function, called: &Function, error: &CallError) -> Explanation {
        let name = name_of(called);
        match error {
            CallError::ArgumentCount { required, seen } => {
                let plural = if *required == 1 { "" } else { "s" };
                Explanation::new(format!("function '{name}' takes {required} argument{plural}, not {seen}"))
            }
            CallError::ArgumentType { index, required, seen_expression } => {
                let argument = called.arguments.get(*index).and_then(|argument| argument.name.as_deref());
                let text = self.text_of(function, *seen_expression);
                let text = text.unwrap_or_else(|| "this".to_owned());
                Explanation::new(format!(
                    "argument \"{}\" of function '{name}' is {}, but {text} is {}",
                    argument.unwrap_or_default(),
                    self.type_name(*required),
                    self.exact_type(function, *seen_expression)
                ))
            }
            other => self.of_other(Some(function), other),
        }
    }
}

fn name_of(function: &Function) -> &str {
    function.name.as_deref().unwrap_or_default()
}
