//! The modules of a chip, which holds only a few at a time.

#![allow(unsafe_code, reason = "runs kernels")]

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use runtime_core::{Error, Result};

use super::chip::Chip;
use super::command::Command;
use super::host_arguments::HostArguments;
use super::host_module::{HostCode, HostModule};
use super::module::Module;
use crate::elf::Elf;

/// Modules that a chip holds at once.
const MAX_LOADED: usize = 10;

/// Code that a chip can run.
#[derive(Debug)]
pub enum Code {
    /// An ELF file for the chip.
    Elf(Elf),
    /// A host-driven module.
    Host(HostCode),
}

/// Modules of a chip, any number. They are loaded when one of their kernels runs; if there are too many, the least recently used one
/// is unloaded.
#[derive(Debug)]
pub struct LoadedModules {
    chip: Arc<Chip>,
    modules: Mutex<Modules>,
    /// Numbers of removed modules that are still to be unloaded.
    removed: Mutex<Vec<usize>>,
}

#[derive(Debug, Default)]
struct Modules {
    next: usize,
    codes: BTreeMap<usize, Code>,
    /// By number of their code, the most recently used last.
    loaded: Vec<(usize, Loaded)>,
}

#[derive(Debug)]
struct Loaded {
    module: LoadedCode,
    symbols: BTreeMap<String, u64>,
}

#[derive(Debug)]
enum LoadedCode {
    Elf(Module),
    Host(HostModule),
}

impl LoadedCode {
    fn load(chip: &Arc<Chip>, code: &Code) -> Result<Self> {
        match code {
            Code::Elf(elf) => Module::load(chip, elf).map(Self::Elf),
            Code::Host(code) => HostModule::load(chip, code).map(Self::Host),
        }
    }
}

impl Loaded {
    /// The address of a function, asked for once.
    fn symbol(&mut self, name: &str) -> Result<u64> {
        if let Some(address) = self.symbols.get(name) {
            return Ok(*address);
        }
        let address = match &self.module {
            LoadedCode::Elf(module) => module.symbol(name)?,
            LoadedCode::Host(module) => module.symbol(name)?,
        };
        self.symbols.insert(name.to_owned(), address);
        Ok(address)
    }
}

impl LoadedModules {
    /// No modules yet.
    #[must_use]
    pub fn new(chip: &Arc<Chip>) -> Self {
        Self { chip: Arc::clone(chip), modules: Mutex::default(), removed: Mutex::default() }
    }

    /// Adds a module, and returns its number. Loads nothing yet.
    ///
    /// # Errors
    /// `DeviceLost`.
    pub fn add(&self, code: Code) -> Result<usize> {
        let mut modules = self.lock()?;
        let number = modules.next;
        modules.next += 1;
        modules.codes.insert(number, code);
        Ok(number)
    }

    /// Removes a module, and unloads it: at once, or when modules are next used if one runs now. A lost chip unloads nothing.
    pub fn remove(&self, number: usize) {
        self.removed.lock().push(number);
        // Waiting here would wait for a kernel, which may take any time.
        if let Some(mut modules) = self.modules.try_lock() {
            self.unload_removed(&mut modules);
        }
    }

    /// The modules, without those that were removed.
    fn lock(&self) -> Result<MutexGuard<'_, Modules>> {
        let mut modules = self.chip.lock(&self.modules)?;
        self.unload_removed(&mut modules);
        Ok(modules)
    }

    fn unload_removed(&self, modules: &mut Modules) {
        let removed = std::mem::take(&mut *self.removed.lock());
        modules.codes.retain(|number, _| !removed.contains(number));
        modules.loaded.retain(|(number, _)| !removed.contains(number));
    }

    /// The number of the most recently used module; `None` if none is loaded.
    pub(super) fn last_used(&self) -> Option<usize> {
        self.lock().ok()?.loaded.last().map(|(number, _)| *number)
    }

    /// Checks that a module can be loaded and has this function; it is the most recently used one then.
    ///
    /// # Errors
    /// `InvalidArgument` for a module that was not added; `NotFound` for an unknown function; as [`Module::load`].
    pub fn find(&self, number: usize, function: &str) -> Result<()> {
        self.load(&mut *self.lock()?, number)?.symbol(function).map(drop)
    }

    /// Loads a module, unless it is loaded; it is the most recently used one then.
    ///
    /// # Errors
    /// As [`LoadedModules::find`].
    pub fn prepare(&self, number: usize) -> Result<()> {
        self.load(&mut *self.lock()?, number).map(drop)
    }

    /// Runs a kernel of a module on some clusters, one after the other, as [`Command::run`].
    ///
    /// # Errors
    /// As [`LoadedModules::find`] and [`Command::run`].
    ///
    /// # Safety
    /// As for [`Command::run`].
    pub unsafe fn execute(
        &self,
        (number, kernel): (usize, &str),
        clusters: impl IntoIterator<Item = u32>,
        command: &mut Command,
        arguments: &[u8],
    ) -> Result<()> {
        // Held until the kernel has ended, so that its module stays loaded.
        let mut modules = self.lock()?;
        let loaded = self.load(&mut modules, number)?;
        if let LoadedCode::Host(_) = loaded.module {
            return Err(Error::unsupported("a host-driven module has no kernels of the chip"));
        }
        let function = loaded.symbol(kernel)?;
        clusters.into_iter().try_for_each(|cluster| {
            // SAFETY: the address is that of the loaded module; the rest is the caller's promise.
            unsafe { command.run(function, arguments, cluster) }
        })
    }

    /// Calls a function of a host-driven module.
    ///
    /// # Errors
    /// As [`LoadedModules::find`]; `Unsupported` for an ELF file.
    ///
    /// # Safety
    /// It takes these arguments.
    pub(super) unsafe fn call(
        &self,
        (number, function): (usize, &str),
        arguments: &HostArguments,
    ) -> Result<()> {
        let mut modules = self.lock()?;
        match &self.load(&mut modules, number)?.module {
            // SAFETY: as the caller's.
            LoadedCode::Host(module) => unsafe { module.call(function, arguments) },
            LoadedCode::Elf(_) => Err(Error::unsupported("an ELF file has no functions of this process")),
        }
    }

    /// The module, loaded, and the most recently used from now on.
    fn load<'a>(&self, modules: &'a mut Modules, number: usize) -> Result<&'a mut Loaded> {
        let Modules { codes, loaded, next } = modules;
        let code = codes
            .get(&number)
            .ok_or_else(|| Error::invalid(format!("no module {number}: {next} were added, some removed")))?;
        let module = match loaded.iter().position(|(known, _)| *known == number) {
            Some(position) => loaded.remove(position).1,
            None => {
                if loaded.len() >= MAX_LOADED {
                    loaded.remove(0);
                }
                Loaded { module: LoadedCode::load(&self.chip, code)?, symbols: BTreeMap::new() }
            }
        };
        loaded.push((number, module));
        let last = loaded.len() - 1;
        Ok(&mut loaded[last].1)
    }
}
