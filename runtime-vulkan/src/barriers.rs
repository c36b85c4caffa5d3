//! Which barrier a submission needs: it follows from the tickets that earlier barriers have ordered.

use runtime_core::abi::SubmitInfo;

/// A barrier to record before a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredBarrier {
    /// Orders kernels only: cheaper for the host and the device.
    Kernels,
    /// Orders kernels, copies and fills.
    AllWork,
}

/// Which tickets are ordered before whatever is recorded next: `all_work <= kernels`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BarrierState {
    /// Tickets up to this one are ordered before any command.
    all_work: u64,
    /// Tickets up to this one are ordered before kernels, if they are kernels themselves.
    kernels: u64,
    /// The last ticket with a copy or fill, which a kernel barrier does not order.
    last_copy: u64,
    last_timestamp: u64,
}

impl BarrierState {
    /// The barrier before a submission that copies or fills.
    pub(crate) fn before_copy(&mut self, submit: SubmitInfo) -> Option<RequiredBarrier> {
        self.last_copy = submit.ticket;
        if self.required(submit) <= self.all_work {
            return None;
        }
        self.order(submit.ticket - 1);
        Some(RequiredBarrier::AllWork)
    }

    /// The barrier before a submission that only runs a kernel.
    #[inline]
    pub(crate) fn before_kernel(&mut self, submit: SubmitInfo) -> Option<RequiredBarrier> {
        if self.required(submit) <= self.kernels {
            return None;
        }
        if self.last_copy > self.kernels {
            self.order(submit.ticket - 1);
            return Some(RequiredBarrier::AllWork);
        }
        self.kernels = submit.ticket - 1;
        Some(RequiredBarrier::Kernels)
    }

    /// The last ticket that must be ordered before this submission: all that precedes the last timestamp, too.
    #[inline]
    fn required(&self, submit: SubmitInfo) -> u64 {
        submit.after.max(self.last_timestamp.saturating_sub(1))
    }

    /// Notes a timestamp, which is taken when all earlier commands have completed.
    pub(crate) fn note_timestamp(&mut self, ticket: u64) {
        self.last_timestamp = ticket;
    }

    /// Whether `ticket` is the last timestamp.
    pub(crate) fn is_last_timestamp(&self, ticket: u64) -> bool {
        self.last_timestamp == ticket
    }

    /// Tickets up to `ticket` lie before a barrier for all work, or have completed.
    pub(crate) fn order(&mut self, ticket: u64) {
        (self.all_work, self.kernels) = (ticket, ticket);
    }

    /// Tickets up to `completed` were seen to complete before the current command buffer was begun.
    pub(crate) fn acquire(&mut self, completed: u64) {
        self.all_work = self.all_work.max(completed);
        self.kernels = self.kernels.max(completed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submit(ticket: u64, after: u64) -> SubmitInfo {
        SubmitInfo { ticket, after }
    }

    #[test]
    fn independent_work_needs_no_barrier() {
        let mut state = BarrierState::default();
        assert_eq!(state.before_kernel(submit(1, 0)), None);
        assert_eq!(state.before_copy(submit(2, 0)), None);
    }

    #[test]
    fn completed_or_ordered_work_needs_no_barrier() {
        for (ordered, completed) in [(0, 3), (3, 0), (3, 2)] {
            let mut state = BarrierState::default();
            state.order(ordered);
            state.acquire(completed);
            assert_eq!(state.before_kernel(submit(4, 3)), None, "{ordered} {completed}");
            assert_eq!(state.before_copy(submit(5, 3)), None, "{ordered} {completed}");
            assert_eq!(state.before_kernel(submit(6, 5)), Some(RequiredBarrier::AllWork));
        }
    }

    #[test]
    fn a_barrier_orders_what_was_recorded_before_it() {
        let mut state = BarrierState::default();
        assert_eq!(state.before_copy(submit(1, 0)), None);
        assert_eq!(state.before_copy(submit(2, 1)), Some(RequiredBarrier::AllWork));
        assert_eq!(state.before_copy(submit(3, 1)), None, "ordered by the barrier before ticket 2");
        assert_eq!(state.before_copy(submit(4, 2)), Some(RequiredBarrier::AllWork), "ticket 2 is behind it");
        assert_eq!(state.before_kernel(submit(5, 4)), Some(RequiredBarrier::AllWork));
        assert_eq!(
            state.before_kernel(submit(6, 5)),
            Some(RequiredBarrier::Kernels),
            "ticket 5 is behind it"
        );
        assert_eq!(
            state.before_kernel(submit(7, 6)),
            Some(RequiredBarrier::Kernels),
            "ticket 6 is behind it"
        );
    }

    #[test]
    fn a_kernel_barrier_orders_kernels_but_no_copies() {
        let mut state = BarrierState::default();
        assert_eq!(state.before_kernel(submit(1, 0)), None);
        assert_eq!(state.before_kernel(submit(2, 1)), Some(RequiredBarrier::Kernels));
        assert_eq!(state.before_kernel(submit(3, 1)), None, "ordered by the barrier before ticket 2");
        assert_eq!(state.before_copy(submit(4, 1)), Some(RequiredBarrier::AllWork));
        assert_eq!(state.before_kernel(submit(5, 4)), Some(RequiredBarrier::AllWork), "it reads the copy");
        assert_eq!(state.before_kernel(submit(6, 4)), None);
    }

    #[test]
    fn work_behind_a_timestamp_is_ordered_behind_what_the_timestamp_measures() {
        let mut state = BarrierState::default();
        assert_eq!(state.before_kernel(submit(1, 0)), None);
        state.note_timestamp(2);
        assert!(state.is_last_timestamp(2) && !state.is_last_timestamp(1));
        assert_eq!(state.before_kernel(submit(3, 0)), Some(RequiredBarrier::Kernels));
        state.order(3);
        state.note_timestamp(4);
        assert_eq!(state.before_kernel(submit(5, 0)), None, "the timestamp itself is no work");
    }
}
