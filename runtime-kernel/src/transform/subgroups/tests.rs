use super::{Sharing, emulated};
use crate::parse::validate;
use crate::{Program, Specialisation};

/// The emulated module is valid by naga's own rules, whatever is exchanged.
#[test]
fn emulated_modules_are_valid() {
    let code = "enable f16; enable subgroups;
        @group(0) @binding(0) var<storage, read_write> y: array<u32>;
        fn f(i: u32) -> u32 { return subgroupAdd(i) + subgroupShuffle(i, 1i) + subgroupShuffleUp(i, 1u); }
        @compute @workgroup_size(24)
        fn a(@builtin(subgroup_invocation_id) lane: u32, @builtin(local_invocation_index) i: u32) {
            y[i] = f(lane) + subgroupBallot(lane == 3u).x + subgroupBallot().y + u32(subgroupMax(f16(lane)));
        }
        @compute @workgroup_size(36)
        fn b(@builtin(subgroup_id) id: u32, @builtin(num_subgroups) n: u32, @builtin(subgroup_size) size: u32) {
            subgroupBarrier();
            y[id] = select(n, size, subgroupAny(id == 1u)) + dot(quadSwapX(vec3<u32>(id)), vec3<u32>(1u));
        }";
    let program = Program::parse(code, "", &Specialisation::default()).unwrap();
    for sharing in [Sharing::Shared, Sharing::PerCall] {
        validate(&emulated(&program, 16, sharing).unwrap()).unwrap();
    }
}
