//! cuBLAS on a queue: a product of two matrices in f16, in order with what the runtime submits, at cuBLAS's own speed.
//!
//! The library is found at run time. Without an NVIDIA GPU or cuBLAS, the program says so.

#![allow(unsafe_code, clippy::multiple_unsafe_ops_per_block, reason = "calls cuBLAS and CUDA")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "small numbers")]

use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use libloading::{Library, Symbol};
use runtime_core::half::f16;
use runtime_core::{Device, Error, ErrorKind, Queue, Result, Runtime, Tensor, read, write};

const N: usize = 4096;
/// Products per measurement.
const PRODUCTS: usize = 200;
/// Measurements.
const ROUNDS: usize = 15;
/// `CUDA_R_16F`.
const F16: c_int = 2;
/// `CUBLAS_COMPUTE_32F`.
const F32_SUMS: c_int = 68;

type Handle = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type Synchronize = unsafe extern "C" fn(*mut c_void) -> c_int;
#[rustfmt::skip]
type Gemm = unsafe extern "C" fn(
    Handle, c_int, c_int, c_int, c_int, c_int, *const f32, u64, c_int, c_int, u64, c_int, c_int, *const f32, u64, c_int,
    c_int, c_int, c_int,
) -> c_int;

/// cuBLAS, with its functions.
struct Cublas<'l> {
    handle: Handle,
    set_stream: Symbol<'l, SetStream>,
    gemm: Symbol<'l, Gemm>,
}

impl<'l> Cublas<'l> {
    fn new(library: &'l Library) -> Result<Self> {
        // SAFETY: cuBLAS's functions of these names.
        let (create, set_stream, gemm) = unsafe {
            let create = library.get::<Create>(b"cublasCreate_v2").map_err(|error| missing(&error))?;
            (
                create,
                library.get(b"cublasSetStream_v2").map_err(|error| missing(&error))?,
                library.get(b"cublasGemmEx").map_err(|error| missing(&error))?,
            )
        };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the output pointer is writable.
        check(unsafe { create(&raw mut handle) })?;
        Ok(Self { handle, set_stream, gemm })
    }

    /// Submits c = a · b to a stream.
    fn product(&self, stream: *mut c_void, [a, b, c]: [u64; 3]) -> Result<()> {
        let (n, one, zero) = (N as c_int, 1.0f32, 0.0f32);
        // SAFETY: the caller keeps the matrices until the product has ended. Column-major: b · a of the transposed matrices.
        unsafe {
            check((self.set_stream)(self.handle, stream))?;
            check((self.gemm)(
                self.handle,
                0,
                0,
                n,
                n,
                n,
                &raw const one,
                b,
                F16,
                n,
                a,
                F16,
                n,
                &raw const zero,
                c,
                F16,
                n,
                F32_SUMS,
                -1,
            ))
        }
    }
}

fn missing(error: &libloading::Error) -> Error {
    Error::new(ErrorKind::Unavailable, error.to_string())
}

fn check(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::new(ErrorKind::Driver, format!("cuBLAS returned {code}"))) }
}

fn open(names: &[&str]) -> Result<Library> {
    // SAFETY: NVIDIA's libraries may be loaded at any time.
    let found = names.iter().find_map(|name| unsafe { Library::new(*name) }.ok());
    found.ok_or_else(|| Error::new(ErrorKind::Unavailable, format!("none of {names:?} is here")))
}

fn multiply(queue: &Queue, cublas: &Cublas<'_>, [a, b, c]: [&Tensor; 3]) -> Result<()> {
    let addresses = [address(a)?, address(b)?, address(c)?];
    // SAFETY: the product reads a and b, writes c, and is submitted to the stream of the queue.
    let product = unsafe {
        queue.native((read(a), read(b), write(c)), |handles| {
            cublas.product(handles.pointer("CUstream")?, addresses)
        })
    };
    product.map(drop)
}

fn address(tensor: &Tensor) -> Result<u64> {
    Ok(tensor.native()?.address.unwrap_or(0))
}

fn run(device: &Device) -> Result<()> {
    let libraries = (open(&["libcublas.so.13", "libcublas.so.12"])?, open(&["libcuda.so.1"])?);
    let queue = device.queue()?;
    let [a, b, c] = [(); 3].map(|()| device.empty::<f16>([N, N]));
    let (a, b, c) = (a?, b?, c?);
    let ones: Vec<_> = std::iter::repeat_n(f16::ONE, N * N).collect();
    a.write(&ones)?;
    b.write(&ones)?;

    // The handle belongs to the context that is current: create it where the runtime makes the device's so.
    let mut cublas = None;
    // SAFETY: it submits nothing.
    unsafe { queue.native((), |_| Cublas::new(&libraries.0).map(|made| cublas = Some(made)))? };
    let cublas = cublas.ok_or_else(|| Error::new(ErrorKind::Internal, "not created"))?;

    queue.fill(&a, &f16::from_f32(0.5).to_le_bytes())?; // before the product,
    multiply(&queue, &cublas, [&a, &b, &c])?;
    queue.fill(&a, &f16::ONE.to_le_bytes())?; // and after it
    assert!(c.to_vec::<f16>()?.iter().all(|&sum| sum == f16::from_f32(0.5 * N as f32)));

    // The same products on the same stream, without the runtime between them.
    let (stream, addresses) = (device_stream(&queue)?, [address(&a)?, address(&b)?, address(&c)?]);
    // SAFETY: CUDA's function of this name.
    let synchronize =
        unsafe { libraries.1.get::<Synchronize>(b"cuStreamSynchronize") }.map_err(|error| missing(&error))?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..PRODUCTS {
            multiply(&queue, &cublas, [&a, &b, &c])?;
        }
        queue.wait_idle()?;
        ours.push(begin.elapsed() / PRODUCTS as u32);
        // SAFETY: the queue is idle, and nothing else uses the matrices.
        let own = unsafe {
            queue.native((&a, &b, &c), |_| {
                let begin = Instant::now();
                for _ in 0..PRODUCTS {
                    cublas.product(stream, addresses)?;
                }
                check(synchronize(stream))?;
                theirs.push(begin.elapsed() / PRODUCTS as u32);
                Ok(())
            })
        };
        own?.wait()?;
    }
    let [ours, theirs] = [ours, theirs].map(median);
    let teraflops = 2.0 * (N as f64).powi(3) / ours.as_secs_f64() / 1e12;
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!(
        "{N}³ in f16: {ours:?} in order with a queue ({teraflops:.0} TFLOP/s), {theirs:?} by cuBLAS alone: {ratio:.4}"
    );
    Ok(())
}

/// The stream behind a queue.
fn device_stream(queue: &Queue) -> Result<*mut c_void> {
    let mut stream = std::ptr::null_mut();
    // SAFETY: it submits nothing.
    let lent = unsafe { queue.native((), |handles| handles.pointer("CUstream").map(|lent| stream = lent)) };
    lent.map(|_| stream)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Result<()> {
    match Runtime::new().open("cuda").and_then(|device| run(&device)) {
        Err(error) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::NotFound) => {
            println!("{error}");
            Ok(())
        }
        done => done,
    }
}
