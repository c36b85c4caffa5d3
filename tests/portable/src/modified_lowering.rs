//! A lowering of WGSL that modifies its output.

use std::fmt;
use std::sync::Arc;

use runtime_core::backend::OptionSpec;
use runtime_core::lowering::{Lowered, Lowering, PortableSource};
use runtime_core::{CodeFormat, DeviceInfo, Result};

type Modify = dyn Fn(&PortableSource<'_>, CodeFormat, &mut Lowered) -> Result<()> + Send + Sync;

struct ModifiedLowering {
    lowering: Arc<dyn Lowering>,
    only: Option<CodeFormat>,
    modify: Box<Modify>,
}

/// The lowering to all formats, or to one only, with its output modified by `modify`, which must not make the code
/// unsafe.
#[must_use]
pub fn modified_lowering(
    only: Option<CodeFormat>,
    modify: impl Fn(&PortableSource<'_>, CodeFormat, &mut Lowered) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Lowering> {
    modified(runtime_kernel::wgsl(), only, modify)
}

/// As [`modified_lowering`], of another lowering.
#[must_use]
pub fn modified(
    lowering: Arc<dyn Lowering>,
    only: Option<CodeFormat>,
    modify: impl Fn(&PortableSource<'_>, CodeFormat, &mut Lowered) -> Result<()> + Send + Sync + 'static,
) -> Arc<dyn Lowering> {
    Arc::new(ModifiedLowering { lowering, only, modify: Box::new(modify) })
}

impl fmt::Debug for ModifiedLowering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ModifiedLowering").field(&self.lowering).finish()
    }
}

// SAFETY: the code comes from a correct lowering; tests modify it deliberately.
#[allow(unsafe_code, reason = "implements an unsafe trait")]
unsafe impl Lowering for ModifiedLowering {
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

    fn lower(&self, source: &PortableSource<'_>, device: &DeviceInfo) -> Result<Lowered> {
        let mut lowered = self.lowering.lower(source, device)?;
        if let Some(target) = self.target(device) {
            (self.modify)(source, target, &mut lowered)?;
        }
        Ok(lowered)
    }
}
