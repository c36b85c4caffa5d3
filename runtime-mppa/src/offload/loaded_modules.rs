//! The modules of a chip, which holds only a few at a time.

#![allow(unsafe_code, reason = "runs kernels")]

use std::sync::Arc;

use parking_lot::Mutex;
use runtime_core::{Error, Result};

use super::chip::Chip;
use super::memory::Memory;
use super::module::Module;
use crate::config::Arch;
use crate::elf;

/// Modules that a chip holds at once.
const MAX_LOADED: usize = 10;

/// Modules of a chip, any number. They are loaded when one of their kernels runs; if there are too many, the least recently used one
/// is unloaded.
#[derive(Debug)]
pub struct LoadedModules {
    chip: Arc<Chip>,
    arch: Arch,
    modules: Mutex<Modules>,
}

#[derive(Debug, Default)]
struct Modules {
    codes: Vec<Vec<u8>>,
    /// By index of their code, the most recently used last.
    loaded: Vec<(usize, Module)>,
}

impl LoadedModules {
    /// No modules yet.
    #[must_use]
    pub fn new(chip: &Arc<Chip>, arch: Arch) -> Self {
        Self { chip: Arc::clone(chip), arch, modules: Mutex::default() }
    }

    /// Adds a module, and returns its number. Loads nothing yet.
    ///
    /// # Errors
    /// `InvalidArgument` for code of another architecture.
    pub fn add(&self, code: Vec<u8>) -> Result<usize> {
        elf::check(&code, self.arch)?;
        let codes = &mut self.modules.lock().codes;
        codes.push(code);
        Ok(codes.len() - 1)
    }

    /// Runs a kernel of a module on a cluster, as [`Chip::execute`].
    ///
    /// # Errors
    /// `InvalidArgument` for a module that was not added; `NotFound` for an unknown kernel; as [`Module::load`] and
    /// [`Chip::execute`].
    ///
    /// # Safety
    /// As for [`Chip::execute`].
    pub unsafe fn execute(
        &self,
        module: usize,
        kernel: &str,
        cluster: u32,
        arguments: &Memory,
        teams: u32,
    ) -> Result<()> {
        // Held until the kernel has ended, so that its module stays loaded.
        let mut modules = self.modules.lock();
        let function = self.load(&mut modules, module)?.symbol(kernel)?;
        // SAFETY: the address is that of the loaded module; the rest is the caller's promise.
        unsafe { self.chip.execute(cluster, function, arguments, teams) }
    }

    /// The module, loaded, and the most recently used from now on.
    fn load<'a>(&self, modules: &'a mut Modules, index: usize) -> Result<&'a Module> {
        let Modules { codes, loaded } = modules;
        let code = codes
            .get(index)
            .ok_or_else(|| Error::invalid(format!("no module {index}: {} were added", codes.len())))?;
        let module = match loaded.iter().position(|(known, _)| *known == index) {
            Some(position) => loaded.remove(position).1,
            None => {
                if loaded.len() >= MAX_LOADED {
                    loaded.remove(0);
                }
                Module::load(&self.chip, code, self.arch)?
            }
        };
        loaded.push((index, module));
        Ok(&loaded[loaded.len() - 1].1)
    }
}
