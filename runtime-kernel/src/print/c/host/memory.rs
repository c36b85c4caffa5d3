//! The memory of a work-group: work-group memory, and arrays over its invocations with what lives across barriers.
//!
//! On the host it is on the stack of the thread that runs the group, except arrays that are too large for that.

use naga::{AddressSpace, Span, TypeInner};
use runtime_core::{Error, ErrorKind, Result};

use super::entry::Entry;
use super::environment::LaneArrays;
use super::schedule::variable_storage::Storage;
use crate::analysis::private_memory;
use crate::ir::Global;

/// Maximum stack bytes of a function on a thread that runs work-groups. The host runs it only where twice as much
/// is left, to allow for the compiler's own use.
const STACK_LIMIT: u64 = 512 << 10;
/// Maximum bytes on the heap, for each thread that runs work-groups.
const HEAP_LIMIT: u64 = 64 << 20;

impl Entry<'_, '_, '_> {
    /// Declares workgroup memory and the arrays over the invocations.
    ///
    /// # Errors
    /// `OutOfResources` if that is more than a thread that runs work-groups has, or a work-item.
    pub(super) fn memory(&mut self, globals: &[Global]) -> Result<()> {
        let mut bytes = self.group_memory(globals)?;
        let items: u32 = self.size.iter().product();
        let (arrays, lane_bytes) = self.lane_arrays()?;
        if self.storage.masked {
            bytes = bytes.saturating_add(u64::from(items));
        }
        let own = private_memory::of_function(self.module, self.function, self.printer.context.info, 0);
        let callees = private_memory::of_functions(self.module, &self.printer.writer.program.info);
        bytes = bytes.saturating_add(own).saturating_add(callees);
        self.on_heap = self.work_items.is_none() && bytes.saturating_add(lane_bytes) > STACK_LIMIT;
        self.check(bytes, lane_bytes)?;
        let declarations: Vec<_> = arrays.iter().map(|arrays| arrays.declare(items)).collect();
        if self.on_heap {
            self.allocate(&arrays, &declarations);
        } else {
            declarations.iter().for_each(|declaration| self.line(declaration));
        }
        if self.storage.masked {
            self.line(&format_args!(
                "unsigned char returned_[{items}] __attribute__((aligned(64))) = {{0}};"
            ));
            self.line("unsigned int returns_ = 0;");
        }
        Ok(())
    }

    /// Declares workgroup memory; returns its size on the stack.
    fn group_memory(&mut self, globals: &[Global]) -> Result<u64> {
        let mut bytes = 0_u64;
        for &variable in globals {
            let declared = &self.module.global_variables[variable];
            if declared.space == AddressSpace::WorkGroup {
                let space = self.printer.writer.dialect.space(declared.space);
                let type_name = self.printer.writer.type_name(declared.ty)?;
                let name = self.printer.writer.names.global(variable).to_owned();
                if self.work_items.is_none() {
                    bytes += private_memory::size(self.module, &self.module.types[declared.ty].inner);
                }
                self.line(&[space, &type_name, " ", &name, " __attribute__((aligned(64)));"]);
            }
        }
        Ok(bytes)
    }

    /// The arrays over the invocations, and the size of all.
    fn lane_arrays(&mut self) -> Result<(Vec<LaneArrays>, u64)> {
        let (mut all, mut bytes) = (Vec::new(), 0_u64);
        for (variable, declared) in self.function.local_variables.iter() {
            if !matches!(self.storage.variable(variable), Storage::Lanes | Storage::LanesInPlace) {
                continue;
            }
            let type_name = self.printer.writer.type_name(declared.ty)?;
            let name = self.printer.plan.local(variable).to_owned();
            let arrays =
                self.arrays_of((type_name, &self.module.types[declared.ty].inner), &name, &mut bytes)?;
            if self.storage.variable(variable) == Storage::LanesInPlace {
                self.printer.environment.in_place.insert(variable, arrays.arrays[0].0.clone());
            }
            all.push(arrays.clone());
            self.variables.insert(variable, arrays);
        }
        let info = self.printer.context.info;
        for &value in &self.storage.stored {
            let type_name = self.printer.writer.resolved_name(&info[value].ty, Span::UNDEFINED)?;
            let name = self.printer.plan.value(value).unwrap_or("value").to_owned();
            let inner = info[value].ty.inner_with(&self.module.types);
            let arrays = self.arrays_of((type_name, inner), &name, &mut bytes)?;
            all.push(arrays.clone());
            self.printer.environment.stored.insert(value, arrays);
        }
        self.printer.environment.uniform.clone_from(&self.storage.uniform);
        self.printer.environment.guarded.clone_from(&self.schedule.guarded);
        self.printer.environment.hoisted.clone_from(&self.schedule.hoisted);
        Ok((all, bytes))
    }

    fn arrays_of(
        &mut self,
        (type_name, inner): (String, &TypeInner),
        name: &str,
        bytes: &mut u64,
    ) -> Result<LaneArrays> {
        let items: u64 = self.size.iter().map(|&size| u64::from(size)).product();
        *bytes = bytes.saturating_add(items.saturating_mul(private_memory::size(self.module, inner)));
        let (writer, plan) = (&mut *self.printer.writer, &mut self.printer.plan);
        LaneArrays::new(writer, (type_name, inner), name, |writer, wanted| plan.fresh(&writer.names, wanted))
    }

    /// Allocates the arrays with these declarations on the heap.
    fn allocate(&mut self, arrays: &[LaneArrays], declarations: &[String]) {
        self.open("struct lanes_ {");
        declarations.iter().for_each(|declaration| self.line(declaration));
        self.close("};");
        self.line("void *const heap_ = __builtin_malloc(sizeof(struct lanes_) + 64);");
        // A launch has no other way to fail, and systems grant such memory before they have it.
        self.line("if (!heap_) __builtin_trap();");
        self.line(
            "struct lanes_ *const lanes_ = (struct lanes_ *)(((__UINTPTR_TYPE__)heap_ + 63) / 64 * 64);",
        );
        for arrays in arrays {
            let element = arrays.element_name();
            for (name, _) in &arrays.arrays {
                self.line(&format_args!("{element} *const __restrict__ {name} = lanes_->{name};"));
            }
        }
    }

    /// Frees what is on the heap.
    pub(super) fn free(&mut self) {
        if self.on_heap {
            self.line("__builtin_free(heap_);");
        }
    }

    /// Fails if the memory is too little: `bytes` beside the arrays of `lane_bytes`.
    fn check(&self, bytes: u64, lane_bytes: u64) -> Result<()> {
        let (bytes, limit, what, whose) = match self.work_items {
            Some(_) => {
                let loops = self.printer.writer.program.group_loops.as_ref();
                let limit = loops.map_or(0, |loops| loops.private_bytes);
                let bytes = bytes.saturating_add(lane_bytes);
                let what = "private memory for variables and values that live across barriers";
                (bytes, limit, what, "a work-item that runs them in a loop")
            }
            None if bytes > STACK_LIMIT => {
                (bytes, STACK_LIMIT, "stack for work-group memory and variables", "the host")
            }
            None => (lane_bytes, HEAP_LIMIT, "memory for values that live across barriers", "the host"),
        };
        if bytes <= limit {
            return Ok(());
        }
        let name = &self.module.entry_points[self.index].name;
        Err(Error::new(
            ErrorKind::OutOfResources,
            format!(
                "entry point \"{name}\" needs {bytes} bytes of {what}, but {whose} has {limit}; use smaller arrays or a smaller \
                 work-group"
            ),
        ))
    }
}
