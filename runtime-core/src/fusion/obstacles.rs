//! Launches that are never fused, whatever their neighbours are.

use crate::code::owned_arg::OwnedArg;
use crate::queue::fusion_list::Entry;
use crate::{Geometry, LaunchConfig};

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
