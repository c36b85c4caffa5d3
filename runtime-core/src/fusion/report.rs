//! What became of the launches that a fuser listed.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::{Error, Seam};

/// Which launches became which kernel, and why others did not: returned by [`Fuser::complete`](crate::Fuser::complete).
///
/// Its text has one part per fused kernel and per open seam: `scale → relu fused, 1 barrier; relu | matmul not: …`.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FusionReport {
    /// The kernels of the launches, in order.
    pub launches: Vec<String>,
    /// What was submitted, in order. Together, it stands for all launches.
    pub kernels: Vec<ReportedKernel>,
    /// What became of the seam after each launch but the last.
    pub seams: Vec<Seam>,
    /// Why launches were submitted unfused although the list was not complete, and how many, before those of `launches`.
    pub cancelled: Option<(String, usize)>,
    /// Why launches were not fused although they could be: an error of the analysis, the compiler or the device, or `RUNTIME_FUSION=off`.
    pub fallback: Option<String>,
    /// Whether all plans had been made before.
    pub is_cached: bool,
}

/// A kernel that was submitted, as a [`FusionReport`] tells.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedKernel {
    /// The launches that it stands for.
    pub launches: Range<usize>,
    /// Whether it is fused code; otherwise it is a launch as it was.
    pub is_fused: bool,
    /// The barriers that were inserted between launches.
    pub barriers: usize,
    /// The number of tensors that are not written any more.
    pub promoted: usize,
    /// The portable code, if it is fused.
    pub code: Option<Arc<str>>,
}

impl ReportedKernel {
    /// A launch as it was.
    pub(super) fn unfused(launch: usize) -> Self {
        Self { launches: launch..launch + 1, is_fused: false, barriers: 0, promoted: 0, code: None }
    }
}

impl FusionReport {
    /// Whether everything became one kernel.
    #[must_use]
    pub fn is_one_kernel(&self) -> bool {
        self.kernels.len() <= 1 && self.cancelled.is_none()
    }

    /// Appends what became of later launches.
    pub(super) fn append(&mut self, later: Self) {
        let first = self.launches.len();
        if first != 0 && !later.launches.is_empty() {
            let reason = "the list was full, so a new one began".to_owned();
            self.seams.push(Seam { fused: false, reason });
        }
        self.is_cached = later.is_cached && (self.is_cached || first == 0);
        self.launches.extend(later.launches);
        self.kernels.extend(later.kernels.into_iter().map(|mut kernel| {
            kernel.launches = kernel.launches.start + first..kernel.launches.end + first;
            kernel
        }));
        self.seams.extend(later.seams);
        self.fallback = later.fallback.or_else(|| self.fallback.take());
    }

    /// Notes that launches were submitted unfused before the list was complete.
    pub(super) fn note_cancelled(&mut self, reason: &dyn fmt::Display, count: usize) {
        let before = self.cancelled.as_ref().map_or(0, |(_, count)| *count);
        self.cancelled = Some((reason.to_string(), before + count));
    }

    /// Notes that nothing is fused at all.
    pub(super) fn note_off(&mut self) {
        self.fallback = Some("fusion is turned off (RUNTIME_FUSION=off)".to_owned());
    }

    /// Notes that the device refused the fused code of a kernel, so that its launches were submitted as they were.
    pub(super) fn note_refused(&mut self, kernel: usize, error: &Error) {
        self.fallback = Some(error.to_string());
        let Some(refused) = self.kernels.get(kernel).map(|kernel| kernel.launches.clone()) else { return };
        let seams = self.seams.get_mut(refused.start..refused.end.saturating_sub(1));
        for seam in seams.unwrap_or_default() {
            *seam = Seam { fused: false, reason: format!("the device refused the fused code: {error}") };
        }
        self.kernels.splice(kernel..=kernel, refused.map(ReportedKernel::unfused));
    }

    fn name(&self, launch: usize) -> &str {
        self.launches.get(launch).map_or("?", String::as_str)
    }

    fn write_kernel(&self, f: &mut fmt::Formatter<'_>, kernel: &ReportedKernel) -> fmt::Result {
        for launch in kernel.launches.clone() {
            let arrow = if launch == kernel.launches.start { "" } else { " → " };
            write!(f, "{arrow}{}", self.name(launch))?;
        }
        f.write_str(" fused")?;
        for (count, what) in [(kernel.barriers, "barrier"), (kernel.promoted, "promotion")] {
            match count {
                0 => {}
                1 => write!(f, ", 1 {what}")?,
                _ => write!(f, ", {count} {what}s")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for FusionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut next = |f: &mut fmt::Formatter<'_>| f.write_str(std::mem::replace(&mut separator, "; "));
        if let Some((reason, count)) = &self.cancelled {
            next(f)?;
            write!(f, "{count} cancelled: {reason}")?;
        }
        if let Some(reason) = &self.fallback {
            next(f)?;
            write!(f, "failed: {reason}")?;
        }
        for kernel in &self.kernels {
            if kernel.is_fused {
                next(f)?;
                self.write_kernel(f, kernel)?;
            }
            let seam =
                kernel.launches.end.checked_sub(1).and_then(|last| Some((last, self.seams.get(last)?)));
            if let Some((last, Seam { fused: false, reason })) = seam {
                next(f)?;
                write!(f, "{} | {} not: {reason}", self.name(last), self.name(last + 1))?;
            }
        }
        match separator {
            "" if self.launches.is_empty() => f.write_str("nothing was launched"),
            "" => write!(f, "{} alone", self.name(0)),
            _ => Ok(()),
        }
    }
}
