//! Inputs that no candidate has seen.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest as _, Sha256};

use super::JobData;
use crate::spec::{ArgumentKind, Expected, Init, Spec};

/// Bits of a seed: every program that reads JSON has so many in its numbers.
const SEED_BITS: u32 = 53;

/// What other inputs of a job are made of.
#[derive(Debug)]
pub(crate) struct FreshInputs(Mutex<State>);

#[derive(Debug)]
struct State {
    seed: u64,
    /// Whether the user has given the seed.
    is_given: bool,
    /// The first of them: most candidates need no more.
    first: Option<Arc<JobData>>,
}

impl FreshInputs {
    /// Inputs of a seed that nobody knows.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State::secret()))
    }

    /// Makes them of a seed that the user has given.
    pub(crate) fn set_seed(&self, seed: u64) {
        let mut state = self.lock();
        if (state.seed, state.is_given) != (seed, true) {
            *state = State { seed, is_given: true, first: None };
        }
    }

    /// The seed, which is no secret any more: other inputs are made of another one, unless the user has given it.
    pub(crate) fn tell_seed(&self) -> u64 {
        let mut state = self.lock();
        let told = state.seed;
        if !state.is_given {
            *state = State::secret();
        }
        told
    }

    /// The first of them, if it is known.
    pub(super) fn first(&self) -> Option<Arc<JobData>> {
        self.lock().first.clone()
    }

    /// Keeps the first of them.
    pub(super) fn keep_first(&self, data: &Arc<JobData>) {
        self.lock().first = Some(Arc::clone(data));
    }

    /// The spec with other seeds: others for each `index`. `None` if that would change nothing, or if what is expected comes from files.
    pub(super) fn reseeded(&self, spec: &Spec, index: usize) -> Option<Spec> {
        if !has_fresh_inputs(spec) {
            return None;
        }
        let mut spec = spec.clone();
        let secret = self.lock().seed;
        for (arg, argument) in spec.args.iter_mut().enumerate() {
            if let ArgumentKind::Tensor(tensor) = &mut argument.kind
                && let Init::Random { seed, .. } = &mut tensor.init
                && tensor.access.reads()
            {
                *seed = seed_of(secret, index, arg);
            }
        }
        Some(spec)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a candidate can be given inputs that it has never seen: an input is random, and what is expected does not come from files.
pub(crate) fn has_fresh_inputs(spec: &Spec) -> bool {
    let is_fixed =
        spec.reference.as_ref().is_some_and(|reference| matches!(reference.expected, Expected::Files(_)));
    let is_random = |kind: &ArgumentKind| {
        matches!(kind, ArgumentKind::Tensor(tensor)
            if tensor.access.reads() && matches!(tensor.init, Init::Random { .. }))
    };
    !is_fixed && spec.args.iter().any(|arg| is_random(&arg.kind))
}

impl State {
    fn secret() -> Self {
        // Its keys come from the system.
        let seed = RandomState::new().hash_one(()) >> (u64::BITS - SEED_BITS);
        Self { seed, is_given: false, first: None }
    }
}

/// The seed of an argument. Its values are no secret, so it must tell nothing of others.
fn seed_of(secret: u64, index: usize, arg: usize) -> u64 {
    let digest = Sha256::digest(format!("{secret} {index} {arg}"));
    digest[..8].iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_that_was_told_is_not_used_again_unless_it_was_given() {
        let secret = FreshInputs::new();
        let told = secret.tell_seed();
        assert_ne!(secret.tell_seed(), told);
        assert!(told < 1 << SEED_BITS);
        let given = FreshInputs::new();
        given.set_seed(7);
        assert_eq!([given.tell_seed(), given.tell_seed()], [7, 7]);
    }

    #[test]
    fn each_argument_has_a_seed_of_its_own() {
        let seeds: std::collections::BTreeSet<u64> = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0)]
            .map(|(secret, index, arg)| seed_of(secret, index, arg))
            .into();
        assert_eq!(seeds.len(), 4);
        assert_eq!(seed_of(1, 0, 0), seed_of(1, 0, 0));
    }
}
