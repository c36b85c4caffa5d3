//! Plans that are kept in memory, for lists of the same shape.
//!
//! The key holds everything that a plan may depend on, and is compared as a whole. Work-groups count only by their values of 1 if
//! all launches have the same, because a plan refers to launches for them; scalars only if they become constants.

use std::hash::{BuildHasher, BuildHasherDefault};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHasher;

use crate::code::portable::PortableText;
use crate::fusion::options::FusionOptions;
use crate::fusion::plan::Plan;
use crate::fusion::run::{Run, groups};
use crate::{FusionArg, Promotion, Queue};

/// The most plans that are kept. The one that was not used for the longest time goes first.
const LIMIT: usize = 256;
/// Under which a device knows its plans.
const KEY: [u8; 32] = *b"the plans of fusion of a device.";

/// The plans of a device. Its queues share them, as long as one that fuses is open.
#[derive(Debug, Default)]
pub(super) struct PlanCache(Mutex<Plans>);

#[derive(Debug, Default)]
struct Plans {
    kept: Vec<Kept>,
    uses: u64,
}

#[derive(Debug)]
struct Kept {
    key: Key,
    plan: Arc<Plan>,
    last_used: u64,
}

/// What a plan depends on.
#[derive(Debug)]
pub(super) struct Key {
    hash: u64,
    words: Vec<u64>,
    code: Vec<(Arc<PortableText>, Arc<str>)>,
}

impl PlanCache {
    /// The plans of the device of `queue`.
    pub(super) fn of(queue: &Queue) -> Arc<Self> {
        let kept = queue.fusion_plans.get_or_init(|| {
            let shared = queue.device.loaded::<Self>(&KEY);
            shared.unwrap_or_else(|| queue.device.share_loaded(KEY, Arc::default(), |_| true))
        });
        kept.clone().downcast().unwrap_or_default()
    }

    /// The plan for a run with this key.
    pub(super) fn find(&self, key: &Key) -> Option<Arc<Plan>> {
        let mut plans = self.0.lock();
        plans.uses += 1;
        let now = plans.uses;
        let kept = plans.kept.iter_mut().find(|kept| kept.key.is_same(key))?;
        kept.last_used = now;
        Some(kept.plan.clone())
    }

    /// Keeps a plan, which replaces one with the same key.
    pub(super) fn keep(&self, key: Key, plan: &Arc<Plan>) {
        let mut plans = self.0.lock();
        let (last_used, full) = (plans.uses, plans.kept.len() >= LIMIT);
        let kept = Kept { key, plan: plan.clone(), last_used };
        let oldest = || plans.kept.iter().enumerate().min_by_key(|(_, kept)| kept.last_used);
        let same = plans.kept.iter().position(|known| known.key.is_same(&kept.key));
        let replaced = same.or_else(|| oldest().filter(|_| full).map(|(at, _)| at));
        let removed = match replaced {
            Some(at) => Some(std::mem::replace(&mut plans.kept[at], kept)),
            None => {
                plans.kept.push(kept);
                None
            }
        };
        drop(plans);
        // Dropping kernels takes locks of the device.
        drop(removed);
    }
}

impl Key {
    pub(super) fn new(run: &Run<'_>, options: &FusionOptions) -> Self {
        let mut words = Vec::with_capacity(16 * run.entries.len());
        words.push(u64::from(options.constants) | u64::from(options.assume_group_local) << 1);
        words.extend([run.entries.len() as u64, run.tensors.len() as u64]);
        let first = run.entries.first().map(groups);
        let are_equal = run.entries.iter().all(|entry| Some(groups(entry)) == first);
        let code = run.entries.iter().enumerate().filter_map(|(launch, entry)| {
            let groups = groups(entry);
            let counted = |axis: u32| if are_equal { u32::from(axis == 1) } else { axis };
            words.extend(groups.map(|axis| u64::from(counted(axis))));
            words.push(u64::from(are_equal) << 32 | run.args(launch).len() as u64);
            run.args(launch).iter().for_each(|arg| push_arg(&mut words, arg, options));
            let text = entry.kernel.portable()?;
            words.push(text.hash);
            Some((text.clone(), entry.kernel.shared_name().clone()))
        });
        let code = code.collect();
        for tensor in &run.described {
            words.extend([tensor.bytes, promotion_word(tensor.promotion), tensor.overlaps.len() as u64]);
            words.extend(tensor.overlaps.iter().map(|&other| other as u64));
        }
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(&words);
        Self { hash, words, code }
    }

    fn is_same(&self, other: &Self) -> bool {
        let is_same_code = |((own, name), (others, other)): (&(_, Arc<str>), &(_, Arc<str>))| {
            name == other && PortableText::is_same(own, others)
        };
        self.hash == other.hash
            && self.words == other.words
            && self.code.len() == other.code.len()
            && self.code.iter().zip(&other.code).all(is_same_code)
    }
}

fn push_arg(words: &mut Vec<u64>, arg: &FusionArg, options: &FusionOptions) {
    match *arg {
        FusionArg::Tensor(index) => words.push(index as u64),
        FusionArg::Scalar { dtype, bits } => {
            let (code, width, lanes) = dtype.dlpack();
            // No index of a tensor is that large.
            words.push(1 << 63 | u64::from(code) << 24 | u64::from(width) << 16 | u64::from(lanes));
            words.push(if options.constants { bits } else { 0 });
        }
    }
}

fn promotion_word(promotion: Promotion) -> u64 {
    match promotion {
        Promotion::None => 0,
        Promotion::Auto => 1,
        Promotion::Private => 2,
        Promotion::Workgroup => 3,
    }
}
