//! Interns kernel names as numbers, so that a launch records its kernel in one word.

use parking_lot::Mutex;

/// Number of an interned name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelNameId(pub(crate) u32);

/// Every name seen so far, each once.
#[derive(Debug, Default)]
pub(crate) struct Interner(Mutex<Vec<String>>);

impl Interner {
    /// The number of a name.
    pub(crate) fn intern(&self, name: &str) -> KernelNameId {
        let mut names = self.0.lock();
        let known = names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        KernelNameId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The name of a number; "?" for an unknown one.
    pub(crate) fn resolve(&self, id: KernelNameId) -> String {
        self.0.lock().get(id.0 as usize).cloned().unwrap_or_else(|| "?".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_interned_once() {
        let names = Interner::default();
        let (a, b) = (names.intern("a"), names.intern("b"));
        assert_ne!(a, b);
        assert_eq!(names.intern("a"), a);
        assert_eq!((names.resolve(b).as_str(), names.resolve(KernelNameId(9)).as_str()), ("b", "?"));
    }
}
