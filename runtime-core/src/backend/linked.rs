//! Statically linked backends.

#![allow(unsafe_code, reason = "a function table that is trusted without checks")]

use super::{Backend, export};
use crate::abi::BackendTable;

/// A statically linked backend, to pass to [`RuntimeBuilder::register`](crate::RuntimeBuilder::register).
///
/// Core calls the functions of its table without further checks. Safe code can therefore create one only from
/// a [`Backend`], whose author guarantees its soundness; any other table needs [`LinkedBackend::from_table`],
/// which is `unsafe`.
#[derive(Clone, Copy, Debug)]
pub struct LinkedBackend(&'static BackendTable);

impl LinkedBackend {
    /// Wraps backend `B`.
    #[must_use]
    pub const fn of<B: Backend>() -> Self {
        Self(export::table::<B>())
    }

    /// Wraps a table that was written by hand or in another language.
    ///
    /// # Safety
    /// The table and everything it points to stay unchanged until the process ends. Its functions follow the
    /// contract of [`abi`](crate::abi): they write no more than the caller has room for, the pointers that
    /// they return stay valid for as long as documented, and they access host memory only while it is lent to
    /// them.
    #[must_use]
    pub const unsafe fn from_table(table: &'static BackendTable) -> Self {
        Self(table)
    }

    /// The function table.
    #[must_use]
    pub const fn table(self) -> &'static BackendTable {
        self.0
    }
}
