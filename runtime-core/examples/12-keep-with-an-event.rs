//! Lifetimes, the second form: an event owns what its work needs, so that it can be handed around as one value.

#![allow(unsafe_code, reason = "loads native code")]

use std::sync::mpsc::{self, Sender};

use runtime_core::{Device, Event, ModuleSource, Result, Runtime, read_write};

const CODE: &str = "void twice(float *x, long n) { for (long i = 0; i < n; i++) x[i] *= 2; }";

/// One of a limited number of slots, which others wait for. It is free again when it is dropped.
struct Slot(Sender<usize>, usize);

impl Drop for Slot {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

fn submit(device: &Device, slot: Slot) -> Result<Event> {
    // SAFETY: the function accesses n elements, as the launch declares.
    let twice = device.kernel(&unsafe { ModuleSource::native("c", CODE) }, "twice")?;
    let x = device.tensor([2], &[1.0f32, 2.0])?;
    let event = device.queue()?.launch(&twice, (1, 1), (read_write(&x), 2i64))?;
    Ok(event.keeping(slot)) // tensors and kernels are kept anyway; the slot is ours
}

fn main() -> Result<()> {
    let device = Runtime::new().open("host")?;
    let (send, free) = mpsc::channel();
    let event = submit(&device, Slot(send.clone(), 0))?;
    event.wait()?;
    assert!(free.try_recv().is_err()); // the event still owns it
    drop(event);
    assert_eq!(free.try_recv(), Ok(0));

    drop(submit(&device, Slot(send, 1))?); // nobody waits: it is free when the work has ended, and not before
    assert_eq!(free.recv(), Ok(1));
    Ok(())
}
