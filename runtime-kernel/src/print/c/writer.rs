//! The state of the whole text: types, constants and library functions, each defined on first use.

use naga::proc::Layouter;
use naga::{FastHashMap, FastHashSet, Function, Handle, Module, Scalar, ScalarKind, Span};
use runtime_core::{Error, ErrorKind, Result};

use super::lines::Lines;
use super::names::Names;
use super::source_lines::SourceLines;
use crate::analysis::proof::allows_unchecked_variants;
use crate::analysis::proof::bounds::AllBounds;
use crate::analysis::proof::launch_precondition::Preconditions;
use crate::ir::declare::scalar_name;
use crate::program::{Checks, Dialect, Program};

/// Half precision in CUDA C++ without CUDA's headers, which NVRTC does not include: the type and its operators. Sums and products
/// are single instructions, everything else is computed in `float`.
const CUDA_HALF: &str = include_str!("half.cu");

/// The text under construction.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    pub(crate) program: &'a Program,
    pub(crate) bounds: &'a AllBounds,
    pub(crate) dialect: Dialect,
    pub(crate) checks: Checks,
    /// Whether entry points run the invocations of a group in loops.
    pub(crate) has_loops: bool,
    pub(crate) names: Names,
    /// Where the code refers to the lines of the text.
    pub(crate) source_lines: Option<SourceLines<'a>>,
    /// Whether entry points get an unchecked variant for launches that satisfy its preconditions.
    pub(super) unchecked_variants: bool,
    /// By function: the preconditions that its accesses depend on.
    pub(super) preconditions: FastHashMap<Handle<Function>, Preconditions>,
    /// Names of the types and library functions that are already defined.
    defined: FastHashSet<String>,
    extensions: Vec<&'static str>,
    /// naga's layouts.
    pub(super) layouts: Layouter,
    /// By type of the module.
    pub(super) alignments: Vec<u32>,
    /// By type of the module: whether its values have padding.
    pub(super) has_padding: Vec<bool>,
    pub(super) types: String,
    pub(super) constants: String,
    library: String,
    /// Functions and entry points, in order.
    pub(crate) functions: String,
}

impl<'a> Writer<'a> {
    /// The writer of a program.
    ///
    /// # Errors
    /// `Internal` for a type without a layout, which no valid module has.
    pub(super) fn new(
        program: &'a Program,
        bounds: &'a AllBounds,
        dialect: Dialect,
        checks: Checks,
    ) -> Result<Self> {
        let has_loops = dialect == Dialect::Host || program.loops_in(dialect).is_some();
        let mut writer = Self {
            program,
            bounds,
            dialect,
            checks,
            has_loops,
            names: Names::new(&program.module),
            source_lines: SourceLines::of(program),
            unchecked_variants: !has_loops
                && checks == Checks::Bounded
                && !program.has_debug_info
                && allows_unchecked_variants(&program.module),
            preconditions: FastHashMap::default(),
            defined: FastHashSet::default(),
            extensions: Vec::new(),
            layouts: Layouter::default(),
            alignments: Vec::with_capacity(program.module.types.len()),
            has_padding: Vec::with_capacity(program.module.types.len()),
            types: String::new(),
            constants: String::new(),
            library: String::new(),
            functions: String::new(),
        };
        writer.layouts.update(program.module.to_ctx()).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("finding the layouts of types: {error}"))
        })?;
        writer.find_alignments();
        writer.find_padding();
        Ok(writer)
    }

    pub(crate) const fn module(&self) -> &'a Module {
        &self.program.module
    }

    /// The error for a construct that this language cannot express.
    pub(crate) fn unsupported(&self, what: &str, span: Span) -> Error {
        let language = match self.dialect {
            Dialect::OpenCl => "OpenCL C",
            Dialect::Cuda => "CUDA C++",
            Dialect::Host => "host C",
        };
        self.program.unsupported(format_args!("in {language}, {what}"), span)
    }

    /// What a subgroup operation is called where it is not supported.
    pub(crate) const fn subgroup_operation(&self) -> &'static str {
        match self.dialect {
            Dialect::OpenCl => "a subgroup operation in a work-group that runs as loops",
            _ => "a subgroup operation",
        }
    }

    /// Whether `name` is requested for the first time; it then counts as defined.
    pub(super) fn first(&mut self, name: &str) -> bool {
        !self.defined.contains(name) && self.defined.insert(name.to_owned())
    }

    /// Defines a library function once; `define` returns everything after the qualifiers.
    ///
    /// Whatever `define` requests itself is defined before it.
    pub(crate) fn library(
        &mut self,
        name: String,
        define: impl FnOnce(&mut Self, &str) -> Result<String>,
    ) -> Result<String> {
        if self.first(&name) {
            let text = define(self, &name)?;
            self.library.push_str(self.dialect.function());
            self.library.push_str(&text);
            self.library.push('\n');
        }
        Ok(name)
    }

    /// Enables an extension of OpenCL C.
    pub(crate) fn extension(&mut self, name: &'static str) {
        if self.dialect == Dialect::OpenCl && !self.extensions.contains(&name) {
            self.extensions.push(name);
        }
    }

    /// The alias of a scalar type.
    ///
    /// # Errors
    /// `Unsupported` for integers of 16 bits.
    pub(crate) fn scalar(&mut self, scalar: Scalar) -> Result<&'static str> {
        let name = scalar_name(scalar);
        if self.first(name) {
            match (scalar.kind, scalar.width) {
                (ScalarKind::Sint | ScalarKind::Uint, 1 | 2) => {
                    return Err(self.unsupported("a 16-bit integer", Span::UNDEFINED));
                }
                (ScalarKind::Float, 2) => self.extension("cl_khr_fp16"),
                (ScalarKind::Float, 8) => self.extension("cl_khr_fp64"),
                _ => {}
            }
            match (scalar.kind, scalar.width, self.dialect) {
                (ScalarKind::Bool, _, Dialect::OpenCl | Dialect::Cuda) => {}
                (ScalarKind::Float, 2, Dialect::Cuda) => self.types.push_str(CUDA_HALF),
                _ => {
                    let own = self.dialect.scalar(scalar);
                    self.types.extend(["typedef ", own, " ", name, ";\n"]);
                }
            }
        }
        Ok(name)
    }

    /// An empty text of a function, with the line of the program's text that it begins on for debuggers.
    pub(crate) fn lines_at(&self, depth: usize, source: impl FnOnce(&SourceLines<'_>) -> u32) -> Lines {
        let mut lines = Lines::at(depth);
        if let Some(source_lines) = &self.source_lines {
            lines.mark(source(source_lines));
        }
        lines
    }

    /// The whole text.
    pub(super) fn finish(self) -> String {
        let mut text = String::with_capacity(
            self.types.len() + self.constants.len() + self.library.len() + self.functions.len() + 256,
        );
        let lines = self.source_lines.as_ref();
        text.extend(lines.map(SourceLines::before_library));
        for extension in &self.extensions {
            text.extend(["#pragma OPENCL EXTENSION ", extension, " : enable\n"]);
        }
        let mut add = |part: &str| {
            if !part.is_empty() {
                text.push_str(if text.is_empty() { "" } else { "\n" });
                text.push_str(part.trim_start_matches('\n'));
            }
        };
        [&self.types, &self.constants, &self.library].into_iter().for_each(|part| add(part));
        add(&lines.map(SourceLines::before_functions).unwrap_or_default());
        add(&self.functions);
        text
    }
}
