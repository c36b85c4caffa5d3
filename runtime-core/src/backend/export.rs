//! The shims.
use super::Backend;
use crate::abi;
/// The shims of backend `B`.
#[derive(Debug)]
pub struct Shims<B>(std::marker::PhantomData<B>);
impl<B: Backend> Shims<B> {}
/// The manifest.
#[must_use]
pub const fn manifest(_name: &str) -> abi::Manifest {
    abi::Manifest { magic: abi::MAGIC, struct_size: 0, major: abi::MAJOR, minor: abi::MINOR, name: [0; 32], target: [0; 64] }
}
