//! All modules that must compile: the programs of this crate, random ones, and the kernels of the repository.

use std::path::{Path, PathBuf};

use runtime_core::Result;
use runtime_core::device::Limits;
use runtime_kernel::{Checks, Dialect, GroupLoops, Program as Parsed, Specialisation};

use crate::batch::batches;
use crate::program::{Program, join};
use crate::random::Random;
use crate::tree::{self, Generator};
use crate::{lockstep, programs};

/// A module to lower.
#[derive(Clone, Debug)]
pub struct Module {
    /// The name, for the names of trials.
    pub name: String,
    /// The WGSL text.
    pub text: String,
    /// The optional language features that it needs.
    pub needs: Vec<String>,
    /// Its constants, element type, and buffers that are passed by value.
    pub specialisation: Specialisation,
}

/// A language that WGSL is lowered to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// SPIR-V.
    Spirv,
    /// A language of the C family.
    C(Dialect),
}

impl Module {
    /// Joins programs into one module.
    #[must_use]
    pub fn of(name: String, programs: &[&Program]) -> Self {
        let element = programs[0].element.map(|kind| kind.dtype());
        let specialisation = Specialisation {
            constants: programs[0].constants.clone(),
            by_value: programs.iter().flat_map(|program| program.by_value.clone()).collect(),
            element,
            ..Specialisation::default()
        };
        Self { name, text: join(programs), needs: programs[0].needs.clone(), specialisation }
    }

    /// Parses the module.
    ///
    /// # Errors
    /// Those of the front end.
    pub fn parse(&self) -> Result<Parsed> {
        Parsed::parse(&self.text, &self.name, &self.specialisation)
    }

    /// Lowers to CUDA C++ with assertions of all proofs.
    ///
    /// # Errors
    /// Those of the front end and the writer.
    pub fn lower_asserted(&self) -> Result<Vec<u8>> {
        let portable = self.parse()?.with_asserted_proofs();
        Ok(portable.c(Dialect::Cuda, Checks::Bounded)?.text.into_bytes())
    }

    /// Lowers to a language, with items that do the work of several; `None` if there are none.
    ///
    /// # Errors
    /// Those of the front end and the writer.
    pub fn lower_coarsened(&self, language: Language) -> Result<Option<Vec<u8>>> {
        let portable = self.parse()?.coarsened(None)?;
        let any = portable.interfaces().iter().any(|interface| interface.items_per_thread > 1);
        any.then(|| Self::write(&portable, language)).transpose()
    }

    /// Lowers to OpenCL C whose groups run as loops in at most `work_items` work-items.
    ///
    /// # Errors
    /// Those of the front end and the writer.
    pub fn lower_loops(&self, work_items: u32) -> Result<Vec<u8>> {
        let portable = self.parse()?;
        let limits = Limits { group_size: [u32::MAX; 3], group_items: u32::MAX, ..Limits::default() };
        let loops = GroupLoops::new(portable.interfaces(), work_items, &limits, u64::MAX);
        Self::write(&portable.with_group_loops(loops), Language::C(Dialect::OpenCl))
    }

    /// Lowers to a language.
    ///
    /// # Errors
    /// Those of the front end and the writer.
    pub fn lower(&self, language: Language) -> Result<Vec<u8>> {
        Self::write(&self.parse()?, language)
    }

    /// Writes a program in a language.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(portable: &Parsed, language: Language) -> Result<Vec<u8>> {
        match language {
            Language::Spirv => {
                Ok(portable.spirv(Checks::Bounded)?.iter().flat_map(|word| word.to_le_bytes()).collect())
            }
            Language::C(dialect) => Ok(portable.c(dialect, Checks::Bounded)?.text.into_bytes()),
        }
    }
}

/// All modules.
#[must_use]
pub fn all() -> Vec<Module> {
    let mut modules = Vec::new();
    for (topic, programs) in programs::all() {
        for (at, batch) in batches(programs).iter().enumerate() {
            modules.push(Module::of(format!("{topic}_{at}"), &batch.iter().collect::<Vec<_>>()));
        }
    }
    modules.push(random_kernels());
    modules.push(random_expressions());
    modules.extend(repository());
    modules
}

fn random_kernels() -> Module {
    let kernels = (0..30).map(|seed| lockstep::kernel(&format!("k{seed}"), seed));
    let text = kernels.map(|kernel| lockstep::text(&kernel)).collect();
    plain("random_kernels".to_owned(), text)
}

fn random_expressions() -> Module {
    let (mut random, inputs) = (Random::new(99), tree::inputs());
    let readable: Vec<_> = (0..inputs.len()).collect();
    let generator = Generator { inputs: &inputs, readable: &readable, rich: true };
    let trees: Vec<_> = (0..200).map(|_| tree::tree(&mut random, &generator, 4)).collect();
    plain("random_expressions".to_owned(), tree::batch("t", &trees, &[]).code)
}

fn plain(name: String, text: String) -> Module {
    Module { name, text, needs: Vec::new(), specialisation: Specialisation::default() }
}

/// `kernels/*.wgsl`.
fn repository() -> Vec<Module> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default();
    files.retain(|file| file.extension().is_some_and(|end| end == "wgsl"));
    files.sort();
    assert!(!files.is_empty(), "no kernels/*.wgsl");
    let module = |file: &PathBuf| {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        plain(format!("kernels/{stem}"), std::fs::read_to_string(file).unwrap_or_default())
    };
    files.iter().map(module).collect()
}
