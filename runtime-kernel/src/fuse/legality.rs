//! The rules of fusion that do not depend on indices.

use naga::{AddressSpace, TypeInner};
use runtime_core::lowering::{FusionArg, FusionLaunch, FusionRequest};
use runtime_core::{DeviceInfo, OptionValue, Options};

use super::kernel::Body;
use super::merge::Guard;
use super::walk::Shape;
use crate::parse::specialise;
use crate::program::Feature;

/// Tensors of a fused kernel: OpenCL devices take at least 1024 bytes of arguments, 16 for each tensor with its size.
const MAX_TENSORS: usize = 48;
/// Bytes of scalars: the push constants that Vulkan devices have at least.
const MAX_SCALAR_BYTES: u32 = 128;

/// A launch of the request with its code.
#[derive(Clone, Copy)]
pub(super) struct Launch<'a> {
    pub(super) index: usize,
    pub(super) body: Body<'a>,
    pub(super) launch: &'a FusionLaunch<'a>,
}

impl<'a> Launch<'a> {
    pub(super) fn name(&self) -> &'a str {
        &self.body.point().name
    }

    /// Its tensors: argument, tensor of the request, whether it is read, and written.
    pub(super) fn tensors(&self) -> impl Iterator<Item = Use<'a>> + '_ {
        let tensors = self.body.interface().tensors.iter();
        tensors.zip(self.launch.args).enumerate().filter_map(|(argument, (tensor, arg))| match arg {
            FusionArg::Tensor(index) => {
                Some(Use { argument, name: &tensor.name, tensor: *index, is_written: tensor.access.writes() })
            }
            FusionArg::Scalar { .. } => None,
        })
    }
}

/// A tensor argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use<'a> {
    pub(super) argument: usize,
    pub(super) name: &'a str,
    pub(super) tensor: usize,
    pub(super) is_written: bool,
}

/// The groups of a fused kernel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Geometry {
    /// The launch, as an index of the run, that has the groups.
    pub(super) of: usize,
    pub(super) group_size: [u32; 3],
    /// Where each launch of the run runs.
    pub(super) guards: Vec<Guard>,
    /// How each launch runs.
    pub(super) shapes: Vec<Shape>,
}

/// Checks what a launch needs to be fused with any other.
///
/// # Errors
/// Why it cannot.
pub(super) fn check_alone(launch: &Launch<'_>) -> Result<(), String> {
    let (name, body) = (launch.name(), launch.body);
    let interface = body.interface();
    if launch.launch.args.len() != interface.tensors.len() + interface.scalars.len() {
        return Err(format!("{name} has other arguments than its launch"));
    }
    if !interface.layouts.is_empty() {
        return Err(format!(
            "{name} takes the strides of a tensor; fused kernels take contiguous tensors only"
        ));
    }
    if body.program.features().contains(&Feature::MatrixUnits) {
        return Err(format!("{name} uses matrix units"));
    }
    let types = &body.program.module.types;
    for function in body.functions() {
        let is_pointer = |ty| {
            matches!(
                types[ty].inner,
                TypeInner::Pointer { space: AddressSpace::Storage { .. } | AddressSpace::Immediate, .. }
            )
        };
        if function.arguments.iter().any(|argument| is_pointer(argument.ty)) {
            return Err(format!("{name} passes a pointer to a tensor to a function"));
        }
    }
    Ok(())
}

/// Checks a launch against the earlier ones of a run.
///
/// # Errors
/// Why it cannot be fused with them.
pub(super) fn check(
    (request, device): (&FusionRequest<'_>, &DeviceInfo),
    run: &[Launch<'_>],
    next: &Launch<'_>,
) -> Result<(), String> {
    for earlier in run {
        options(earlier, next)?;
        for (one, two) in earlier.tensors().flat_map(|one| next.tensors().map(move |two| (one, two))) {
            let overlaps = |a: usize, b: usize| request.tensors[a].overlaps.contains(&b);
            let is_written = one.is_written || two.is_written;
            if is_written && (overlaps(one.tensor, two.tensor) || overlaps(two.tensor, one.tensor)) {
                return Err(format!(
                    "{} of {} shares memory with {} of {}, without being the same elements",
                    shown(&two),
                    next.name(),
                    shown(&one),
                    earlier.name()
                ));
            }
        }
    }
    let all = || run.iter().chain([next]);
    for tensor in next.tensors() {
        let is_written =
            all().flat_map(Launch::tensors).any(|other| other.tensor == tensor.tensor && other.is_written);
        for (earlier, other) in
            run.iter().flat_map(|earlier| earlier.tensors().map(move |other| (earlier, other)))
        {
            if other.tensor == tensor.tensor && is_written && !same_type((earlier, &other), (next, &tensor)) {
                return Err(format!(
                    "{} of {} has another type than {} of {}, which is the same tensor",
                    shown(&tensor),
                    next.name(),
                    shown(&other),
                    earlier.name()
                ));
            }
        }
    }
    resources(all(), device)
}

/// An argument in messages.
pub(super) fn shown(tensor: &Use<'_>) -> String {
    format!("\"{}\" (argument {})", tensor.name, tensor.argument)
}

fn options(earlier: &Launch<'_>, next: &Launch<'_>) -> Result<(), String> {
    let own = |launch: &Launch<'_>| {
        let options = launch.launch.source.options.iter();
        let mut list: Vec<_> = options
            .filter(|(key, _)| !is_specialisation(key))
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list
    };
    if own(earlier) == own(next) {
        return Ok(());
    }
    Err(format!("{} and {} are loaded with different options", earlier.name(), next.name()))
}

/// Whether a load option is part of the text of a fused kernel.
fn is_specialisation(key: &str) -> bool {
    specialise::OPTIONS.contains(&key)
}

/// The load options of a fused kernel.
pub(super) fn fused_options(launch: &FusionLaunch<'_>) -> Options {
    let kept = launch.source.options.iter().filter(|(key, _)| !is_specialisation(key));
    kept.fold(Options::new(), |options, (key, value): (&str, &OptionValue)| options.with(key, value.clone()))
}

fn same_type((a, one): (&Launch<'_>, &Use<'_>), (b, two): (&Launch<'_>, &Use<'_>)) -> bool {
    let text = |launch: &Launch<'_>, tensor: &Use<'_>| {
        let module = &launch.body.program.module;
        let variable = launch.body.interface().tensors[tensor.argument].variable;
        shape_of(module, module.global_variables[variable].ty)
    };
    text(a, one) == text(b, two)
}

/// A type with everything that it refers to.
fn shape_of(module: &naga::Module, ty: naga::Handle<naga::Type>) -> String {
    let ty = &module.types[ty];
    match &ty.inner {
        TypeInner::Array { base, size, stride } => {
            format!("array {size:?} {stride} {}", shape_of(module, *base))
        }
        TypeInner::Struct { members, span } => {
            let members = members
                .iter()
                .map(|member| format!("{:?} {} {}", member.name, member.offset, shape_of(module, member.ty)));
            format!("{:?} {span} {:?}", ty.name, members.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

fn resources<'a>(launches: impl Iterator<Item = &'a Launch<'a>>, device: &DeviceInfo) -> Result<(), String> {
    let (mut tensors, mut bytes, mut shared) = (Vec::new(), 0, 0);
    for launch in launches {
        for tensor in launch.tensors() {
            if !tensors.contains(&tensor.tensor) {
                tensors.push(tensor.tensor);
            }
        }
        shared += u64::from(launch.body.interface().shared_bytes);
        let scalars = launch.body.interface().scalars.iter();
        bytes += scalars.map(|scalar| u32::try_from(scalar.dtype.bytes()).unwrap_or(8)).sum::<u32>();
    }
    if tensors.len() > MAX_TENSORS {
        return Err(format!("together they take {} tensors, more than {MAX_TENSORS}", tensors.len()));
    }
    let limit = device.limits.shared_bytes;
    if shared > limit {
        return Err(format!("together they need {shared} bytes of work-group memory, more than {limit}"));
    }
    if bytes > MAX_SCALAR_BYTES {
        return Err(format!("together they take {bytes} bytes of scalars, more than {MAX_SCALAR_BYTES}"));
    }
    Ok(())
}

/// The launch geometry of the kernel that replaces `run`.
///
/// # Errors
/// Why there are none.
pub(super) fn geometry(request: &FusionRequest<'_>, run: &[Launch<'_>]) -> Result<Geometry, String> {
    let mut reason = String::new();
    // The first launch with the most groups, so that equal ranges have a single answer.
    for of in 0..run.len() {
        match geometry_of(request, run, of) {
            Ok(geometry) => return Ok(geometry),
            Err(why) => reason = why,
        }
    }
    Err(reason)
}

fn geometry_of(request: &FusionRequest<'_>, run: &[Launch<'_>], of: usize) -> Result<Geometry, String> {
    let group_size = run[of].body.interface().group_size;
    let (mut guards, mut shapes) = (Vec::with_capacity(run.len()), Vec::with_capacity(run.len()));
    for launch in run {
        let (guard, shape) = placed(request, launch, &run[of], group_size)?;
        guards.push(guard);
        shapes.push(shape);
    }
    Ok(Geometry { of, group_size, guards, shapes })
}

/// Where a launch runs in a kernel with the groups of another.
fn placed(
    request: &FusionRequest<'_>,
    launch: &Launch<'_>,
    of: &Launch<'_>,
    group_size: [u32; 3],
) -> Result<(Guard, Shape), String> {
    let (own, all) = (launch.launch.groups, of.launch.groups);
    let groups = request.group_bounds(launch.index);
    let size = launch.body.interface().group_size;
    if size == group_size {
        if own.iter().zip(all).any(|(own, all)| *own > all) {
            return Err(format!("neither {} nor {} has the groups of the other", of.name(), launch.name()));
        }
        let fewer = [0, 1, 2].map(|axis| own[axis] < all[axis]);
        let guard = if fewer.contains(&true) { Guard::Groups(fewer) } else { Guard::None };
        return Ok((guard, Shape { group_size, groups, known_groups: known_groups(request, own) }));
    }
    let is_line = |groups: [u32; 3], size: [u32; 3]| [groups[1], groups[2], size[1], size[2]] == [1; 4];
    if !(launch.body.ignores_groups() && is_line(own, size) && is_line(all, group_size)) {
        return Err(format!(
            "{} has groups of {}, but {} of {}",
            of.name(),
            extent(group_size),
            launch.name(),
            extent(size)
        ));
    }
    // What a plan may rely on, not the groups of this request.
    let bounds =
        |launch: &Launch<'_>, size: u32| u64::from(request.group_bounds(launch.index)[0]) * u64::from(size);
    let is_exact = request.group_bounds(launch.index) == own && own != all;
    let fits = match is_exact {
        true => u64::from(own[0]) * u64::from(size[0]) <= u64::from(all[0]) * u64::from(group_size[0]),
        // The same number of groups, whatever it is.
        false => size[0] <= group_size[0],
    };
    if !fits
        || bounds(launch, size[0]) > u64::from(u32::MAX)
        || bounds(of, group_size[0]) > u64::from(u32::MAX)
    {
        return Err(format!(
            "{} has fewer items than {}, which has groups of another size",
            of.name(),
            launch.name()
        ));
    }
    let items = bounds(launch, size[0]);
    let groups = items.div_ceil(group_size[0].into());
    let groups = [u32::try_from(groups).unwrap_or(u32::MAX), 1, 1];
    // It does not ask for the number of groups.
    let shape = Shape { group_size, groups, known_groups: [None; 3] };
    let is_same =
        is_exact && u64::from(own[0]) * u64::from(size[0]) == u64::from(all[0]) * u64::from(group_size[0]);
    Ok((if is_same { Guard::None } else { Guard::Items(size[0]) }, shape))
}

/// The numbers of groups that a plan may rely on: see [`FusionRequest::group_bounds`].
fn known_groups(request: &FusionRequest<'_>, own: [u32; 3]) -> [Option<u32>; 3] {
    let is_same = request.launches.iter().all(|launch| launch.groups == own);
    match own {
        [x, 1, 1] if is_same && x != 1 => [None, Some(1), Some(1)],
        _ => own.map(Some),
    }
}

fn extent(size: [u32; 3]) -> String {
    let used = size.iter().rposition(|size| *size != 1).map_or(1, |last| last + 1);
    size[..used].iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
}
