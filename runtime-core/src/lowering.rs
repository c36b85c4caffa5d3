//! For authors of lowerings, which turn portable code into a format that a device accepts: the trait [`Lowering`], and what it
//! is asked and answers.

pub use crate::model::fusion::{
    FusedArg, FusedCode, FusionArg, FusionLaunch, FusionPlan, FusionRequest, FusionTensor, PlannedKernel,
    Promotion, Seam,
};
pub use crate::model::lowering::{Coarsening, Lowered, LoweredKernel, LoweredParam, Lowering};
pub use crate::model::portable_source::PortableSource;
pub use crate::model::signature::{ElementType, SignatureKind, SignatureParam};
