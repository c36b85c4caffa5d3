//! Items that do the work of several leave the same bits as items that do their own, on OpenCL, Vulkan and CUDA devices: random
//! element-wise kernels, for launches whose groups do and do not divide evenly.

use std::sync::Arc;

use libtest_mimic::{Completion, Failed, Trial};
use portable::random::Random;
use portable::required;
use runtime_core::{
    CommonRuntime, ErrorKind, Geometry, Kernel, ModuleSource, Queue, Result, Runtime, Tensor,
};
use runtime_kernel::{Program, Specialisation};

const SEEDS: u64 = 24;
const FACTORS: [&str; 3] = ["2", "4", "8"];
/// Elements of each tensor. Kernels without a guard may leave the end of it alone.
const ELEMENTS: usize = 6000;

pub(crate) fn trials() -> Vec<Trial> {
    let runtime = Arc::new(Runtime::builder().with_lowering(runtime_kernel::wgsl()).build());
    let mut trials = Vec::new();
    for device in ["opencl", "vulkan", "cuda"] {
        // PoCL takes seconds to compile a kernel.
        let seeds = if device == "opencl" { SEEDS / 3 } else { SEEDS };
        for seed in 0..seeds {
            let name = format!("coarsening::{device}::random_kernel_{seed}");
            trials.push(trial(&runtime, device, name, move |fixture| fixture.random_kernel(seed)));
        }
        let name = format!("coarsening::{device}::a_recorded_launch_keeps_its_groups");
        trials.push(trial(&runtime, device, name, Fixture::recorded));
    }
    trials
}

fn trial(
    runtime: &Arc<Runtime>,
    device: &'static str,
    name: String,
    test: impl FnOnce(&Fixture) -> Result<()> + Send + 'static,
) -> Trial {
    let runtime = Arc::clone(runtime);
    Trial::ignorable_test(name, move || match runtime.open(device) {
        Err(error)
            if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound) && !required(device) =>
        {
            Ok(Completion::ignored_with(format!("{device}: {error}")))
        }
        opened => {
            let device = opened?;
            let queue = device.queue()?;
            test(&Fixture { device, queue }).map_err(|error| Failed::from(error.to_string()))?;
            Ok(Completion::Completed)
        }
    })
}

struct Fixture {
    device: Arc<dyn CommonRuntime>,
    queue: Queue,
}

/// A random kernel, with the geometry that it is made for.
struct Case {
    text: String,
    size: [u32; 3],
}

/// An integer expression of values whose loads and operations are exact on every device.
fn expression(random: &mut Random, depth: u32) -> String {
    if depth == 0 || random.below(5) == 0 {
        let leaves = [
            "x[i]",
            "w[i]",
            "f32(local.x)",
            "f32(group.x)",
            "f32(count.x % 7u)",
            "x[i + 1u]",
            "w[(i * 3u) % n]",
            "s.a",
            "own",
            "f32(group.y + id.z)",
            "2.0",
            "f32(lane)",
        ];
        return (*random.one(&leaves)).to_owned();
    }
    let (left, right) = (expression(random, depth - 1), expression(random, depth - 1));
    match random.below(6) {
        0 => format!("({left} - {right})"),
        1 => format!("max({left}, {right})"),
        2 => format!("twice({left})"),
        3 => format!("select({left}, {right}, {right} > 3.0)"),
        4 => format!("min({left}, {right})"),
        _ => format!("({left} + {right})"),
    }
}

fn random_case(random: &mut Random) -> Case {
    let size = [[16, 1, 1], [64, 1, 1], [8, 2, 1], [4, 2, 2], [1, 8, 1]][random.below(5)];
    let [a, b, c, d] = [(); 4].map(|()| expression(random, 3));
    let statements = match random.below(4) {
        0 => format!("y[i] = {a};"),
        1 => format!("let t = {a}; y[i] = t + {b}; z[i] = z[i] + t;"),
        2 => format!("var t = {a}; if t > 4.0 {{ t = {b}; }} else {{ t += {c}; z[i] = t; }} y[i] = t + {d};"),
        _ => format!("z[i] = {a}; if own > 5.0 {{ y[i] = {b}; }} y[i + 0u] = y[i] + {c};"),
    };
    let body = match random.below(7) {
        0 => format!("if i >= n {{ return; }} let own = x[i]; {statements}"),
        1 => format!("if i < n {{ let own = x[i]; {statements} }}"),
        2 => format!("let own = x[i]; {statements}"),
        3 => format!("if (id.x < s.width) {{ if (i < n) {{ let own = w[i]; {statements} }} }}"),
        4 => {
            format!("var own = 1.0; if i < n {{ own = x[i]; }} if id.x < s.width {{ {statements} }}")
        }
        5 => format!(
            "let own = w[i]; if i < n {{ z[i] = own + 1.0; }} if id.x >= s.width {{ return; }} z[i] = z[i] + 2.0; {statements}"
        ),
        _ => format!("if i < n && id.x < s.width {{ let own = x[i]; {statements} }}"),
    };
    let [sx, sy, sz] = size;
    let text = format!(
        "struct Scalars {{ n: u32, width: u32, a: f32 }}
         var<immediate> s: Scalars;
         @group(0) @binding(0) var<storage, read> x: array<f32>;
         @group(0) @binding(1) var<storage, read> w: array<f32>;
         @group(0) @binding(2) var<storage, read_write> y: array<f32>;
         @group(0) @binding(3) var<storage, read_write> z: array<f32>;
         fn twice(v: f32) -> f32 {{ return v + v; }}
         @compute @workgroup_size({sx}, {sy}, {sz})
         fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) local: vec3u,
                 @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) count: vec3u,
                 @builtin(local_invocation_index) lane: u32) {{
             let all = arrayLength(&x) + arrayLength(&w) + arrayLength(&y) + arrayLength(&z);
             let n = max(min(s.n, all), 1u);
             let extent = vec2u(count.xy) * vec2u({sx}u, {sy}u);
             let i = (id.z * extent.y + id.y) * extent.x + id.x;
             {body}
         }}"
    );
    Case { text, size }
}

/// The items whose work one item of a kernel does that is loaded with this option.
fn items_per_thread(text: &str, items: &str) -> Result<u32> {
    let program = Program::parse(text, "", &Specialisation::default())?.coarsened(items.parse().ok())?;
    Ok(program.interfaces()[0].items_per_thread)
}

impl Fixture {
    fn kernel(&self, text: &str, items: &str) -> Result<Kernel> {
        self.device.kernel(ModuleSource::wgsl(text).option("items_per_thread", items), "main")
    }

    fn random_kernel(&self, seed: u64) -> Result<()> {
        let mut random = Random::new(seed);
        let case = random_case(&mut random);
        let plain = self.kernel(&case.text, "1")?;
        let items = FACTORS[(seed % 3) as usize];
        assert_eq!(items_per_thread(&case.text, items)?, items.parse().unwrap_or(0), "{}", case.text);
        let coarse = self.kernel(&case.text, items)?;
        for groups in
            [[1, 1, 1], [2, 1, 1], [3, 2, 1], [4, 1, 2], [7, 1, 1], [8, 3, 2], [33, 1, 1], [0, 1, 1]]
        {
            let geometry = Geometry::new(groups, case.size);
            let launched: u32 = (0..3).map(|axis| groups[axis] * case.size[axis]).product();
            let n = launched.saturating_sub(random.bits() % 20);
            let width = (groups[0] * case.size[0]).saturating_sub(random.bits() % 3);
            let scalars = (n, width, 3.0_f32);
            let right = self.outputs(&plain, geometry, scalars, seed)?;
            let found = self.outputs(&coarse, geometry, scalars, seed)?;
            for (tensor, (right, found)) in right.iter().zip(&found).enumerate() {
                let wrong = right.iter().zip(found).position(|(a, b)| a.to_bits() != b.to_bits());
                if let Some(at) = wrong {
                    return Err(runtime_core::Error::new(
                        ErrorKind::Failed,
                        format!(
                            "{items} items, {groups:?} groups, n {n}: output {tensor} at {at} is {}, not {}\n{}",
                            found[at], right[at], case.text
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Small whole numbers, in a tensor that begins behind others.
    fn numbers(&self, seed: u64) -> Result<Tensor> {
        let mut random = Random::new(seed);
        let data: Vec<f32> = (0..ELEMENTS + 64).map(|_| random.below(9) as f32).collect();
        self.device.tensor([data.len()], &data)?.slice(0, 64..ELEMENTS + 64)
    }

    /// What a launch leaves in its outputs; both of its inputs are the same tensor.
    fn outputs(
        &self,
        kernel: &Kernel,
        geometry: Geometry,
        (n, width, a): (u32, u32, f32),
        seed: u64,
    ) -> Result<[Vec<f32>; 2]> {
        let (x, y, z) = (self.numbers(seed)?, self.numbers(seed + 1)?, self.numbers(seed + 2)?);
        self.queue.call(kernel, geometry, (&x, &x, &y, &z, n, width, a))?;
        Ok([y.to_vec()?, z.to_vec()?])
    }

    /// A graph reports and replays the launch with the program's own geometry, also with other arguments.
    fn recorded(&self) -> Result<()> {
        const TEXT: &str = "
            @group(0) @binding(0) var<storage, read> x: array<u32>;
            @group(0) @binding(1) var<storage, read_write> y: array<u32>;
            @compute @workgroup_size(8) fn main(@builtin(global_invocation_id) id: vec3u,
                                                @builtin(num_workgroups) count: vec3u) {
                y[id.x] = x[id.x] + count.x;
            }";
        let kernel = self.kernel(TEXT, "4")?;
        let (x, y, other) = (
            self.device.tensor([64], &[1_u32; 64])?,
            self.device.zeros::<u32>([64])?,
            self.device.zeros::<u32>([64])?,
        );
        let graph = self.queue.record(|recorder| recorder.launch(&kernel, (7, 8), (&x, &y)).map(|_| ()))?;
        let mut graph = self.queue.instantiate(&graph)?;
        self.queue.replay(&graph)?.wait()?;
        let mut right = vec![8_u32; 56];
        right.resize(64, 0);
        assert_eq!(y.to_vec::<u32>()?, right);
        graph.update(0, (&x, &other))?;
        self.queue.replay(&graph)?.wait()?;
        assert_eq!(other.to_vec::<u32>()?, right);
        Ok(())
    }
}
