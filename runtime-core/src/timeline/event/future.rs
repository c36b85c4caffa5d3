//! An event as a future.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::Result;
use crate::timeline::Timeline;
use crate::timeline::event::Event;
use crate::timeline::event::Source;
use crate::timeline::event::group::{Group, Kind};
use crate::timeline::event::signal::Signal;
use crate::timeline::virtual_queue::Cause;

impl Future for Event {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        match self.poll_result() {
            Ok(Some(result)) => Poll::Ready(result),
            Err(error) => Poll::Ready(Err(error)),
            Ok(None) => self.get_mut().register(context),
        }
    }
}

impl IntoFuture for &Event {
    type Output = Result<()>;
    type IntoFuture = Event;

    fn into_future(self) -> Event {
        self.clone()
    }
}

impl Event {
    /// Has the task woken once there is a result.
    fn register(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        if let Some(timeline) = self.timeline.clone() {
            return self.register_ticket(&timeline, context);
        }
        match self.source().cloned() {
            Some(Source::Signal(signal)) => self.register_signal(&signal, context),
            Some(Source::Group(group)) => self.register_group(&group, context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn register_ticket(&mut self, timeline: &Arc<Timeline>, context: &Context<'_>) -> Poll<Result<()>> {
        let Some(device) = timeline.device.upgrade() else { return Poll::Ready(self.wait()) };
        let Some((timeline, ticket)) = timeline.to_real(self.ticket, Cause::Event) else {
            return Poll::Ready(self.wait());
        };
        let registered = timeline.resume().and_then(|_| {
            device.register_waker((&timeline, ticket), &mut self.more_mut().registration, context.waker())
        });
        match registered {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn register_signal(&mut self, signal: &Signal, context: &Context<'_>) -> Poll<Result<()>> {
        match signal.register(&mut self.more_mut().registration, context.waker()) {
            true => Poll::Pending,
            false => Poll::Ready(self.wait()),
        }
    }

    fn register_group(&mut self, group: &Group, context: &mut Context<'_>) -> Poll<Result<()>> {
        let registered = group.resume().and_then(|()| match group.kind() {
            Kind::All => self.register_next(group, context),
            Kind::Any => self.register_each(group, context),
        });
        registered
            .map_or_else(|error| Poll::Ready(Err(error)), |ended| ended.map_or(Poll::Pending, Poll::Ready))
    }

    /// Registers the first event of the group that has no result yet; returns the group's result if there is none.
    fn register_next(&mut self, group: &Group, context: &mut Context<'_>) -> Result<Option<Result<()>>> {
        loop {
            if let Some(result) = group.poll_result()? {
                return Ok(Some(result));
            }
            let waiting = &mut self.more_mut().waiting;
            let Some(event) = group.next_waiting(waiting) else { return Ok(None) };
            match Pin::new(&mut *event).poll(context) {
                Poll::Pending => return Ok(None),
                // Without a result, the event cannot be polled.
                Poll::Ready(Err(error)) if !matches!(event.poll_result(), Ok(Some(_))) => return Err(error),
                Poll::Ready(_) => {}
            }
        }
    }

    /// Registers every event of the group that has not failed.
    fn register_each(&mut self, group: &Group, context: &mut Context<'_>) -> Result<Option<Result<()>>> {
        let waiting = &mut self.more_mut().waiting;
        if waiting.is_empty() {
            *waiting = group.parts().iter().map(Self::point).enumerate().collect();
        }
        // The poll of the group below sees what has ended meanwhile.
        waiting.retain_mut(|(_, event)| Pin::new(event).poll(context).is_pending());
        group.poll_result()
    }

    /// Withdraws the waker of a dropped future.
    #[cold]
    pub(super) fn unregister(&self) {
        let Some(registration) = self.more.as_ref().map(|more| more.registration).filter(|id| *id != 0)
        else {
            return;
        };
        match (&self.timeline, self.source()) {
            (Some(timeline), _) => {
                if let Some(device) = timeline.device.upgrade() {
                    device.forget_waker(registration);
                }
            }
            (None, Some(Source::Signal(signal))) => signal.forget(registration),
            (None, _) => {}
        }
    }
}
