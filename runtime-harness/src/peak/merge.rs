//! Peaks that were measured again.

use super::{ComputePeak, MemoryLevel, Peak};

impl Peak {
    /// Takes what is better of another measurement of the same device, and what this one lacks.
    pub(crate) fn improve(&mut self, again: Self) {
        again.compute.into_iter().for_each(|figure| self.improve_compute(figure));
        again.memory.into_iter().for_each(|level| self.improve_level(level));
    }

    fn improve_compute(&mut self, new: ComputePeak) {
        let is_same = |old: &&mut ComputePeak| {
            (&old.dtype, old.unit, &old.format) == (&new.dtype, new.unit, &new.format)
        };
        match self.compute.iter_mut().find(is_same) {
            Some(old) => old.gflops_per_s = old.gflops_per_s.clone().better(new.gflops_per_s),
            None => self.compute.push(new),
        }
    }

    fn improve_level(&mut self, mut new: MemoryLevel) {
        if let Some(old) = self.memory.iter_mut().find(|old| old.name == new.name) {
            for (old, new) in old.figures_mut().into_iter().zip(new.figures_mut()) {
                *old = match (old.take(), new.take()) {
                    (Some(old), Some(new)) => Some(old.better(new)),
                    (old, new) => old.or(new),
                };
            }
            return;
        }
        // A working set that is no faster than its level has no level of its own.
        let known = new.keeps_bytes.and_then(|bytes| self.level_of(bytes)).map(|level| level.name.clone());
        let known = known.map_or(0.0, |level| self.bandwidth_gbytes_per_s(&level));
        if new.best_gbytes_per_s() > known {
            let is_larger =
                |level: &MemoryLevel| level.keeps_bytes.is_none_or(|keeps| Some(keeps) >= new.keeps_bytes);
            let at = self.memory.iter().position(is_larger).unwrap_or(self.memory.len());
            self.memory.insert(at, new);
        }
    }
}
