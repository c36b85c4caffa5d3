//! The programs of the README and of the documentation, as documentation tests: compiled and, unless they are marked `no_run`,
//! run.

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/linking.md")]
struct Linking;
