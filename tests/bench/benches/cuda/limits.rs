//! Stress tests of a device: 16 threads with 8 queues each, exhausted memory, and copies between two devices.

use std::sync::Arc;

use runtime_core::{
    Arg, CodeFormat, CommonRuntime, DType, ErrorKind, Event, Geometry, Kernel, ModuleSource, Options,
    Placement, Runtime, Tensor,
};

const ADD: &str = "extern \"C\" __global__ void add(unsigned *x, unsigned by, unsigned n) { for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += by; }";
const THREADS: u32 = 16;
const QUEUES: u32 = 8;
const ROUNDS: u32 = 300;
const COUNT: u32 = 4096;

type Device = Arc<dyn CommonRuntime>;

fn open(name: &str) -> (Device, Kernel) {
    let device = Runtime::new().open_with(name, &Options::new()).expect("the device opens");
    // SAFETY: it writes as many elements as it is told.
    let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, ADD) };
    let kernel = device.kernel(&source, "add").expect("the kernel loads");
    (device, kernel)
}

fn add(queue: &runtime_core::Queue, kernel: &Kernel, x: &Tensor, by: u32) -> runtime_core::Result<Event> {
    let args = [Arg::read_write(x), Arg::scalar(by), Arg::scalar(COUNT)];
    queue.launch(kernel, Geometry::new([4, 1, 1], [256, 1, 1]), &args)
}

/// Every thread adds to its own tensor and to a shared one, from 8 queues in turn.
pub(crate) fn stress() {
    let (device, kernel) = open("cuda");
    let zeros = vec![0_u32; COUNT as usize];
    let shared = device.tensor([zeros.len()], &zeros).expect("memory");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (device, kernel, shared, zeros) = (&device, &kernel, &shared, &zeros);
            scope.spawn(move || {
                let queues: Vec<_> = (0..QUEUES).map(|_| device.queue().expect("a queue opens")).collect();
                let own = device.tensor([zeros.len()], zeros).expect("memory");
                let mut held = Vec::new();
                for round in 0..ROUNDS {
                    let queue = &queues[(round % QUEUES) as usize];
                    drop(add(queue, kernel, &own, thread + 1).expect("the queue takes it"));
                    if round % 4 == 0 {
                        held.push(add(queue, kernel, shared, 1).expect("the queue takes it"));
                    }
                    let passing = queue.allocate(DType::U32, &[zeros.len()], &Placement::default());
                    drop(queue.fill(&passing.expect("memory"), &[1, 2, 3, 4]).expect("the queue takes it"));
                }
                held.iter().for_each(|event| event.wait().expect("the kernel ends"));
                let sums = own.to_vec::<u32>().expect("the sums are read");
                assert!(sums.iter().all(|&sum| sum == ROUNDS * (thread + 1)), "thread {thread}");
            });
        }
    });
    let sums = shared.to_vec::<u32>().expect("the sums are read");
    assert!(sums.iter().all(|&sum| sum == THREADS * ROUNDS.div_ceil(4)), "{}", sums[0]);
    println!("stress: {THREADS} threads with {QUEUES} queues each, {ROUNDS} rounds: right");
}

/// Allocates all memory, twice, with work in flight: the last allocation fails, and afterwards everything works again.
pub(crate) fn memory() {
    let (device, kernel) = open("cuda");
    let queue = device.queue().expect("a queue opens");
    let placement = Placement::default();
    for round in 0..2 {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        let mut size = 8 << 30;
        let error = loop {
            let made = if round == 0 {
                device.allocate(DType::U32, &[size / 4], &placement)
            } else {
                queue.allocate(DType::U32, &[size / 4], &placement)
            };
            match made {
                Ok(tensor) => {
                    drop(add(&queue, &kernel, &tensor, 1).expect("the queue takes it"));
                    bytes += size;
                    taken.push(tensor);
                }
                Err(_) if size > 1 << 26 => size /= 2,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        drop(taken);
        queue.wait_idle().expect("the queue goes on");
        println!("memory: {:.1} GB taken, then: {error}", bytes as f64 / 1e9);
    }
    let half = device.allocate(DType::U32, &[(70 << 30) / 4], &placement).expect("memory has come back");
    queue.fill(&half, &[0]).and_then(|event| event.wait()).expect("it works");
    add(&queue, &kernel, &half, 7).and_then(|event| event.wait()).expect("it works");
    let first = half.slice(0, 0..COUNT as usize).and_then(|part| part.to_vec::<u32>()).expect("it is read");
    assert!(first.iter().all(|&value| value == 7));
    println!("memory: 75 GB at once afterwards: right");
}

/// Two devices: copies between them, and work that waits for the other device.
pub(crate) fn peers() {
    let runtime = Runtime::new();
    let devices: Vec<_> = ["cuda:0", "cuda:1"].iter().filter_map(|name| runtime.open(name).ok()).collect();
    let [first, second] = devices.as_slice() else {
        return println!("peers: there is one device only");
    };
    // SAFETY: it writes as many elements as it is told.
    let source = unsafe { ModuleSource::native(CodeFormat::CUDA_C, ADD) };
    let kernel = |device: &Device| device.kernel(&source, "add").expect("loads");
    let (here, there) = (kernel(first), kernel(second));
    let queue = |device: &Device| device.queue().expect("a queue opens");
    let (near, far) = (queue(first), queue(second));
    let numbers: Vec<u32> = (0..COUNT).collect();
    let x = first.tensor([numbers.len()], &numbers).expect("memory");
    let y = second.empty::<u32>([numbers.len()]).expect("memory");
    for _ in 0..200 {
        drop(add(&near, &here, &x, 1).expect("taken"));
        drop(far.copy(&y, &x).expect("taken"));
        drop(add(&far, &there, &y, 2).expect("taken"));
        drop(near.copy(&x, &y).expect("taken"));
    }
    let sums = x.to_vec::<u32>().expect("read");
    assert!(sums.iter().zip(0..).all(|(&sum, index)| sum == index + 600), "{:?}", &sums[..4]);
    println!("peers: 200 rounds of add, copy over, add, copy back: right");
    let (from, to) = (big(first), big(second));
    far.copy(&to, &from).and_then(|event| event.wait()).expect("copied");
    let begin = std::time::Instant::now();
    for _ in 0..8 {
        drop(far.copy(&to, &from).expect("taken"));
    }
    far.wait_idle().expect("copied");
    println!(
        "peers: {:.0} GB/s from one to the other",
        8.0 * (1 << 30) as f64 / begin.elapsed().as_nanos() as f64
    );
}

fn big(device: &Device) -> Tensor {
    device.empty::<u8>([1 << 30]).expect("memory")
}
