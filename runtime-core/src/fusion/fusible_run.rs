//! Launches as a lowering sees them: runs of portable code, with the tensors that they share.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::cache::Relied;
use crate::code::owned_arg::OwnedArg;
use crate::fusion::options::FusionOptions;
use crate::model::fusion::{FusionArg, FusionLaunch, FusionRequest, FusionTensor, Promotion, bounds_of};
use crate::model::portable_source::PortableSource;
use crate::queue::fusion_list::Entry;
use crate::{Error, Result, Tensor};

/// Whether two launches may be in one run.
pub(super) fn may_meet(one: &Entry, other: &Entry) -> bool {
    match (one.kernel.portable(), other.kernel.portable()) {
        (Some(own), Some(others)) => Arc::ptr_eq(own, others) || own.format == others.format,
        _ => false,
    }
}

/// Successive launches of portable code of one format.
pub(super) struct Run<'e> {
    pub(super) entries: &'e [Entry],
    pub(super) tensors: SmallVec<[&'e Tensor; 16]>,
    pub(super) described: SmallVec<[FusionTensor; 16]>,
    args: SmallVec<[FusionArg; 32]>,
    /// Where the `args` of each launch end.
    ends: SmallVec<[usize; 16]>,
    /// Whether all launches have the same work-groups.
    are_groups_equal: bool,
}

/// How the launches of a run use a tensor.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// How many arguments are clones of the one by which the tensor is known.
    clones: usize,
    /// How many arguments have the same elements in another way.
    others: usize,
}

impl<'e> Run<'e> {
    /// Describes the launches `range` of a list.
    ///
    /// # Errors
    /// `InvalidArgument` for an argument without a description; [`obstacle`] rules them out.
    pub(super) fn new(list: &'e [Entry], range: Range<usize>, options: &FusionOptions) -> Result<Self> {
        let entries = &list[range.clone()];
        let are_groups_equal = entries.iter().all(|entry| groups(entry) == groups(&entries[0]));
        let mut run = Self {
            entries,
            tensors: SmallVec::new(),
            described: SmallVec::new(),
            args: SmallVec::new(),
            ends: SmallVec::new(),
            are_groups_equal,
        };
        let mut uses: SmallVec<[Uses; 16]> = SmallVec::new();
        for entry in entries {
            for arg in entry.args.iter() {
                let arg = run.described_arg(arg, &mut uses)?;
                run.args.push(arg);
            }
            run.ends.push(run.args.len());
        }
        let outside = [&list[..range.start], &list[range.end..]];
        for (index, uses) in uses.into_iter().enumerate() {
            let described = run.describe((index, uses), outside, options);
            run.described.push(described);
        }
        Ok(run)
    }

    fn described_arg(&mut self, arg: &'e OwnedArg, uses: &mut SmallVec<[Uses; 16]>) -> Result<FusionArg> {
        match arg {
            OwnedArg::Tensor(tensor, ..) => {
                let known = self.tensors.iter().position(|known| known.has_elements_of(tensor));
                let index = known.unwrap_or_else(|| {
                    self.tensors.push(tensor);
                    uses.push(Uses::default());
                    self.tensors.len() - 1
                });
                let uses = &mut uses[index];
                match self.tensors[index].is_clone_of(tensor) {
                    true => uses.clones += 1,
                    false => uses.others += 1,
                }
                Ok(FusionArg::Tensor(index))
            }
            OwnedArg::Scalar(dtype, bits) => Ok(FusionArg::Scalar { dtype: *dtype, bits: *bits }),
            _ => Err(Error::invalid("only tensors and scalars can be arguments of fused code")),
        }
    }

    fn describe(
        &self,
        (index, uses): (usize, Uses),
        outside: [&[Entry]; 2],
        options: &FusionOptions,
    ) -> FusionTensor {
        let tensor = self.tensors[index];
        let overlaps = |(at, other): (usize, &&Tensor)| (at != index && other.overlaps(tensor)).then_some(at);
        // Most tensors are still owned by the host, so the detailed check is skipped.
        let may_be_promoted =
            tensor.owners() == uses.clones || uses.others != 0 || !options.promote.is_empty();
        let promotion = match may_be_promoted {
            true => self.promotion(tensor, outside, options),
            false => Promotion::None,
        };
        let overlaps = self.tensors.iter().enumerate().filter_map(overlaps).collect();
        FusionTensor { bytes: tensor.extent_bytes(), overlaps, promotion }
    }

    /// Whether the tensor is dead after this run, because the host says so or no longer owns it.
    fn promotion(&self, tensor: &Tensor, outside: [&[Entry]; 2], options: &FusionOptions) -> Promotion {
        let Ok(buffer) = tensor.buffer("fuse") else { return Promotion::None };
        let is_here = |other: &&Tensor| other.buffer("fuse").is_ok_and(|other| Arc::ptr_eq(other, buffer));
        let outside = outside.into_iter().flatten();
        if buffer.is_frozen() || tensors_of(outside).any(|(tensor, _)| is_here(&tensor)) {
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
        let launches = self.entries.iter().enumerate();
        let launches = launches
            .map(|(launch, entry)| {
                Ok(FusionLaunch {
                    source: portable_source(entry)?,
                    entry: entry.kernel.name(),
                    groups: groups(entry),
                    args: self.args(launch),
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
        self.ends.get(launch)?;
        match self.args(launch).get(arg)? {
            FusionArg::Scalar { bits, .. } => Some(*bits),
            FusionArg::Tensor(_) => None,
        }
    }

    /// The numbers of groups of a launch.
    pub(super) fn groups(&self, launch: usize) -> Option<[u32; 3]> {
        self.entries.get(launch).map(groups)
    }

    /// Whether it has the values that a plan relies on.
    pub(super) fn has(&self, relied: &Relied) -> bool {
        let Relied { scalars, groups } = relied;
        scalars.iter().all(|(place, bits)| self.scalar(*place) == Some(*bits))
            && groups.iter().all(|(launch, own)| self.groups(*launch) == Some(*own))
    }

    /// The arguments of a launch.
    pub(super) fn args(&self, launch: usize) -> &[FusionArg] {
        let start = launch.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.args[start..self.ends[launch]]
    }

    /// What a plan may rely on of the work-groups of a launch; see [`FusionRequest::group_bounds`].
    pub(super) fn group_bounds(&self, launch: usize) -> [u32; 3] {
        bounds_of(groups(&self.entries[launch]), self.are_groups_equal)
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
