//! Mistakes of a first hour, and what the compiler says to them.

/// A program with a mistake at `CODE`.
pub(crate) const MISTAKEN: &str = "
    use runtime_core::{Device, Kernel, Queue, Result, Tensor};
    pub fn mistaken(device: &Device, queue: &Queue, kernel: &Kernel, x: &Tensor, n: usize) -> Result<()> {
        let _ = (device, queue, kernel, x, n);
        CODE
        Ok(())
    }";

/// Each with a part of the answer.
pub(crate) const MISTAKES: [(&str, &str); 5] = [
    ("queue.launch(kernel, (1, 64), (x, n))?;", "write `n as u32` or `n as i64` for a `usize`"),
    ("queue.launch(kernel, (1, 64), x)?;", "one argument is a tuple, too: `(&x,)`"),
    ("queue.launch(kernel, (1, 64), (x, \"text\"))?;", "`&str` is no launch argument"),
    (
        "device.kernel(\"@compute fn f() {}\", \"f\")?;",
        "write `ModuleSource::wgsl(text)` for a portable kernel",
    ),
    ("device.kernel(String::new(), \"f\")?;", "`String` does not say what language it is in"),
];
