//! A dispatcher: one kernel for any element type, compiled when it is called, that runs where its arguments are.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::code::Scalar;
use runtime_core::dispatch::Dispatcher;
use runtime_core::{Element, ModuleSource, Result, Runtime};

/// Called for parts of the range, on several threads. `T` is the element type of the arguments.
const AXPY: &str = "
#include <stdint.h>
void axpy(T a, const T *x, T *y, int64_t begin, int64_t end) { for (; begin < end; begin++) y[begin] += a * x[begin]; }";
const N: usize = 1000;

fn run<T: Element + Scalar + PartialEq>(axpy: &Dispatcher, [a, x, y, expected]: [T; 4]) -> Result<()> {
    let device = Runtime::new().open("host")?;
    let (x, y) = (device.tensor([N], &[x; N])?, device.tensor([N], &[y; N])?);
    let first = axpy.submit(N, &[], (a, &x, &y))?; // returns at once; the first call of a type compiles
    axpy.submit(N, &[&first], (a, &x, &y))?.wait()?; // after the first
    assert!(y.to_vec::<T>()? == [expected; N]);
    let message = axpy.call(N, (a, &x)).map_err(|error| error.to_string());
    assert!(message.is_err_and(|message| message.contains("\"axpy\" takes 3 arguments, got 2")));
    Ok(())
}

fn main() -> Result<()> {
    // SAFETY: it accesses the elements of the range, which are those of both tensors.
    let source = unsafe { ModuleSource::native("c", AXPY) };
    let axpy = Dispatcher::builder("axpy")
        .source(source)
        .signature("a: T, x: read T, y: read_write T")
        .on_compile(|overload| println!("compiled {overload}"))
        .build()?;
    run(&axpy, [2.0f32, 3.0, 1.0, 13.0])?;
    run(&axpy, [2i64, 3, 1, 13])
}
