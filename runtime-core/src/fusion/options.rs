//! What a fuser may do, and what the program guarantees.

#![allow(unsafe_code, reason = "one option is a guarantee of the program")]

use std::sync::Arc;

use crate::model::fusion::Promotion;
use crate::timeline::open_device::OpenDevice;
use crate::{Error, Result, Tensor};

/// The most launches that a fuser lists, unless the program says otherwise.
const LIMIT: usize = 64;

/// Options of a [`Fuser`](crate::fusion::Fuser).
///
/// ```
/// # use runtime_core::fusion::FusionOptions;
/// let options = FusionOptions::new().require(true).constants(true).limit(16);
/// assert!(options.require && options.cache);
/// ```
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct FusionOptions {
    /// Anything less than one kernel is an error of [`Fuser::complete`](crate::fusion::Fuser::complete); see there.
    pub require: bool,
    /// Scalars become constants of the fused code, which is then compiled for their values.
    pub constants: bool,
    /// Tensors that nobody reads after the fused launches; see [`FusionOptions::promote`].
    pub promote: Vec<(Tensor, Promotion)>,
    /// Plans are kept in memory, and used again for equal lists.
    pub cache: bool,
    /// The most launches that are listed. What is beyond it makes a new list; the one so far is completed first.
    pub limit: usize,
    pub(super) assume_group_local: bool,
}

impl Default for FusionOptions {
    fn default() -> Self {
        Self {
            require: false,
            constants: false,
            promote: Vec::new(),
            cache: true,
            limit: LIMIT,
            assume_group_local: false,
        }
    }
}

impl FusionOptions {
    /// The default options: fuse what is proven to be equivalent, and submit the rest as it is.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether anything less than one kernel is an error.
    #[must_use]
    pub const fn require(mut self, require: bool) -> Self {
        self.require = require;
        self
    }

    /// Sets whether scalars become constants of the code.
    #[must_use]
    pub const fn constants(mut self, constants: bool) -> Self {
        self.constants = constants;
        self
    }

    /// Claims that nobody reads a tensor after the fused launches, so that its elements need not be written. Tensors that the
    /// program has dropped need no claim: they are promoted where possible.
    ///
    /// The tensor must be all of its memory. If it was promoted, every later read of it fails, until the program overwrites all of
    /// it, or a fuser with the same claim launches a kernel on it. If not, it is written as usual. `Private` and
    /// `Workgroup` for one tensor mean `Workgroup`, with a warning.
    #[must_use]
    pub fn promote(mut self, tensor: &Tensor, promotion: Promotion) -> Self {
        self.promote.push((tensor.clone(), promotion));
        self
    }

    /// Sets whether plans are kept and used again.
    #[must_use]
    pub const fn cache(mut self, cache: bool) -> Self {
        self.cache = cache;
        self
    }

    /// Sets the most launches that are listed; at least 1.
    #[must_use]
    pub const fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Guarantees that fusion needs no barriers between kernels beyond those that it proves necessary.
    ///
    /// # Safety
    /// No item of a launch reads or overwrites what an item of another group, of an earlier launch of the list, has written or
    /// read. Otherwise fused kernels race.
    #[must_use]
    pub const unsafe fn assume_group_local(mut self) -> Self {
        self.assume_group_local = true;
        self
    }

    /// Checks the claims, and merges those of one tensor.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the tensor.
    pub(super) fn checked(&self, device: &Arc<OpenDevice>) -> Result<Self> {
        if self.limit == 0 {
            return Err(Error::invalid("a fuser must be able to list at least one launch; raise `limit`"));
        }
        let mut merged: Vec<(Tensor, Promotion)> = Vec::new();
        for (tensor, promotion) in &self.promote {
            merge(&mut merged, tensor, *promotion)?;
        }
        merged.retain(|(_, promotion)| *promotion != Promotion::None);
        merged.iter().try_for_each(|(tensor, _)| check(tensor, device))?;
        Ok(Self { promote: merged, ..self.clone() })
    }
}

fn merge(merged: &mut Vec<(Tensor, Promotion)>, tensor: &Tensor, promotion: Promotion) -> Result<()> {
    let buffer = tensor.buffer("fuser")?;
    let is_related = |known: &Tensor| known.buffer("fuser").is_ok_and(|known| Arc::ptr_eq(known, buffer));
    let Some((known, before)) = merged.iter_mut().find(|(known, _)| is_related(known)) else {
        merged.push((tensor.clone(), promotion));
        return Ok(());
    };
    if *before == promotion {
        return Ok(());
    }
    if !known.has_elements_of(tensor) {
        return Err(Error::invalid(format!(
            "{tensor:?} shares memory with another tensor, whose promotion is {before:?}, not {promotion:?}"
        )));
    }
    *before = match (*before, promotion) {
        (Promotion::Private, Promotion::Workgroup) | (Promotion::Workgroup, Promotion::Private) => {
            tracing::warn!(target: "runtime::fusion", ?tensor, "promoted to registers and to work-group memory; it goes to work-group memory");
            Promotion::Workgroup
        }
        (Promotion::None | Promotion::Auto, stronger) => stronger,
        (stronger, _) => stronger,
    };
    Ok(())
}

fn check(tensor: &Tensor, device: &Arc<OpenDevice>) -> Result<()> {
    let buffer = tensor.buffer("fuser")?;
    if !Arc::ptr_eq(tensor.device(), device) {
        return Err(Error::invalid(format!(
            "{tensor:?} is on {}, but the queue is on {}",
            tensor.device_id(),
            device.name
        )));
    }
    if tensor.byte_offset() != 0 || !tensor.is_contiguous() || tensor.size_bytes() != buffer.bytes {
        return Err(Error::invalid(format!(
            "{tensor:?} is a part of its memory; only a whole tensor can be promoted, since the rest may be read"
        )));
    }
    buffer.check_writable("fuser")
}
