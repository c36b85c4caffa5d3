//! Which tensors of a chain are temporary, and what its kernels must move.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Chain, Operand};
use runtime_core::Access;

impl Chain {
    /// The tensors that no kernel writes after the last one that reads them: what a program would drop.
    pub(super) fn temporaries(&self) -> Vec<Operand> {
        let origins: BTreeSet<Operand> = self.uses(0..self.jobs.len()).map(|(_, origin, _)| origin).collect();
        let is_temporary = |origin: &Operand| {
            let uses = || self.uses(0..self.jobs.len()).filter(|(_, used, _)| used == origin);
            let last_write = uses().filter(|(.., access)| access.writes()).map(|(kernel, ..)| kernel).max();
            last_write.is_some_and(|write| uses().any(|(kernel, ..)| kernel > write))
        };
        origins.into_iter().filter(is_temporary).collect()
    }

    /// The bytes of all tensors.
    pub(crate) fn working_set_bytes(&self) -> u64 {
        let origins: BTreeSet<Operand> = self.uses(0..self.jobs.len()).map(|(_, origin, _)| origin).collect();
        origins.into_iter().map(|origin| self.size(origin)).fold(0, u64::saturating_add)
    }

    /// The bytes that must be moved if each range of the chain runs as one kernel: what the kernel reads and has not written
    /// itself, and what it writes, each tensor once. Temporaries in `unwritten` are neither.
    pub(super) fn bytes(&self, kernels: &[Range<usize>], unwritten: &[Operand]) -> f64 {
        let of_kernel = |kernel: &Range<usize>| -> f64 {
            let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
            for (_, origin, access) in self.uses(kernel.clone()) {
                if access.reads() && !written.contains(&origin) {
                    read.insert(origin);
                }
                if access.writes() {
                    written.insert(origin);
                }
            }
            let moved = read.iter().chain(&written).filter(|origin| !unwritten.contains(origin));
            moved.map(|origin| self.size(*origin) as f64).sum()
        };
        kernels.iter().map(of_kernel).sum()
    }

    /// The tensor arguments of kernels, in order: the kernel, the tensor of the earliest kernel that it is, its use.
    fn uses(&self, kernels: Range<usize>) -> impl Iterator<Item = (usize, Operand, Access)> + '_ {
        kernels.flat_map(move |kernel| {
            let args = 0..self.jobs[kernel].spec.args.len();
            args.filter_map(move |arg| {
                let access = self.tensor((kernel, arg))?.access;
                Some((kernel, self.origin((kernel, arg)), access))
            })
        })
    }

    /// The bytes of a tensor; of one that is too large for any device, the most there are.
    pub(super) fn size(&self, operand: Operand) -> u64 {
        let Some(tensor) = self.tensor(operand) else { return 0 };
        let bytes = tensor.dtype.bytes() as u64;
        tensor.shape.iter().fold(bytes, |product, extent| product.saturating_mul(*extent as u64))
    }
}
