//! The lowering of WGSL, with changes to what it makes.

use std::fmt;
use std::sync::Arc;

use runtime_core::{CodeFormat, DeviceInfo, Lowered, Lowering, OptionSpec, Portable, Result};

type Change = dyn Fn(&Portable<'_>, CodeFormat, &mut Lowered) -> Result<()> + Send + Sync;

struct Changed {
    lowering: Arc<dyn Lowering>,
    only: Option<CodeFormat>,
    change: Box<Change>,
}

/// The lowering to all formats, or to one only, whose outcome `change` changes; that it does not make the code unsafe is its
/// affair.
#[must_use]
pub fn changed(
    only: Option<CodeFormat>,
    change: impl Fn(&Portable<'_>, CodeFormat, &mut Lowered) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Lowering> {
    Arc::new(Changed { lowering: runtime_kernel::wgsl(), only, change: Box::new(change) })
}

impl fmt::Debug for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Changed").field(&self.lowering).finish()
    }
}

// SAFETY: code that another lowering made; tests change it knowingly.
#[allow(unsafe_code, reason = "vouches for the lowered code")]
unsafe impl Lowering for Changed {
    fn format(&self) -> CodeFormat {
        self.lowering.format()
    }

    fn options(&self) -> Vec<OptionSpec> {
        self.lowering.options()
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        let target = self.lowering.target(device);
        target.filter(|target| self.only.as_ref().is_none_or(|only| only == target))
    }

    fn lower(&self, source: &Portable<'_>, device: &DeviceInfo) -> Result<Lowered> {
        let mut lowered = self.lowering.lower(source, device)?;
        if let Some(target) = self.target(device) {
            (self.change)(source, target, &mut lowered)?;
        }
        Ok(lowered)
    }
}
