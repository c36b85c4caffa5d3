//! A compiled overload: its kernel, its queue, and how arguments are passed to it.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::code::arg::ArgValue;
use crate::code::layout::layout_scalars;
use crate::code::record::Record;
use crate::dispatch::group_size;
use crate::dispatch::range::Domain;
use crate::dispatch::source_table::Typed;
use crate::model::code_load::CodeLoad;
use crate::model::geometry::ParallelRange;
use crate::model::kernel_info::KernelInfo;
use crate::model::signature::{SignatureKind, SignatureParam};
use crate::timeline::open_device::OpenDevice;
use crate::{Access, Arg, Kernel, LaunchConfig, Module, Queue, Result, abi};

/// A compiled overload.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) kernel: Kernel,
    /// The default queue of the device.
    pub(super) queue: Arc<Queue>,
    pub(super) load: CodeLoad,
    /// The access of each argument, if known.
    accesses: SmallVec<[Option<Access>; 12]>,
    /// How the arguments of the kernel are made, if it takes layouts; else empty.
    steps: Vec<Step>,
    /// Whether layouts are scalars, instead of a structure each.
    portable: bool,
    /// Whether it is a host function that is called for parts of a range.
    takes_range: bool,
    /// Work-items of a group, chosen at the first launch of a range.
    group_items: OnceLock<u32>,
}

/// How an argument of the kernel is made.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// An argument of the dispatch; `strided` if its layout is passed, too.
    Arg { arg: usize, strided: bool },
    /// The layout of an argument of the dispatch.
    Layout { arg: usize, rank: usize },
}

/// The arguments of a launch.
pub(super) type Args<'a> = SmallVec<[Arg<'a>; 16]>;

impl Prepared {
    /// Loads the code of an overload.
    pub(super) fn load(device: &Arc<OpenDevice>, entry: &str, typed: &Typed) -> Result<Self> {
        let (module, load) = Module::load_unreported(device, &typed.source)?;
        let kernel = module.kernel(entry)?;
        let signature = typed.signature.as_deref();
        let groups = typed.source.options().text("convention") == Some("groups");
        let takes_range = !typed.portable && !groups && device.info.capabilities.has(abi::CAP_RANGE);
        Ok(Self {
            accesses: accesses(kernel.info(), signature.unwrap_or_default(), typed.portable),
            steps: steps(signature.unwrap_or_default()),
            portable: typed.portable,
            takes_range,
            queue: Queue::default_of(device)?,
            kernel,
            load,
            group_items: OnceLock::new(),
        })
    }

    /// What to launch for a domain.
    ///
    /// # Errors
    /// `InvalidArgument` for a domain that does not fit the kernel or the device.
    #[inline]
    pub(super) fn config(&self, domain: &Domain, args: &[Arg<'_>]) -> Result<LaunchConfig> {
        if self.takes_range {
            let items = domain.items(self.kernel.name())?;
            return Ok(ParallelRange { begin: 0, end: items, grain: None }.into());
        }
        let device = self.kernel.device();
        let (info, limits) = (self.kernel.info(), &device.info.limits);
        let local = |arg: &Arg<'_>| if let ArgValue::Local(bytes) = arg.value { bytes } else { 0 };
        let local_bytes = args.iter().map(local).fold(0u64, u64::saturating_add);
        let geometry = domain.geometry((info, limits), local_bytes, |items| {
            let group_items = *self.group_items.get_or_init(|| group_size::choose(&self.kernel));
            group_size::shape(items, group_items, limits)
        })?;
        Ok(geometry.into())
    }

    /// Whether the arguments are passed as they are, but for their accesses.
    #[inline]
    pub(super) const fn is_plain(&self) -> bool {
        self.steps.is_empty()
    }

    /// Makes `list` the arguments of a launch, with the accesses that the kernel states.
    #[inline]
    pub(super) fn narrow_all<'a>(&self, args: &[Arg<'a>], list: &mut Args<'a>) {
        list.extend_from_slice(args);
        for (arg, access) in list.iter_mut().zip(&self.accesses) {
            narrow(arg, *access);
        }
    }

    fn with_access<'a>(&self, index: usize, mut arg: Arg<'a>) -> Arg<'a> {
        narrow(&mut arg, self.accesses.get(index).copied().flatten());
        arg
    }

    /// The layouts that the kernel takes as structures, for [`Prepared::with_layouts`].
    ///
    /// # Errors
    /// As [`layout_scalars`].
    pub(super) fn records(&self, args: &[Arg<'_>]) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        for step in self.steps.iter().filter(|_| !self.portable) {
            let Step::Layout { arg, rank } = *step else { continue };
            let mut record = Record::new();
            for field in layout_of(args, arg, rank)? {
                if let ArgValue::Scalar(dtype, bits) = field.value {
                    record = record.with_bits(dtype, bits)?;
                }
            }
            records.push(record);
        }
        Ok(records)
    }

    /// The arguments of a launch, with the layouts that the kernel takes.
    ///
    /// # Errors
    /// As [`layout_scalars`].
    pub(super) fn with_layouts<'a>(&self, args: &[Arg<'a>], records: &'a [Record]) -> Result<Args<'a>> {
        let (mut list, mut records) = (Args::new(), records.iter());
        for step in &self.steps {
            match *step {
                Step::Arg { arg, strided } => {
                    let Some(given) = args.get(arg) else { continue };
                    let given = self.with_access(arg, *given);
                    list.push(if strided { given.strided() } else { given });
                }
                Step::Layout { arg, rank } if self.portable => {
                    layout_of(args, arg, rank)?.into_iter().for_each(|field| list.push(field));
                }
                Step::Layout { .. } => list.extend(records.next().map(Arg::record)),
            }
        }
        Ok(list)
    }
}

/// Gives an argument the access that the kernel states. One that does not cover it is refused by the launch.
#[inline]
fn narrow(arg: &mut Arg<'_>, stated: Option<Access>) {
    if let (ArgValue::Tensor(_, given, _), Some(stated)) = (&mut arg.value, stated)
        && stated.bits() & !given.bits() == 0
    {
        *given = stated;
    }
}

/// The fields of the layout of a tensor argument.
fn layout_of(args: &[Arg<'_>], index: usize, rank: usize) -> Result<Args<'static>> {
    let mut fields = Args::new();
    if let Some(ArgValue::Tensor(tensor, ..)) = args.get(index).map(|arg| arg.value) {
        layout_scalars(tensor, rank, &mut fields)
            .map_err(|error| error.with_note(format_args!("argument {index}")))?;
    }
    Ok(fields)
}

/// How the arguments of a kernel with layouts are made from those of a dispatch; empty without layouts.
fn steps(signature: &[SignatureParam]) -> Vec<Step> {
    if !signature.iter().any(SignatureParam::is_layout) {
        return Vec::new();
    }
    // Layouts are not arguments of a dispatch.
    let arg_at =
        |position: usize| position - signature[..position].iter().filter(|param| param.is_layout()).count();
    let has_layout = |position| signature.iter().any(|param| param.is_layout_of(position));
    let step = |(position, param): (usize, &SignatureParam)| match param.kind {
        SignatureKind::Layout { tensor, rank } => Step::Layout { arg: arg_at(tensor), rank },
        _ => Step::Arg { arg: arg_at(position), strided: has_layout(position) },
    };
    signature.iter().enumerate().map(step).collect()
}

/// The access of each argument: as portable code or the driver states it, else as the signature does.
fn accesses(
    info: &KernelInfo,
    signature: &[SignatureParam],
    portable: bool,
) -> SmallVec<[Option<Access>; 12]> {
    let params = info.params.as_deref().unwrap_or_default();
    if signature.is_empty() {
        return params.iter().map(|param| param.access).collect();
    }
    let args = signature.iter().enumerate().filter(|(_, param)| !param.is_layout()).enumerate();
    let access = |(arg, (position, param)): (usize, (usize, &SignatureParam))| {
        // Tensors of portable code come first; other code takes a layout where the signature has it.
        let param_info = params.get(if portable { arg } else { position });
        param_info.and_then(|param| param.access).or(match param.kind {
            SignatureKind::Tensor { access, .. } => Some(access),
            _ => None,
        })
    };
    args.map(access).collect()
}
