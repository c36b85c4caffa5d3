//! Prints the copy of a row's loop that writes whole rows of output with nontemporal stores.
//!
//! A store to memory that is not cached fetches the line first, only to overwrite it. If a launch's memory exceeds
//! the caches, a row of a tensor that the kernel never reads is therefore written in parts to a small array, which a
//! compiler keeps in registers, and from there by stores that bypass the caches.

use runtime_core::Result;

use super::entry::Entry;
use super::schedule::nontemporal_stores::LINE_BYTES;

/// Printed once: `stream_` copies part of a row, `STREAMED_` is the memory size of a launch from which on this
/// pays off.
const LIBRARY: &str = include_str!("nontemporal_stores.c");

/// Elements per part, few enough for a compiler to keep in registers.
const PART: u32 = 64;

impl Entry<'_, '_, '_> {
    /// The loop over a whole row, with a copy for launches that use much memory.
    pub(super) fn whole_row(&mut self, index: usize, open: &str) -> Result<()> {
        let nontemporal_stores = self.schedule.rows[index].nontemporal_stores.clone();
        if nontemporal_stores.is_empty() || self.work_items.is_some() {
            return self.copy(index, open);
        }
        if self.printer.writer.first("stream_") {
            self.printer.writer.types.push_str(LIBRARY);
        }
        self.nontemporal_stores = true;
        let names = &self.printer.writer.names;
        let sizes: Vec<_> = self.printer.writer.program.interfaces[self.index]
            .tensors
            .iter()
            .map(|t| names.size(t.variable))
            .collect();
        let head = format!("if ({} >= STREAMED_) {{", sizes.join(" + "));
        self.open(&head);
        let part = if self.width.is_multiple_of(PART) { PART } else { self.width };
        self.open(&format!("for (int part_ = 0; part_ < {}; part_ += {part}) {{", self.width));
        let mut copies = Vec::new();
        for stream in nontemporal_stores {
            let type_name = self.printer.writer.scalar(stream.scalar)?;
            let tensor = self.printer.writer.names.global(stream.variable).to_owned();
            let row = self.printer.plan.fresh(&self.printer.writer.names, &format!("{tensor}_row"));
            self.line(&format_args!("{type_name} {row}[{part}] __attribute__((aligned({LINE_BYTES})));"));
            let assumed = &mut self.printer.environment.assumed;
            let first = assumed.first_indices.get(&stream.access).cloned().unwrap_or_default();
            copies.push(format!("stream_({tensor} + {first} + part_, {row}, sizeof {row});"));
            assumed.redirected.insert(stream.access, format!("{row}[x_ - part_]"));
        }
        self.copy(index, &format!("for (int x_ = part_; x_ < part_ + {part}; x_++) {{"))?;
        copies.iter().for_each(|copy| self.line(copy));
        self.close("}");
        self.printer.environment.assumed.redirected.clear();
        self.printer.lines.reopen("} else {");
        self.copy(index, open)?;
        self.close("}");
        Ok(())
    }
}
