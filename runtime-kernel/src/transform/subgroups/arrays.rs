//! The arrays that matrices are loaded from and stored to: parts of variables of the module, for which the library has
//! variables of its own until it is imported.

use std::cell::RefCell;

use naga::{
    AddressSpace, Block, Expression, Function, GlobalVariable, Module, Range, Scalar, Span, Statement,
    TypeInner,
};
use runtime_core::{Error, ErrorKind, Result};

use crate::ir::cooperative::{EXTENT, ROW_ALIGNMENT, Rows};
use crate::ir::declare::scalar_name;
use crate::ir::rebuild::{Change, Rebuild};
use crate::ir::{Global, Value};

const PREFIX: &str = "matrix_array_";

/// An array in a variable of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    variable: Global,
    /// The members that lead to it.
    path: Vec<u32>,
    is_shared: bool,
    scalar: Scalar,
    /// The numbers in an element: 1, 2 or 4.
    pub(super) numbers: u32,
    /// The elements; `None` if their number is only known at run time.
    pub(super) length: Option<u32>,
}

/// The name of the library's variable for an array.
pub(super) fn name_of(array: usize) -> String {
    format!("{PREFIX}{array}")
}

/// The array that the library's variable stands for.
pub(super) fn array_of(variable: &GlobalVariable) -> Option<usize> {
    variable.name.as_deref()?.strip_prefix(PREFIX)?.parse().ok()
}

impl Array {
    /// The array behind `part`, whose elements are `element`.
    pub(super) fn of(
        (module, function): (&Module, &Function),
        part: Value,
        element: &TypeInner,
        length: Option<u32>,
    ) -> Result<Self> {
        let mut path = Vec::new();
        let mut at = part;
        let variable = loop {
            match function.expressions[at] {
                Expression::GlobalVariable(variable) => break variable,
                Expression::AccessIndex { base, index } => {
                    path.insert(0, index);
                    at = base;
                }
                _ => return Err(Error::new(ErrorKind::Internal, "a matrix outside of variables")),
            }
        };
        let numbers = match *element {
            TypeInner::Vector { size, .. } | TypeInner::ValuePointer { size: Some(size), .. } => size as u32,
            _ => 1,
        };
        let is_shared = module.global_variables[variable].space == AddressSpace::WorkGroup;
        let scalar = element.scalar().unwrap_or(Scalar::F16);
        Ok(Self { variable, path, is_shared, scalar, numbers, length })
    }

    /// The rows of a matrix in it.
    pub(super) fn rows(&self) -> Rows {
        let bytes = self.numbers * u32::from(self.scalar.width);
        Rows { width: EXTENT / self.numbers, alignment_mask: (ROW_ALIGNMENT / bytes).saturating_sub(1) }
    }

    /// The declaration of the library's variable.
    pub(super) fn declaration(&self, array: usize) -> String {
        let (name, scalar) = (name_of(array), scalar_name(self.scalar));
        let element =
            if self.numbers == 1 { scalar.to_owned() } else { format!("vec{}<{scalar}>", self.numbers) };
        let ty = match self.length {
            Some(length) => format!("array<{element}, {length}>"),
            None => format!("array<{element}>"),
        };
        match self.is_shared {
            true => format!("var<workgroup> {name}: {ty};\n"),
            false => format!("@group(0) @binding({array}) var<storage, read_write> {name}: {ty};\n"),
        }
    }

    /// The number of elements, where `x` points to the array.
    pub(super) fn length_text(&self) -> String {
        self.length.map_or_else(|| "arrayLength(x)".to_owned(), |length| format!("{length}u"))
    }
}

/// What a variable of the library is in the module.
#[derive(Clone, Copy, Debug)]
pub(super) enum Variable<'a> {
    Own(Global),
    Array(&'a Array),
}

impl Variable<'_> {
    /// A variable that the module has got.
    pub(super) const fn own(self) -> Option<Global> {
        match self {
            Self::Own(variable) => Some(variable),
            Self::Array(_) => None,
        }
    }
}

/// Puts variables and arrays of the module in the place of the library's variables.
pub(super) struct Arrays<'a> {
    variables: &'a [Variable<'a>],
    /// The pointers to be computed at the start: first and last.
    emitted: RefCell<Vec<[Value; 2]>>,
}

impl<'a> Arrays<'a> {
    /// A function of the library with the module's variables.
    ///
    /// # Errors
    /// `Unsupported` for expressions that the library does not use.
    pub(super) fn replace(function: &Function, variables: &'a [Variable<'a>]) -> Result<Function> {
        let change = Self { variables, emitted: RefCell::default() };
        let mut function = Rebuild::function(function, &change)?;
        let mut body = Block::new();
        for [first, last] in change.emitted.take() {
            body.push(Statement::Emit(Range::new_from_bounds(first, last)), Span::UNDEFINED);
        }
        body.append(&mut function.body);
        function.body = body;
        Ok(function)
    }
}

impl Change for Arrays<'_> {
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value> {
        let Expression::GlobalVariable(variable) = new.source.expressions[old] else { return None };
        let array = match self.variables[variable.index()] {
            Variable::Own(variable) => return Some(new.append(Expression::GlobalVariable(variable))),
            Variable::Array(array) => array,
        };
        let start = new.append(Expression::GlobalVariable(array.variable));
        let mut first = None;
        let end = array.path.iter().fold(start, |base, &index| {
            let member = new.append(Expression::AccessIndex { base, index });
            first.get_or_insert(member);
            member
        });
        self.emitted.borrow_mut().extend(first.map(|first| [first, end]));
        Some(end)
    }
}
