//! One writer of C, with a small dialect per language.

mod group;

use runtime_core::{Error, Result};

use crate::program::{Checks, Dialect, Program};

/// A program in a C-family language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CCode {
    /// The text.
    pub text: String,
    /// Entry points: the name in the portable text, and the symbol in this one.
    pub symbols: Vec<(String, String)>,
}

pub(crate) fn write(program: &Program, dialect: Dialect, checks: Checks) -> Result<CCode> {
    let _ = (program, checks);
    Err(Error::unsupported(format!("writing {dialect:?}")))
}
