//! Portable kernels: lowered to C, with their work-groups as loops.

use runtime_core::{Arg, DType, ErrorKind, HostArray, ModuleSource, Tensor};

use crate::{Board, Case, DEADLINE};

pub(crate) const CASES: &[Case] = &[
    ("a_portable_kernel_runs_its_groups", a_portable_kernel_runs_its_groups),
    ("work_group_memory_and_barriers_work", work_group_memory_and_barriers_work),
    ("functions_of_wgsl_are_in_the_library", functions_of_wgsl_are_in_the_library),
    ("limits_of_a_launch_apply", limits_of_a_launch_apply),
    ("wrong_arguments_of_a_portable_kernel_are_refused", wrong_arguments_of_a_portable_kernel_are_refused),
];

const SAXPY: &str = "
    struct Factor { a: f32 }
    var<immediate> factor: Factor;
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(16)
    fn saxpy(@builtin(global_invocation_id) id: vec3u) {
        if id.x < arrayLength(&y) { y[id.x] += factor.a * x[id.x]; }
    }";

fn floats(board: &Board, values: impl Iterator<Item = f32>) -> Tensor {
    let data: Vec<f32> = values.collect();
    board.embedded().tensor_from_array(HostArray::from_slice(&[data.len()], &data).unwrap()).unwrap()
}

fn result(board: &Board, tensor: usize) -> Vec<f32> {
    board.embedded().run(DEADLINE).unwrap();
    board.embedded().read(tensor).unwrap().as_slice::<f32>().unwrap().to_vec()
}

fn a_portable_kernel_runs_its_groups(board: &Board) {
    let (x, y) = (floats(board, (0..50).map(|i| i as f32)), floats(board, (0..50).map(|_| 1.0)));
    let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(0.5f32)];
    board.embedded().flash_kernel(&ModuleSource::wgsl(SAXPY), "saxpy", [4, 1, 1], &args).unwrap();
    let expected: Vec<f32> = (0..50).map(|i| 1.0 + 0.5 * i as f32).collect();
    assert_eq!(result(board, 1), expected);
}

fn work_group_memory_and_barriers_work(board: &Board) {
    let code = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        var<workgroup> tile: array<f32, 32>;
        @compute @workgroup_size(32)
        fn reverse(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) at: u32) {
            tile[at] = x[id.x];
            workgroupBarrier();
            x[id.x] = tile[31 - at];
        }";
    let x = floats(board, (0..64).map(|i| i as f32));
    let args = [Arg::read_write(&x)];
    board.embedded().flash_kernel(&ModuleSource::wgsl(code), "reverse", [2, 1, 1], &args).unwrap();
    let expected: Vec<f32> = (0..64).map(|i| (i / 32 * 32 + 31 - i % 32) as f32).collect();
    assert_eq!(result(board, 0), expected);
}

fn functions_of_wgsl_are_in_the_library(board: &Board) {
    let code = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(1)
        fn f(@builtin(global_invocation_id) id: vec3u) { x[id.x] = exp(x[id.x]) + sin(x[id.x]); }";
    let x = floats(board, [0.0, 1.0, -2.0].into_iter());
    board.embedded().flash_kernel(&ModuleSource::wgsl(code), "f", [3, 1, 1], &[Arg::read_write(&x)]).unwrap();
    for (got, x) in result(board, 0).into_iter().zip([0.0f32, 1.0, -2.0]) {
        let expected = x.exp() + x.sin();
        assert!((got - expected).abs() < 1e-5, "{got} instead of {expected}");
    }
}

fn wrong_arguments_of_a_portable_kernel_are_refused(board: &Board) {
    let (x, y) = (floats(board, (0..4).map(|_| 1.0)), floats(board, (0..4).map(|_| 1.0)));
    let words = board.embedded().tensor_from_seed(DType::I32, &[4], 1).unwrap();
    let source = ModuleSource::wgsl(SAXPY);
    let flash =
        |entry, args: &[Arg<'_>]| board.embedded().flash_kernel(&source, entry, [1, 1, 1], args).unwrap_err();
    let two = [Arg::read(&x), Arg::read_write(&y)];
    let few = flash("saxpy", &two);
    assert!(few.kind() == ErrorKind::InvalidArgument && few.to_string().contains("3 arguments"), "{few}");
    let wrong = flash("saxpy", &[Arg::read(&words), Arg::read_write(&y), Arg::scalar(1.0f32)]);
    assert!(
        wrong.kind() == ErrorKind::InvalidArgument && wrong.to_string().contains("argument 0"),
        "{wrong}"
    );
    assert_eq!(flash("sapxy", &two).kind(), ErrorKind::NotFound);
    let read = flash("saxpy", &[Arg::read(&x), Arg::read(&y), Arg::scalar(1.0f32)]);
    assert!(read.to_string().contains("the kernel writes it"), "{read}");
    // SAFETY: it is refused.
    let native = unsafe { ModuleSource::native("c", "void f(void) {}") };
    let error = board.embedded().flash_kernel(&native, "f", [1, 1, 1], &[]).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("flash"), "{error}");
}

fn limits_of_a_launch_apply(board: &Board) {
    let code = "
        @group(0) @binding(0) var<storage, read_write> x: array<f32>;
        @compute @workgroup_size(4) fn small(@builtin(local_invocation_index) at: u32) { x[at] = 1.0; }";
    let (source, x) = (ModuleSource::wgsl(code), floats(board, (0..4).map(|_| 0.0)));
    let args = [Arg::read_write(&x)];
    let error = board.embedded().flash_kernel(&source, "small", [1, 70_000, 1], &args).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("70000"), "{error}");
    board.embedded().flash_kernel(&source, "small", [2, 1, 1], &args).unwrap();
    let info = board.embedded().kernel_info(&source, "small").unwrap();
    assert_eq!((info.group_size, info.params.map(|params| params.len())), (Some([4, 1, 1]), Some(1)));
    let error = board.embedded().kernel_info(&source, "large").unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("small"), "{error}");
}
