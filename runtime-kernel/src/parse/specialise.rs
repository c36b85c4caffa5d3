//! Load-time specialisation: values of `override` constants, and element types.

use std::collections::BTreeMap;
use std::fmt;

use naga::back::PipelineConstants;
use naga::back::pipeline_constants::process_overrides;
use naga::compact::{KeepUnused, compact};
use naga::proc::TypeResolution;
use naga::valid::ModuleInfo;
use naga::{Arena, Expression, Module, Scalar, ScalarKind, TypeInner};
use runtime_core::backend::did_you_mean;
use runtime_core::{DType, Error, Options, Result};

use super::diagnostics::location;
use super::merged_types;
use super::tokens::{Token, tokens};
use super::validate_again;
use crate::interface::Override;
use crate::ir::Value;
use crate::ir::declare::scalar_name;
use crate::ir::operands::{is_result, operands};

/// The load options that change the text of a kernel.
pub(crate) const OPTIONS: [&str; 3] = ["constant", "by_value", "element"];

/// Values for a kernel's `override` constants, and its element types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Specialisation {
    /// Name or `@id` of an override, and its value as text.
    pub constants: Vec<(String, String)>,
    /// The type that replaces `f32` in `alias T = f32;`.
    pub element: Option<DType>,
    /// The types that replace those in other lines `alias NAME = …;`, by name.
    pub elements: Vec<(String, DType)>,
    /// Uniform buffers whose numbers are scalar arguments.
    pub by_value: Vec<String>,
}

impl Specialisation {
    /// The constants, element types and buffers by value of load options.
    ///
    /// # Errors
    /// `InvalidArgument` for a constant or element type of another form.
    pub fn of_options(options: &Options) -> Result<Self> {
        let [constants, by_value, mut elements] = OPTIONS.map(|key| options.texts(key));
        let constants = constants.map(Self::parse_constant).collect::<Result<_>>()?;
        let by_value = by_value.map(str::to_owned).collect();
        let mut specialisation = Self { constants, by_value, ..Self::default() };
        elements.try_for_each(|text| specialisation.add_element(text))?;
        Ok(specialisation)
    }

    /// Sets an `override`; `value` is text of its type, such as `64`, `1.5` or `true`.
    #[must_use]
    pub fn constant(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.constants.push((name.to_owned(), format!("{value}")));
        self
    }

    /// Sets the element type.
    #[must_use]
    pub const fn element(mut self, dtype: DType) -> Self {
        self.element = Some(dtype);
        self
    }

    /// Sets the type in the line `alias NAME = …;`.
    #[must_use]
    pub fn element_named(mut self, name: &str, dtype: DType) -> Self {
        self.elements.push((name.to_owned(), dtype));
        self
    }

    /// Adds an element type as the load option `element` has it: `f16` for `T`, or `NAME=f16`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown type, or an empty name.
    pub fn add_element(&mut self, text: &str) -> Result<()> {
        match text.split_once('=').map(|(name, dtype)| (name.trim(), dtype.trim())) {
            None => self.element = Some(text.parse()?),
            Some(("", _)) => {
                return Err(Error::invalid(format!(
                    "element \"{text}\" is not of the form TYPE or NAME=TYPE"
                )));
            }
            Some((name, dtype)) => self.elements.push((name.to_owned(), dtype.parse()?)),
        }
        Ok(())
    }

    /// The element types by the names of their aliases, each once; the last one counts.
    pub(crate) fn named_elements(&self) -> Vec<(&str, DType)> {
        let named = self.elements.iter().map(|(name, dtype)| (name.as_str(), *dtype));
        let all: BTreeMap<_, _> = self.element.map(|dtype| ("T", dtype)).into_iter().chain(named).collect();
        all.into_iter().collect()
    }

    /// Reads `NAME=VALUE`.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no `=`.
    pub fn parse_constant(text: &str) -> Result<(String, String)> {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            }
            _ => Err(Error::invalid(format!("constant \"{text}\" is not of the form NAME=VALUE"))),
        }
    }
}

/// The overrides of a module as users see them, in the order of the text.
pub(crate) fn overrides(module: &Module, code: &str) -> Vec<Override> {
    let named = module.overrides.iter().filter(|(_, constant)| constant.name.is_some());
    named
        .map(|(_, constant)| Override {
            name: constant.name.clone().unwrap_or_default(),
            id: constant.id,
            type_name: type_name(module, constant).to_owned(),
            default: constant.init.map(|init| {
                let range = module.global_expressions.get_span(init).to_range();
                range.and_then(|range| code.get(range)).unwrap_or("computed").to_owned()
            }),
        })
        .collect()
}

/// Values of overrides by name, as WGSL text.
pub(crate) type Values = BTreeMap<String, String>;

/// The given values of overrides, plus a value for each unused override without a default.
///
/// # Errors
/// `InvalidArgument` for an unknown name, a value of the wrong type, or a missing value.
pub(crate) fn values(
    module: &Module,
    code: &str,
    path: &str,
    constants: &[(String, String)],
) -> Result<Values> {
    let mut values = Values::new();
    for (name, value) in constants {
        let (name, value) = checked_value(module, name, value)?;
        values.insert(name, value);
    }
    let mut missing = Vec::new();
    for (handle, constant) in module.overrides.iter() {
        let Some(name) = constant.name.clone() else { continue };
        if constant.init.is_none() && !values.contains_key(&name) {
            if is_used(module, &name) {
                let place = location(code, path, module.overrides.get_span(handle));
                missing.push(format!(
                    "{place}: override \"{name}\" has no default; give it a value: constant \"{name}=VALUE\""
                ));
                continue;
            }
            // Unused, but arrays of this size must not be empty.
            let value = if type_name(module, constant) == "bool" { "true" } else { "1" };
            values.insert(name, value.to_owned());
        }
    }
    if missing.is_empty() { Ok(values) } else { Err(Error::invalid(missing.join("\n"))) }
}

/// The module with naga's replacement of its overrides by values; `None` if naga cannot do it.
pub(crate) fn with_values(
    module: &Module,
    info: &ModuleInfo,
    values: &Values,
) -> Option<(Module, ModuleInfo)> {
    let named = with_named_sizes(module);
    let module = named.as_ref().unwrap_or(module);
    let mut constants = PipelineConstants::default();
    for (_, constant) in module.overrides.iter() {
        let TypeInner::Scalar(Scalar { kind, width: ..=4 }) = module.types[constant.ty].inner else {
            return None;
        };
        if let Some(name) = constant.name.clone()
            && let Some(value) = values.get(&name)
        {
            let number = match kind {
                ScalarKind::Bool => f64::from(u8::from(value == "true")),
                _ => value.parse().ok()?,
            };
            constants.insert(constant.id.map_or(name, |id| id.to_string()), number);
        }
    }
    let named = module.functions.iter().map(|(handle, function)| (&info[handle], function));
    let points = module.entry_points.iter().enumerate();
    let mut all = named.chain(points.map(|(at, point)| (info.get_entry_point(at), &point.function)));
    let is_number = |ty: &TypeResolution| matches!(ty.inner_with(&module.types), TypeInner::Scalar(_));
    let all =
        all.all(|(types, function)| can_replace(&function.expressions, &|value| is_number(&types[value].ty)));
    if !all || !can_replace(&module.global_expressions, &|value| is_number(&info[value])) {
        return None;
    }
    let (module, info) = process_overrides(module, info, None, &constants).ok()?;
    let (mut module, mut info) = (module.into_owned(), info.into_owned());
    if merged_types::resolve_sizes(&mut module)? {
        info = validate_again(&module).ok()?;
    }
    module.overrides = Arena::new();
    Some((module, info))
}

/// The module with names for the overrides that are sizes of arrays (`array<f32, TILE * 4>`), if there are any: naga 30 panics
/// on an override without a name.
fn with_named_sizes(module: &Module) -> Option<Module> {
    let has_name = |constant: &naga::Override| constant.name.is_some() || constant.id.is_some();
    if module.overrides.iter().all(|(_, constant)| has_name(constant)) {
        return None;
    }
    let mut module = module.clone();
    for (handle, constant, _) in module.overrides.iter_mut_span() {
        if !has_name(constant) {
            // No name of a text has a space.
            constant.name = Some(format!("size {}", handle.index()));
        }
    }
    Some(module)
}

/// Whether naga 30 can replace the overrides among `expressions`. All constants that depend on overrides must be
/// numbers computed from numbers: naga rejects vectors and arrays that become constant in the middle of a function
/// ("it's already in scope"). No constant may be selected out of others, whether they depend on overrides or not
/// (a component of a vector that a `let` names, a `select`): such a constant is moved earlier, the range of the
/// `Emit` around it becomes invalid, and the writer panics.
fn can_replace(expressions: &Arena<Expression>, is_number: &dyn Fn(Value) -> bool) -> bool {
    // By expression: whether it is constant, and whether it depends on overrides.
    let mut known: Vec<(bool, bool)> = Vec::with_capacity(expressions.len());
    expressions.iter().all(|(value, expression)| {
        let parts = || operands(expression).map(|operand| known[operand.index()]);
        let constant = match expression {
            Expression::Literal(_)
            | Expression::Constant(_)
            | Expression::Override(_)
            | Expression::ZeroValue(_) => true,
            Expression::Load { .. }
            | Expression::FunctionArgument(_)
            | Expression::LocalVariable(_)
            | Expression::GlobalVariable(_)
            | Expression::ArrayLength(_) => false,
            result if is_result(result) => false,
            _ => parts().all(|(constant, _)| constant),
        };
        let overridden = matches!(expression, Expression::Override(_)) || parts().any(|(_, part)| part);
        known.push((constant, overridden));
        let is_picked = matches!(
            expression,
            Expression::Access { .. } | Expression::AccessIndex { .. } | Expression::Select { .. }
        );
        let are_numbers = || is_number(value) && operands(expression).all(is_number);
        !constant || (!is_picked && (!overridden || are_numbers()))
    })
}

/// Whether any entry point uses an override.
fn is_used(module: &Module, name: &str) -> bool {
    let mut used = module.clone();
    compact(&mut used, KeepUnused::No);
    used.overrides.iter().any(|(_, constant)| constant.name.as_deref() == Some(name))
}

/// `code`, which must be valid, with each `override` replaced by a `const` of the given value or its default. Line
/// numbers stay the same.
pub(crate) fn as_constants(module: &Module, code: &str, values: &Values) -> String {
    let mut new = String::with_capacity(code.len());
    // The end of the text that is copied or dropped so far.
    let mut at = 0;
    let mut list = tokens(code);
    let mut before: Option<Token<'_>> = None;
    while let Some(token) = list.next() {
        match (token.text, before.as_ref()) {
            // `@id(…)`
            ("id", Some(sign)) if sign.text == "@" => {
                new.push_str(&code[at..sign.range.start]);
                let mut depth = 0;
                let last = list.by_ref().find(|token| {
                    depth += i32::from(token.text == "(") - i32::from(token.text == ")");
                    depth == 0
                });
                at = last.map_or(code.len(), |token| token.range.end);
                new.extend(code[sign.range.start..at].matches('\n'));
            }
            ("override", _) => {
                let Some(name) = list.next() else { break };
                let declared = module.overrides.iter().find(|(_, c)| c.name.as_deref() == Some(name.text));
                let type_name = declared.map_or("", |(_, constant)| type_name(module, constant));
                let ends = list.by_ref().find(|token| matches!(token.text, "=" | ";"));
                let value = values.get(name.text);
                let ends = if value.is_some() && ends.as_ref().is_some_and(|token| token.text == "=") {
                    list.by_ref().find(|token| token.text == ";")
                } else {
                    ends
                };
                let Some(end) = ends else { break };
                new.push_str(&code[at..token.range.start]);
                new.push_str(&format!("const {}: {type_name} = ", name.text));
                new.push_str(value.map_or("", String::as_str));
                new.extend(code[token.range.start..end.range.start].matches('\n'));
                new.push_str(if value.is_some() { ";" } else { "" });
                at = end.range.end;
            }
            _ => {}
        }
        before = Some(token);
    }
    new.push_str(&code[at..]);
    new
}

/// The name of an override, and its value as WGSL text.
fn checked_value(module: &Module, name: &str, value: &str) -> Result<(String, String)> {
    let id: Option<u16> = name.strip_prefix('@').unwrap_or(name).parse().ok();
    let found = module
        .overrides
        .iter()
        .map(|(_, constant)| constant)
        .find(|constant| constant.name.as_deref() == Some(name) || (id.is_some() && constant.id == id));
    let Some(constant) = found else {
        let names: Vec<_> =
            module.overrides.iter().filter_map(|(_, constant)| constant.name.as_deref()).collect();
        let hint = did_you_mean(name, &names);
        return Err(Error::invalid(format!("the kernel has no override \"{name}\"; {hint}")));
    };
    let number = match module.types[constant.ty].inner {
        TypeInner::Scalar(scalar) => literal(scalar, value),
        _ => None,
    };
    let number = number.ok_or_else(|| {
        Error::invalid(format!(
            "constant \"{name}\": \"{value}\" is not a value of type {}",
            type_name(module, constant)
        ))
    })?;
    Ok((constant.name.clone().unwrap_or_default(), number))
}

/// A value as a WGSL literal; `None` if it is not of the type.
fn literal(scalar: Scalar, text: &str) -> Option<String> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => text.parse::<bool>().ok().map(|flag| flag.to_string()),
        (ScalarKind::Sint, _) => text.parse::<i32>().ok().map(|number| number.to_string()),
        (ScalarKind::Uint, _) => text.parse::<u32>().ok().map(|number| number.to_string()),
        (ScalarKind::Float, width) => {
            let max = match width {
                2 => 65504.0,
                4 => f64::from(f32::MAX),
                _ => f64::MAX,
            };
            let number = text.parse::<f64>().ok().filter(|value| value.abs() <= max);
            number.map(|number| format!("{number:?}"))
        }
        _ => None,
    }
}

fn type_name(module: &Module, constant: &naga::Override) -> &'static str {
    match module.types[constant.ty].inner {
        TypeInner::Scalar(scalar) => scalar_name(scalar),
        _ => "unknown",
    }
}
