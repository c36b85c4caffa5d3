//! Launches as a lowering sees them: runs of portable code, with the tensors that they share.

use std::ops::Range;
use std::sync::Arc;

use crate::code::owned_arg::OwnedArg;
use crate::fusion::options::FusionOptions;
use crate::queue::fusion_list::Entry;
use crate::{
    Error, FusionArg, FusionLaunch, FusionRequest, FusionTensor, Geometry, LaunchConfig, PortableSource,
    Promotion, Result, Tensor,
};

/// Why a launch cannot be fused with others, whatever they are; `None` if it may be.
pub(super) fn obstacle(entry: &Entry) -> Option<&'static str> {
    let LaunchConfig::Groups(Geometry { groups, cluster, cooperative, .. }) = &entry.config else {
        return Some("is launched over a range");
    };
    let is_opaque = |arg: &OwnedArg| match arg {
        OwnedArg::Tensor(tensor, ..) => !tensor.is_contiguous(),
        OwnedArg::Scalar(..) => false,
        OwnedArg::Bytes(_) | OwnedArg::Record(_) | OwnedArg::Local(_) => true,
    };
    if entry.kernel.portable().is_none() {
        Some("has no portable code: it is native, was compiled before, or its checks were left out")
    } else if *cooperative || *cluster != [1; 3] {
        Some("is cooperative, or has clusters")
    } else if groups.contains(&0) {
        Some("has no work-groups")
    } else if !entry.is_tracked {
        Some("is not tracked")
    } else if entry.args.iter().any(is_opaque) {
        Some("takes structures, work-group memory or a view with gaps")
    } else {
        None
    }
}

/// Whether two launches may be in one run.
pub(super) fn may_meet(one: &Entry, other: &Entry) -> bool {
    match (one.kernel.portable(), other.kernel.portable()) {
        (Some(own), Some(others)) => own.format == others.format,
        _ => false,
    }
}

/// Successive launches of portable code of one format.
pub(super) struct Run<'e> {
    pub(super) entries: &'e [Entry],
    pub(super) tensors: Vec<&'e Tensor>,
    pub(super) described: Vec<FusionTensor>,
    args: Vec<FusionArg>,
    /// Which `args` each launch has.
    ranges: Vec<Range<usize>>,
}

impl<'e> Run<'e> {
    /// Describes the launches `range` of a list.
    ///
    /// # Errors
    /// `InvalidArgument` for an argument without a description; [`obstacle`] rules them out.
    pub(super) fn new(list: &'e [Entry], range: Range<usize>, options: &FusionOptions) -> Result<Self> {
        let (entries, described) = (&list[range.clone()], Vec::new());
        let ranges = Vec::with_capacity(entries.len());
        let mut run = Self { entries, tensors: Vec::new(), described, args: Vec::new(), ranges };
        for entry in entries {
            let first = run.args.len();
            for arg in entry.args.iter() {
                let arg = match arg {
                    OwnedArg::Tensor(tensor, ..) => FusionArg::Tensor(run.index_of(tensor)),
                    OwnedArg::Scalar(dtype, bits) => FusionArg::Scalar { dtype: *dtype, bits: *bits },
                    _ => {
                        return Err(Error::invalid(
                            "only tensors and scalars can be arguments of fused code",
                        ));
                    }
                };
                run.args.push(arg);
            }
            run.ranges.push(first..run.args.len());
        }
        let outside = list[..range.start].iter().chain(&list[range.end..]);
        let outside: Vec<&Tensor> = tensors_of(outside).map(|(tensor, _)| tensor).collect();
        for (index, tensor) in run.tensors.iter().enumerate() {
            run.described.push(run.describe(index, tensor, &outside, options));
        }
        Ok(run)
    }

    fn index_of(&mut self, tensor: &'e Tensor) -> usize {
        let known = self.tensors.iter().position(|known| known.has_elements_of(tensor));
        known.unwrap_or_else(|| {
            self.tensors.push(tensor);
            self.tensors.len() - 1
        })
    }

    fn describe(
        &self,
        index: usize,
        tensor: &Tensor,
        outside: &[&Tensor],
        options: &FusionOptions,
    ) -> FusionTensor {
        let overlaps = |(at, other): (usize, &&Tensor)| (at != index && other.overlaps(tensor)).then_some(at);
        FusionTensor {
            bytes: tensor.extent_bytes(),
            overlaps: self.tensors.iter().enumerate().filter_map(overlaps).collect(),
            promotion: self.promotion(tensor, outside, options),
        }
    }

    /// Whether nobody reads the tensor after this run: by a claim of the program, or because nobody else owns it.
    fn promotion(&self, tensor: &Tensor, outside: &[&Tensor], options: &FusionOptions) -> Promotion {
        let Ok(buffer) = tensor.buffer("fuse") else { return Promotion::None };
        let is_here = |other: &&Tensor| other.buffer("fuse").is_ok_and(|other| Arc::ptr_eq(other, buffer));
        if buffer.is_frozen() || outside.iter().any(is_here) {
            return Promotion::None;
        }
        if let Some((_, claimed)) =
            options.promote.iter().find(|(claimed, _)| claimed.has_elements_of(tensor))
        {
            return *claimed;
        }
        let mut is_written = false;
        let mut own: Vec<&Tensor> = Vec::new();
        for (user, access) in tensors_of(self.entries.iter()).filter(|(user, _)| is_here(user)) {
            is_written |= access.writes();
            own.push(user);
        }
        // Only an owner of a tensor can use its buffer, or clone the tensor. Here the list's tensors are the last ones.
        let distinct = |at: usize| !own[..at].iter().any(|before| before.is_clone_of(own[at]));
        let holders = (0..own.len()).filter(|&at| distinct(at)).count();
        let is_last =
            |user: &&Tensor| user.owners() == own.iter().filter(|other| other.is_clone_of(user)).count();
        let is_private = is_written
            && !buffer.has_owner()
            && Arc::strong_count(buffer) == holders
            && own.iter().all(is_last);
        if is_private { Promotion::Auto } else { Promotion::None }
    }

    /// The request for a lowering.
    pub(super) fn request<T>(
        &self,
        options: &FusionOptions,
        ask: impl FnOnce(&FusionRequest<'_>) -> Result<T>,
    ) -> Result<T> {
        let launches = self.entries.iter().zip(&self.ranges);
        let launches = launches
            .map(|(entry, range)| {
                Ok(FusionLaunch {
                    source: portable_source(entry)?,
                    entry: entry.kernel.name(),
                    groups: groups(entry),
                    args: &self.args[range.clone()],
                })
            })
            .collect::<Result<Vec<_>>>()?;
        ask(&FusionRequest {
            launches: &launches,
            tensors: &self.described,
            constants: options.constants,
            assume_group_local: options.assume_group_local,
        })
    }

    /// The value of a scalar, by launch and argument; `None` if there is no such scalar.
    pub(super) fn scalar(&self, (launch, arg): (usize, usize)) -> Option<u64> {
        match self.args.get(self.ranges.get(launch)?.clone())?.get(arg)? {
            FusionArg::Scalar { bits, .. } => Some(*bits),
            FusionArg::Tensor(_) => None,
        }
    }

    /// The arguments of a launch.
    pub(super) fn args(&self, launch: usize) -> &[FusionArg] {
        &self.args[self.ranges[launch].clone()]
    }
}

fn portable_source(entry: &Entry) -> Result<PortableSource<'_>> {
    let portable = entry.kernel.portable().map(|portable| portable.source());
    portable.ok_or_else(|| Error::invalid("only portable code can be fused"))
}

/// The work-groups of a launch.
pub(super) fn groups(entry: &Entry) -> [u32; 3] {
    entry.config.geometry().map_or([1; 3], |geometry| geometry.groups)
}

fn tensors_of<'e>(
    entries: impl Iterator<Item = &'e Entry>,
) -> impl Iterator<Item = (&'e Tensor, crate::Access)> {
    entries.flat_map(|entry| entry.args.iter().filter_map(OwnedArg::tensor))
}
