//! A dispatcher: one kernel for any element type, compiled when it is called, that runs where its arguments are.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{Dispatcher, Element, ModuleSource, Result, Runtime};

/// Called for parts of the range, on several threads. `T` is the element type of the arguments.
const AXPY: &str = "
#include <stdint.h>
void axpy(T a, const T *x, T *y, int64_t begin, int64_t end) { for (int64_t i = begin; i < end; i++) y[i] += a * x[i]; }";
const N: usize = 1000;

fn run<T: Element + PartialEq>(
    axpy: &Dispatcher,
    runtime: &Runtime,
    [a, x, y, expected]: [T; 4],
) -> Result<()>
where
    T: runtime_core::Scalar,
{
    let device = runtime.open("host")?;
    let (x, y) = (device.tensor([N], &[x; N])?, device.tensor([N], &[y; N])?);
    let first = axpy.submit(N, &[], (a, &x, &y))?; // returns at once; the first call of a type compiles
    axpy.submit(N, &[&first], (a, &x, &y))?.wait()?; // after the first
    assert!(y.to_vec::<T>()? == [expected; N]);
    Ok(())
}

fn main() -> Result<()> {
    let runtime = Runtime::new();
    // SAFETY: it accesses the elements of the range, which are those of both tensors.
    let source = unsafe { ModuleSource::native("c", AXPY) };
    let axpy = Dispatcher::builder("axpy")
        .source(source)
        .signature("a: T, x: read T, y: read_write T")
        .on_compile(|overload| println!("compiled {overload}"))
        .build()?;
    run(&axpy, &runtime, [2.0f32, 3.0, 1.0, 13.0])?;
    run(&axpy, &runtime, [2i64, 3, 1, 13])?;
    let wrong = axpy.call(N, (2.0f64, &runtime.open("host")?.zeros::<f32>([N])?)).unwrap_err();
    assert!(wrong.to_string().contains("\"axpy\" takes 3 arguments, got 2"));
    Ok(())
}
