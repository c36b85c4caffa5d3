//! What fuses, and what does not, with the reason.

use runtime_core::lowering::{
    FusionArg, FusionLaunch, FusionPlan, FusionRequest, FusionTensor, PortableSource, Promotion,
};
use runtime_core::{CodeFormat, DType, DeviceInfo, DeviceKind, Options};

mod adversarial;
mod arrays;
mod indices;
mod loops;
mod promotion;
mod retries;
mod rules;
mod shipped;

/// Launches of kernels that read `x` and write `y`, in groups of 64.
struct List {
    launches: Vec<(String, [u32; 3], Vec<FusionArg>)>,
    tensors: Vec<FusionTensor>,
    constants: bool,
}

/// Elements of each tensor.
const N: u32 = 1024;

fn device() -> DeviceInfo {
    let mut info = DeviceInfo::new(DeviceKind::Accelerator, 0, "Test Device");
    info.formats = vec![CodeFormat::SPIRV_SHADER];
    info.limits.group_size = [256; 3];
    info.limits.group_items = 256;
    info.limits.shared_bytes = 32 << 10;
    info
}

const fn u32_arg(value: u32) -> FusionArg {
    FusionArg::Scalar { dtype: DType::U32, bits: value as u64 }
}

/// A kernel `name` that reads `x` and writes `y`; `id`, `l` and `g` are the positions of the item, in its group, and of its group.
fn kernel(name: &str, body: &str) -> String {
    format!(
        "struct Scalars {{ n: u32, w: u32 }}
         var<immediate> s: Scalars;
         var<workgroup> tile: array<f32, 64>;
         @group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;
         @compute @workgroup_size(64) fn {name}(
             @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) l: vec3u,
             @builtin(workgroup_id) g: vec3u, @builtin(num_workgroups) groups: vec3u) {{
             let i = id.x; {body} _ = s.n;
         }}"
    )
}

impl List {
    fn new() -> Self {
        let tensor =
            FusionTensor { bytes: u64::from(N) * 4, overlaps: Vec::new(), promotion: Promotion::None };
        Self { launches: Vec::new(), tensors: vec![tensor; 6], constants: false }
    }

    /// Adds a launch over all elements that reads a tensor and writes another.
    fn then(self, name: &str, body: &str, [x, y]: [usize; 2]) -> Self {
        self.launch(
            &kernel(name, body),
            [N / 64, 1, 1],
            &[FusionArg::Tensor(x), FusionArg::Tensor(y), u32_arg(N), u32_arg(32)],
        )
    }

    fn launch(mut self, code: &str, groups: [u32; 3], args: &[FusionArg]) -> Self {
        self.launches.push((code.to_owned(), groups, args.to_vec()));
        self
    }

    fn plan(&self) -> FusionPlan {
        self.plan_if(&|_| Ok(()))
    }

    /// The plan for a device that fails on some programs.
    fn plan_if(&self, check: super::text::Check<'_>) -> FusionPlan {
        let options = Options::new();
        let launches: Vec<_> = self
            .launches
            .iter()
            .map(|(code, groups, args)| {
                let body = code.split("@compute").last().unwrap();
                let entry = body.split("fn ").nth(1).and_then(|rest| rest.split('(').next()).unwrap();
                let source = PortableSource { code, path: "", options: &options };
                FusionLaunch { source, entry, groups: *groups, args }
            })
            .collect();
        let request = FusionRequest {
            launches: &launches,
            tensors: &self.tensors,
            constants: self.constants,
            assume_group_local: false,
        };
        super::plan(&request, &device(), check).unwrap()
    }

    /// Asserts that all became one kernel with so many barriers.
    #[track_caller]
    fn fuses(&self, barriers: usize) -> FusionPlan {
        let plan = self.plan();
        let [kernel] = &plan.kernels[..] else { panic!("{:?}", plan.seams) };
        assert_eq!(
            kernel.code.as_ref().unwrap().barriers,
            barriers,
            "{}",
            kernel.code.as_ref().unwrap().text
        );
        plan
    }

    /// Asserts that the last seam is open for this reason.
    #[track_caller]
    fn fails(&self, reason: &str) {
        let plan = self.plan();
        let seam = plan.seams.last().unwrap();
        assert!(!seam.fused, "{}", plan.kernels.last().unwrap().code.as_ref().unwrap().text);
        assert!(seam.reason.contains(reason), "{:?}", seam.reason);
    }
}
