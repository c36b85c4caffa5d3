//! Arbitrary files as `.npy`: rejected, or the array survives a round trip.
#![no_main]

mod file;

use libfuzzer_sys::fuzz_target;
use runtime_core::HostArray;

fuzz_target!(|bytes: &[u8]| {
    file::with(
        bytes,
        |_| (),
        |path| {
            let Ok(array) = HostArray::load_npy(path) else { return };
            let again = path.with_extension("npy");
            array.save_npy(&again).expect("what was read can be written");
            let again = HostArray::load_npy(&again).expect("what was written can be read");
            assert_eq!((array.dtype(), array.shape()), (again.dtype(), again.shape()));
            assert_eq!(array.bytes(), again.bytes());
        },
    );
});
