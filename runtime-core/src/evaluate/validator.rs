//! Runs a kernel once on prepared tensors and compares its outputs.

use super::{EvaluationArg, Tolerance, Validation};
use crate::{Access, HostArray, Result, Tensor};

/// A prepared validation.
#[derive(Debug)]
pub(crate) struct Validator<'e> {
    args: &'e [EvaluationArg<'e>],
    reference: &'e [(usize, HostArray)],
    tolerance: &'e Tolerance,
    /// Initial contents of the tensors that the kernel both reads and writes, if they were saved.
    initial: Vec<(&'e Tensor, HostArray)>,
    skipped: Option<&'static str>,
}

impl<'e> Validator<'e> {
    pub(crate) const fn new(
        args: &'e [EvaluationArg<'e>],
        reference: &'e [(usize, HostArray)],
        tolerance: &'e Tolerance,
        wanted: bool,
    ) -> Self {
        let skipped = match (wanted, reference.is_empty()) {
            (false, _) => Some("validation was not asked for"),
            (true, true) => Some("there is no reference"),
            (true, false) => None,
        };
        Self { args, reference, tolerance, initial: Vec::new(), skipped }
    }

    /// Saves the initial contents, so that the kernel can be timed between now and
    /// [`run_restored`](Self::run_restored).
    pub(crate) fn with_initial_contents(mut self) -> Result<Self> {
        let updated = self
            .args
            .iter()
            .filter_map(EvaluationArg::as_tensor)
            .filter(|(_, access)| *access == Access::ReadWrite);
        for (tensor, _) in updated.filter(|_| self.skipped.is_none()) {
            self.initial.push((tensor, tensor.to_array()?));
        }
        Ok(self)
    }

    /// Poisons the outputs, runs the kernel once with `call`, and compares the outputs, which stay in the
    /// tensors. Without anything to compare, only runs the kernel.
    pub(crate) fn run(&self, call: impl FnOnce() -> Result<()>) -> Result<Validation> {
        if let Some(reason) = self.skipped {
            call()?;
            return Ok(Validation::Skipped { reason: reason.to_owned() });
        }
        self.poison()?;
        call()?;
        self.compare()
    }

    /// As [`run`](Self::run), on the initial contents, which it restores. Without anything to compare, runs
    /// nothing.
    pub(crate) fn run_restored(&self, call: impl FnOnce() -> Result<()>) -> Result<Validation> {
        if self.skipped.is_some() {
            return self.run(|| Ok(()));
        }
        self.restore()?;
        let validation = self.run(call)?;
        self.restore()?;
        Ok(validation)
    }

    fn restore(&self) -> Result<()> {
        self.initial.iter().try_for_each(|(tensor, contents)| tensor.write_array(contents))
    }

    fn poison(&self) -> Result<()> {
        for (index, arg) in self.args.iter().enumerate() {
            if let Some((tensor, Access::Write)) = arg.as_tensor() {
                tensor.fill(&[self.tolerance.poison(self.reference, index)])?;
            }
        }
        Ok(())
    }

    fn compare(&self) -> Result<Validation> {
        self.tolerance.compare_outputs(self.reference, |index| {
            // Checked earlier: a reference refers to a tensor.
            let tensor = self.args.get(index).and_then(EvaluationArg::as_tensor);
            tensor.map(|(tensor, access)| Ok((tensor.to_array()?, access))).transpose()
        })
    }
}
