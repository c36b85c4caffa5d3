//! Finds the fastest values of what the `[tune]` table of a spec varies. `docs/commands.md` documents the command.
//!
//! A [`Tuner`] evaluates candidates of a [`Space`](crate::spec::Space) in worker processes, and reports each as a [`Trial`]. The
//! [`Ranking`] of all trials says which are best, and which of them cannot be told apart.

mod best_spec;
mod contest;
mod device_group;
mod event;
mod fingerprint;
mod log;
mod ranking;
#[cfg(test)]
mod ranking_tests;
mod run;
mod search;
mod strategy;
mod trial;
mod tuner;

pub use best_spec::best_spec;
pub use event::Event;
pub use ranking::{Ranked, Ranking};
pub use strategy::{Rung, Strategy};
pub use trial::{Trial, TrialClass};
pub use tuner::{Tuner, Tuning};
