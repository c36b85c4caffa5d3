//! What may be a dependency: events, of whatever queue, device or backend.

/// Everything that takes dependencies.
pub(crate) const PROGRAM: &str = "
    use runtime_core::{Event, Queue, Result, Tensor};
    pub fn depend(queue: &Queue, event: &Event, tensor: &Tensor, owned: Vec<Event>) -> Result<()> {
        let _ = (event, tensor, &owned);
        queue.wait_for_all(DEPS)?;
        queue.barrier(DEPS)?;
        queue.host_task(DEPS, || {})?;
        queue.keep_until(DEPS, ())?;
        Event::all(DEPS).wait()?;
        Event::any(DEPS).wait()
    }";

/// Dependencies.
pub(crate) const EVENTS: [&str; 4] = [
    "&[]",
    "&[event, &owned[0]]",
    "&[&Event::all(&[event]), &Event::completed()]",
    "&owned.iter().collect::<Vec<_>>()",
];

/// What is none.
pub(crate) const NO_EVENTS: [&str; 6] =
    ["event", "&[queue]", "&[tensor]", "&[event.ticket()]", "&[Some(event)]", "&owned"];
