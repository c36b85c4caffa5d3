//! Prints the statements and expressions of one invocation.
//!
//! A [`Printer`](statement::Printer) walks the statements of one function and appends to its `lines`. An
//! [`Environment`](environment::Environment) determines how a name is spelled at the current place, how a named
//! value is stored, and what a barrier or `return` becomes: [`Plain`](environment::Plain) for ordinary functions,
//! and another for the host, where a variable may be an array over the invocations of a work-group.
//!
//! ```text
//! printer.block(&block)                 all statements of a block
//! printer.statement(&statement, span)   one of them; `Emit` defines the named values in its range
//! printer.value(handle)                 an expression as an initialiser or argument
//! printer.operand(handle, level)        the same, parenthesised unless its precedence is at least `level`
//! printer.place(pointer)                an access chain: its lvalue, and the conditions under which it is in range
//! ```
//!
//! [`Plan`](plan::Plan) determines which expressions are named (`plan.value(handle)`): those used more than once,
//! `let`s, results of calls, and loads that something with an effect separates from their use. An unnamed load is in
//! the same block as its use with only `Emit`s in between, so a barrier never separates the two.
//!
//! | file | what is there |
//! | --- | --- |
//! | `statement`, `logical`, `loops`, `atomic`, `subgroup` | statements |
//! | `expression`, `operator` | expressions |
//! | `place`, `index` | access chains with their bounds checks; index arithmetic |
//! | `vector_moves` | loads and stores of vectors as one word |
//! | `plan` | which expressions are named |
//! | `environment` | the spelling of names |
//! | `hoisted_checks`, `unchecked_variant` | loops, and whole entry points, printed with and without checks |
//! | `assertion` | run-time checks of proofs |

pub(crate) mod assertion;
pub(crate) mod atomic;
mod bounds_checks;
mod cooperative;
pub(crate) mod environment;
pub(crate) mod expression;
pub(crate) mod hoisted_checks;
pub(crate) mod index;
pub(crate) mod logical;
pub(crate) mod loops;
pub(crate) mod operator;
pub(crate) mod place;
pub(crate) mod plan;
pub(crate) mod statement;
pub(crate) mod subgroup;
pub(crate) mod unchecked_variant;
mod vector_moves;
