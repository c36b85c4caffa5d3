//! The lock of a device, and pools of worker processes.

mod device_lock;
mod pool;
mod pool_launch;
