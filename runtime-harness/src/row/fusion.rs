//! The results of a chain of kernels, one by one and fused, as plain data.

use runtime_core::evaluate::{Measurement, Validation};
use runtime_core::fusion::FusionReport;
use serde::{Deserialize, Serialize};

use super::{rates, validation};
use crate::chain::ChainRow;

/// A chain of kernels, one by one beside fused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fusion {
    /// The links, such as `softmax.x = scale_mask.out`.
    pub links: Vec<String>,
    /// The kernels, in order.
    pub launches: Vec<String>,
    /// What was submitted for them, in order.
    pub kernels: Vec<FusedKernel>,
    /// What was fused, and why the rest was not.
    pub report: String,
    /// The tensors that were not written, because only later kernels of the chain read them.
    pub promoted: Vec<String>,
    /// The result of each tensor of each run; empty if they were not compared.
    pub checks: Vec<TensorCheck>,
    /// Whether both runs have left the same bits.
    pub same_bits: bool,
    /// The times one by one.
    #[serde(serialize_with = "rates::with_rates")]
    pub one_by_one: Measurement,
    /// The fused median divided by that one by one, so that below 1 is faster; `None` if it is undefined.
    pub ratio: Option<f64>,
    /// Its 99% interval; `None` if the samples do not give one.
    pub ratio_interval: Option<[f64; 2]>,
}

/// A kernel that stands for launches of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FusedKernel {
    /// The number of the first launch that it stands for.
    pub first: usize,
    /// How many launches it stands for.
    pub launches: usize,
    /// Barriers that were inserted.
    pub barriers: usize,
    /// The portable code; `None` for a launch as it was.
    pub code: Option<String>,
}

/// A way to run a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainRun {
    /// One kernel after the other.
    OneByOne,
    /// Fused where that is proven to be equivalent.
    Fused,
}

/// How a tensor compares with the references.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TensorCheck {
    /// The run.
    pub run: ChainRun,
    /// The kernel that writes the tensor last, and its argument, such as `softmax.out`.
    pub tensor: String,
    /// The comparison; `None` if there was none.
    pub validation: Option<Validation>,
    /// What is wrong, or why it was not compared.
    pub reason: Option<String>,
}

impl ChainRun {
    /// The name in tables.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::OneByOne => "one by one",
            Self::Fused => "fused",
        }
    }
}

impl FusedKernel {
    /// The kernels of a report.
    pub(crate) fn of(report: &FusionReport) -> Vec<Self> {
        let kernel = |kernel: &runtime_core::fusion::ReportedKernel| Self {
            first: kernel.launches.start,
            launches: kernel.launches.len(),
            barriers: kernel.barriers,
            code: kernel.code.as_deref().map(str::to_owned),
        };
        report.kernels.iter().map(kernel).collect()
    }
}

impl TensorCheck {
    pub(crate) fn of(run: ChainRun, row: ChainRow) -> Self {
        let name = row.tensor.rsplit('.').next().map(str::to_owned);
        let (validation, reason) =
            (validation::named(&row.validation, |_| name.clone()), validation::reason(&row.validation));
        Self { run, tensor: row.tensor, validation, reason }
    }
}

impl Fusion {
    /// The comparison of all tensors: the first that is wrong, or else the least exact one.
    pub(super) fn validation(&self) -> Option<Validation> {
        let found = self.checks.iter().filter_map(|check| check.validation.as_ref());
        let error = |validation: &&Validation| match validation {
            Validation::Passed(agreement) => agreement.max_absolute_error,
            _ => f64::INFINITY,
        };
        let worst = found.reduce(|worst, next| if error(&next) > error(&worst) { next } else { worst });
        worst.cloned()
    }

    /// What is wrong, or why nothing was compared.
    pub(super) fn reason(&self) -> Option<String> {
        let text = |check: &TensorCheck| {
            let reason = check.reason.as_ref()?;
            Some(format!("{}, {}: {reason}", check.run.text(), check.tensor))
        };
        match self.checks.is_empty() {
            true => Some("validation is off".to_owned()),
            false => self.checks.iter().find_map(text),
        }
    }
}
