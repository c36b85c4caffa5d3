//! Core on the null backend, one module per theme. `Cargo.toml` lists the tests that have a program of their own.

mod asynchronous;
mod closing;
mod code_cache;
mod counters;
mod device_copies;
mod device_fills;
mod dispatch;
mod dlpack;
mod drop_orders;
mod evaluate;
mod fusion;
mod graphs;
mod held_evaluation;
mod lowering;
mod queues_under_faults;
mod safetensors;
mod timed_work;
mod transfer_locks;
mod under_miri;
mod views;
mod wrong_answers;
