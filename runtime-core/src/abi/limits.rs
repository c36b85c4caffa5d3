//! What core takes from a backend at most: more is a mistake, and is refused before anything of it is read.

/// Most entries of a list of devices, sub-devices included.
pub const MAX_DEVICES: usize = 65_536;
/// Most memory spaces of a device.
pub const MAX_SPACES: usize = 1_024;
/// Most code formats of a device.
pub const MAX_FORMATS: usize = 1_024;
/// Most properties of a device, and most options of a call.
pub const MAX_PROPERTIES: usize = 65_536;
/// Most options that a backend documents.
pub const MAX_OPTIONS: usize = 65_536;
/// Most entry points of a module.
pub const MAX_SYMBOLS: usize = 1_048_576;
/// Most parameters of a kernel.
pub const MAX_PARAMS: usize = 65_536;
/// Most bytes of a name or another short text.
pub const MAX_TEXT_BYTES: usize = 1_048_576;
/// Most bytes of an error's message or of a log record, compiler logs included.
pub const MAX_LOG_BYTES: usize = 268_435_456;
