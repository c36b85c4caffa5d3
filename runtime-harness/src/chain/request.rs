//! A chain as data that can be sent to another process.

use std::path::PathBuf;

use runtime_core::Result;
use serde::{Deserialize, Serialize};

use super::{Chain, LinkRequest};
use crate::spec::{Overrides, Spec};

/// What follows a kernel in a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainRequest {
    /// The spec files of the further kernels, in order.
    pub specs: Vec<PathBuf>,
    /// Links besides those that [`Chain::new`] makes by itself.
    #[serde(default)]
    pub links: Vec<LinkRequest>,
    /// Whether fused kernels write the tensors that only later kernels read.
    #[serde(default)]
    pub keep: bool,
}

impl ChainRequest {
    /// Loads the further specs, and links all kernels.
    ///
    /// # Errors
    /// Those of [`Spec::load`] and [`Chain::new`].
    ///
    /// # Safety
    /// That of [`Chain::new`].
    #[allow(unsafe_code, reason = "chains run the code that their specs name")]
    pub unsafe fn load(&self, first: Spec, overrides: &Overrides) -> Result<Chain> {
        let more = self.specs.iter().map(|path| Spec::load(path, overrides));
        let specs = std::iter::once(Ok(first)).chain(more).collect::<Result<Vec<_>>>()?;
        // SAFETY: the caller has vouched for all specs.
        unsafe { Chain::new(specs, &self.links) }
    }
}
