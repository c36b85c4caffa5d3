//! What surrounds the invocation that is printed: how names are spelled here.

use std::borrow::Cow;

use naga::{Barrier, Expression, GlobalVariable, Handle, LocalVariable, Span};
use runtime_core::Result;

use super::plan::Plan;
use super::writer::Writer;

/// Where a variable is.
#[derive(Clone, Debug)]
pub(crate) struct Home<'a> {
    /// An lvalue, or a pointer to the variable.
    pub(crate) text: Cow<'a, str>,
    /// Whether `text` is a pointer. That of a runtime-sized array points to its first element.
    pub(crate) pointer: bool,
}

/// How the things that a function names are spelled in the place that is printed.
pub(crate) trait Environment {
    /// Where a local variable is.
    fn local<'a>(&'a self, plan: &'a Plan, variable: Handle<LocalVariable>) -> Home<'a>;

    /// Where a module's variable is: a storage buffer by pointer, a workgroup, private or immediate variable either way.
    fn global(&self, writer: &Writer<'_>, variable: Handle<GlobalVariable>) -> Home<'_>;

    /// The number of elements, a `u32`, of the runtime-sized array in a storage buffer.
    fn length(&self, writer: &Writer<'_>, variable: Handle<GlobalVariable>) -> Cow<'_, str>;

    /// An argument of the function; of an entry point: a built-in value, or a structure of them.
    fn argument<'a>(&'a self, plan: &'a Plan, index: u32) -> Cow<'a, str>;

    /// Reads the named value of `expression`, whose name is `name`.
    fn value<'a>(&'a self, expression: Handle<Expression>, name: &'a str) -> Cow<'a, str>;

    /// The statement that stores `value`, of type `type_name`, as the named value of `expression`.
    fn define(&self, expression: Handle<Expression>, type_name: &str, name: &str, value: &str) -> String;

    /// The statement that ends this invocation.
    fn leave(&self, value: Option<&str>) -> String;

    /// The statement that is a barrier of the work-group, or of the subgroup.
    ///
    /// # Errors
    /// `Unsupported` where there can be none.
    fn barrier(&self, writer: &mut Writer<'_>, barrier: Barrier, span: Span) -> Result<String>;
}
