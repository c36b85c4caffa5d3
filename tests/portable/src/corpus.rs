//! The list of shaders of other projects, and their texts where `corpus/gather.py` has put them.

use std::path::{Path, PathBuf};

use runtime_core::ModuleSource;
use runtime_kernel::Specialisation;

/// A shader of another project.
#[derive(Clone, Debug)]
pub struct Shader {
    /// Repository and path.
    pub name: String,
    file: PathBuf,
    values: Vec<(String, String)>,
}

/// The shaders that `corpus/files.txt` lists, with their texts below `folder`.
#[must_use]
pub fn shaders(folder: &Path) -> Vec<Shader> {
    include_str!("../corpus/files.txt").lines().filter_map(|line| shader(folder, line)).collect()
}

fn shader(folder: &Path, line: &str) -> Option<Shader> {
    let mut words = line.split(' ');
    let (repository, _commit, path) = (words.next()?, words.next()?, words.next()?);
    let path = path.replace('#', "/");
    let value = |word: &str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    Some(Shader {
        name: format!("{repository}/{path}"),
        file: folder.join(repository.replace('/', "+")).join(path),
        values: words.filter_map(value).collect(),
    })
}

impl Shader {
    /// The text.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn text(&self) -> Result<String, String> {
        std::fs::read_to_string(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))
    }

    /// The text with the values of its overrides.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn source(&self) -> Result<ModuleSource, String> {
        let text = self.text()?;
        let source = ModuleSource::wgsl(&text);
        Ok(self.overrides(&text).fold(source, |all, (name, value)| all.constant(name, value)))
    }

    /// The values of the overrides of its text, of those that the list has.
    #[must_use]
    pub fn specialisation(&self, text: &str) -> Specialisation {
        self.overrides(text).fold(Specialisation::default(), |all, (name, value)| all.constant(name, value))
    }

    fn overrides(&self, text: &str) -> impl Iterator<Item = &(String, String)> {
        let is_declared = move |name: &str| {
            text.split("override ").skip(1).any(|rest| {
                rest.strip_prefix(name).is_some_and(|after| after.starts_with([':', ' ', '=', ';']))
            })
        };
        self.values.iter().filter(move |(name, _)| is_declared(name))
    }
}
