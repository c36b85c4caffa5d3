//! Output structures of an older core: shorter, with guard bytes after the stated end.

use std::marker::PhantomData;

use runtime_core::Result;
use runtime_core::abi::Handle;

const GUARD: u8 = 0xa5;
const GUARD_BYTES: usize = 64;

/// Room for a `T` that states a smaller size, with guard bytes from there on.
pub(crate) struct GuardedStruct<T> {
    words: Vec<u64>,
    stated: usize,
    ty: PhantomData<T>,
}

impl<T> GuardedStruct<T> {
    pub(crate) fn new(stated: usize) -> Self {
        let words = (size_of::<T>() + GUARD_BYTES).div_ceil(size_of::<u64>());
        let mut words = vec![u64::from_ne_bytes([GUARD; 8]); words];
        let mut first = words[0].to_ne_bytes();
        first[..4].copy_from_slice(&u32::try_from(stated).unwrap().to_ne_bytes());
        words[0] = u64::from_ne_bytes(first);
        Self { words, stated, ty: PhantomData }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.words.as_mut_ptr().cast()
    }

    fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Checks that nothing beyond the stated size was written, nor the size itself.
    pub(crate) fn check_guards(&self) {
        let (bytes, name) = (self.bytes(), std::any::type_name::<T>());
        let size = u32::from_ne_bytes(std::array::from_fn(|i| bytes[i])) as usize;
        assert_eq!(size, self.stated, "the callee changed the size of {name}");
        let written = bytes[self.stated..].iter().position(|byte| *byte != GUARD);
        assert_eq!(
            written.map(|at| at + self.stated),
            None,
            "{name} of {} bytes: written behind",
            self.stated
        );
    }

    /// The handle at `offset`.
    pub(crate) fn handle(&self, offset: usize) -> Handle {
        let word = usize::try_from(self.words[offset / size_of::<u64>()]).unwrap();
        std::ptr::with_exposed_provenance_mut(word)
    }
}

/// Has a structure filled at every size from `least` to its own: the guards stay, and what is written is what an up-to-date
/// core gets, as far as there is room.
pub(crate) fn check_every_size<T>(least: usize, fill: impl Fn(*mut T) -> Result<()>) {
    let mut whole = GuardedStruct::<T>::new(size_of::<T>());
    fill(whole.as_mut_ptr()).unwrap();
    let expected = whole.bytes();
    assert_ne!(expected[4..size_of::<T>()], [GUARD; 256][4..size_of::<T>()], "nothing was written");
    for stated in least..=size_of::<T>() {
        let mut given = GuardedStruct::<T>::new(stated);
        fill(given.as_mut_ptr()).unwrap();
        given.check_guards();
        assert_eq!(given.bytes()[4..stated], expected[4..stated], "{} bytes", stated);
    }
}
