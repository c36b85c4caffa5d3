//! Functions with pointers to tensors, work-group memory and uniform buffers, which naga's validator rejects: each such function is
//! copied per variable that it is called with. The copy uses the variable itself; the indices on the way to the part that the
//! pointer is to are arguments in place of the pointer.

use std::cell::RefCell;
use std::collections::HashMap;

use naga::proc::TypeResolution;
use naga::{
    AddressSpace, Arena, Block, Expression, Function, FunctionArgument, GlobalVariable, Handle, Module,
    Range, ResourceBinding, Span, Statement, Type, TypeInner,
};

use crate::ir::rebuild::{Change, Rebuild};
use crate::ir::{Global, Value, blocks, declare, resolved};

/// Expressions of the copies with pointers.
const MAX_COPIED_EXPRESSIONS: usize = 50_000;
/// Copies that call each other.
const MAX_CALL_LEVELS: usize = 100;

/// A step from a variable to a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Constant(u32),
    /// By an index of this type.
    Index(Handle<Type>),
}

/// What an argument points to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Target {
    variable: Global,
    steps: Vec<Step>,
}

/// By argument of a function: what replaces it, if it is such a pointer.
type Targets = Vec<Option<Target>>;

/// Why a function is not copied.
enum Failure {
    /// A pointer is not to a part of a variable; the validator rejects its function.
    Pointer,
    /// A limit is exceeded by the function at this place.
    Limit(Span, String),
}

/// Whether a function takes such arguments.
pub(super) fn are_taken(module: &Module) -> bool {
    module.functions.iter().any(|(_, function)| has_refused(module, function))
}

/// Rids a module of such arguments. It stays as it is if one of them is not a pointer to a part of a variable. In a function
/// that nothing calls, they become variables of their own, so that it is validated.
///
/// # Errors
/// The place and the description of a limit that the copies exceed.
pub(super) fn replace(module: &mut Module) -> Result<(), (Span, String)> {
    let mut copies =
        Copies { module: module.clone(), functions: Arena::new(), known: HashMap::new(), size: 0, level: 0 };
    match copies.all() {
        Ok(()) => *module = Module { functions: copies.functions, ..copies.module },
        Err(Failure::Pointer) => {}
        Err(Failure::Limit(place, text)) => return Err((place, text)),
    }
    Ok(())
}

fn has_refused(module: &Module, function: &Function) -> bool {
    function.arguments.iter().any(|argument| is_refused(module, argument))
}

/// Whether an argument is a pointer that the validator rejects.
pub(super) fn is_refused(module: &Module, argument: &FunctionArgument) -> bool {
    let space = module.types[argument.ty].inner.pointer_space();
    matches!(space, Some(AddressSpace::Storage { .. } | AddressSpace::Uniform | AddressSpace::WorkGroup))
}

struct Copies {
    /// The module, with the original functions and the new entry points.
    module: Module,
    functions: Arena<Function>,
    known: HashMap<(Handle<Function>, Targets), Handle<Function>>,
    /// The expressions of the copies with pointers.
    size: usize,
    /// The calls on the way to the current copy.
    level: usize,
}

impl Copies {
    fn all(&mut self) -> Result<(), Failure> {
        let originals: Vec<_> = self.module.functions.iter().map(|(handle, _)| handle).collect();
        for &original in &originals {
            let function = &self.module.functions[original];
            if !has_refused(&self.module, function) {
                self.copy(original, vec![None; function.arguments.len()])?;
            }
        }
        for index in 0..self.module.entry_points.len() {
            let function = self.module.entry_points[index].function.clone();
            let targets = vec![None; function.arguments.len()];
            self.module.entry_points[index].function = self.rebuilt(&function, &targets)?;
        }
        // A function precedes those that call it.
        for &original in originals.iter().rev() {
            if !self.known.keys().any(|(known, _)| *known == original) {
                let targets = self.own_variables(original)?;
                self.copy(original, targets)?;
            }
        }
        Ok(())
    }

    /// A variable for each pointer that a function takes.
    fn own_variables(&mut self, original: Handle<Function>) -> Result<Targets, Failure> {
        let arguments = self.module.functions[original].arguments.clone();
        let target = |argument: FunctionArgument| {
            if !is_refused(&self.module, &argument) {
                return Ok(None);
            }
            let TypeInner::Pointer { base, space } = self.module.types[argument.ty].inner else {
                return Err(Failure::Pointer);
            };
            let binding = ResourceBinding { group: 0, binding: 0 };
            let binding = (space != AddressSpace::WorkGroup).then_some(binding);
            let name = argument.name;
            let variable = GlobalVariable { name, binding, ..declare::variable("", space, base) };
            let variable = self.module.global_variables.append(variable, Span::UNDEFINED);
            Ok(Some(Target { variable, steps: Vec::new() }))
        };
        arguments.into_iter().map(target).collect()
    }

    /// The copy of a function for the targets of its arguments.
    fn copy(&mut self, original: Handle<Function>, targets: Targets) -> Result<Handle<Function>, Failure> {
        let key = (original, targets);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let function = self.module.functions[original].clone();
        if key.1.iter().any(Option::is_some) {
            self.size += function.expressions.len();
        }
        self.level += 1;
        self.check_limits(original)?;
        let new = self.rebuilt(&function, &key.1)?;
        self.level -= 1;
        // Its callees precede it.
        let new = self.functions.append(new, self.module.functions.get_span(original));
        self.known.insert(key, new);
        Ok(new)
    }

    fn check_limits(&self, function: Handle<Function>) -> Result<(), Failure> {
        let limit = if self.size > MAX_COPIED_EXPRESSIONS {
            format!(
                "functions are copied for each variable that their pointers are to, and all copies have more than {MAX_COPIED_EXPRESSIONS} expressions"
            )
        } else if self.level > MAX_CALL_LEVELS {
            format!(
                "calls are nested deeper than {MAX_CALL_LEVELS} in a text with functions that take pointers to tensors or work-group memory"
            )
        } else {
            return Ok(());
        };
        let name = self.module.functions[function].name.as_deref().unwrap_or_default();
        Err(Failure::Limit(self.module.functions.get_span(function), format!("function '{name}': {limit}")))
    }

    /// A function whose arguments with a target are replaced, and which calls copies.
    fn rebuilt(&mut self, function: &Function, targets: &Targets) -> Result<Function, Failure> {
        let change = Arguments::of(function, targets);
        let mut new = Rebuild::function(function, &change).map_err(|_| Failure::Pointer)?;
        new.arguments = change.arguments;
        for range in change.emitted.into_inner().into_iter().rev() {
            let mut body = Block::from_vec(vec![Statement::Emit(range)]);
            std::mem::swap(&mut body, &mut new.body);
            new.body.append(&mut body);
        }
        let mut calls = Vec::new();
        blocks::each(&new.body, &mut |statement| {
            if let Statement::Call { function, arguments, .. } = statement {
                calls.push((*function, arguments.clone()));
            }
        });
        // The results of calls have the types of the original functions.
        let mut made = Vec::new();
        for (called, arguments) in calls {
            let (targets, arguments) = self.targets(&new, called, &arguments)?;
            made.push((self.copy(called, targets)?, arguments));
        }
        let Function { expressions, body, .. } = &mut new;
        renew_calls(body, expressions, &mut made.into_iter());
        Ok(new)
    }

    /// The targets of the arguments of a call, and the arguments of the copy.
    fn targets(
        &mut self,
        function: &Function,
        called: Handle<Function>,
        arguments: &[Value],
    ) -> Result<(Targets, Vec<Value>), Failure> {
        let (mut targets, mut new) = (Vec::new(), Vec::new());
        for (at, &argument) in arguments.iter().enumerate() {
            let declared = self.module.functions[called].arguments.get(at);
            if declared.is_some_and(|declared| is_refused(&self.module, declared)) {
                let (target, indices) = self.target(function, argument).ok_or(Failure::Pointer)?;
                targets.push(Some(target));
                new.extend(indices);
            } else {
                targets.push(None);
                new.push(argument);
            }
        }
        Ok((targets, new))
    }

    /// What a pointer is to, and the indices on the way.
    fn target(&mut self, function: &Function, pointer: Value) -> Option<(Target, Vec<Value>)> {
        let (mut steps, mut indices) = (Vec::new(), Vec::new());
        let mut part = pointer;
        loop {
            match function.expressions[part] {
                Expression::GlobalVariable(variable) => {
                    steps.reverse();
                    indices.reverse();
                    return Some((Target { variable, steps }, indices));
                }
                Expression::AccessIndex { base, index } => {
                    steps.push(Step::Constant(index));
                    part = base;
                }
                Expression::Access { base, index } => {
                    steps.push(Step::Index(self.index_type(function, index)?));
                    indices.push(index);
                    part = base;
                }
                _ => return None,
            }
        }
    }

    fn index_type(&mut self, function: &Function, index: Value) -> Option<Handle<Type>> {
        match resolved(&self.module, function, index)? {
            TypeResolution::Handle(ty) => Some(ty),
            TypeResolution::Value(inner @ TypeInner::Scalar(_)) => {
                Some(declare::ty(&mut self.module.types, inner))
            }
            TypeResolution::Value(_) => None,
        }
    }
}

/// Replaces the calls of a block by those of the copies, in order.
fn renew_calls(
    block: &mut Block,
    expressions: &mut Arena<Expression>,
    made: &mut impl Iterator<Item = (Handle<Function>, Vec<Value>)>,
) {
    for statement in block.iter_mut() {
        if let Statement::Call { function, arguments, result } = statement
            && let Some((copy, new)) = made.next()
        {
            (*function, *arguments) = (copy, new);
            if let Some(result) = *result {
                expressions[result] = Expression::CallResult(copy);
            }
        }
        for inner in blocks::inner_mut(statement) {
            renew_calls(inner, expressions, made);
        }
    }
}

/// The replacement of a function's arguments.
struct Arguments<'a> {
    targets: &'a Targets,
    arguments: Vec<FunctionArgument>,
    /// By argument of the original: the place of the first argument that replaces it.
    places: Vec<u32>,
    /// The accesses to parts, which are evaluated at the start.
    emitted: RefCell<Vec<Range<Expression>>>,
}

impl<'a> Arguments<'a> {
    fn of(function: &Function, targets: &'a Targets) -> Self {
        let (mut arguments, mut places) = (Vec::new(), Vec::new());
        for (argument, target) in function.arguments.iter().zip(targets) {
            places.push(u32::try_from(arguments.len()).unwrap_or(u32::MAX));
            match target {
                None => arguments.push(argument.clone()),
                Some(target) => arguments.extend(target.steps.iter().filter_map(|step| match step {
                    Step::Index(ty) => Some(FunctionArgument { name: None, ty: *ty, binding: None }),
                    Step::Constant(_) => None,
                })),
            }
        }
        Self { targets, arguments, places, emitted: RefCell::default() }
    }
}

impl Change for Arguments<'_> {
    fn replacement(&self, new: &mut Rebuild<'_>, old: Value) -> Option<Value> {
        let Expression::FunctionArgument(argument) = new.source.expressions[old] else { return None };
        let argument = argument as usize;
        let place = *self.places.get(argument)?;
        let Some(target) = &self.targets[argument] else {
            return Some(new.append(Expression::FunctionArgument(place)));
        };
        let variable = new.append(Expression::GlobalVariable(target.variable));
        let is_index = |step: &&Step| matches!(step, Step::Index(_));
        let count = u32::try_from(target.steps.iter().filter(is_index).count()).ok()?;
        let indices: Vec<_> =
            (place..place + count).map(|place| new.append(Expression::FunctionArgument(place))).collect();
        let mut indices = indices.into_iter();
        let mut ends: Option<[Value; 2]> = None;
        let mut base = variable;
        for step in &target.steps {
            base = new.append(match step {
                Step::Constant(index) => Expression::AccessIndex { base, index: *index },
                Step::Index(_) => Expression::Access { base, index: indices.next()? },
            });
            ends = Some([ends.map_or(base, |[first, _]| first), base]);
        }
        let range = ends.map(|[first, last]| Range::new_from_bounds(first, last));
        self.emitted.borrow_mut().extend(range);
        Some(base)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Program, Specialisation};

    /// The error, or an empty text.
    fn error(functions: &str, call: &str) -> String {
        let code = format!(
            "@group(0) @binding(0) var<storage, read_write> y: array<u32>;
             {functions}
             @compute @workgroup_size(1) fn main() {{ {call} }}"
        );
        // As small a stack as threads usually have.
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let parsed = move || {
            let parsed = Program::parse(&code, "", &Specialisation::default());
            parsed.err().map(|error| error.to_string()).unwrap_or_default()
        };
        small.spawn(parsed).unwrap().join().unwrap()
    }

    #[test]
    fn chains_of_calls_are_limited() {
        let chain = |length: usize| {
            let pointer = "p: ptr<storage, array<u32>, read_write>";
            let rest = |n: usize| format!("fn f{n}({pointer}) {{ f{}(p); }}\n", n - 1);
            let all: String = (1..length).map(rest).collect();
            error(&format!("fn f0({pointer}) {{ p[0] = 1u; }}\n{all}"), &format!("f{}(&y);", length - 1))
        };
        assert_eq!(chain(60), "");
        let said = chain(480);
        assert!(said.contains("deeper than 100") && said.contains("wgsl:"), "{said}");
    }

    #[test]
    fn copies_are_limited() {
        let nested = |depth: usize| {
            let ty = |n: usize| format!("{}u32{}", "array<".repeat(n), ", 2>".repeat(n));
            let function = |n: usize| {
                let pointer = format!("p: ptr<workgroup, {}>", ty(n));
                format!("fn f{n}({pointer}) {{ f{0}(&p[0]); f{0}(&p[1]); }}\n", n - 1)
            };
            let all: String = (1..=depth).map(function).collect();
            let first = "fn f0(p: ptr<workgroup, u32>) { *p += 1u; }\n";
            error(&format!("var<workgroup> w: {};\n{first}{all}", ty(depth)), &format!("f{depth}(&w);"))
        };
        assert_eq!(nested(5), "");
        let said = nested(20);
        assert!(said.contains("more than 50000 expressions") && said.contains("wgsl:"), "{said}");
    }
}
