//! Launches that run as they are and fused, and must give the same results.

use runtime_core::fusion::{FusionOptions, FusionReport};
use runtime_core::{Element, Kernel, ModuleSource, Queue, Tensor};

use super::kernels::ELEMENTS;
use crate::case::{Failure, Verdict};
use crate::context::Context;
use crate::expect::expect_equal;
use crate::wait;

/// Not a multiple of a group.
pub(super) const N: usize = 1000;
pub(super) const GROUP: u32 = 64;
/// As many elements as the groups of `COVER` have items.
pub(super) const WHOLE: usize = 1024;
pub(super) const COVER: (u32, u32) = (16, GROUP);

/// What a scenario launches, and the tensors that it starts from.
pub(super) struct Scenario<'a> {
    context: &'a Context,
    pub(super) queue: Queue,
    /// With their contents at the start.
    tensors: Vec<(Tensor, Vec<u8>)>,
}

impl<'a> Scenario<'a> {
    pub(super) fn new(context: &'a Context) -> Result<Self, Failure> {
        context.needs_portable_groups(GROUP)?;
        Ok(Self { context, queue: context.fixture().queue()?, tensors: Vec::new() })
    }

    pub(super) fn kernel(&self, text: &str, entry: &str) -> Result<Kernel, Failure> {
        Ok(self.context.fixture().device().kernel(ModuleSource::wgsl(text), entry)?)
    }

    pub(super) fn elements(&self, entry: &str) -> Result<Kernel, Failure> {
        self.kernel(ELEMENTS, entry)
    }

    pub(super) fn tensor<T: Element>(
        &mut self,
        shape: &[usize],
        value: impl Fn(usize) -> T,
    ) -> Result<Tensor, Failure> {
        let data: Vec<T> = (0..shape.iter().product()).map(value).collect();
        let tensor = self.context.fixture().device().tensor(shape, &data)?;
        self.tensors.push((tensor.clone(), tensor.to_array()?.bytes().to_vec()));
        Ok(tensor)
    }

    pub(super) fn numbers(&mut self, first: f32) -> Result<Tensor, Failure> {
        self.tensor(&[N], |index| first + (index % 17) as f32)
    }

    /// Two tensors with numbers and two to write to.
    pub(super) fn four(&mut self) -> Result<(Tensor, Tensor, Tensor, Tensor), Failure> {
        Ok((self.numbers(1.0)?, self.numbers(-9.0)?, self.numbers(0.0)?, self.numbers(0.0)?))
    }

    /// Tensors of whole groups.
    pub(super) fn whole(&mut self) -> Result<[Tensor; 4], Failure> {
        let mut whole = |first: f32| self.tensor(&[WHOLE], |index| first + (index % 17) as f32);
        Ok([whole(1.0)?, whole(2.0)?, whole(3.0)?, whole(4.0)?])
    }

    pub(super) fn temporary(&self, n: usize) -> Result<Tensor, Failure> {
        Ok(self.context.fixture().uninitialized::<f32>(n)?)
    }

    /// Runs `work` as it is and fused; the results must be the same, and as many kernels must be left as `kernels` says.
    pub(super) fn fuses_to(
        &self,
        kernels: usize,
        work: impl Fn(&Queue) -> Verdict,
    ) -> Result<FusionReport, Failure> {
        self.restore()?;
        work(&self.queue)?;
        let right = self.contents()?;
        self.restore()?;
        let fuser = self.queue.fuser(&FusionOptions::default())?;
        work(fuser.queue())?;
        let (event, report) = fuser.complete()?;
        wait::event(&event)?;
        for (index, (fused, right)) in self.contents()?.iter().zip(&right).enumerate() {
            expect_equal(&format!("tensor {index} ({report})"), fused, right)?;
        }
        assert_eq!(report.kernels.len(), kernels, "{report}");
        assert!(report.cancelled.is_none() && report.fallback.is_none(), "{report}");
        Ok(report)
    }

    pub(super) fn restore(&self) -> Verdict {
        self.tensors.iter().try_for_each(|(tensor, data)| Ok(tensor.write_bytes(data)?))
    }

    pub(super) fn contents(&self) -> Result<Vec<Vec<u8>>, Failure> {
        self.tensors.iter().map(|(tensor, _)| Ok(tensor.to_array()?.bytes().to_vec())).collect()
    }
}
