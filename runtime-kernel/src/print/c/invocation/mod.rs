//! The statements and expressions of one invocation.

pub(crate) mod assertion;
pub(crate) mod atomic;
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
