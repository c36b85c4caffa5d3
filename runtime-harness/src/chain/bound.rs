//! A chain on a device: its launches, one by one and fused, and what they leave.

use std::ops::Range;

use runtime_core::evaluate::Tolerance;
use runtime_core::fusion::{FusionOptions, FusionReport};
use runtime_core::lowering::Promotion;
use runtime_core::{Arg, Error, ErrorKind, Event, HostArray, Kernel, LaunchConfig, Queue, Result, Tensor};

use super::{Chain, ChainRow, Expected, Place};
use crate::job::BoundKernel;

/// A chain with its kernels and tensors on a device.
#[derive(Debug)]
pub struct BoundChain<'c> {
    chain: &'c Chain,
    kernels: Vec<BoundKernel>,
}

/// A launch of a chain.
#[derive(Clone, Debug)]
pub struct ChainLaunch<'b> {
    kernel: &'b Kernel,
    config: LaunchConfig,
    args: Vec<Arg<'b>>,
}

impl<'c> BoundChain<'c> {
    pub(super) const fn new(chain: &'c Chain, kernels: Vec<BoundKernel>) -> Self {
        Self { chain, kernels }
    }

    /// The launches, in order.
    ///
    /// # Errors
    /// `InvalidArgument` for a group size that the code does not have.
    pub fn launches(&self) -> Result<Vec<ChainLaunch<'_>>> {
        let mut launches = Vec::with_capacity(self.kernels.len());
        for (bound, spec) in self.kernels.iter().zip(self.chain.specs()) {
            let (config, args) = (bound.config(spec)?, bound.args(spec));
            launches.push(ChainLaunch { kernel: &bound.kernel, config, args });
        }
        Ok(launches)
    }

    /// Options of the fuser: unless `keep`, temporaries need not be written, as if the host had dropped them.
    #[must_use]
    pub fn fusion_options(&self, keep: bool) -> FusionOptions {
        let temporaries = if keep { Vec::new() } else { self.chain.temporaries() };
        let tensors = temporaries.into_iter().filter_map(|place| self.tensor(place));
        tensors.fold(FusionOptions::default(), |options, tensor| options.promote(tensor, Promotion::Auto))
    }

    /// The bytes that must be moved if each range of the chain runs as one kernel: every tensor that the kernel reads and has not
    /// written itself, and every one that it writes. `promoted`: temporaries that were not written.
    #[must_use]
    pub fn bytes(&self, kernels: &[Range<usize>], promoted: &[String]) -> f64 {
        let unwritten: Vec<Place> = self.chain.temporaries();
        let unwritten = unwritten.into_iter().filter(|place| promoted.contains(&self.chain.name_of(*place)));
        self.chain.bytes(kernels, &unwritten.collect::<Vec<_>>())
    }

    /// The temporaries that the last fused run has not written.
    #[must_use]
    pub fn promoted(&self) -> Vec<String> {
        let temporaries = self.chain.temporaries().into_iter();
        // Nothing else makes a tensor of the chain unreadable once its work has ended.
        let is_unwritten =
            |place: &Place| self.tensor(*place).is_some_and(|tensor| tensor.to_array().is_err());
        temporaries.filter(is_unwritten).map(|place| self.chain.name_of(place)).collect()
    }

    /// Compares what the kernels have left in the tensors that they write with the references, but for those in `promoted`.
    ///
    /// # Errors
    /// The failure of the work; those of reading a tensor.
    pub fn compare(&self, expected: &Expected, promoted: &[String]) -> Result<Vec<ChainRow>> {
        let mut contents: Vec<_> = expected.0.iter().collect();
        contents.sort_by_key(|(_, content)| content.writer);
        contents.retain(|(origin, _)| !promoted.contains(&self.chain.name_of(**origin)));
        let compare = |(_, content): &(_, &super::Content)| {
            let tolerance =
                Tolerance { rtol: Some(content.rtol), atol: Some(content.atol), ..Tolerance::default() };
            let array = self.read(content.writer)?;
            let validation = tolerance.compare(content.writer.1, &array, &content.array)?;
            Ok(ChainRow { tensor: self.chain.name_of(content.writer), validation })
        };
        contents.iter().map(compare).collect()
    }

    /// Whether every tensor that a kernel writes has the same bits as in `other`, but for those in `promoted`.
    ///
    /// # Errors
    /// Those of reading a tensor.
    pub fn has_bits_of(&self, other: &Self, promoted: &[String]) -> Result<bool> {
        for (kernel, spec) in self.chain.specs().enumerate() {
            for (arg, _) in spec.outputs() {
                let place = (kernel, arg);
                let is_promoted = promoted.contains(&self.chain.name_of(self.chain.origin(place)));
                if !is_promoted && self.read(place)?.bytes() != other.read(place)?.bytes() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The kernels with their tensors.
    #[must_use]
    pub fn into_kernels(self) -> Vec<BoundKernel> {
        self.kernels
    }

    fn tensor(&self, (kernel, arg): Place) -> Option<&Tensor> {
        self.kernels.get(kernel)?.tensors.get(arg)?.as_ref()
    }

    fn read(&self, place: Place) -> Result<HostArray> {
        let tensor = self.tensor(place);
        tensor.ok_or_else(|| Error::new(ErrorKind::Internal, "a written scalar"))?.to_array()
    }
}

impl ChainLaunch<'_> {
    /// Submits launches in order; returns the event of the last.
    ///
    /// # Errors
    /// Those of a launch.
    pub fn submit_all(launches: &[Self], queue: &Queue) -> Result<Event> {
        let (last, before) = launches.split_last().ok_or_else(|| Error::invalid("a chain has kernels"))?;
        before.iter().try_for_each(|launch| launch.submit(queue).map(drop))?;
        last.submit(queue)
    }

    /// Submits launches fused; returns the event of the last, and the report.
    ///
    /// # Errors
    /// Those of a launch, and of a fuser.
    pub fn submit_fused(
        launches: &[Self],
        queue: &Queue,
        options: &FusionOptions,
    ) -> Result<(Event, FusionReport)> {
        let fuser = queue.fuser(options)?;
        launches.iter().try_for_each(|launch| launch.submit(fuser.queue()).map(drop))?;
        fuser.complete()
    }

    fn submit(&self, queue: &Queue) -> Result<Event> {
        queue.launch(self.kernel, self.config, &self.args[..])
    }
}
