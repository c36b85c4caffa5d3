//! A backend that is linked into the program.

#![allow(unsafe_code, reason = "a table of functions that somebody must vouch for")]

use super::{Backend, export};
use crate::abi::BackendTable;

/// A backend that is linked into the program: what [`RuntimeBuilder::register`](crate::RuntimeBuilder::register) takes.
///
/// It vouches for a table of functions, which core calls. So safe code has one only of a [`Backend`], whose author has
/// trusted for it; a table that was made in another way needs [`LinkedBackend::from_table`], which is `unsafe`.
#[derive(Clone, Copy, Debug)]
pub struct LinkedBackend(&'static BackendTable);

impl LinkedBackend {
    /// Backend `B`.
    #[must_use]
    pub const fn of<B: Backend>() -> Self {
        Self(export::table::<B>())
    }

    /// Vouches for a table that was made by hand, or by another language.
    ///
    /// # Safety
    /// The table, and all that it points to, stays unchanged until the process ends, and its functions keep the
    /// contract of [`abi`](crate::abi): they write no more than the other side has room for, the pointers that they
    /// return are valid for as long as their comments say, and they touch host memory only while it is lent to them.
    #[must_use]
    pub const unsafe fn from_table(table: &'static BackendTable) -> Self {
        Self(table)
    }

    /// Its table.
    #[must_use]
    pub const fn table(self) -> &'static BackendTable {
        self.0
    }
}
