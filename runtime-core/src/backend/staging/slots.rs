//! The loops of a thread that copies pieces through slots: the device copies some slots while the thread fills or empties others.

use std::collections::VecDeque;

use super::{Direction, Piece, Pieces};
use crate::Result;

/// The slots of a thread, each of which holds a piece of a transfer `T`. They are used in turn.
pub trait StagingSlots<T> {
    /// Number of slots.
    const COUNT: usize;

    /// Waits until the device has finished with a slot. Returns at once if it does not use the slot.
    ///
    /// # Errors
    /// Any error of the driver; `DeviceLost`.
    fn wait(&mut self, transfer: &T, slot: usize) -> Result<()>;

    /// Copies a piece between host memory and a slot, which the device does not use.
    ///
    /// # Errors
    /// `DeviceLost` if the host memory must not be accessed any more.
    fn copy_host(&mut self, transfer: &T, slot: usize, piece: Piece) -> Result<()>;

    /// Submits the device's copy between a slot and its own memory.
    ///
    /// # Errors
    /// Any error of the driver.
    fn submit(&mut self, transfer: &T, slot: usize, piece: Piece) -> Result<()>;
}

/// Copies pieces of a transfer until none are left. At the end of an upload the device may still copy the last slots.
///
/// # Errors
/// The first error of the slots, in which the device may still copy pieces then.
pub fn copy_pieces<T, S: StagingSlots<T>>(
    slots: &mut S,
    transfer: &T,
    direction: Direction,
    pieces: &Pieces,
) -> Result<()> {
    let mut next = std::iter::from_fn(|| pieces.take()).zip((0..S::COUNT).cycle());
    if direction == Direction::Upload {
        return next.try_for_each(|(piece, slot)| {
            slots.wait(transfer, slot)?;
            slots.copy_host(transfer, slot, piece)?;
            slots.submit(transfer, slot, piece)
        });
    }
    let mut arriving = VecDeque::with_capacity(S::COUNT);
    loop {
        while arriving.len() < S::COUNT
            && let Some((piece, slot)) = next.next()
        {
            // The device may still use it for an earlier transfer.
            slots.wait(transfer, slot)?;
            slots.submit(transfer, slot, piece)?;
            arriving.push_back((piece, slot));
        }
        let Some((piece, slot)) = arriving.pop_front() else { return Ok(()) };
        slots.wait(transfer, slot)?;
        slots.copy_host(transfer, slot, piece)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records the calls, each with the slot and the offset of the piece.
    #[derive(Default)]
    struct Calls(Vec<String>);

    impl StagingSlots<()> for Calls {
        const COUNT: usize = 2;

        fn wait(&mut self, (): &(), slot: usize) -> Result<()> {
            self.0.push(format!("wait {slot}"));
            Ok(())
        }

        fn copy_host(&mut self, (): &(), slot: usize, piece: Piece) -> Result<()> {
            self.0.push(format!("copy {slot} {}", piece.offset));
            Ok(())
        }

        fn submit(&mut self, (): &(), slot: usize, piece: Piece) -> Result<()> {
            self.0.push(format!("submit {slot} {}", piece.offset));
            Ok(())
        }
    }

    fn calls(direction: Direction) -> String {
        let mut calls = Calls::default();
        copy_pieces(&mut calls, &(), direction, &Pieces::new(25, 10)).unwrap();
        calls.0.join(", ")
    }

    #[test]
    fn an_upload_waits_for_a_slot_before_it_fills_it() {
        assert_eq!(
            calls(Direction::Upload),
            "wait 0, copy 0 0, submit 0 0, wait 1, copy 1 10, submit 1 10, wait 0, copy 0 20, submit 0 20"
        );
    }

    #[test]
    fn a_download_fills_all_slots_before_it_empties_the_oldest() {
        assert_eq!(
            calls(Direction::Download),
            "wait 0, submit 0 0, wait 1, submit 1 10, wait 0, copy 0 0, wait 0, submit 0 20, wait 1, copy 1 10, \
             wait 0, copy 0 20"
        );
    }
}
