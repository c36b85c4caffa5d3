//! Ranges that do not fit, each with the values in the message.

use runtime_core::dispatch::{Domain, NdRange};
use runtime_core::{Arg, ErrorKind, read_write};

use super::{dispatcher, open, refused};

/// The message of a call over an invalid domain.
fn message(domain: impl Into<Domain>) -> String {
    let device = open();
    let x = device.zeros::<u32>([64]).unwrap();
    refused(dispatcher("group_ids_u32").call(domain, (&x,)), ErrorKind::InvalidArgument)
}

#[test]
fn dimensions_and_extents_are_checked() {
    assert!(message([1, 1, 1, 1]).contains("the range has 4 dimensions; a kernel runs in 1 to 3"));
    assert!(message([0usize; 0]).contains("the range has 0 dimensions"));
    assert!(message([4, 0]).contains("the range is [4, 0]: dimension 1 is 0"));
    assert!(
        message(NdRange::new([4, 4], 2)).contains("[4, 4] has 2 dimensions, but the local range [2] has 1")
    );
    assert!(
        message(NdRange::new([4, 5], [2, 2]))
            .contains("[4, 5] is not a multiple of the local range [2, 2] in dimension 1")
    );
    assert!(message(NdRange::new(4, 0)).contains("the local range is [0]: dimension 0 is 0"));
    assert!(message(NdRange::new([0], [1])).contains("the global range is [0]"));
    assert!(message(NdRange::new([1; 4], [1; 4])).contains("the global range has 4 dimensions"));
    assert!(message(NdRange::new(1 << 40, 1)).contains("1099511627776 groups in dimension 0"));
    assert!(message(NdRange::new(1 << 20, 1 << 20)).contains("exceeds the device's limit of"));
}

#[test]
fn ranges_cover_their_items_and_nd_ranges_are_exact() {
    let device = open();
    let ids = dispatcher("group_ids_u32");
    let x = device.zeros::<u32>([12]).unwrap();
    ids.call(NdRange::new(12, 4), (&x,)).unwrap();
    assert_eq!(x.to_vec::<u32>().unwrap(), (0..12).collect::<Vec<_>>());
}

#[test]
fn work_group_memory_needs_an_nd_range() {
    let device = open();
    let x = device.zeros::<f32>([4]).unwrap();
    let fail = dispatcher("fail");
    let args = [read_write(&x), Arg::local(64)];
    let message = refused(fail.call(4, &args), ErrorKind::InvalidArgument);
    assert!(message.contains("uses 64 bytes of work-group memory"), "{message}");
    assert!(message.contains("NdRange"), "{message}");
}
