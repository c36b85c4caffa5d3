//! In-order queues.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runtime_core::abi::{Progress, SubmitInfo};
use runtime_core::backend::{Copy2D, FillPattern, HostBytes, HostBytesMut, Launch, Queue};
use runtime_core::{Error, Result};

use crate::arguments::Arguments;
use crate::builtins::{Call, Code};
use crate::fault::{Faults, OnDrop};
use crate::graph::NullGraph;
use crate::memory::NullBuffer;
use crate::module::NullKernel;
use crate::timeline::{DeviceQueues, State, Timeline};

/// How long `wait` sleeps between two polls.
const POLL_INTERVAL: Duration = Duration::from_micros(20);

/// An in-order queue.
#[derive(Debug)]
pub struct NullQueue {
    timeline: Arc<Timeline>,
    _close: OnDrop,
}

impl NullQueue {
    pub(crate) fn open(faults: &Arc<Faults>, device_queues: &DeviceQueues, opened: Instant) -> Self {
        Self {
            timeline: Timeline::new(faults, device_queues, opened),
            _close: OnDrop::new(faults, "close_queue"),
        }
    }
}

impl Drop for NullQueue {
    fn drop(&mut self) {
        self.timeline.abandon();
    }
}

impl Queue for NullQueue {
    type Buffer = NullBuffer;
    type Kernel = NullKernel;
    type Graph = NullGraph;

    fn launch(&self, submit: SubmitInfo, kernel: &NullKernel, launch: &Launch<'_, NullBuffer>) -> Result<()> {
        let code = kernel.builtin.code;
        if matches!(code, Code::Noop) {
            return self.timeline.submit(Call::Launch, submit, Duration::ZERO, |_| Ok(()));
        }
        let arguments = Arguments::of_launch(launch)?;
        let duration = code.duration(&arguments)?;
        self.timeline.submit(Call::Launch, submit, duration, move |state| code.run(&arguments, state.calls()))
    }

    fn try_begin_inline(&self, ticket: u64) -> bool {
        self.timeline.try_begin_inline(ticket)
    }

    fn run_inline(&self, ticket: u64, kernel: &NullKernel, launch: &Launch<'_, NullBuffer>) -> Result<()> {
        let code = kernel.builtin.code;
        let prepared = Arguments::of_launch(launch).and_then(|arguments| {
            std::thread::sleep(code.duration(&arguments)?);
            Ok(arguments)
        });
        // The ticket ends even if the arguments are invalid.
        self.timeline.run_inline_work(ticket, |state| code.run(&prepared?, state.calls()))
    }

    fn run_inline_noop(&self, ticket: u64) -> Result<()> {
        self.timeline.run_inline_work(ticket, |_| Ok(()))
    }

    fn write(
        &self,
        submit: SubmitInfo,
        destination: &NullBuffer,
        offset: u64,
        source: HostBytes,
    ) -> Result<()> {
        let memory = Arc::clone(&destination.memory);
        self.timeline.submit(Call::Write, submit, Duration::ZERO, move |_| memory.write(offset, &source))
    }

    fn read(
        &self,
        submit: SubmitInfo,
        source: &NullBuffer,
        offset: u64,
        destination: HostBytesMut,
    ) -> Result<()> {
        let memory = Arc::clone(&source.memory);
        self.timeline.submit(Call::Read, submit, Duration::ZERO, move |_| memory.read(offset, &destination))
    }

    fn copy(
        &self,
        submit: SubmitInfo,
        destination: (&NullBuffer, u64),
        source: (&NullBuffer, u64),
        bytes: u64,
    ) -> Result<()> {
        let (to, at) = (Arc::clone(&destination.0.memory), destination.1);
        let (from, source_at) = (Arc::clone(&source.0.memory), source.1);
        let bytes = length(bytes)?;
        self.timeline
            .submit(Call::Copy, submit, Duration::ZERO, move |_| to.copy(at, &from, source_at, bytes))
    }

    fn copy_2d(&self, submit: SubmitInfo, rows: &Copy2D<'_, NullBuffer>) -> Result<()> {
        let (to, to_offset, to_pitch) =
            (Arc::clone(&rows.destination.0.memory), rows.destination.1, rows.destination_pitch);
        let (from, from_offset, from_pitch) =
            (Arc::clone(&rows.source.0.memory), rows.source.1, rows.source_pitch);
        let (bytes, rows) = (length(rows.row_bytes)?, rows.rows);
        self.timeline.submit(Call::Copy2D, submit, Duration::ZERO, move |_| {
            (0..rows).try_for_each(|row| {
                to.copy(to_offset + row * to_pitch, &from, from_offset + row * from_pitch, bytes)
            })
        })
    }

    fn fill(
        &self,
        submit: SubmitInfo,
        destination: (&NullBuffer, u64),
        bytes: u64,
        pattern: FillPattern,
    ) -> Result<()> {
        let (memory, offset) = (Arc::clone(&destination.0.memory), destination.1);
        let bytes = pattern.shortest().repeat(length(bytes)? / pattern.shortest().len());
        self.timeline.submit(Call::Fill, submit, Duration::ZERO, move |_| memory.put(offset, &bytes))
    }

    fn noop(&self, submit: SubmitInfo) -> Result<()> {
        self.timeline.submit(Call::Noop, submit, Duration::ZERO, |_| Ok(()))
    }

    fn timestamp(&self, submit: SubmitInfo) -> Result<()> {
        let submitted = Instant::now();
        let work = move |state: &mut State| state.stamp(submit.ticket, submitted);
        self.timeline.submit(Call::Timestamp, submit, Duration::ZERO, work)
    }

    fn read_timestamp(&self, ticket: u64) -> Result<u64> {
        self.timeline.take_timestamp(ticket)
    }

    fn replay(&self, submit: SubmitInfo, graph: &NullGraph) -> Result<()> {
        let work = graph.work();
        self.timeline.submit(Call::Replay, submit, graph.duration()?, move |state| work(state.calls()))
    }

    fn signal(&self, ticket: u64) -> Result<()> {
        self.timeline.call(Call::Signal)?;
        self.timeline.signal(ticket);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.timeline.call(Call::Flush)?;
        self.timeline.flush();
        Ok(())
    }

    fn poll(&self) -> Result<Progress> {
        self.timeline.call(Call::Poll)?;
        self.timeline.progress();
        Ok(self.timeline.observed())
    }

    fn wait(&self, ticket: u64, slice: Duration) -> Result<()> {
        self.timeline.call(Call::Wait)?;
        let began = Instant::now();
        loop {
            self.timeline.progress();
            let left = slice.saturating_sub(began.elapsed());
            if left.is_zero() || self.timeline.reached(ticket).is_some() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
    }

    fn wait_for(&self, other: &Self, ticket: u64) -> Result<()> {
        self.timeline.call(Call::WaitFor)?;
        self.timeline.wait_for(&other.timeline, ticket);
        Ok(())
    }

    fn hold(&self) -> Result<()> {
        self.timeline.hold()
    }

    fn resume(&self) -> Result<bool> {
        self.timeline.resume()
    }

    fn failure(&self) -> Option<Error> {
        self.timeline.failure()
    }
}

fn length(bytes: u64) -> Result<usize> {
    usize::try_from(bytes).map_err(|_| Error::invalid(format!("{bytes} bytes do not fit the address space")))
}

#[cfg(test)]
mod tests {
    use runtime_core::{ErrorKind, Options};

    use super::*;
    use crate::memory::Usage;

    /// Queues of one device with these options.
    fn queues<const N: usize>(options: &Options) -> [NullQueue; N] {
        let (faults, device_queues) = (Faults::new(options).unwrap(), DeviceQueues::default());
        std::array::from_fn(|_| NullQueue::open(&faults, &device_queues, Instant::now()))
    }

    fn buffer() -> NullBuffer {
        NullBuffer::allocate(4, 256, &Usage::new(64), false).unwrap()
    }

    fn submit(ticket: u64) -> SubmitInfo {
        SubmitInfo { ticket, after: ticket - 1 }
    }

    fn fill(queue: &NullQueue, ticket: u64, buffer: &NullBuffer, byte: u8) {
        queue.fill(submit(ticket), (buffer, 0), 4, FillPattern::new(&[byte], 4).unwrap()).unwrap();
    }

    fn first(buffer: &NullBuffer) -> u8 {
        buffer.memory.load(0).unwrap()
    }

    #[test]
    fn an_idle_queue_runs_at_submission() {
        let [queue] = queues(&Options::new());
        let buffer = buffer();
        fill(&queue, 1, &buffer, 7);
        assert_eq!(first(&buffer), 7);
        assert_eq!(queue.poll().unwrap().completed, 1);
    }

    #[test]
    fn a_delayed_ticket_ends_late_and_wait_returns_early() {
        let submitted = |delay_us: i64| {
            let [queue] = queues(&Options::new().with("delay_us", delay_us));
            queue.noop(submit(1)).unwrap();
            queue
        };
        let late = submitted(3_600_000_000);
        late.wait(1, Duration::from_millis(1)).unwrap();
        assert_eq!(late.poll().unwrap().completed, 0);
        let soon = submitted(1_000);
        soon.wait(1, Duration::from_secs(10)).unwrap();
        assert_eq!(soon.poll().unwrap().completed, 1);
    }

    #[test]
    fn a_failed_ticket_fails_all_later_ones() {
        let [queue] = queues(&Options::new().with("fail_ticket", 2));
        let buffer = buffer();
        for ticket in 1..=3 {
            fill(&queue, ticket, &buffer, u8::try_from(ticket).unwrap());
        }
        let progress = queue.poll().unwrap();
        assert_eq!((progress.completed, progress.first_failed, first(&buffer)), (3, 2, 1));
        assert_eq!(queue.failure().unwrap().kind(), ErrorKind::Failed);
    }

    #[test]
    fn a_batch_runs_when_it_is_flushed() {
        let [queue] = queues(&Options::new().with("needs_flush", true));
        queue.noop(submit(1)).unwrap();
        assert_eq!(queue.poll().unwrap().completed, 0);
        queue.flush().unwrap();
        queue.noop(submit(2)).unwrap();
        assert_eq!(queue.poll().unwrap().completed, 1);
    }

    #[test]
    fn only_signaled_tickets_are_reported() {
        let [queue] = queues(&Options::new().with("needs_signals", true).with("fail_ticket", 3));
        queue.noop(submit(1)).unwrap();
        queue.signal(1).unwrap();
        queue.noop(submit(2)).unwrap();
        queue.noop(submit(3)).unwrap();
        let seen = |queue: &NullQueue| queue.poll().map(|seen| (seen.completed, seen.first_failed)).unwrap();
        assert_eq!(seen(&queue), (1, 0));
        queue.signal(3).unwrap();
        assert_eq!(seen(&queue), (3, 3));
    }

    #[test]
    fn queues_run_in_reverse_except_for_what_they_wait_for() {
        let [older, younger] = queues(&Options::new().with("out_of_order", true));
        let (source, copied) = (buffer(), buffer());
        fill(&older, 1, &source, 7);
        younger.copy(submit(1), (&copied, 0), (&source, 0), 4).unwrap();
        older.poll().unwrap();
        younger.poll().unwrap();
        assert_ne!(first(&copied), 7, "the newer queue ran first, and copied the old content");

        fill(&older, 2, &source, 8);
        younger.wait_for(&older, 2).unwrap();
        younger.copy(submit(2), (&copied, 0), (&source, 0), 4).unwrap();
        younger.poll().unwrap();
        assert_eq!(first(&copied), 8, "it waited");
    }

    #[test]
    fn a_queue_runs_in_reverse_except_for_dependencies() {
        let buffer = buffer();
        let filled = |afters: &[u64]| {
            let [queue] = queues(&Options::new().with("reorders", true));
            for (byte, &after) in (1..).zip(afters) {
                let place = SubmitInfo { ticket: u64::from(byte), after };
                queue.fill(place, (&buffer, 0), 4, FillPattern::new(&[byte], 4).unwrap()).unwrap();
            }
            assert_eq!(queue.poll().unwrap().completed, afters.len() as u64);
            first(&buffer)
        };
        assert_eq!(filled(&[0, 0, 0]), 1, "without dependencies, the first runs last");
        assert_eq!(filled(&[0, 1, 2]), 3, "all in order");
        assert_eq!(filled(&[0, 0, 2]), 3, "the last waits for both");
        assert_eq!(filled(&[0, 1, 0]), 2, "the second waits for the first, the third for none");
    }

    #[test]
    fn only_an_idle_queue_runs_inline() {
        let [first, second, late] = queues(&Options::new());
        assert!(first.try_begin_inline(1));
        assert!(!first.try_begin_inline(2), "one call at a time");
        fill(&first, 2, &buffer(), 1);
        assert_eq!(first.poll().unwrap().completed, 0, "a later ticket ends later");
        second.wait_for(&first, 1).unwrap();
        assert!(!second.try_begin_inline(1), "it waits");
        first.run_inline_noop(1).unwrap();
        assert_eq!(first.poll().unwrap().completed, 2);
        assert!(second.try_begin_inline(1), "what it waited for has ended");
        let failed = second.timeline.run_inline_work(1, |_| Err(Error::invalid("it fails")));
        assert_eq!(failed.unwrap_err().message(), "it fails");
        assert_eq!(second.poll().unwrap().first_failed, 1);
        assert!(!second.try_begin_inline(2), "a failed queue is never idle");
        late.timeline.submit(Call::Launch, submit(1), Duration::from_secs(3600), |_| Ok(())).unwrap();
        assert!(!late.try_begin_inline(2), "busy");
    }

    #[test]
    fn a_timestamp_is_read_once() {
        let [queue] = queues(&Options::new());
        queue.timestamp(submit(1)).unwrap();
        queue.timestamp(submit(2)).unwrap();
        assert!(queue.read_timestamp(1).unwrap() <= queue.read_timestamp(2).unwrap());
        assert_eq!(queue.read_timestamp(1).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
