//! Calling conventions and parallel ranges, through core's API.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use runtime_core::code::ParallelRange;
use runtime_core::{
    Arg, CodeFormat, CommonRuntime, ErrorKind, Geometry, ModuleSource, Placement, Runtime, Tensor,
};

/// Structures as in `dlpack.h`; `add_offset` applies the byte offset, `add_data` ignores it.
const CODE: &str = r#"
#include <stdint.h>
typedef struct { int32_t type, id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } DType;
typedef struct { void *data; Device device; int32_t ndim; DType dtype; int64_t *shape, *strides; uint64_t byte_offset; } DLTensor;
typedef union { int64_t i; double f; void *p; const char *s; } value;

static int matrix(const DLTensor *t) {
    return t->device.type == 1 && t->ndim == 2 && t->dtype.code == 2 && t->dtype.bits == 32 && t->dtype.lanes == 1;
}
static float *first(const DLTensor *t, int offset) { return (float *)((char *)t->data + (offset ? t->byte_offset : 0)); }
static void add(const DLTensor *x, const DLTensor *y, double a, int offset) {
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t j = 0; j < x->shape[1]; j++)
            first(y, offset)[i * y->strides[0] + j * y->strides[1]] += a * first(x, offset)[i * x->strides[0] + j * x->strides[1]];
}
static int packed(value *args, int *codes, int n, int offset) {
    if (n != 4 || codes[0] != 13 || codes[1] != 13 || codes[2] != 2 || codes[3] != 0) return 1;
    if (!matrix(args[0].p) || !matrix(args[1].p)) return 2;
    if (args[3].i < 0) return args[3].i;
    add(args[0].p, args[1].p, args[2].f, offset);
    return 0;
}
int add_offset(value *args, int *codes, int n, value *ret, int *ret_code) { return packed(args, codes, n, 1); }
int add_data(value *args, int *codes, int n, value *ret, int *ret_code) { return packed(args, codes, n, 0); }

typedef struct { int32_t index; uint32_t zero; union { int64_t i; double f; void *p; } value; } Any;
int __tvm_ffi_add_ffi(void *handle, const Any *args, int32_t n, Any *result) {
    if (handle || n != 4 || result->index != 0) return 1;
    for (int32_t i = 0; i < n; i++)
        if (args[i].zero || args[i].index != (i < 2 ? 7 : i == 2 ? 3 : 1)) return 2;
    if (!matrix(args[0].value.p) || !matrix(args[1].value.p)) return 3;
    if (args[3].value.i < 0) return args[3].value.i;
    add(args[0].value.p, args[1].value.p, args[2].value.f, 1);
    return 0;
}
int sum_all(value *args, int *codes, int n, value *ret, int *ret_code) {
    double sum = 0;
    for (int i = 1; i < n; i++) sum += *(float *)((DLTensor *)args[i].p)->data;
    *(float *)((DLTensor *)args[0].p)->data = sum;
    return 0;
}
"#;

fn host() -> Arc<dyn CommonRuntime> {
    let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
    runtime.open("host").expect("the host is always available")
}

fn source(code: &str) -> ModuleSource {
    // SAFETY: the launches below match the functions' parameters.
    unsafe { ModuleSource::native(CodeFormat::C, code) }
}

/// A 4 × 6 tensor of consecutive numbers from `start` on, and a view of its columns 1, 3 and 5.
fn matrix(host: &dyn CommonRuntime, start: f32) -> (Tensor, Tensor) {
    let data: Vec<f32> = (0..24).map(|index| start + index as f32).collect();
    let whole = host.tensor([4, 6], &data).unwrap();
    let view = whole.view(&[4, 3], &[6, 2], 1).unwrap();
    (whole, view)
}

#[test]
fn tensors_arrive_with_shape_strides_and_offset() {
    let host = host();
    let queue = host.queue().unwrap();
    let module = host.load(&source(CODE).option("convention", "packed")).unwrap();
    let tvm = host.load(&source(CODE)).unwrap();
    let kernels = [&module, &module, &tvm].into_iter().zip(["add_offset", "add_data", "add_ffi"]);
    for (module, name) in kernels {
        let kernel = module.kernel(name).unwrap();
        let ((_x, x), (whole, y)) = (matrix(&*host, 100.0), matrix(&*host, 0.0));
        let (x, y) = (Arg::read(&x).strided(), Arg::read_write(&y).strided());
        let args = [x, y, Arg::scalar(0.5_f32), Arg::scalar(7_u8)];
        queue.call(&kernel, Geometry::single(), &args).unwrap();
        queue.launch(&kernel, Geometry::single(), &args).unwrap().wait().unwrap();
        let expected: Vec<f32> = (0..24)
            .map(|index| index as f32 + if index % 2 == 1 { 100.0 + index as f32 } else { 0.0 })
            .collect();
        assert_eq!(whole.to_vec::<f32>().unwrap(), expected, "{name}");
    }
}

#[test]
fn a_code_other_than_zero_fails_the_ticket() {
    let host = host();
    let packed = host.load(&source(CODE).option("convention", "packed")).unwrap();
    let tvm = host.load(&source(CODE).option("convention", "tvm-ffi")).unwrap();
    let (_x, x) = matrix(&*host, 0.0);
    let kernels = [(packed.kernel("add_data").unwrap(), -3_i64), (tvm.kernel("add_ffi").unwrap(), -4)];
    for (kernel, code) in &kernels {
        // Later work fails on a tensor that failed work wrote, so each launch has its own.
        let targets = [(); 3].map(|()| matrix(&*host, 0.0));
        let args = |target: usize, code| {
            let (x, y) = (Arg::read(&x).strided(), Arg::read_write(&targets[target].1).strided());
            [x, y, Arg::scalar(1.0_f64), Arg::scalar(code)]
        };
        let queue = host.queue().unwrap();
        let inline = queue.call(kernel, Geometry::single(), &args(0, *code)).unwrap_err();
        let queue = host.queue().unwrap();
        let queued = queue.launch(kernel, Geometry::single(), &args(1, *code)).unwrap().wait().unwrap_err();
        for error in [inline, queued] {
            assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
            assert_eq!(error.driver().map(|(_, code)| code), Some(*code), "{error}");
        }
        let later = queue.call(kernel, Geometry::single(), &args(2, 0)).unwrap_err();
        assert_eq!(later.kind(), ErrorKind::Failed, "a failed queue stays failed: {later}");
    }
}

#[test]
fn more_tensors_than_fit_inline_are_passed() {
    let host = host();
    let kernel = host.kernel(source(CODE).option("convention", "packed"), "sum_all").unwrap();
    let queue = host.queue().unwrap();
    let tensors: Vec<_> =
        (0..40_u16).map(|index| host.tensor([1, 1, 1], &[f32::from(index)]).unwrap()).collect();
    let args: Vec<_> =
        std::iter::once(Arg::write(&tensors[0])).chain(tensors[1..].iter().map(Arg::read)).collect();
    queue.launch(&kernel, Geometry::single(), &args).unwrap().wait().unwrap();
    assert_eq!(tensors[0].to_vec::<f32>().unwrap(), [780.0]);
}

const RANGE: &str = "
#include <stdint.h>
void scale(const double *x, double *y, double a, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) y[i] += a * x[i];
}
void last(int64_t *calls, int64_t begin, int64_t end) { __atomic_fetch_add(calls, 1, __ATOMIC_RELAXED); }
";

#[test]
fn a_range_runs_in_parallel_inline_and_asynchronously() {
    let host = host();
    let module = host.load(&source(RANGE)).unwrap();
    let (kernel, last) = (module.kernel("scale").unwrap(), module.kernel("last").unwrap());
    let queue = host.queue().unwrap();
    let x = host.tensor([10_007], &vec![2.0_f64; 10_007]).unwrap();
    let y = host.tensor([10_007], &vec![1.0_f64; 10_007]).unwrap();
    let args = [Arg::read(&x), Arg::read_write(&y), Arg::scalar(0.5_f64)];
    for grain in [None, Some(1), Some(100), Some(1 << 20)] {
        let range = ParallelRange { grain, ..(0..10_007).into() };
        queue.call(&kernel, range, &args).unwrap();
        queue.launch(&kernel, range, &args).unwrap().wait().unwrap();
    }
    assert!(y.to_vec::<f64>().unwrap().iter().all(|&value| (value - 9.0).abs() < 1e-12));
    let calls = host.tensor([1], &[0_i64]).unwrap();
    for (range, grain, expected) in [(0..0, None, 0), (7..7, Some(1), 0), (-5..5, Some(3), 4)] {
        let range = ParallelRange { grain, ..range.into() };
        calls.write(&[0_i64]).unwrap();
        queue.call(&last, range, &[Arg::read_write(&calls)]).unwrap();
        assert_eq!(calls.to_vec::<i64>().unwrap(), [expected], "{range:?}");
    }
    let backwards = ParallelRange { begin: 5, end: 4, grain: None };
    let error = queue.call(&kernel, backwards, &args).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    queue.call(&kernel, 0..1, &args).unwrap();
}

#[test]
fn a_range_of_a_packed_function_is_rejected() {
    let host = host();
    let kernel = host.kernel(source(CODE).option("convention", "packed"), "sum_all").unwrap();
    let queue = host.queue().unwrap();
    let error = queue.launch(&kernel, 0..4, &[]).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[test]
fn alignment_and_huge_pages_are_honoured() {
    let host = host();
    for (alignment_bytes, huge_pages) in [(4096, false), (1 << 21, false), (256, true), (1 << 22, true)] {
        let placement = Placement { alignment_bytes, huge_pages, ..Placement::default() };
        let tensor = match host.allocate(runtime_core::DType::F32, &[1000, 1000], &placement) {
            Err(error) if huge_pages && error.kind() == ErrorKind::Unavailable => continue,
            tensor => tensor.unwrap(),
        };
        tensor.fill(&1.0_f32.to_le_bytes()).unwrap();
        let view = tensor.map().unwrap();
        assert_eq!(view.as_ptr().addr() % alignment_bytes, 0);
    }
}
