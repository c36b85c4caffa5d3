//! Runs launches as they are and as a plan fuses them, and compares what they leave in the tensors.

use runtime_core::lowering::{FusionArg, FusionPlan, PlannedKernel};
use runtime_core::{Access, Arg, CommonRuntime, Geometry, Kernel, ModuleSource, Queue, Tensor};

use super::lists::Case;

/// An opened device.
pub(crate) type Device = std::sync::Arc<dyn CommonRuntime>;

impl Case {
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
        let (text, entry, groups, args) = self.resolved(planned);
        let kernel =
            device.kernel(ModuleSource::wgsl(text), entry).unwrap_or_else(|error| panic!("{error}\n{text}"));
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

    /// Runs the launches both ways and compares the tensors that are read afterwards; returns the plan.
    #[track_caller]
    pub(crate) fn check(&self, device: &Device) -> FusionPlan {
        let plan = self.plan(device.info());
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
    params.iter().map(|param| param.access.expect("portable code states it")).collect()
}
