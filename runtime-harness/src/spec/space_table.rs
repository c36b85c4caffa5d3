//! Parses `[tune]` and `[sweep]`.

use runtime_core::backend::did_you_mean;
use runtime_core::{LaunchConfig, OptionValue, Result};

use super::argument::dtype;
use super::document::{Item, Section};
use super::expression::{Symbol, Symbols, evaluate};
use super::overrides::EXTENT_KEYS;
use super::scalar::constant;
use super::space::{Choice, Choices, Condition, Parameter};
use super::{Argument, ArgumentKind, Extent, Number, Overrides, Space, Specialise};

const RANGE_KEYS: [&str; 4] = ["from", "to", "step", "factor"];
/// A range with a factor is a list.
const MAX_POWERS: usize = 1 << 16;

/// What the tables refer to.
pub(super) struct Known<'a> {
    pub(super) overrides: &'a Overrides,
    pub(super) specialise: &'a Specialise,
    pub(super) args: &'a [Argument],
    pub(super) config: &'a LaunchConfig,
    /// Shapes, scalars and constants.
    pub(super) names: &'a Symbols,
}

/// Reads `[tune]`, of which a sweep has only the values of scalars and constants and the element type.
pub(super) fn parse(item: &Item<'_>, known: &Known<'_>, table: &'static str) -> Result<Option<Space>> {
    let section = item.open_section(table)?;
    let (mut parameters, mut conditions, mut given) = (Vec::new(), Vec::new(), 0);
    for entry in section.items() {
        if entry.key == "where" {
            conditions = known.conditions(&entry)?;
            continue;
        }
        let read = known.parameters(&entry, table)?;
        given += read.len();
        parameters
            .extend(read.into_iter().filter(|(parameter, target)| !known.is_fixed(&parameter.name, *target)));
    }
    if given == 0 {
        return Err(section.error(&format!("{table} varies nothing: name a scalar argument or constant")));
    }
    let parameters: Vec<Parameter> = parameters.into_iter().map(|(parameter, _)| parameter).collect();
    let mut counts = parameters.iter().map(|parameter| parameter.choices.count());
    let combinations = counts.try_fold(1_u64, u64::checked_mul);
    let combinations = combinations.filter(|count| *count <= 1 << 63);
    let combinations = combinations.ok_or_else(|| section.error("more than 2^63 combinations"))?;
    let space = Space {
        table,
        location: section.location(),
        names: known.symbols(),
        parameters,
        conditions,
        combinations,
    };
    Ok((!space.parameters.is_empty()).then_some(space))
}

/// What a parameter sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Value,
    Element,
    Other,
}

impl Known<'_> {
    /// Whether an override fixes what would be varied.
    fn is_fixed(&self, name: &str, target: Target) -> bool {
        match target {
            Target::Value => self.overrides.values.iter().any(|(overridden, _)| overridden == name),
            Target::Element => self.overrides.element.is_some(),
            Target::Other => {
                self.overrides.launch.contains_key(name)
                    || self.overrides.options.iter().any(|(key, _)| key == name)
            }
        }
    }

    /// The names that conditions may use.
    fn symbols(&self) -> Symbols {
        let values = self.names.iter().filter(|(_, symbol)| matches!(symbol, Symbol::Value(_)));
        let element = self.specialise.element.iter();
        let element = element.map(|it| ("element".to_owned(), Symbol::Shape(Vec::new(), it.bytes())));
        values.map(|(name, symbol)| (name.clone(), symbol.clone())).chain(element).collect()
    }

    fn conditions(&self, item: &Item<'_>) -> Result<Vec<Condition>> {
        let names = self.symbols();
        let condition = |item: &Item<'_>| {
            let text = item.text()?;
            evaluate(text, &names).map_err(|message| item.error(&message))?;
            Ok(Condition { text: text.to_owned(), location: item.location() })
        };
        item.one_or_more().iter().map(condition).collect()
    }

    fn parameters(&self, item: &Item<'_>, table: &str) -> Result<Vec<(Parameter, Target)>> {
        let one = |choices, target| Ok(vec![(Parameter { name: item.key.to_owned(), choices }, target)]);
        if self.names.get(item.key).is_some_and(|symbol| matches!(symbol, Symbol::Value(_))) {
            return one(self.numbers(item)?, Target::Value);
        }
        match item.key {
            "element" if self.specialise.element.is_none() => {
                Err(item.error("[specialise] has no `element`"))
            }
            "element" => {
                let elements = list(item, |item| dtype(item).map(Choice::Element))?;
                Ok(vec![(Parameter { name: String::new(), choices: elements }, Target::Element)])
            }
            "options" if table == "[tune]" => {
                let options = item.open_section("[tune.options]")?;
                options.items().map(|item| Ok((option(&item)?, Target::Other))).collect()
            }
            key if table == "[tune]" && EXTENT_KEYS.contains(&key) => {
                one(list(item, |item| self.launch(item, key))?, Target::Other)
            }
            key => {
                let mut valid: Vec<&str> = self.names.iter().filter_map(value_name).collect();
                valid.extend(["element", "where"]);
                if table == "[tune]" {
                    valid.extend(EXTENT_KEYS.iter().chain(&["options"]));
                }
                Err(item.error(&format!("unknown name \"{key}\"; {}", did_you_mean(key, &valid))))
            }
        }
    }

    /// The values of a scalar argument or a constant.
    fn numbers(&self, item: &Item<'_>) -> Result<Choices> {
        let check = |item: &Item<'_>, number: Number| {
            self.check_number(item.key, number).map_err(|message| item.error(&message))
        };
        if !item.is_table() {
            return list(item, |item| {
                let number = item.number()?;
                check(item, number)?;
                Ok(Choice::Number(number))
            });
        }
        let choices = range(item)?;
        for position in [0, choices.count() - 1] {
            if let Choice::Number(number) = choices.choice(position) {
                check(item, number)?;
            }
        }
        Ok(choices)
    }

    /// Checks that a value has the type of what it sets.
    fn check_number(&self, name: &str, number: Number) -> Result<(), String> {
        let scalar = self.args.iter().find(|arg| arg.name == name);
        if let Some(ArgumentKind::Scalar(dtype, _)) = scalar.map(|arg| &arg.kind) {
            return number.bits(*dtype).map(drop).map_err(|error| error.message().to_owned());
        }
        let known = self.specialise.constants.iter().find(|(known, _)| known == name);
        match (known.map(|(_, value)| value), constant(number)) {
            (_, None) => Err("the integer is too large".to_owned()),
            (Some(OptionValue::Integer(_)), Some(OptionValue::Integer(_)))
            | (Some(OptionValue::Flag(_)), Some(OptionValue::Flag(_)))
            | (Some(OptionValue::Number(_)), Some(OptionValue::Integer(_) | OptionValue::Number(_)))
            | (None, _) => Ok(()),
            (Some(OptionValue::Integer(_)), _) => Err(format!("\"{name}\" is an integer, got {number}")),
            (Some(OptionValue::Flag(_)), _) => Err(format!("\"{name}\" is true or false, got {number}")),
            (Some(_), _) => Err(format!("\"{name}\" is a number, got {number}")),
        }
    }

    /// Extents of the launch: one, or a list of 1 to 3.
    fn launch(&self, item: &Item<'_>, key: &str) -> Result<Choice> {
        if matches!(self.config, LaunchConfig::Range(_)) != (key == "grain") {
            return Err(item.error("`grain` is only valid with `range` in [launch], the others only without"));
        }
        let items = item.one_or_more();
        if !(1..=if key == "grain" { 1 } else { 3 }).contains(&items.len()) {
            return Err(item.error(&format!("expected 1 to 3 dimensions, got {}", items.len())));
        }
        let extent = |item: &Item<'_>| {
            if !item.is_text() {
                let least = i128::from(key != "groups");
                return item.integer::<u32>(least).map(|number| Extent::Number(number.into()));
            }
            let text = item.text()?;
            evaluate(text, self.names).map_err(|message| item.error(&message))?;
            Ok(Extent::Expression(text.to_owned()))
        };
        items.iter().map(extent).collect::<Result<_>>().map(Choice::Launch)
    }
}

fn value_name<'a>((name, symbol): (&'a String, &Symbol)) -> Option<&'a str> {
    matches!(symbol, Symbol::Value(_)).then_some(name)
}

/// Alternatives for a load option: each is a value, or the list of its values.
fn option(item: &Item<'_>) -> Result<Parameter> {
    let choices = list(item, |item| {
        item.one_or_more().iter().map(Item::option).collect::<Result<_>>().map(Choice::Option)
    })?;
    Ok(Parameter { name: item.key.to_owned(), choices })
}

/// A list of different alternatives.
fn list(item: &Item<'_>, read: impl Fn(&Item<'_>) -> Result<Choice>) -> Result<Choices> {
    let mut choices: Vec<Choice> = Vec::new();
    for item in item.list()? {
        let choice = read(&item)?;
        if choices.contains(&choice) {
            return Err(item.error("is listed twice"));
        }
        choices.push(choice);
    }
    match choices.is_empty() {
        true => Err(item.error("the list is empty")),
        false => Ok(Choices::List(choices)),
    }
}

/// `{ from = 1, to = 64, step = 1 }` or `{ from = 1, to = 64, factor = 2 }`.
fn range(item: &Item<'_>) -> Result<Choices> {
    let section = item.section("a range", &RANGE_KEYS)?;
    let (from, to) = (section.required("from")?, section.required("to")?);
    let (first, last) = (from.number()?, to.number()?);
    match (section.optional("step"), section.optional("factor")) {
        (Some(_), Some(factor)) => Err(factor.error("cannot be combined with `step`")),
        (None, None) => Err(section.error("a range needs a `step` or a `factor`")),
        (Some(step), None) => steps(&section, [first, last, step.number()?]),
        (None, Some(factor)) => powers(&section, [first, last, factor.number()?]),
    }
}

fn steps(section: &Section<'_>, numbers: [Number; 3]) -> Result<Choices> {
    let too_many = || section.error("more than 2^63 values");
    if let [Number::Integer(first), Number::Integer(last), Number::Integer(step)] = numbers {
        if step < 1 || last < first {
            return Err(section.error("the step must be at least 1, and `to` not below `from`"));
        }
        let count = last.checked_sub(first).map(|span| span / step + 1);
        let count = count.and_then(|count| u64::try_from(count).ok()).ok_or_else(too_many)?;
        return Ok(Choices::Integers { first, step, count });
    }
    let [first, last, step] = reals(section, numbers)?;
    let is_valid = step > 0.0 && last >= first;
    if !is_valid {
        return Err(section.error("the step must be above 0, and `to` not below `from`"));
    }
    // The last value may be missed by rounding only.
    let count = ((last - first) / step + 1e-9).floor() + 1.0;
    match count < 9e15 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and at least 1")]
        true => Ok(Choices::Reals { first, step, count: count as u64 }),
        false => Err(too_many()),
    }
}

fn powers(section: &Section<'_>, numbers: [Number; 3]) -> Result<Choices> {
    let mut values = Vec::new();
    if let [Number::Integer(first), Number::Integer(last), Number::Integer(factor)] = numbers {
        if factor < 2 || first < 1 || last < first {
            return Err(
                section.error("the factor must be at least 2, `from` at least 1, and `to` not below it")
            );
        }
        let next = |value: &i128| value.checked_mul(factor);
        let powers = std::iter::successors(Some(first), next).take_while(|value| *value <= last);
        values.extend(powers.map(|value| Choice::Number(Number::Integer(value))));
    } else {
        let [first, last, factor] = reals(section, numbers)?;
        let is_valid = factor > 1.0 && first > 0.0 && last >= first;
        if !is_valid {
            return Err(section.error("the factor must be above 1, `from` above 0, and `to` not below it"));
        }
        let powers = std::iter::successors(Some(first), |value| Some(value * factor));
        let powers = powers.take_while(|value| *value <= last * (1.0 + 1e-12)).take(MAX_POWERS + 1);
        values.extend(powers.map(|value| Choice::Number(Number::Float(value))));
    }
    match values.len() <= MAX_POWERS {
        true => Ok(Choices::List(values)),
        false => Err(section.error("the factor is too close to 1")),
    }
}

fn reals(section: &Section<'_>, numbers: [Number; 3]) -> Result<[f64; 3]> {
    let reals = numbers.map(|number| number.as_f64().filter(|value| value.is_finite()));
    match reals {
        [Some(first), Some(last), Some(step)] => Ok([first, last, step]),
        _ => Err(section.error("a range takes finite numbers")),
    }
}
