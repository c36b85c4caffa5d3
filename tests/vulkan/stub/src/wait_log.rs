//! Prints what submissions wait for, with the setting `log_waits`.

#![allow(clippy::print_stderr, reason = "the test reads it")]

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ash::vk;
use vk::Handle;

/// By semaphore, the last value that a submission signals.
static SUBMITTED: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Prints every wait of `count` submissions, with the last value submitted for its semaphore before.
///
/// # Safety
/// `submits` has as many valid elements.
pub(crate) unsafe fn log_waits(count: u32, submits: *const vk::SubmitInfo<'static>) {
    let mut submitted = SUBMITTED.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's.
    for submit in unsafe { list(submits, count) } {
        // SAFETY: as above.
        let Some(values) = (unsafe { values(submit) }) else { continue };
        // SAFETY: as above.
        let waits = unsafe { list(submit.p_wait_semaphores, submit.wait_semaphore_count) };
        // SAFETY: as above.
        let waited = unsafe { list(values.p_wait_semaphore_values, values.wait_semaphore_value_count) };
        for (semaphore, value) in waits.iter().zip(waited) {
            eprintln!("waits for {value} of {}", submitted.get(&semaphore.as_raw()).copied().unwrap_or(0));
        }
        // SAFETY: as above.
        let signals = unsafe { list(submit.p_signal_semaphores, submit.signal_semaphore_count) };
        // SAFETY: as above.
        let signaled = unsafe { list(values.p_signal_semaphore_values, values.signal_semaphore_value_count) };
        submitted.extend(signals.iter().map(|semaphore| semaphore.as_raw()).zip(signaled.iter().copied()));
    }
}

/// # Safety
/// `first` points to `count` elements.
unsafe fn list<'a, T>(first: *const T, count: u32) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(first, count as usize) }
}

/// The semaphore values of a submission.
///
/// # Safety
/// The submission and its chain are valid.
unsafe fn values<'a>(submit: &vk::SubmitInfo<'a>) -> Option<&'a vk::TimelineSemaphoreSubmitInfo<'a>> {
    let mut next = submit.p_next.cast::<vk::BaseInStructure<'a>>();
    // SAFETY: the caller's.
    while let Some(structure) = unsafe { next.as_ref() } {
        if structure.s_type == vk::StructureType::TIMELINE_SEMAPHORE_SUBMIT_INFO {
            // SAFETY: its `s_type` says so.
            return unsafe { next.cast::<vk::TimelineSemaphoreSubmitInfo<'a>>().as_ref() };
        }
        next = structure.p_next;
    }
    None
}
