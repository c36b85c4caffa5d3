//! Runs launches as they are and as a plan fuses them, and compares what they leave in the tensors.

use runtime_core::{
    Access, Arg, ArgKind, CommonRuntime, DType, FusedArg, FusionArg, FusionLaunch, FusionPlan, FusionRequest,
    FusionTensor, Geometry, Kernel, ModuleSource, Options, PlannedKernel, PortableSource, Promotion, Queue,
    Runtime, Tensor,
};

/// An opened device.
pub(crate) type Device = std::sync::Arc<dyn CommonRuntime>;

/// A launch: its code, entry point, groups and arguments.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub(crate) code: String,
    pub(crate) entry: String,
    pub(crate) groups: [u32; 3],
    pub(crate) args: Vec<FusionArg>,
}

/// Launches, the initial elements of their tensors, and the tensors that nobody reads afterwards.
#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) launches: Vec<Launch>,
    pub(crate) tensors: Vec<Vec<u32>>,
    pub(crate) temporary: Vec<usize>,
    pub(crate) constants: bool,
}

/// The host, with the lowering of WGSL.
pub(crate) fn host() -> Device {
    let runtime = Runtime::builder().with_lowering(runtime_kernel::wgsl()).discover(false);
    runtime.register(runtime_host::backend()).build().open("host").expect("the host")
}

impl Case {
    pub(crate) fn plan(&self, device: &Device) -> FusionPlan {
        let options = Options::new();
        let launches = self.launches.iter().map(|launch| FusionLaunch {
            source: PortableSource { code: &launch.code, path: "", options: &options },
            entry: &launch.entry,
            groups: launch.groups,
            args: &launch.args,
        });
        let launches = launches.collect::<Vec<_>>();
        let tensors = self.tensors.iter().enumerate().map(|(index, data)| FusionTensor {
            bytes: data.len() as u64 * 4,
            overlaps: Vec::new(),
            promotion: if self.temporary.contains(&index) { Promotion::Auto } else { Promotion::None },
        });
        let tensors: Vec<_> = tensors.collect();
        let request = FusionRequest {
            launches: &launches,
            tensors: &tensors,
            constants: self.constants,
            assume_group_local: false,
        };
        runtime_kernel::wgsl().fuse(&request, device.info()).expect("a plan")
    }

    /// The elements of all tensors after the launches, as they are.
    pub(crate) fn unfused(&self, device: &Device) -> Vec<Vec<u32>> {
        let each = |index| PlannedKernel { launches: index..index + 1, code: None };
        let kernels: Vec<_> = (0..self.launches.len()).map(each).collect();
        self.run(device, &kernels)
    }

    /// The elements of all tensors after the kernels of a plan.
    pub(crate) fn run(&self, device: &Device, kernels: &[PlannedKernel]) -> Vec<Vec<u32>> {
        let tensors = self.tensors.iter().map(|data| device.tensor([data.len()], data).expect("a tensor"));
        let tensors: Vec<_> = tensors.collect();
        let queue = device.queue().expect("a queue");
        for planned in kernels {
            self.launch(device, &queue, (planned, &tensors));
        }
        tensors.iter().map(|tensor| tensor.to_vec().expect("its elements")).collect()
    }

    fn launch(&self, device: &Device, queue: &Queue, (planned, tensors): (&PlannedKernel, &[Tensor])) {
        let (text, entry, groups, args) = match &planned.code {
            Some(code) => {
                let args: Vec<_> = code.args.iter().map(|arg| self.fused_arg(*arg)).collect();
                (&code.text, &code.entry, self.launches[code.groups_of].groups, args)
            }
            None => {
                let launch = &self.launches[planned.launches.start];
                (&launch.code, &launch.entry, launch.groups, launch.args.clone())
            }
        };
        let kernel =
            device.kernel(&ModuleSource::wgsl(text), entry).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let size = kernel.info().group_size.expect("a group size");
        let args = args.iter().zip(access(&kernel)).map(|(arg, access)| match arg {
            FusionArg::Tensor(index) => Arg::tensor(&tensors[*index], access),
            FusionArg::Scalar { dtype, bits } => Arg::scalar_bits(*dtype, *bits),
        });
        let args: Vec<_> = args.collect();
        queue
            .call(&kernel, Geometry::new(groups, size), &args)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
    }

    fn fused_arg(&self, arg: FusedArg) -> FusionArg {
        let number = |value: u64| FusionArg::Scalar { dtype: DType::U32, bits: value };
        match arg {
            FusedArg::Of { launch, arg } => self.launches[launch].args[arg],
            FusedArg::Groups { launch, axis } => number(self.launches[launch].groups[axis].into()),
            FusedArg::Length { tensor, stride } => {
                number(self.tensors[tensor].len() as u64 * 4 / u64::from(stride))
            }
        }
    }

    /// Runs the launches both ways and compares the tensors that are read afterwards; returns the plan.
    #[track_caller]
    pub(crate) fn check(&self, device: &Device) -> FusionPlan {
        let plan = self.plan(device);
        let (expected, actual) = (self.unfused(device), self.run(device, &plan.kernels));
        for (index, (expected, actual)) in expected.iter().zip(&actual).enumerate() {
            if !self.temporary.contains(&index) && expected != actual {
                let at = expected.iter().zip(actual).position(|(a, b)| a != b).unwrap_or(0);
                let texts =
                    plan.kernels.iter().filter_map(|kernel| Some(kernel.code.as_ref()?.text.as_str()));
                panic!(
                    "tensor {index} differs at {at}: {} instead of {}\n{}\n{:#?}",
                    actual[at],
                    expected[at],
                    texts.collect::<Vec<_>>().join("\n----\n"),
                    self.launches,
                );
            }
        }
        plan
    }

    /// As [`check`](Self::check), and all launches became one kernel.
    #[track_caller]
    pub(crate) fn check_fused(&self, device: &Device) -> FusionPlan {
        let plan = self.check(device);
        assert!(plan.kernels.len() == 1 && plan.kernels[0].code.is_some(), "{:#?}", plan.seams);
        plan
    }
}

fn access(kernel: &Kernel) -> Vec<Access> {
    let params = kernel.info().params.as_ref().expect("parameters");
    params
        .iter()
        .map(|param| if param.kind == ArgKind::Tensor { param.access } else { Access::Read })
        .collect()
}
