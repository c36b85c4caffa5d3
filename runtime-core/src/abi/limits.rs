//! Upper bounds on what core accepts from a backend. Anything larger is a mistake and is rejected before it
//! is read.

/// Maximum number of devices of a backend, including sub-devices.
pub const MAX_DEVICES: usize = 65_536;
/// Maximum number of memory spaces of a device.
pub const MAX_SPACES: usize = 1_024;
/// Maximum number of code formats of a device.
pub const MAX_FORMATS: usize = 1_024;
/// Maximum number of properties of a device and of options of a call.
pub const MAX_PROPERTIES: usize = 65_536;
/// Maximum number of options that a backend describes.
pub const MAX_OPTIONS: usize = 65_536;
/// Maximum number of entry points of a module.
pub const MAX_SYMBOLS: usize = 1_048_576;
/// Maximum size of compiled code, in bytes.
pub const MAX_CODE_BYTES: usize = 4_294_967_296;
/// Maximum number of counters of a device, and of a set.
pub const MAX_COUNTERS: usize = 65_536;
/// Maximum number of passes of a set of counters.
pub const MAX_COUNTER_PASSES: u32 = 4_096;
/// Maximum number of parameters of a kernel.
pub const MAX_PARAMS: usize = 65_536;
/// Maximum length of a name or other short string, in bytes.
pub const MAX_TEXT_BYTES: usize = 1_048_576;
/// Maximum length of an error message, compiler log or log record, in bytes.
pub const MAX_LOG_BYTES: usize = 268_435_456;
