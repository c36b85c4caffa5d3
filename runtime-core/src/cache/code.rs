//! What an entry holds, and how a load came by it.

use serde::{Deserialize, Serialize};

use crate::model::kernel_info::KernelInfo;
use crate::model::lowering::LoweredKernel;
use crate::{CodeFormat, Options};

/// Native code, with what a launch needs beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CachedCode {
    /// The format of `code`.
    pub(crate) format: CodeFormat,
    #[serde(skip)]
    pub(crate) code: Vec<u8>,
    /// What the compiler said.
    pub(crate) log: String,
    /// The options to load it with.
    pub(crate) options: Options,
    /// The entry points of portable code.
    pub(crate) lowered: Option<Vec<LoweredKernel>>,
    /// What the compiler reported of each kernel.
    pub(crate) resources: Vec<(String, KernelInfo)>,
}

/// Where code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheOutcome {
    /// The cache, or another thread that compiled it at the same time.
    Hit,
    /// The shared store.
    SharedHit,
    /// The compiler; it was then stored.
    Miss,
    /// The compiler; it was not stored, because the cache is off, read-only, unusable, or too small for it.
    Uncached,
    /// The override folder.
    Override,
}
