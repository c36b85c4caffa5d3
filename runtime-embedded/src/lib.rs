//! Bare-metal processors: images are built from a kernel and the firmware, flashed and reached through a debugger or over a
//! UART, run with a deadline, and read back.
//!
//! A board is a TOML file (`boards/`): its processor, its memory, the compiler, and its emulator, debug server or UART. The
//! firmware (`firmware/`) creates tensors on the target, calls the kernel, counts, and reports faults. The host communicates with
//! it through a mailbox in the target's memory, which the host accesses over one of these links while the firmware waits;
//! `docs/embedded.md` specifies it. [`gdb`] and [`uart`] are the clients of the two protocols.
//!
//! Code is C with one function that is not `static`, or with the option `entry`; or an ELF file with the firmware's protocol.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod absent;
mod boards;
mod convert;
mod device;
pub mod gdb;
mod image;
mod module;
mod target;
mod timer;
pub mod uart;

pub use absent::Absent;
pub use device::EmbeddedBoard;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::backend::{Backend, LinkedBackend, Log, OptionSpec, trusted_variable};
use runtime_core::{DeviceInfo, Error, ErrorKind, Options, Result};

use boards::{Board, LinkKind};
use image::Builder;

/// Folder with board files of the user.
const BOARDS_VARIABLE: &str = "RUNTIME_EMBEDDED_BOARDS";

/// The backend's state.
#[derive(Debug)]
pub struct Embedded {
    log: Log,
    /// Builders of images, by board and link.
    builders: Mutex<HashMap<(String, LinkKind), Arc<Builder>>>,
}

// SAFETY: the backend has no buffers, queues or kernels in this process's memory, and writes only to the destination of `read`.
#[allow(unsafe_code, reason = "guarantees that the backend is sound")]
unsafe impl Backend for Embedded {
    const NAME: &'static str = "embedded";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    type Device = EmbeddedBoard;

    unsafe fn open(log: Log) -> Result<Self> {
        Ok(Self { log, builders: Mutex::default() })
    }

    fn options() -> Vec<OptionSpec> {
        let link = OptionSpec::device("link", "", "How the board is reached; default: as its file says.");
        let mut options = vec![link.choices(&["", "debugger", "uart"])];
        options.extend(module::options());
        options
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>> {
        Ok(boards()?.iter().zip(0..).map(|(board, index)| device::describe(board, index)).collect())
    }

    fn open_device(&self, index: u32, _sub: Option<u32>, options: &Options) -> Result<EmbeddedBoard> {
        let boards = boards()?;
        let board = boards.get(index as usize).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there are the boards 0 to {}", boards.len() - 1))
        })?;
        if let Some(reason) = device::describe(board, index).unavailable_reason {
            return Err(Error::new(ErrorKind::Unavailable, reason));
        }
        let board = match options.text("link") {
            Some("debugger") => board.with_link(LinkKind::Debugger)?,
            Some("uart") => board.with_link(LinkKind::Uart)?,
            _ => board.clone(),
        };
        let builder = self.builder(&board)?;
        Ok(EmbeddedBoard::new(board, builder, self.log))
    }
}

impl Embedded {
    /// The builder of a board's images: a new one if its file has changed.
    fn builder(&self, board: &Board) -> Result<Arc<Builder>> {
        let key = (board.name.clone(), board.link);
        let mut builders = self.builders.lock();
        if let Some(builder) = builders.get(&key).filter(|builder| builder.is_for(board)) {
            return Ok(Arc::clone(builder));
        }
        let builder = Arc::new(Builder::new(board)?);
        builders.insert(key, Arc::clone(&builder));
        Ok(builder)
    }
}

fn boards() -> Result<Vec<Board>> {
    let folder = trusted_variable(BOARDS_VARIABLE).filter(|folder| !folder.is_empty());
    boards::all(folder.map(PathBuf::from).as_deref())
}

/// This backend, for programs that link it statically and register it.
#[must_use]
pub const fn backend() -> LinkedBackend {
    LinkedBackend::of::<Embedded>()
}
