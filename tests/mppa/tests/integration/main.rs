//! `runtime doctor --mppa`, and the offload library's shim on a fake of the library, which this process has once.

mod doctor;
mod offload;
