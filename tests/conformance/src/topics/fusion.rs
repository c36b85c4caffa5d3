//! Kernel fusion: fused launches give the results of the same launches as they are, bit for bit. The numbers are small whole
//! ones, so that it does not matter which compiler contracts a product and a sum.

use runtime_core::{
    CodeFormat, Element, FusionOptions, FusionReport, Geometry, Kernel, ModuleSource, Queue, Tensor, abi,
    half,
};

use crate::case::{Failure, Verdict, cases};
use crate::context::Context;
use crate::expect::expect_equal;
use crate::wait;

/// Not a multiple of a group.
const N: usize = 1000;
const GROUP: u32 = 64;
/// As many elements as the groups of `COVER` have items.
const WHOLE: usize = 1024;
const COVER: (u32, u32) = (16, GROUP);

cases! {
    [] => two_kernels, three_kernels, a_diamond, a_diamond_with_group_memory, two_dimensions, larger_and_smaller_ranges,
        groups_of_another_size, one_kernel, no_kernel, a_list_in_a_loop, group_memory_of_a_kernel, a_barrier_between_kernels,
        structures, pointers_as_arguments, barriers_inside, halves, vectors, a_dropped_temporary, a_dropped_temporary_of_a_group,
        a_temporary_behind_functions, arrays_in_registers, a_reduction_at_the_end, neighbours_are_not_fused,
        a_reversed_index_is_not_fused, indices_from_data_are_not_fused, one_tensor_in_several_places, thirty_two_kernels;
}

/// Kernels of one item per element.
pub(super) const ELEMENTS: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read> in1: array<f32>;
    @group(0) @binding(0) var<storage, read_write> out0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    @group(0) @binding(2) var<storage, read_write> out2: array<f32>;
    struct Scalars { factor: f32 }
    var<immediate> scalars: Scalars;
    @compute @workgroup_size(64) fn add(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out2) { out2[id.x] = in0[id.x] + in1[id.x]; }
    }
    @compute @workgroup_size(64) fn multiply(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out2) { out2[id.x] = in0[id.x] * in1[id.x]; }
    }
    @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x] * scalars.factor; }
    }
    @compute @workgroup_size(64) fn relu(@builtin(global_invocation_id) id: vec3u) {
        let i = id.x;
        if i >= arrayLength(&out0) { return; }
        out0[i] = max(out0[i], 0.0);
    }
    @compute @workgroup_size(64) fn neighbour(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[(id.x + 1) % arrayLength(&in0)]; }
    }
    @compute @workgroup_size(64) fn reversed(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[arrayLength(&in0) - 1 - id.x]; }
    }
    @compute @workgroup_size(64) fn gather(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out2) { out2[id.x] = in0[u32(in1[id.x])]; }
    }
    @compute @workgroup_size(32) fn negate(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = -in0[id.x]; }
    }";

/// Kernels of one group per 64 elements, whose items exchange them in work-group memory.
const GROUPED: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    var<workgroup> tile: array<f32, 64>;
    @compute @workgroup_size(64)
    fn rotate(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) item: vec3u) {
        tile[item.x] = in0[id.x];
        workgroupBarrier();
        out1[id.x] = tile[(item.x + 1) % 64];
    }
    @compute @workgroup_size(64)
    fn mirror(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) item: vec3u) {
        out1[group.x * 64 + item.x] = in0[group.x * 64 + 63 - item.x];
    }
    @compute @workgroup_size(64)
    fn total(@builtin(workgroup_id) group: vec3u, @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) item: vec3u) {
        tile[item.x] = in0[id.x];
        for (var width = 32u; width > 0; width /= 2) {
            workgroupBarrier();
            if item.x < width { tile[item.x] += tile[item.x + width]; }
        }
        if item.x == 0 { out1[group.x] = tile[0]; }
    }";

const TYPED: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<vec4f>;
    @group(0) @binding(1) var<storage, read_write> out1: array<vec4f>;
    @compute @workgroup_size(64) fn twice(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x] * 2.0; }
    }
    @compute @workgroup_size(64) fn swizzle(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x].wzyx; }
    }";

const STRUCTURES: &str = "
    struct Pair { left: f32, right: f32 }
    @group(0) @binding(0) var<storage, read> in0: array<Pair>;
    @group(0) @binding(1) var<storage, read_write> out1: array<Pair>;
    @compute @workgroup_size(64) fn swap(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) {
            out1[id.x].left = in0[id.x].right;
            out1[id.x].right = in0[id.x].left;
        }
    }
    @compute @workgroup_size(64) fn sum(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = Pair(in0[id.x].left + in0[id.x].right, in0[id.x].left); }
    }";

const FUNCTIONS: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    fn load(i: u32) -> f32 { return in0[i]; }
    fn raise(x: ptr<function, f32>) { *x += 1.0; }
    fn twice(x: ptr<function, f32>) { raise(x); raise(x); }
    @compute @workgroup_size(64) fn step(@builtin(global_invocation_id) id: vec3u) {
        if id.x >= arrayLength(&out1) { return; }
        var x = load(id.x);
        twice(&x);
        out1[id.x] = x;
    }";

const PLANE: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    struct Size { width: u32, height: u32 }
    var<immediate> size: Size;
    @compute @workgroup_size(8, 8) fn raise(@builtin(global_invocation_id) id: vec3u) {
        if id.x < size.width && id.y < size.height { out1[id.y * size.width + id.x] = in0[id.y * size.width + id.x] + 1.0; }
    }
    @compute @workgroup_size(8, 8) fn twice(@builtin(global_invocation_id) id: vec3u) {
        if id.x < size.width && id.y < size.height { out1[id.y * size.width + id.x] = in0[id.y * size.width + id.x] * 2.0; }
    }";

const HALVES: &str = "
    enable f16;
    @group(0) @binding(0) var<storage, read> in0: array<f16>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f16>;
    struct Scalars { factor: f16 }
    var<immediate> scalars: Scalars;
    @compute @workgroup_size(64) fn scale(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&out1) { out1[id.x] = in0[id.x] * scalars.factor; }
    }";

const ARRAYS: &str = "
    @group(0) @binding(0) var<storage, read> in0: array<f32>;
    @group(0) @binding(1) var<storage, read_write> out1: array<f32>;
    @compute @workgroup_size(64) fn prefix(@builtin(global_invocation_id) id: vec3u) {
        var sum = 0.0;
        for (var k = 0u; k < 4; k++) { sum += in0[id.x * 4 + k]; out1[id.x * 4 + k] = sum; }
    }
    @compute @workgroup_size(64) fn backwards(@builtin(global_invocation_id) id: vec3u) {
        for (var k = 0u; k < 4; k++) { out1[id.x * 4 + k] = in0[id.x * 4 + 3 - k]; }
    }";

/// What a scenario launches, and the tensors that it starts from.
struct Scenario<'a> {
    context: &'a Context,
    queue: Queue,
    /// With their contents at the start.
    tensors: Vec<(Tensor, Vec<u8>)>,
}

impl<'a> Scenario<'a> {
    fn new(context: &'a Context) -> Result<Self, Failure> {
        if !context.info().accepts(&CodeFormat::WGSL) {
            return Err(Failure::Unsupported("the device runs no portable kernels".to_owned()));
        }
        Ok(Self { context, queue: context.fixture().queue()?, tensors: Vec::new() })
    }

    fn kernel(&self, text: &str, entry: &str) -> Result<Kernel, Failure> {
        Ok(self.context.fixture().device().kernel(ModuleSource::wgsl(text), entry)?)
    }

    fn elements(&self, entry: &str) -> Result<Kernel, Failure> {
        self.kernel(ELEMENTS, entry)
    }

    fn tensor<T: Element>(&mut self, shape: &[usize], value: impl Fn(usize) -> T) -> Result<Tensor, Failure> {
        let data: Vec<T> = (0..shape.iter().product()).map(value).collect();
        let tensor = self.context.fixture().device().tensor(shape, &data)?;
        self.tensors.push((tensor.clone(), tensor.to_array()?.bytes().to_vec()));
        Ok(tensor)
    }

    fn numbers(&mut self, first: f32) -> Result<Tensor, Failure> {
        self.tensor(&[N], |index| first + (index % 17) as f32)
    }

    /// Two tensors with numbers and two to write to.
    fn four(&mut self) -> Result<(Tensor, Tensor, Tensor, Tensor), Failure> {
        Ok((self.numbers(1.0)?, self.numbers(-9.0)?, self.numbers(0.0)?, self.numbers(0.0)?))
    }

    /// Tensors of whole groups.
    fn whole(&mut self) -> Result<[Tensor; 4], Failure> {
        let mut whole = |first: f32| self.tensor(&[WHOLE], |index| first + (index % 17) as f32);
        Ok([whole(1.0)?, whole(2.0)?, whole(3.0)?, whole(4.0)?])
    }

    fn temporary(&self, n: usize) -> Result<Tensor, Failure> {
        Ok(self.context.fixture().uninitialized::<f32>(n)?)
    }

    /// Runs `work` as it is and fused; the results must be the same, and as many kernels must be left as `kernels` says.
    fn fuses_to(&self, kernels: usize, work: impl Fn(&Queue) -> Verdict) -> Result<FusionReport, Failure> {
        self.restore()?;
        work(&self.queue)?;
        let right = self.contents()?;
        self.restore()?;
        let fuser = self.queue.fuser(&FusionOptions::default())?;
        work(fuser.queue())?;
        let (event, report) = fuser.complete()?;
        wait::event(&event)?;
        for (index, (fused, right)) in self.contents()?.iter().zip(&right).enumerate() {
            expect_equal(&format!("tensor {index} ({report})"), fused, right)?;
        }
        assert_eq!(report.kernels.len(), kernels, "{report}");
        assert!(report.cancelled.is_none() && report.fallback.is_none(), "{report}");
        Ok(report)
    }

    fn restore(&self) -> Verdict {
        self.tensors.iter().try_for_each(|(tensor, data)| Ok(tensor.write_bytes(data)?))
    }

    fn contents(&self) -> Result<Vec<Vec<u8>>, Failure> {
        self.tensors.iter().map(|(tensor, _)| Ok(tensor.to_array()?.bytes().to_vec())).collect()
    }
}

fn two_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&scale, COVER, (&sum, &out, 3.0f32))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn three_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, relu, scale) =
        (scenario.elements("add")?, scenario.elements("relu")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&relu, COVER, (&sum,))?;
        queue.launch(&scale, COVER, (&sum, &out, 0.5f32))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn a_diamond(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    let (left, right) = (scenario.numbers(0.0)?, scenario.numbers(0.0)?);
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&scale, COVER, (&sum, &left, 2.0f32))?;
        queue.launch(&scale, COVER, (&sum, &right, 3.0f32))?;
        queue.launch(&add, COVER, (&left, &right, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn a_diamond_with_group_memory(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (rotate, mirror) = (scenario.kernel(GROUPED, "rotate")?, scenario.kernel(GROUPED, "mirror")?);
    let add = scenario.elements("add")?;
    let [a, left, right, out] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&rotate, COVER, (&a, &left))?;
        queue.launch(&mirror, COVER, (&a, &right))?;
        queue.launch(&add, COVER, (&left, &right, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn two_dimensions(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (raise, twice) = (scenario.kernel(PLANE, "raise")?, scenario.kernel(PLANE, "twice")?);
    let plane = |scenario: &mut Scenario<'_>| scenario.tensor(&[30, 50], |index| (index % 23) as f32);
    let (x, y, z) = (plane(&mut scenario)?, plane(&mut scenario)?, plane(&mut scenario)?);
    let geometry = Geometry::new([7, 4, 1], [8, 8, 1]);
    let work = |queue: &Queue| {
        queue.launch(&raise, geometry, (&x, &y, 50u32, 30u32))?;
        queue.launch(&twice, geometry, (&y, &z, 50u32, 30u32))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn larger_and_smaller_ranges(context: &Context) -> Verdict {
    for (first, second) in [(16, 8), (8, 16), (3, 16), (16, 16)] {
        let mut scenario = Scenario::new(context)?;
        let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
        let (a, b, sum, out) = scenario.four()?;
        let work = |queue: &Queue| {
            queue.launch(&add, (first, GROUP), (&a, &b, &sum))?;
            queue.launch(&scale, (second, GROUP), (&sum, &out, 3.0f32))?;
            Ok(())
        };
        scenario.fuses_to(1, work)?;
    }
    Ok(())
}

fn groups_of_another_size(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, negate) = (scenario.elements("add")?, scenario.elements("negate")?);
    let (a, b, sum, out) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&negate, (32, 32), (&sum, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn one_kernel(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let add = scenario.elements("add")?;
    let (a, b, sum, _) = scenario.four()?;
    let report = scenario.fuses_to(1, |queue| {
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        Ok(())
    })?;
    assert!(!report.kernels[0].is_fused, "{report}");
    Ok(())
}

fn no_kernel(context: &Context) -> Verdict {
    Scenario::new(context)?.fuses_to(0, |_| Ok(())).map(drop)
}

fn a_list_in_a_loop(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, sum, out) = scenario.four()?;
    for round in 0..10u8 {
        let report = scenario.fuses_to(1, |queue| {
            queue.launch(&add, COVER, (&a, &b, &sum))?;
            queue.launch(&scale, COVER, (&sum, &out, f32::from(round)))?;
            Ok(())
        })?;
        assert!(report.is_cached || round == 0, "round {round}");
    }
    Ok(())
}

fn group_memory_of_a_kernel(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (rotate, scale) = (scenario.kernel(GROUPED, "rotate")?, scenario.elements("scale")?);
    let [a, b, c, _] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&rotate, COVER, (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn a_barrier_between_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (mirror, scale) = (scenario.kernel(GROUPED, "mirror")?, scenario.elements("scale")?);
    let [a, b, c, d] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&mirror, COVER, (&b, &c))?;
        queue.launch(&mirror, COVER, (&c, &d))?;
        Ok(())
    };
    let report = scenario.fuses_to(1, work)?;
    assert_eq!(report.kernels[0].barriers, 2, "{report}");
    Ok(())
}

fn structures(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (swap, sum) = (scenario.kernel(STRUCTURES, "swap")?, scenario.kernel(STRUCTURES, "sum")?);
    let [a, b, c, _] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&swap, COVER, (&a, &b))?;
        queue.launch(&sum, COVER, (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn pointers_as_arguments(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let step = scenario.kernel(FUNCTIONS, "step")?;
    let (a, b, c, _) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&step, COVER, (&a, &b))?;
        queue.launch(&step, COVER, (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn barriers_inside(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let rotate = scenario.kernel(GROUPED, "rotate")?;
    let [a, b, c, d] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&rotate, COVER, (&a, &b))?;
        queue.launch(&rotate, COVER, (&b, &c))?;
        queue.launch(&rotate, COVER, (&c, &d))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn halves(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    if !context.info().capabilities.has(abi::CAP_F16) {
        return Err(Failure::Unsupported("the device has no f16".to_owned()));
    }
    let scale = scenario.kernel(HALVES, "scale")?;
    let half =
        |scenario: &mut Scenario<'_>| scenario.tensor(&[N], |index| half::f16::from_f32((index % 13) as f32));
    let (a, b, c) = (half(&mut scenario)?, half(&mut scenario)?, half(&mut scenario)?);
    let factor = half::f16::from_f32(2.0);
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, factor))?;
        queue.launch(&scale, COVER, (&b, &c, factor))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn vectors(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (twice, swizzle) = (scenario.kernel(TYPED, "twice")?, scenario.kernel(TYPED, "swizzle")?);
    let [a, b, c, _] = scenario.whole()?;
    let work = |queue: &Queue| {
        queue.launch(&twice, (4, GROUP), (&a, &b))?;
        queue.launch(&swizzle, (4, GROUP), (&b, &c))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

/// Nobody can read a dropped tensor, so that its elements stay in registers.
fn a_dropped_temporary(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, scale) = (scenario.elements("add")?, scenario.elements("scale")?);
    let (a, b, out, _) = scenario.four()?;
    let report = scenario.fuses_to(1, |queue| {
        let sum = scenario.temporary(N)?;
        queue.launch(&add, COVER, (&a, &b, &sum))?;
        queue.launch(&scale, COVER, (&sum, &out, 3.0f32))?;
        Ok(())
    })?;
    assert_eq!(report.kernels[0].promoted, 1, "{report}");
    Ok(())
}

fn a_dropped_temporary_of_a_group(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (mirror, scale) = (scenario.kernel(GROUPED, "mirror")?, scenario.elements("scale")?);
    let [a, out, ..] = scenario.whole()?;
    scenario
        .fuses_to(1, |queue| {
            let twice = scenario.temporary(WHOLE)?;
            queue.launch(&scale, COVER, (&a, &twice, 2.0f32))?;
            queue.launch(&mirror, COVER, (&twice, &out))?;
            Ok(())
        })
        .map(drop)
}

fn a_temporary_behind_functions(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let step = scenario.kernel(FUNCTIONS, "step")?;
    let (a, out, ..) = scenario.four()?;
    scenario
        .fuses_to(1, |queue| {
            let (first, second) = (scenario.temporary(N)?, scenario.temporary(N)?);
            queue.launch(&step, COVER, (&a, &first))?;
            queue.launch(&step, COVER, (&first, &second))?;
            queue.launch(&step, COVER, (&second, &out))?;
            Ok(())
        })
        .map(drop)
}

fn arrays_in_registers(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (prefix, backwards) = (scenario.kernel(ARRAYS, "prefix")?, scenario.kernel(ARRAYS, "backwards")?);
    let [a, out, ..] = scenario.whole()?;
    scenario
        .fuses_to(1, |queue| {
            let sums = scenario.temporary(WHOLE)?;
            queue.launch(&prefix, (4, GROUP), (&a, &sums))?;
            queue.launch(&backwards, (4, GROUP), (&sums, &out))?;
            Ok(())
        })
        .map(drop)
}

fn a_reduction_at_the_end(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (total, scale) = (scenario.kernel(GROUPED, "total")?, scenario.elements("scale")?);
    let [a, b, ..] = scenario.whole()?;
    let sums = scenario.tensor(&[16], |_| 0.0f32)?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&total, COVER, (&b, &sums))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

/// The second kernel reads what other items of the first one write.
fn stays_two(context: &Context, entry: &str) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (scale, reader) = (scenario.elements("scale")?, scenario.elements(entry)?);
    let (a, b, out, _) = scenario.four()?;
    let report = scenario.fuses_to(2, |queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&reader, COVER, (&b, &out))?;
        Ok(())
    })?;
    let text = report.to_string();
    for word in ["scale", entry, "argument"] {
        assert!(text.contains(word), "{text}");
    }
    Ok(())
}

fn neighbours_are_not_fused(context: &Context) -> Verdict {
    stays_two(context, "neighbour")
}

fn a_reversed_index_is_not_fused(context: &Context) -> Verdict {
    stays_two(context, "reversed")
}

fn indices_from_data_are_not_fused(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (scale, gather) = (scenario.elements("scale")?, scenario.elements("gather")?);
    let (a, b, out, indices) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
        queue.launch(&gather, COVER, (&b, &indices, &out))?;
        Ok(())
    };
    scenario.fuses_to(2, work).map(drop)
}

fn one_tensor_in_several_places(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (add, multiply) = (scenario.elements("add")?, scenario.elements("multiply")?);
    let (a, b, out, _) = scenario.four()?;
    let work = |queue: &Queue| {
        queue.launch(&add, COVER, (&a, &a, &b))?;
        queue.launch(&multiply, COVER, (&b, &b, &out))?;
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}

fn thirty_two_kernels(context: &Context) -> Verdict {
    let mut scenario = Scenario::new(context)?;
    let (relu, scale) = (scenario.elements("relu")?, scenario.elements("scale")?);
    let (a, b, ..) = scenario.four()?;
    let work = |queue: &Queue| {
        for _ in 0..8 {
            queue.launch(&scale, COVER, (&a, &b, 2.0f32))?;
            queue.launch(&relu, COVER, (&b,))?;
            queue.launch(&scale, COVER, (&b, &a, 0.5f32))?;
            queue.launch(&relu, COVER, (&a,))?;
        }
        Ok(())
    };
    scenario.fuses_to(1, work).map(drop)
}
