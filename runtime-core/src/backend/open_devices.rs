//! What the open devices of a backend share among all openings of each.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::Result;

/// The states of the open devices, by what identifies each.
#[derive(Debug)]
pub struct OpenDevices<K, T>(Mutex<Vec<(K, Weak<T>)>>);

impl<K, T> Default for OpenDevices<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, T> OpenDevices<K, T> {
    /// The state of the device `key` if it is open and usable; otherwise what `open` returns, which is never called twice at once.
    ///
    /// # Errors
    /// Those of `is_usable` and `open`.
    pub fn get_or_open(
        &self,
        key: K,
        is_usable: impl FnOnce(&T) -> Result<bool>,
        open: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let mut open_devices = self.0.lock();
        open_devices.retain(|(_, state)| state.strong_count() > 0);
        let position = open_devices.iter().position(|(known, _)| *known == key);
        if let Some(state) = position.and_then(|position| open_devices[position].1.upgrade())
            && is_usable(&state)?
        {
            return Ok(state);
        }
        let state = Arc::new(open()?);
        open_devices.retain(|(known, _)| *known != key);
        open_devices.push((key, Arc::downgrade(&state)));
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_device_is_opened_once_while_it_is_open_and_usable() {
        let devices = OpenDevices::default();
        let get = |key: u32, usable: bool, state: &'static str| {
            devices.get_or_open(key, |_| Ok(usable), || Ok(state)).unwrap()
        };
        let first = get(0, true, "a");
        assert_eq!((*first, *get(0, true, "b"), *get(1, true, "c")), ("a", "a", "c"));
        let again = get(0, false, "d");
        assert_eq!((*first, *again, *get(0, true, "e")), ("a", "d", "d"));
        drop(again);
        assert_eq!(*get(0, true, "f"), "f", "nothing holds the device");
    }

    #[test]
    fn a_device_that_cannot_be_opened_is_tried_again() {
        let devices = OpenDevices::<u32, ()>::default();
        let fails = || Err(Error::unsupported("not now"));
        assert!(devices.get_or_open(0, |()| Ok(true), fails).is_err());
        assert!(devices.get_or_open(0, |()| Ok(true), || Ok(())).is_ok());
    }
}
