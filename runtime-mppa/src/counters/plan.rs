//! Which events are counted in which pass: the hardware counts a few at a time.

use super::{Event, Request};

/// Usable slots: the hardware has eight, and the operating system of a cluster overwrites slot 0.
pub const SLOTS: [u8; 7] = [1, 2, 3, 4, 5, 6, 7];

/// The passes over the events of some requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan(Vec<Event>);

impl Plan {
    /// Plans each event once, in the order in which events are first requested.
    #[must_use]
    pub fn new(requests: &[Request]) -> Self {
        let mut events: Vec<Event> = Vec::new();
        for request in requests {
            if !events.contains(&request.event) {
                events.push(request.event);
            }
        }
        Self(events)
    }

    /// How often the same work must run; at least 1.
    #[must_use]
    pub fn passes(&self) -> u32 {
        u32::try_from(self.0.len().div_ceil(SLOTS.len())).unwrap_or(u32::MAX).max(1)
    }

    /// The slots of a pass with their events.
    pub fn slots(&self, pass: u32) -> impl Iterator<Item = (u8, Event)> {
        let events = self.0.chunks(SLOTS.len()).nth(pass as usize).unwrap_or_default();
        SLOTS.into_iter().zip(events.iter().copied())
    }
}
