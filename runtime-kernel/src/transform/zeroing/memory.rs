//! The state of the elements of a work-group variable.

use std::ops::Range;

/// The state of an element: one of these, or the number of the activation that has written it.
type Element = u32;

/// Possibly unwritten.
const UNWRITTEN: Element = 0;
/// Written by some invocation.
const WRITTEN: Element = 1;
/// Written, and made visible by a barrier.
const VISIBLE: Element = 2;

/// The number of the first activation.
pub(super) const FIRST: u32 = 3;

/// The elements of a variable.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    elements: Vec<Element>,
    visible: usize,
}

impl Memory {
    pub(super) fn new(elements: usize) -> Self {
        Self { elements: vec![UNWRITTEN; elements], visible: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether any invocation may read all of it.
    pub(super) fn is_whole(&self) -> bool {
        self.visible == self.elements.len()
    }

    pub(super) fn write(&mut self, range: Range<usize>, activation: u32) {
        for element in self.elements.get_mut(range).into_iter().flatten() {
            if *element != VISIBLE {
                *element = activation;
            }
        }
    }

    /// Each activation writes `count` elements from its place on, unless that is out of range.
    pub(super) fn write_each(&mut self, places: &[u32], count: usize, activations: &[u32]) {
        for (&place, &activation) in places.iter().zip(activations) {
            if count != 1 {
                self.write(range(place, count), activation);
            } else if let Some(element) = self.elements.get_mut(place as usize)
                && *element != VISIBLE
            {
                *element = activation;
            }
        }
    }

    /// Whether each activation may read `count` elements from its place on, if that is in range.
    pub(super) fn may_each_read(&self, places: &[u32], count: usize, activations: &[u32]) -> bool {
        places.iter().zip(activations).all(|(&place, &activation)| match self.elements.get(place as usize) {
            Some(&element) if count == 1 => element == VISIBLE || element == activation,
            Some(_) => self.may_read(range(place, count), activation),
            None => true,
        })
    }

    /// A barrier: everything written becomes visible to all.
    pub(super) fn publish(&mut self) {
        let mut unwritten = 0u32;
        for element in &mut self.elements {
            unwritten += u32::from(*element == UNWRITTEN);
            *element = if *element == UNWRITTEN { UNWRITTEN } else { VISIBLE };
        }
        self.visible = self.elements.len() - unwritten as usize;
    }

    /// Whether an activation may read all elements of a range.
    pub(super) fn may_read(&self, range: Range<usize>, activation: u32) -> bool {
        let fine = |element: &Element| *element == VISIBLE || *element == activation;
        self.elements.get(range).is_some_and(|elements| elements.iter().all(fine))
    }

    /// Whether all invocations may read all elements of a range.
    pub(super) fn is_visible(&self, range: Range<usize>) -> bool {
        self.may_read(range, VISIBLE)
    }

    /// Keeps what holds in both states.
    pub(super) fn meet(&mut self, other: &Self) {
        // Most branches write none of it.
        if self.elements == other.elements {
            return;
        }
        for (mine, theirs) in self.elements.iter_mut().zip(&other.elements) {
            *mine = match (*mine, *theirs) {
                (a, b) if a == b => a,
                (UNWRITTEN, _) | (_, UNWRITTEN) => UNWRITTEN,
                // Visible on one side, written on the other.
                _ => WRITTEN,
            };
        }
        self.visible = self.elements.iter().filter(|element| **element == VISIBLE).count();
    }
}

fn range(place: u32, count: usize) -> Range<usize> {
    let place = place as usize;
    place..place.saturating_add(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meet_keeps_what_both_sides_write() {
        let mut a = Memory::new(4);
        a.write(0..2, FIRST);
        a.publish();
        a.write(2..4, FIRST);
        let mut b = Memory::new(4);
        b.write(0..3, FIRST + 1);
        a.meet(&b);
        assert!(!a.may_read(0..1, FIRST) && !a.may_read(0..1, FIRST + 1));
        a.publish();
        assert!(a.may_read(0..3, 9) && !a.may_read(3..4, FIRST) && !a.is_whole());
        assert!(!a.may_read(3..5, FIRST) && a.is_visible(0..3) && !a.is_visible(2..4));
    }
}
