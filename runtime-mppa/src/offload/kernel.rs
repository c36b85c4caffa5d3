//! Modules and their functions, as core holds them.

use std::sync::Arc;

use runtime_core::Result;
use runtime_core::backend::{Kernel, Module};

use super::open_chip::OpenChip;

/// A module of a chip, removed on drop.
#[derive(Debug)]
pub(super) struct AddedModule {
    pub(super) chip: Arc<OpenChip>,
    pub(super) number: usize,
}

impl Drop for AddedModule {
    fn drop(&mut self) {
        self.chip.modules.remove(self.number);
    }
}

/// A loaded module.
#[derive(Debug)]
pub struct OffloadModule {
    pub(super) code: Arc<AddedModule>,
    pub(super) runs: Runs,
}

/// How the functions of a module run.
#[derive(Clone, Debug)]
pub(super) enum Runs {
    /// As `void kernel(void *args)` on these clusters, one after the other.
    OnClusters(std::ops::Range<u32>),
    /// As functions of this process, which drive the chip.
    InThisProcess,
}

impl Module for OffloadModule {
    type Kernel = OffloadKernel;

    fn symbols(&self) -> &[String] {
        &[]
    }

    fn kernel(&self, name: &str) -> Result<OffloadKernel> {
        self.code.chip.modules.find(self.code.number, name)?;
        Ok(OffloadKernel { code: Arc::clone(&self.code), name: Arc::from(name), runs: self.runs.clone() })
    }
}

/// A function of a module.
#[derive(Clone, Debug)]
pub struct OffloadKernel {
    pub(super) code: Arc<AddedModule>,
    pub(super) name: Arc<str>,
    pub(super) runs: Runs,
}

impl Kernel for OffloadKernel {}
