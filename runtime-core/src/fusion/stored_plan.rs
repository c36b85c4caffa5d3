//! Plans on disk, in the notes beside the code cache, for later processes.
//!
//! The key is compared byte by byte. It has the version of the lowering, the device, the code of the launches and their shape. The
//! fused code is loaded as any other portable code, so that a plan cannot break memory safety.

use crate::cache::{Notes, Relied, decode_plan, encode_plan};
use crate::fusion::fusible_run::Run;
use crate::fusion::shape::Shape;
use crate::model::fusion::FusionPlan;
use crate::model::lowering::Lowering;
use crate::timeline::open_device::OpenDevice;

/// The version of the format of keys and plans.
const VERSION: &[u8] = b"fusion plan 3\n";

/// Where the plan of a run is stored.
pub(super) struct PlanNote {
    notes: Notes,
    key: Vec<u8>,
}

impl PlanNote {
    /// `None` if the code cache is off, or the lowering does not say its version.
    pub(super) fn new(
        device: &OpenDevice,
        lowering: &dyn Lowering,
        run: &Run<'_>,
        shape: &Shape,
    ) -> Option<Self> {
        let cache = &device.instance.cache;
        if cache.is_off() {
            return None;
        }
        let info = &device.info;
        let identity = lowering.identity(info)?;
        let device = format!("{:?} {:?} {:?}", info.arch, info.limits, info.capabilities);
        let mut key = VERSION.to_vec();
        for text in [identity.as_bytes(), device.as_bytes()] {
            push(&mut key, text);
        }
        shape.words.iter().for_each(|word| key.extend(word.to_le_bytes()));
        for entry in run.entries {
            let text = entry.kernel.portable()?;
            let source = text.source();
            push(&mut key, text.format.as_str().as_bytes());
            key.extend(blake3::hash(source.code.as_bytes()).as_bytes());
            push(&mut key, source.path.as_bytes());
            push(&mut key, format!("{:?}", source.options).as_bytes());
            push(&mut key, entry.kernel.name().as_bytes());
        }
        Some(Self { notes: cache.notes(), key })
    }

    /// The plan, if it is right for the scalars and the groups of the run.
    pub(super) fn read(&self, run: &Run<'_>) -> Option<FusionPlan> {
        let bytes = self.notes.read(&self.key)?;
        let Some((plan, relied)) = decode_plan(&bytes) else {
            ignored("it cannot be read");
            return None;
        };
        run.has(&relied).then_some(plan)
    }

    #[allow(unsafe_code, reason = "a note of what was found out")]
    pub(super) fn write(&self, plan: &FusionPlan, relied: &Relied) {
        // SAFETY: the lowering has made this plan for the launches in the key.
        unsafe { self.notes.write(&self.key, &encode_plan(plan, relied)) };
    }
}

/// Reports a plan that is made again.
pub(super) fn ignored(why: &str) {
    tracing::warn!(target: "runtime::fusion", "a plan in the code cache is ignored: {why}");
}

fn push(key: &mut Vec<u8>, bytes: &[u8]) {
    key.extend((bytes.len() as u64).to_le_bytes());
    key.extend(bytes);
}
