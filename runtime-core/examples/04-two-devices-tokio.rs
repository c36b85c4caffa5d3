//! Events are futures: one thread keeps two devices busy while it runs other tasks.

#![allow(unsafe_code, reason = "loads native code")]
#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

use runtime_core::{Device, Module, ModuleSource, Queue, Result, Runtime, Tensor, read_write};

const C: &str = "
#include <unistd.h>
void slow_twice(float *x, long n) { usleep(200000); for (long i = 0; i < n; i++) x[i] *= 2; }";

fn prepare(device: &Device, format: &str, code: &str) -> Result<(Module, Queue, Tensor)> {
    // SAFETY: the kernels access only the tensors that they are launched with, as the launches below declare.
    let module = device.load(&unsafe { ModuleSource::native(format, code) })?;
    Ok((module, device.queue()?, device.tensor([1], &[3.0f32])?))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    // The host is discovered; the simulated device `null` is linked in. Both are used the same way.
    let runtime = Runtime::builder().register(runtime_null::backend()).build();
    let (c, host, x) = prepare(&runtime.open("host")?, "c", C)?;
    let (text, null, y) = prepare(&runtime.open("null")?, "null", "spin\nscale_f32")?;
    let (twice, spin, scale) = (c.kernel("slow_twice")?, text.kernel("spin")?, text.kernel("scale_f32")?);

    let on_host = host.launch(&twice, (1, 1), (read_write(&x), 1i64))?;
    null.launch(&spin, (1, 1), (200_000i64,))?; // takes 200 ms, as the host's kernel does
    let on_null = null.launch(&scale, (1, 1), (read_write(&y), 9.0f32))?;
    assert!(!on_host.is_done()? && !on_null.is_done()?); // both are at work

    let other = async {
        println!("this thread does something else while host and null are busy");
        tokio::task::yield_now().await;
        Ok(())
    };
    tokio::try_join!(on_host, on_null, other)?;
    assert_eq!((x.to_vec::<f32>()?, y.to_vec::<f32>()?), (vec![6.0], vec![27.0]));
    Ok(())
}
