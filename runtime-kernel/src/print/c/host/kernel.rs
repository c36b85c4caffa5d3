//! Kernels in OpenCL C: each work-item of a group runs a block of its invocations.

use runtime_core::Result;

use super::entry::Entry;

/// `UNORDERED` declares that the iterations of a loop may run in any order, as in host C. Conditions that are known in a copy of a
/// loop are constants.
const PREAMBLE: &str = "\
#ifdef __clang__
#pragma clang diagnostic ignored \"-Wconstant-logical-operand\"
#define UNORDERED _Pragma(\"clang loop vectorize(assume_safety)\")
#else
#define UNORDERED
#endif
";

impl Entry<'_, '_, '_> {
    /// Writes the kernel and returns its symbol.
    pub(super) fn write_kernel(&mut self, index: usize) -> Result<String> {
        let symbol = self.printer.writer.names.entry(index).to_owned();
        if self.printer.writer.first("UNORDERED") {
            self.printer.writer.types.push_str(PREAMBLE);
        }
        let globals = self.globals();
        let scalars = self.printer.scalar_names(index);
        let parameters = self.printer.parameters(index, &scalars)?.join(",\n    ");
        self.printer.lines = self.printer.writer.lines_at(0, |lines| lines.of_entry(index));
        let [x, y, z] = self.work_items.unwrap_or([1; 3]);
        self.line("");
        self.line(&format_args!("__kernel __attribute__((reqd_work_group_size({x}, {y}, {z})))"));
        self.open(&["void ", &symbol, "(", &parameters, ") {"]);
        self.lengths(index)?;
        self.printer.immediate(index, &scalars)?;
        self.memory(&globals)?;
        self.positions();
        self.work()?;
        self.line("next_group:;");
        self.close("}");
        let text = std::mem::take(&mut self.printer.lines).into_text();
        self.printer.writer.functions.push_str(&text);
        Ok(symbol)
    }

    /// Declares the position of the group, and that of the work-item's first invocation in it.
    fn positions(&mut self) {
        let counts = self.work_items.unwrap_or([1; 3]);
        for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
            self.line(&format_args!(
                "const unsigned int group_{name}_ = (unsigned int)get_group_id({axis});"
            ));
            if counts[axis] > 1 {
                let extent = self.size[axis];
                self.line(&format_args!(
                    "const unsigned int first_{name}_ = (unsigned int)get_local_id({axis}) * {extent}u;"
                ));
            }
        }
        self.line("(void)group_x_, (void)group_y_, (void)group_z_;");
    }

    /// The end of a region: all work-items of a group wait for each other, unless there is only one.
    pub(super) fn barrier(&mut self) {
        if self.work_items.is_some_and(|counts| counts != [1; 3]) {
            self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
        }
    }
}
