//! The interface for backend authors: traits to implement, and a macro that generates the function table, its
//! shims and the manifest.
//!
//! Implement [`Backend`], [`Device`], [`Buffer`], [`Module`], [`Kernel`] and [`Queue`]. Optional methods
//! default to `Unsupported`. Then, in the `cdylib` crate:
//!
//! ```ignore
//! runtime_core::export_backend!(MyBackend);
//! ```
//!
//! The macro defines the one exported symbol and the manifest section. Programs that link the backend
//! statically register a [`LinkedBackend`] instead. `tests/null` is a skeleton to copy.
//!
//! Only the `impl` of [`Backend`] is `unsafe`: with it, the author guarantees that every object created from the
//! backend is sound. Safe code can use those objects only through core, because [`Backend::open`] is `unsafe` to
//! call.
//!
//! Threads: every method may be called from any thread. For one queue, core never overlaps calls to `launch`,
//! `try_begin_inline`, `write`, `read`, `copy`, `copy_2d`, `fill`, `noop`, `timestamp`, `replay`, `signal`, `flush`
//! and `wait_for`. `poll`, `wait`, `wait_blocking`, `run_inline`, `failure` and `read_timestamp` may run concurrently
//! with them and with each other.

mod buffer;
mod c_text;
mod device_bytes;
mod export;
mod export_macro;
mod fill_pattern;
mod host_borrow;
mod host_bytes;
mod included_files;
mod library;
mod linked;
mod log;
mod open_devices;
mod polling;
mod read_file;
mod requests;
mod retyped_launch;
mod staging;
mod temporary_folder;
mod traits;
mod unread_timestamps;
mod views;

pub use crate::cache::Notes;
pub use crate::model::byte_range::check_range;
pub use crate::model::native::NativeHandle;
pub use crate::tensor::generate::random_word;
pub use buffer::Buffer;
pub use c_text::{c_text, c_text_at};
pub use device_bytes::DeviceBytes;
#[doc(hidden)]
pub use export::enter;
pub use export::{catch_panic, manifest};
pub use fill_pattern::FillPattern;
pub use host_borrow::HostBorrowGuard;
pub use host_bytes::{HostBytes, HostBytesMut};
pub use included_files::included_files;
pub use library::{check_library, find_library, open_library};
pub use linked::LinkedBackend;
pub use log::{Level, Log};
pub use open_devices::OpenDevices;
pub use polling::{POLL_TIME, backoff, spin_until};
pub use read_file::read_file;
pub use requests::{check_format, space_at};
pub use retyped_launch::RetypedLaunch;
pub use staging::{
    Direction, HostRange, Piece, Pieces, SHUTDOWN_TIMEOUT, StagedTransfer, StagingOptions, StagingPool,
    StagingSlots, copy_pieces,
};
pub use temporary_folder::TemporaryFolder;
pub use traits::*;
pub use unread_timestamps::UnreadTimestamps;
pub use views::{ArgRef, GraphNode, GraphWork, Launch, TensorArg, unsupported_argument};

pub use crate::model::counted::counted;
pub use crate::model::options::{OptionScope, OptionSpec, did_you_mean};
pub use crate::panics::{contain, panic_message};
pub use crate::platform::program::{
    MissingPart, OUTPUT_BYTES, Output, Process, SANDBOX_VARIABLE, Sandbox, SandboxLimits, SandboxPart,
    SandboxPolicy, check_privileges, exhausted, find_in_path, find_program, huge_page_file,
    missing_sandbox_parts, named_paths, on_confined_thread, run_program, spawn_program, start_no_processes,
};
pub use crate::platform::trust::{read_trusted, trusted_file, trusted_folder};
pub use crate::platform::{
    cache_folder, is_privileged, open_regular_file, thread_stack_bytes, trusted_variable,
};
pub use crate::plugin::convert;
pub use crate::plugin::load_report::{LoadOutcome, LoadReport, LoadStage};
