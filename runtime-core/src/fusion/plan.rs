//! Plans: fused code that is loaded and checked, and how a run of launches becomes launches of it.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::cache::Relied;
use crate::code::lowering::find_lowering;
use crate::code::module::Module;
use crate::code::owned_arg::OwnedArg;
use crate::fusion::fusible_run::{Run, groups};
use crate::fusion::options::FusionOptions;
use crate::fusion::report::{Outline, ReportedKernel};
use crate::fusion::shape::Shape;
use crate::fusion::stored_plan::{self, PlanNote};
use crate::model::fusion::{FusedArg, FusedCode, FusionPlan, Promotion, Seam};
use crate::queue::fusion_list::{FusedLaunch, Step};
use crate::timeline::open_device::OpenDevice;
use crate::{Access, Arg, DType, Error, ErrorKind, Geometry, Kernel, LaunchConfig, ModuleSource, Result};

/// How a run of launches is submitted.
#[derive(Debug)]
pub(super) struct Plan {
    kernels: Vec<Planned>,
    /// The same for the program.
    pub(super) outline: Arc<Outline>,
    /// What it is made for.
    relied: Relied,
    /// Whether it would be the same the next time.
    is_final: bool,
}

#[derive(Debug)]
struct Planned {
    launches: Range<usize>,
    fused: Option<Fused>,
}

/// Fused code on its device.
#[derive(Debug)]
struct Fused {
    kernel: Kernel,
    text: Arc<str>,
    group_size: [u32; 3],
    groups_of: usize,
    args: Vec<FusedArg>,
    /// Tensors of the run.
    promoted: Vec<usize>,
    barriers: usize,
}

impl Plan {
    /// Takes the plan that an earlier process stored for this shape, or asks the lowering of the run's code for one, and loads the
    /// fused code.
    ///
    /// # Errors
    /// Any error of the lowering, the compiler or the device; `Internal` for an impossible plan.
    pub(super) fn new(
        device: &Arc<OpenDevice>,
        (run, shape): (&Run<'_>, Option<&Shape>),
        options: &FusionOptions,
    ) -> Result<Self> {
        let format = run.entries.first().and_then(|entry| entry.kernel.portable());
        let lowering = format.and_then(|text| find_lowering(&text.format, &device.instance.lowerings));
        let Some((text, lowering)) = format.zip(lowering) else {
            return Err(Error::unsupported("no lowering accepts the code of these launches"));
        };
        let note = shape.and_then(|shape| PlanNote::new(device, &*lowering, run, shape));
        let stored = note.as_ref().and_then(|note| note.read(run)).and_then(|plan| match check(&plan, run) {
            Ok(relied) => Some((plan, relied)),
            Err(error) => {
                stored_plan::ignored(&error.to_string());
                None
            }
        });
        let (plan, relied) = match stored {
            Some(stored) => stored,
            None => {
                let plan = run.request(options, |request| lowering.fuse(request, &device.info))?;
                let relied = check(&plan, run)?;
                note.inspect(|note| note.write(&plan, &relied));
                (plan, relied)
            }
        };
        let FusionPlan { kernels, seams, .. } = plan;
        let kernels = kernels
            .into_iter()
            .map(|kernel| {
                let load = |code| Fused::load(device, text.format.clone(), code);
                Ok(Planned { launches: kernel.launches, fused: kernel.code.map(load).transpose()? })
            })
            .collect::<Result<Vec<_>>>()?;
        let outline = Outline::of(run, &kernels, seams, None);
        Ok(Self { kernels, outline, relied, is_final: true })
    }

    /// A plan that fuses nothing, because of an error.
    pub(super) fn failed(run: &Run<'_>, error: &Error) -> Self {
        let (launches, reason) = (run.entries.len(), error.to_string());
        let kernels = (0..launches).map(|launch| Planned { launches: launch..launch + 1, fused: None });
        let kernels: Vec<_> = kernels.collect();
        let seams = vec![Seam { fused: false, reason: reason.clone() }; launches.saturating_sub(1)];
        let outline = Outline::of(run, &kernels, seams, Some(reason));
        // It may be about the values of scalars, which is not known.
        Self { kernels, outline, relied: Relied::default(), is_final: is_about_code(error) }
    }

    /// Whether it is right for a run that has the same key as the one that it was made for.
    pub(super) fn fits(&self, run: &Run<'_>) -> bool {
        run.has(&self.relied)
    }

    /// Whether it would be the same the next time.
    pub(super) fn is_final(&self) -> bool {
        self.is_final
    }

    /// Appends the submissions for a run whose first launch is entry `first` of its list.
    ///
    /// # Errors
    /// What a launch of the fused code would be refused for; nothing is appended then.
    pub(super) fn add_steps<'e>(&self, run: &Run<'e>, first: usize, steps: &mut Vec<Step<'e>>) -> Result<()> {
        let before = steps.len();
        for planned in &self.kernels {
            let Range { start, end } = planned.launches;
            match planned.fused.as_ref().map(|fused| fused.launch(run)).transpose() {
                Ok(fused) => steps.push(Step { entries: first + start..first + end, fused }),
                Err(error) => {
                    steps.truncate(before);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

impl Outline {
    fn of(run: &Run<'_>, kernels: &[Planned], seams: Vec<Seam>, failure: Option<String>) -> Arc<Self> {
        let launches = run.entries.iter().map(|entry| entry.kernel.shared_name().clone()).collect();
        let kernels = kernels.iter().map(|Planned { launches, fused }| ReportedKernel {
            launches: launches.clone(),
            is_fused: fused.is_some(),
            barriers: fused.as_ref().map_or(0, |fused| fused.barriers),
            promoted: fused.as_ref().map_or(0, |fused| fused.promoted.len()),
            code: fused.as_ref().map(|fused| fused.text.clone()),
        });
        Arc::new(Self { launches, kernels: kernels.collect(), seams, failure })
    }
}

/// Whether an error depends on nothing but the code and the device.
fn is_about_code(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported
            | ErrorKind::InvalidArgument
            | ErrorKind::NotFound
            | ErrorKind::CompileFailed
            | ErrorKind::OutOfResources
            | ErrorKind::Internal
    )
}

impl Fused {
    fn load(device: &Arc<OpenDevice>, format: crate::CodeFormat, code: FusedCode) -> Result<Self> {
        let FusedCode { text, entry, options, groups_of, args, promoted, barriers } = code;
        let shown: Arc<str> = text.as_str().into();
        let kernel = Module::load(device, &ModuleSource::portable(format, text, options))?.kernel(&entry)?;
        let group_size =
            kernel.info().group_size.ok_or_else(|| wrong_plan("fused code has no group size"))?;
        let promoted = promoted.into_iter().filter(|(_, promotion)| *promotion != Promotion::None);
        let promoted = promoted.map(|(tensor, _)| tensor).collect();
        Ok(Self { kernel, text: shown, group_size, groups_of, args, promoted, barriers })
    }

    fn launch<'e>(&self, run: &Run<'e>) -> Result<FusedLaunch<'e>> {
        let params = self.kernel.info().params.as_deref().unwrap_or_default();
        let args = self.args.iter().enumerate().map(|(index, arg)| {
            let access = params.get(index).and_then(|param| param.access).unwrap_or(Access::ReadWrite);
            self.argument(run, *arg, access)
        });
        let args = args.collect::<Result<SmallVec<[Arg<'e>; 16]>>>()?;
        let groups = groups(&run.entries[self.groups_of]);
        let config =
            LaunchConfig::Groups(Geometry { groups, group_size: self.group_size, ..Geometry::default() });
        let device = self.kernel.device();
        self.kernel.check_config(&config)?;
        self.kernel.check_args(device, &args)?;
        let promoted = self.promoted.iter().map(|&tensor| run.tensors[tensor]).collect();
        Ok(FusedLaunch { kernel: self.kernel.clone(), config, args, promoted })
    }

    fn argument<'e>(&self, run: &Run<'e>, arg: FusedArg, access: Access) -> Result<Arg<'e>> {
        Ok(match arg {
            FusedArg::Of { launch, arg } => match &run.entries[launch].args[arg] {
                OwnedArg::Tensor(tensor, ..) => Arg::tensor(tensor, access),
                other => other.borrow(),
            },
            FusedArg::Groups { launch, axis } => Arg::scalar(groups(&run.entries[launch])[axis]),
            FusedArg::Length { tensor, stride } => {
                let elements = run.described[tensor].bytes / u64::from(stride);
                let elements = u32::try_from(elements)
                    .map_err(|_| Error::invalid("a tensor has more elements than a u32 counts"))?;
                Arg::scalar_bits(DType::U32, u64::from(elements))
            }
        })
    }
}

/// Rejects a plan that does not cover the run, or refers to what it does not have. Returns what it relies on.
fn check(plan: &FusionPlan, run: &Run<'_>) -> Result<Relied> {
    let (launches, tensors) = (run.entries.len(), run.tensors.len());
    let mut next = 0;
    for kernel in &plan.kernels {
        let Range { start, end } = kernel.launches;
        if start != next || end <= start || end > launches || (kernel.code.is_none() && end != start + 1) {
            return Err(wrong_plan("its kernels do not cover the launches in order"));
        }
        next = end;
        let Some(code) = &kernel.code else { continue };
        let exists = |arg: &FusedArg| match *arg {
            FusedArg::Of { launch, arg } => launch < launches && arg < run.args(launch).len(),
            FusedArg::Groups { launch, axis } => launch < launches && axis < 3,
            FusedArg::Length { tensor, stride } => tensor < tensors && stride != 0,
        };
        let is_sound = code.groups_of < launches
            && code.args.iter().all(exists)
            && code.promoted.iter().all(|(tensor, _)| {
                run.described.get(*tensor).is_some_and(|known| known.promotion != Promotion::None)
            });
        if !is_sound {
            return Err(wrong_plan("its code refers to a launch, argument or tensor that it may not use"));
        }
    }
    if next != launches || plan.seams.len() + 1 != launches {
        return Err(wrong_plan("it does not cover all launches and seams"));
    }
    relied(plan, run)
}

/// What a plan relies on, with the values that the run has.
fn relied(plan: &FusionPlan, run: &Run<'_>) -> Result<Relied> {
    let scalar = |&place| {
        let bits = run.scalar(place);
        Ok((place, bits.ok_or_else(|| wrong_plan("it relies on the value of what is not a scalar"))?))
    };
    let groups = |&launch| {
        let groups = run.groups(launch);
        Ok((launch, groups.ok_or_else(|| wrong_plan("it relies on the groups of what is not a launch"))?))
    };
    Ok(Relied {
        scalars: plan.relies_on.iter().map(scalar).collect::<Result<_>>()?,
        groups: plan.relies_on_groups.iter().map(groups).collect::<Result<_>>()?,
    })
}

fn wrong_plan(what: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("the lowering made an impossible plan: {what}"))
}
