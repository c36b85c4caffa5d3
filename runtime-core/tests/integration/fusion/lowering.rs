//! A portable format of the tests: `NAME = BUILTIN` per line, for builtins of the null backend. Copies of copies, and copies of
//! sums, fuse if nobody reads what is between; kernels that do nothing always fuse.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use runtime_core::backend::OptionSpec;
use runtime_core::code::{ArgKind, Param};
use runtime_core::lowering::{
    FusedArg, FusedCode, FusionArg, FusionLaunch, FusionPlan, FusionRequest, Lowered, LoweredKernel,
    LoweredParam, Lowering, PlannedKernel, PortableSource, Promotion, Seam,
};
use runtime_core::{Access, CodeFormat, DType, DeviceInfo, Error, ErrorKind, Options, Result};

/// What a test may ask of the lowering, and what it has seen.
#[derive(Debug, Default)]
pub(crate) struct Joining {
    pub(crate) plans: AtomicUsize,
    pub(crate) lowered: AtomicUsize,
    /// The promotions of the tensors of the last request.
    pub(crate) promotions: Mutex<Vec<Promotion>>,
    /// What it does wrong.
    pub(crate) fault: Mutex<Fault>,
    /// Plans wait until this is false.
    pub(crate) is_stopped: AtomicBool,
    /// Plans rely on the values of all scalars.
    pub(crate) relies_on_scalars: AtomicBool,
    /// Plans rely on the numbers of groups.
    pub(crate) relies_on_groups: AtomicBool,
    /// Whether a plan waits.
    pub(crate) is_waiting: AtomicBool,
    /// Of its identity; 0 for none.
    pub(crate) version: AtomicUsize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// It refuses to plan.
    Analysis,
    /// The fused code does not compile.
    Code,
    /// The fused code has more items per group than the device allows.
    GroupSize,
    /// The plan leaves a launch out.
    Plan,
}

/// What a kernel does, as far as fusion is concerned.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Nothing,
    Copy,
    Add,
    /// It writes the same, however often.
    Ids,
    Other,
}

fn builtin<'a>(code: &'a str, name: &str) -> Option<&'a str> {
    code.lines()
        .find_map(|line| line.split_once(" = ").filter(|(known, _)| *known == name))
        .map(|line| line.1)
}

fn does(launch: &FusionLaunch<'_>) -> Does {
    match builtin(launch.source.code, launch.entry) {
        Some("noop") => Does::Nothing,
        Some("copy_bytes") => Does::Copy,
        Some("add_f32") => Does::Add,
        Some("group_ids_u32") => Does::Ids,
        _ => Does::Other,
    }
}

fn tensor(access: Access) -> Param {
    Param { kind: ArgKind::Tensor, access: Some(access), strided: false, dtype: None }
}

fn scalar(dtype: DType) -> Param {
    Param { kind: ArgKind::Scalar, access: Some(Access::Read), strided: false, dtype: Some(dtype) }
}

/// The parameters of a builtin; `noop/N` takes N tensors.
fn params(builtin: &str) -> Vec<Param> {
    match builtin.split('/').next().unwrap_or_default() {
        "copy_bytes" => vec![tensor(Access::Read), tensor(Access::Write)],
        "add_f32" => vec![tensor(Access::Read), tensor(Access::Read), tensor(Access::Write)],
        "scale_f32" => vec![tensor(Access::ReadWrite), scalar(DType::F32)],
        "fill_f32" => vec![tensor(Access::Write), scalar(DType::F32)],
        "spin" => vec![scalar(DType::I64)],
        "group_ids_u32" => vec![tensor(Access::Write)],
        "noop" => {
            let count = builtin.split('/').nth(1).and_then(|count| count.parse().ok()).unwrap_or(1);
            vec![tensor(Access::ReadWrite); count]
        }
        _ => Vec::new(),
    }
}

// SAFETY: the builtins of the null backend stay in their arguments.
#[allow(unsafe_code, reason = "implements a lowering")]
unsafe impl Lowering for Joining {
    fn format(&self) -> CodeFormat {
        CodeFormat::WGSL
    }

    fn options(&self) -> Vec<OptionSpec> {
        vec![
            OptionSpec::module("constant", "", "NAME=VALUE"),
            OptionSpec::module("items", 1, "Items per group."),
        ]
    }

    fn identity(&self, _device: &DeviceInfo) -> Option<String> {
        let version = self.version.load(Ordering::Relaxed);
        (version != 0).then(|| format!("joining {version}"))
    }

    fn target(&self, device: &DeviceInfo) -> Option<CodeFormat> {
        device.accepts(&"null".into()).then(|| "null".into())
    }

    fn lower(&self, source: &PortableSource<'_>, _device: &DeviceInfo) -> Result<Lowered> {
        self.lowered.fetch_add(1, Ordering::Relaxed);
        let items = u32::try_from(source.options.integer("items").unwrap_or(1)).unwrap_or(1);
        let mut kernels = Vec::new();
        let mut code = String::new();
        for line in source.code.lines() {
            let Some((name, builtin)) = line.split_once(" = ") else {
                return Err(Error::new(ErrorKind::CompileFailed, format!("not a kernel: {line}")));
            };
            let plain = builtin.split('/').next().unwrap_or_default();
            code.push_str(&format!("{name} = {plain}\n"));
            let params = params(builtin).into_iter();
            let params =
                params.map(|param| LoweredParam { param, min_bytes: 0, alignment_bytes: 1 }).collect();
            kernels.push(LoweredKernel {
                name: name.to_owned(),
                symbol: name.to_owned(),
                params,
                group_size: [items, 1, 1],
                work_items: None,
                shared_bytes: 0,
                tensor_sizes: false,
                coarsening: None,
                reports_on: (name == "checked").then(|| "the text".to_owned()),
            });
        }
        Ok(Lowered { format: "null".into(), code: code.into_bytes(), options: Options::new(), kernels })
    }

    fn fuse(&self, request: &FusionRequest<'_>, _device: &DeviceInfo) -> Result<FusionPlan> {
        self.plans.fetch_add(1, Ordering::Relaxed);
        *self.promotions.lock().unwrap() = request.tensors.iter().map(|tensor| tensor.promotion).collect();
        while self.is_stopped.load(Ordering::Acquire) {
            self.is_waiting.store(true, Ordering::Release);
            std::thread::yield_now();
        }
        let fault = *self.fault.lock().unwrap();
        if fault == Fault::Analysis {
            return Err(Error::new(ErrorKind::CompileFailed, "it cannot be analysed"));
        }
        let mut plan = FusionPlan::default();
        let mut start = 0;
        for next in 1..=request.launches.len() {
            let closed = (next < request.launches.len()).then(|| close(request, start, next));
            if let Some(closed) = &closed {
                let (fused, reason) = (closed.is_ok(), closed.clone().err().unwrap_or_default());
                plan.seams.push(Seam { fused, reason });
            }
            if !matches!(closed, Some(Ok(()))) {
                let code = (next - start > 1).then(|| join(request, start..next, fault));
                plan.kernels.push(PlannedKernel { launches: start..next, code });
                start = next;
            }
        }
        if self.relies_on_scalars.load(Ordering::Relaxed) {
            plan.relies_on = scalars(request);
        }
        if self.relies_on_groups.load(Ordering::Relaxed) {
            plan.relies_on_groups = (0..request.launches.len()).collect();
        }
        if fault == Fault::Plan {
            plan.kernels.pop();
        }
        Ok(plan)
    }
}

/// All scalars, by launch and argument.
fn scalars(request: &FusionRequest<'_>) -> Vec<(usize, usize)> {
    let is_scalar =
        |launch: usize, arg: usize| matches!(request.launches[launch].args[arg], FusionArg::Scalar { .. });
    let places = |launch: usize| (0..request.launches[launch].args.len()).map(move |arg| (launch, arg));
    (0..request.launches.len()).flat_map(places).filter(|&(launch, arg)| is_scalar(launch, arg)).collect()
}

/// Whether launch `next` joins those from `start` on; otherwise why not.
fn close(request: &FusionRequest<'_>, start: usize, next: usize) -> Result<(), String> {
    let (first, before, launch) =
        (&request.launches[start], &request.launches[next - 1], &request.launches[next]);
    match (does(first), does(launch)) {
        (Does::Nothing, Does::Nothing) => return Ok(()),
        (Does::Ids, Does::Ids) if first.args == launch.args => return Ok(()),
        (Does::Copy | Does::Add, Does::Copy) => {}
        _ => return Err("these kernels do not join".to_owned()),
    }
    let (Some(FusionArg::Tensor(written)), Some(FusionArg::Tensor(read))) =
        (before.args.last(), launch.args.first())
    else {
        return Err("no tensors".to_owned());
    };
    if written != read {
        return Err("the second does not read what the first writes".to_owned());
    }
    if request.tensors[*written].promotion == Promotion::None {
        return Err(format!("argument 1 of {} is read elsewhere", before.entry));
    }
    Ok(())
}

fn join(request: &FusionRequest<'_>, launches: std::ops::Range<usize>, fault: Fault) -> FusedCode {
    let (first, last) = (launches.start, launches.end - 1);
    let names: Vec<_> = launches.clone().map(|launch| request.launches[launch].entry).collect();
    let entry = names.join("_");
    let mut args = Vec::new();
    let mut promoted = Vec::new();
    let builtin = if does(&request.launches[first]) == Does::Ids {
        args.push(FusedArg::Of { launch: first, arg: 0 });
        "group_ids_u32".to_owned()
    } else if does(&request.launches[first]) == Does::Nothing {
        let mut seen = Vec::new();
        for launch in launches {
            for (arg, value) in request.launches[launch].args.iter().enumerate() {
                if !seen.contains(value) {
                    seen.push(*value);
                    args.push(FusedArg::Of { launch, arg });
                }
            }
        }
        format!("noop/{}", args.len())
    } else {
        let inputs = request.launches[first].args.len() - 1;
        args.extend((0..inputs).map(|arg| FusedArg::Of { launch: first, arg }));
        args.push(FusedArg::Of { launch: last, arg: 1 });
        for launch in first..last {
            if let Some(FusionArg::Tensor(tensor)) = request.launches[launch].args.last() {
                promoted.push((*tensor, Promotion::Private));
            }
        }
        if inputs == 1 { "copy_bytes".to_owned() } else { "add_f32".to_owned() }
    };
    let text = match fault {
        Fault::Code => format!("{entry} = nonsense"),
        _ => format!("{entry} = {builtin}"),
    };
    let items = if fault == Fault::GroupSize { 4096 } else { 1 };
    let options = Options::new().with("items", items);
    FusedCode {
        text,
        entry,
        options,
        groups_of: first,
        args,
        promoted,
        barriers: usize::from(promoted_is_barrier(&names)),
    }
}

/// Kernels with `barrier` in their names need one.
fn promoted_is_barrier(names: &[&str]) -> bool {
    names.iter().any(|name| name.contains("barrier"))
}

pub(crate) fn joining() -> Arc<Joining> {
    Arc::default()
}
