//! Kernel fusion as a lowering sees it: launches of portable code, and the fewer kernels that they become.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::model::portable_source::PortableSource;
use crate::{DType, Options};

/// Launches that run one after the other on one queue, for [`Lowering::fuse`](crate::lowering::Lowering::fuse).
#[derive(Clone, Copy, Debug)]
pub struct FusionRequest<'a> {
    /// The launches, in order.
    pub launches: &'a [FusionLaunch<'a>],
    /// The tensors that they use. Two arguments with the same index here are the same elements.
    pub tensors: &'a [FusionTensor],
    /// Whether scalars become constants of the code. The plan is then valid for their values only.
    pub constants: bool,
    /// Whether the caller guarantees that no item reads what an item of another group writes, and that no barrier is needed
    /// between kernels where the proof finds none.
    pub assume_group_local: bool,
}

impl FusionRequest<'_> {
    /// What a plan may rely on of the work-groups of a launch. A plan also fits a request in which these numbers are the same for
    /// every launch, and the scalars of [`FusionPlan::relies_on`], even if the launches have other numbers of groups, except those
    /// of [`FusionPlan::relies_on_groups`].
    ///
    /// They are the groups themselves, unless all launches have the same, along one axis: then a power of two that bounds them.
    #[must_use]
    pub fn group_bounds(&self, launch: usize) -> [u32; 3] {
        let groups = self.launches[launch].groups;
        bounds_of(groups, self.launches.iter().all(|other| other.groups == groups))
    }
}

/// As [`FusionRequest::group_bounds`], for a launch with these groups; `are_equal` if all launches have the same.
pub(crate) fn bounds_of(groups: [u32; 3], are_equal: bool) -> [u32; 3] {
    let [x, 1, 1] = groups else { return groups };
    if are_equal { [x.checked_next_power_of_two().unwrap_or(u32::MAX), 1, 1] } else { groups }
}

/// A launch of portable code.
#[derive(Clone, Copy, Debug)]
pub struct FusionLaunch<'a> {
    /// The code, with the load options of the lowering.
    pub source: PortableSource<'a>,
    /// The entry point.
    pub entry: &'a str,
    /// Work-groups per dimension, none of them 0.
    pub groups: [u32; 3],
    /// The arguments, as the entry point takes them: tensors by binding, then scalars.
    pub args: &'a [FusionArg],
}

/// An argument of a [`FusionLaunch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FusionArg {
    /// A contiguous tensor, as an index of [`FusionRequest::tensors`].
    Tensor(usize),
    /// A scalar.
    Scalar {
        /// Its type.
        dtype: DType,
        /// Its value, as [`Arg::scalar_bits`](crate::Arg::scalar_bits) takes it.
        bits: u64,
    },
}

/// A tensor of a [`FusionRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FusionTensor {
    /// Bytes from its first element to the end of its last.
    pub bytes: u64,
    /// Other tensors of the request that share memory with it, without being the same elements.
    pub overlaps: Vec<usize>,
    /// Whether nobody reads it after these launches, so that its elements need not be written.
    pub promotion: Promotion,
}

/// Where the elements of a tensor are kept between fused kernels, if nobody else reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Promotion {
    /// In the tensor: others read it.
    #[default]
    None,
    /// In registers if each item reads what it has written itself, in work-group memory if items of one group do.
    Auto,
    /// In registers.
    Private,
    /// In work-group memory.
    Workgroup,
}

/// How launches are fused, as [`Lowering::fuse`](crate::lowering::Lowering::fuse) returns it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FusionPlan {
    /// The kernels to run, in order. Their `launches` cover all launches.
    pub kernels: Vec<PlannedKernel>,
    /// What became of the seam after each launch but the last.
    pub seams: Vec<Seam>,
    /// The scalars, as launch and argument, whose values the plan relies on: it is right only for requests with the same.
    /// Empty with [`FusionRequest::constants`], where it relies on all of them.
    pub relies_on: Vec<(usize, usize)>,
    /// The launches whose numbers of groups the plan relies on, and not only on their [bounds](FusionRequest::group_bounds).
    pub relies_on_groups: Vec<usize>,
}

/// A kernel of a [`FusionPlan`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedKernel {
    /// The launches that it stands for.
    pub launches: Range<usize>,
    /// Its code; `None` for a single launch that stays as it is.
    pub code: Option<FusedCode>,
}

/// Portable code that does what several launches do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FusedCode {
    /// The text, in the format of the lowering. It is loaded as any other portable code is, so that memory safety does not
    /// depend on the fusion.
    pub text: String,
    /// Its entry point.
    pub entry: String,
    /// Load options of the lowering.
    pub options: Options,
    /// Work-groups per dimension: those of this launch, which has the most.
    pub groups_of: usize,
    /// Its arguments, in order.
    pub args: Vec<FusedArg>,
    /// The tensors that are not written, and where their elements are kept instead.
    pub promoted: Vec<(usize, Promotion)>,
    /// The barriers that were inserted between kernels.
    pub barriers: usize,
}

/// An argument of fused code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FusedArg {
    /// An argument of a launch.
    Of {
        /// The launch.
        launch: usize,
        /// The argument.
        arg: usize,
    },
    /// The work-groups of a launch along an axis, as a `u32`.
    Groups {
        /// The launch.
        launch: usize,
        /// The axis.
        axis: usize,
    },
    /// The number of whole elements of `stride` bytes in a tensor of the request, as a `u32`: what `arrayLength` is for it.
    Length {
        /// The tensor.
        tensor: usize,
        /// Bytes from one element to the next.
        stride: u32,
    },
}

/// The seam between a launch and the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seam {
    /// Whether it was closed.
    pub fused: bool,
    /// If not, why: it names the kernels, the argument and the rule. If so, what was done, such as a barrier.
    pub reason: String,
}
