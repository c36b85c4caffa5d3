//! What became of the launches that a fuser listed.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::Error;
use crate::model::fusion::Seam;
use crate::timeline::virtual_queue::Cause;

/// Which launches became which kernel, and why others did not: returned by [`Fuser::complete`](crate::fusion::Fuser::complete). Its fields
/// are those of [`FusionDetails`], which are put together when they are first used, because completing a list takes less time than
/// describing it.
///
/// Its text has one part per fused kernel and per open seam: `scale → relu fused, 1 barrier; relu | matmul not: …`.
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # use runtime_core::fusion::FusionOptions;
/// # let runtime = Runtime::builder().discover(false);
/// # let runtime = runtime.register(runtime_host::backend()).with_lowering(runtime_kernel::wgsl()).build();
/// # let device = runtime.open("host")?;
/// # let x = device.tensor([2], &[-1.0f32, 1.0])?;
/// let module = device.load(&ModuleSource::wgsl("
///     @group(0) @binding(0) var<storage, read_write> x: array<f32>;
///     @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) { x[id.x] *= 2.0; }
///     @compute @workgroup_size(64) fn relu(@builtin(global_invocation_id) id: vec3u) { x[id.x] = max(x[id.x], 0.0); }
/// "))?;
/// let fuser = device.queue()?.fuser(&FusionOptions::default())?;
/// for name in ["scale", "relu"] {
///     fuser.queue().launch(&module.kernel(name)?, (1, 64), (&x,))?;
/// }
/// let (_, report) = fuser.complete()?;
/// assert_eq!(report.to_string(), "scale → relu fused");
/// assert!(report.is_one_kernel()); // otherwise `report.seams` says why
/// # assert_eq!(x.to_vec::<f32>()?, [0.0, 2.0]);
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct FusionReport {
    lists: SmallVec<[CompletedList; 1]>,
    cancelled: Option<(Cause, usize)>,
    details: OnceLock<Box<FusionDetails>>,
}

/// What a [`FusionReport`] says.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FusionDetails {
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
    /// Whether its kernels, several ones, were submitted at once as an executable graph, which the queue keeps for lists of the
    /// same kernels.
    pub is_graph: bool,
}

/// What became of a list that was completed.
#[derive(Clone, Debug, Default)]
pub(super) struct CompletedList {
    pub(super) parts: SmallVec<[CompletedPart; 1]>,
    /// The steps whose fused code the device refused, in ascending order, with the reason.
    pub(super) refused: Vec<(usize, Error)>,
    /// Nothing is fused at all.
    pub(super) is_off: bool,
    /// It was submitted at once.
    pub(super) is_graph: bool,
}

/// What became of launches that were planned together.
#[derive(Clone, Debug)]
pub(super) enum CompletedPart {
    Planned {
        outline: Arc<Outline>,
        is_cached: bool,
    },
    /// A launch that cannot be fused, with the reason, or that was alone.
    Single {
        name: Arc<str>,
        obstacle: Option<&'static str>,
    },
}

/// What a plan makes of its launches. Their numbers are those of the plan.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) launches: Vec<Arc<str>>,
    pub(super) kernels: Vec<ReportedKernel>,
    pub(super) seams: Vec<Seam>,
    /// Why nothing is fused, if that is because of an error.
    pub(super) failure: Option<String>,
}

/// A submitted kernel in a [`FusionReport`].
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

    /// The same with its launches numbered from `first`.
    fn moved(&self, first: usize) -> Self {
        Self { launches: self.launches.start + first..self.launches.end + first, ..self.clone() }
    }
}

impl FusionReport {
    /// Appends what became of a list that was completed later.
    pub(super) fn push(&mut self, list: CompletedList) {
        self.lists.push(list);
        self.details = OnceLock::new();
    }

    /// Notes that launches were submitted unfused before the list was complete.
    pub(super) fn note_cancelled(&mut self, cause: Cause, count: usize) {
        let before = self.cancelled.map_or(0, |(_, count)| count);
        self.cancelled = Some((cause, before + count));
        self.details = OnceLock::new();
    }
}

impl Deref for FusionReport {
    type Target = FusionDetails;

    fn deref(&self) -> &FusionDetails {
        self.details.get_or_init(|| {
            let cancelled = self.cancelled.map(|(cause, count)| (cause.to_string(), count));
            let mut details = FusionDetails { cancelled, ..FusionDetails::default() };
            self.lists.iter().for_each(|list| details.append(list.details()));
            Box::new(details)
        })
    }
}

impl PartialEq for FusionReport {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for FusionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for FusionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl CompletedList {
    fn details(&self) -> FusionDetails {
        let mut details = FusionDetails { is_cached: true, ..FusionDetails::default() };
        let mut last_obstacle = None;
        for part in &self.parts {
            if !details.launches.is_empty() {
                let reason = details.reason_before(part, last_obstacle);
                details.seams.push(Seam { fused: false, reason });
            }
            last_obstacle = match part {
                CompletedPart::Planned { outline, is_cached } => {
                    details.push_outline(outline);
                    details.is_cached &= is_cached;
                    None
                }
                CompletedPart::Single { name, obstacle } => {
                    details.kernels.push(ReportedKernel::unfused(details.launches.len()));
                    details.launches.push(name.to_string());
                    *obstacle
                }
            };
        }
        for (step, error) in self.refused.iter().rev() {
            details.note_refused(*step, error);
        }
        details.is_graph = self.is_graph;
        if self.is_off {
            details.fallback = Some("fusion is turned off (RUNTIME_FUSION=off)".to_owned());
        }
        details
    }
}

impl FusionDetails {
    /// Whether everything became one kernel.
    #[must_use]
    pub fn is_one_kernel(&self) -> bool {
        self.kernels.len() <= 1 && self.cancelled.is_none()
    }

    fn push_outline(&mut self, outline: &Outline) {
        let first = self.launches.len();
        self.launches.extend(outline.launches.iter().map(|name| name.to_string()));
        self.kernels.extend(outline.kernels.iter().map(|kernel| kernel.moved(first)));
        self.seams.extend(outline.seams.iter().cloned());
        self.fallback = self.fallback.take().or_else(|| outline.failure.clone());
    }

    /// Why `part` is not planned together with the launches so far; `last_obstacle` is that of the last one.
    fn reason_before(&self, part: &CompletedPart, last_obstacle: Option<&str>) -> String {
        let own = match part {
            CompletedPart::Single { name, obstacle } => obstacle.map(|why| (&**name, why)),
            CompletedPart::Planned { .. } => None,
        };
        let last = self.launches.last().map_or("?", String::as_str);
        match own.or(last_obstacle.map(|why| (last, why))) {
            Some((name, why)) => format!("\"{name}\" {why}"),
            None => {
                "other work lies between them, their code has two formats, or fusion is turned off".to_owned()
            }
        }
    }

    /// Appends what became of later launches.
    fn append(&mut self, later: Self) {
        let first = self.launches.len();
        if first != 0 && !later.launches.is_empty() {
            let reason = "the list was full, so a new one began".to_owned();
            self.seams.push(Seam { fused: false, reason });
        }
        self.is_cached = later.is_cached && (self.is_cached || first == 0);
        self.is_graph = later.is_graph;
        self.launches.extend(later.launches);
        self.kernels.extend(later.kernels.iter().map(|kernel| kernel.moved(first)));
        self.seams.extend(later.seams);
        self.fallback = later.fallback.or_else(|| self.fallback.take());
    }

    /// Notes that the device refused the fused code of a kernel, so that its launches were submitted as they were.
    fn note_refused(&mut self, kernel: usize, error: &Error) {
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

impl fmt::Display for FusionDetails {
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
