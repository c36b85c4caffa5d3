//! Arguments against the signature of native code.

use runtime_core::dispatch::Dispatcher;
use runtime_core::{ErrorKind, read, write};

use super::{open, refused, source};

fn add() -> Dispatcher {
    let builder = Dispatcher::builder("add_f32").source(source("add_f32"));
    builder.signature("x: read f32, y: read f32, out: write f32").build().unwrap()
}

#[test]
fn a_signature_is_checked_before_anything_is_compiled() {
    let device = open();
    let (x, y) = (device.zeros::<f32>([1]).unwrap(), device.zeros::<i32>([1]).unwrap());
    let add = add();
    let message = refused(add.call(1, (&x, &x)), ErrorKind::InvalidArgument);
    assert!(message.contains("\"add_f32\" takes 3 arguments, got 2"), "{message}");
    let message = refused(add.call(1, (&x, &y, &x)), ErrorKind::InvalidArgument);
    assert!(message.contains("argument 1 (y) of \"add_f32\" is i32, but the kernel takes f32"), "{message}");
    let message = refused(add.call(1, (&x, &x, 1.0f32)), ErrorKind::InvalidArgument);
    assert!(
        message.contains("argument 2 (out) of \"add_f32\" is a scalar, but the kernel takes a tensor"),
        "{message}"
    );
    assert!(add.overloads().iter().all(|overload| overload.load.is_none()), "nothing was loaded");
}

#[test]
fn accesses_are_those_that_the_kernel_states() {
    let device = open();
    let (x, out) = (device.tensor([1], &[1.5f32]).unwrap(), device.zeros::<f32>([1]).unwrap());
    x.freeze().unwrap();
    // Frozen tensors can only be read, so this fails if they are taken as written.
    add().call(1, (&x, &x, &out)).unwrap();
    add().call(1, &[read(&x), read(&x), write(&out)]).unwrap();
    assert_eq!(out.to_vec::<f32>().unwrap(), [3.0]);
    let message = refused(add().call(1, (&x, &x, &x)), ErrorKind::InvalidArgument);
    assert!(message.contains("frozen"), "{message}");
    let message = refused(add().call(1, &[read(&x), write(&out), write(&out)]), ErrorKind::InvalidArgument);
    assert!(message.contains("is passed as write, but the kernel reads it"), "{message}");
}

#[test]
fn views_with_gaps_are_refused_with_the_remedy() {
    let device = open();
    let matrix = device.zeros::<f32>([2, 2]).unwrap();
    let column = matrix.slice(1, 0..1).unwrap();
    let out = device.zeros::<f32>([2]).unwrap();
    let message = refused(add().call(1, (&column, &column, &out)), ErrorKind::InvalidArgument);
    assert!(message.contains("is not contiguous") && message.contains("Queue::contiguous"), "{message}");
}
