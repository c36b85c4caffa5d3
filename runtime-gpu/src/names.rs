//! Names of kernels as numbers, so that a launch can note what it launches in one word.

use parking_lot::Mutex;

/// Number of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameId(pub(crate) u32);

/// Every name that was ever given, each once.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<Vec<String>>);

impl Names {
    /// The number of a name.
    pub(crate) fn id(&self, name: &str) -> NameId {
        let mut names = self.0.lock();
        let known = names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        NameId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// The name of a number.
    pub(crate) fn text(&self, id: NameId) -> String {
        self.0.lock().get(id.0 as usize).cloned().unwrap_or_else(|| "?".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let names = Names::default();
        let (a, b) = (names.id("a"), names.id("b"));
        assert_ne!(a, b);
        assert_eq!(names.id("a"), a);
        assert_eq!((names.text(b).as_str(), names.text(NameId(9)).as_str()), ("b", "?"));
    }
}
