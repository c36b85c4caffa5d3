//! The shape of a run of launches: what a plan depends on besides their code, as words that are compared and hashed at once.

use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::fusion::fusible_run::Run;
use crate::fusion::options::FusionOptions;
use crate::model::fusion::FusionArg;

/// What a plan depends on, besides the code of the launches. It is made for each list, so it refers to nothing.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) hash: u64,
    pub(super) words: SmallVec<[u64; 96]>,
}

impl Shape {
    pub(super) fn of(run: &Run<'_>, options: &FusionOptions) -> Self {
        let mut words = SmallVec::new();
        words.push(u64::from(options.constants) | u64::from(options.assume_group_local) << 1);
        words.extend([run.entries.len() as u64, run.tensors.len() as u64]);
        for (launch, entry) in run.entries.iter().enumerate() {
            words.extend(run.group_bounds(launch).map(u64::from));
            words.push(run.args(launch).len() as u64);
            run.args(launch).iter().for_each(|arg| push_arg(&mut words, arg, options.constants));
            words.push(entry.kernel.portable().map_or(0, |text| text.hash));
        }
        for tensor in &run.described {
            words.extend([tensor.bytes, tensor.promotion as u64, tensor.overlaps.len() as u64]);
            words.extend(tensor.overlaps.iter().map(|&other| other as u64));
        }
        let hash = BuildHasherDefault::<FxHasher>::default().hash_one(&words[..]);
        Self { hash, words }
    }
}

fn push_arg(words: &mut SmallVec<[u64; 96]>, arg: &FusionArg, constants: bool) {
    match *arg {
        FusionArg::Tensor(index) => words.push(index as u64),
        FusionArg::Scalar { dtype, bits } => {
            let (code, width, lanes) = dtype.dlpack();
            // No index of a tensor is that large.
            words.push(1 << 63 | u64::from(code) << 24 | u64::from(width) << 16 | u64::from(lanes));
            words.push(if constants { bits } else { 0 });
        }
    }
}
