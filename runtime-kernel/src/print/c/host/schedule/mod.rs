//! The schedule of an entry point: every decision made before printing, as plain data.
//!
//! Analysis produces it, [`verify`](super::verify) checks it independently, and `entry` and `lane_loops` print it
//! without further decisions.

pub(crate) mod contiguous_loops;
pub(crate) mod independence;
pub(crate) mod nontemporal_stores;
pub(crate) mod regions;
pub(crate) mod row_facts;
pub(crate) mod row_schedule;
pub(crate) mod steps;
pub(crate) mod uniform_code;
pub(crate) mod uses;
pub(crate) mod variable_storage;

use std::collections::{BTreeMap, BTreeSet};

use naga::{BinaryOperator, Expression, Function, Module};
use runtime_core::Result;

use self::contiguous_loops::contiguous_loops;
use self::nontemporal_stores::NontemporalStore;
use self::regions::split_into_regions;
use self::row_facts::RowFacts;
use self::steps::{Step, Steps};
use self::uniform_code::UniformCode;
use self::uses::Uses;
use self::variable_storage::VariableStorage;
use crate::analysis::proof::FunctionContext;
use crate::analysis::proof::bounds::Scope;
use crate::analysis::proof::range::{self, Element};
use crate::analysis::uniformity::Uniformity;
use crate::ir::{Global, Value};
use crate::print::c::invocation::hoisted_checks::HoistedChecks;
use crate::program::{Checks, Program};

/// How aggressively an entry point is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Uniform code runs once, and rows run without checks where that is proven safe.
    Full,
    /// Every region is one loop with all its checks; nothing is hoisted.
    Plain,
}

/// The decisions for the loop over a row of a region.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowSchedule {
    /// The facts decided before the loop, for a copy that relies on them.
    pub(crate) row_facts: RowFacts,
    /// Whether the loop that relies on no facts may be declared free of dependences.
    pub(crate) general_is_independent: bool,
    /// Whether the copies that rely on the facts may be.
    pub(crate) fast_is_independent: bool,
    /// Nontemporal stores in a copy for launches that use much memory.
    pub(crate) nontemporal_stores: Vec<NontemporalStore>,
}

/// What is printed, with the justification.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// By expression: whether its value has a name. All others are printed at their use.
    pub(crate) named: Vec<bool>,
    /// What runs once and what runs per invocation, in order.
    pub(crate) steps: Steps,
    /// The storage of variables and values.
    pub(crate) storage: VariableStorage,
    /// By region.
    pub(crate) rows: Vec<RowSchedule>,
    /// Accesses and shift amounts that conditions before them keep in range, so that only their position makes
    /// them safe unchecked. Those that need no condition are not included.
    pub(crate) guarded: BTreeSet<Value>,
    /// Loops whose range checks are hoisted, by the condition at their head.
    pub(crate) hoisted: BTreeMap<Value, HoistedChecks>,
}

/// The inputs of the analyses.
pub(crate) struct Analysis<'p, 'a> {
    pub(crate) module: &'a Module,
    pub(crate) function: &'a Function,
    pub(crate) context: FunctionContext<'a>,
    pub(crate) checks: Checks,
    /// The tensors that are never read.
    pub(crate) only_written: BTreeSet<Global>,
    pub(crate) uses: &'p Uses<'p>,
    pub(crate) uniform_code: &'p UniformCode<'p>,
    pub(crate) uniformity: &'p Uniformity,
    pub(crate) steps: &'p Steps,
    pub(crate) storage: &'p VariableStorage,
    /// The remaining budget for comparing accesses, which hostile code would otherwise exhaust.
    pub(crate) comparison_budget: std::cell::Cell<u32>,
}

/// Budget for comparing accesses of an entry point; the kernels of this repository take a few thousand steps.
const COMPARISON_BUDGET: u32 = 200_000;

impl Schedule {
    /// Schedules an entry point, for rows of up to `width` invocations; `named` returns whether an expression has a name.
    ///
    /// # Errors
    /// `Unsupported` for what the host cannot do.
    pub(crate) fn of(
        program: &Program,
        index: usize,
        context: FunctionContext<'_>,
        (checks, width): (Checks, u32),
        named: &dyn Fn(Value) -> bool,
        form: Form,
    ) -> Result<Self> {
        let (module, function) = (context.module, context.function);
        let uniformity = Uniformity::of(module, &program.info, index);
        let uses = Uses::new(function, named);
        let hoisted = match form {
            Form::Full => contiguous_loops(context, &uniformity, named),
            Form::Plain => BTreeMap::new(),
        };
        let uniform_code = UniformCode::new(module, function, &uniformity, &hoisted, form == Form::Plain);
        let mut steps = split_into_regions(program, function, &uniform_code, &uses)?;
        let guarded = match form {
            Form::Full => guarded(context, checks, &steps.ahead),
            Form::Plain => BTreeSet::new(),
        };
        let storage = VariableStorage::new(module, function, &uniform_code, &uses, &steps, &guarded);
        row_schedule::lay_out(&mut steps.steps, function, &storage, width);
        let tensors = &program.interfaces[index].tensors;
        let only_written = tensors.iter().filter(|tensor| tensor.access == runtime_core::Access::Write);
        let only_written = only_written.map(|tensor| tensor.variable).collect();
        let analysis = Analysis {
            module,
            function,
            context,
            checks,
            only_written,
            uses: &uses,
            uniform_code: &uniform_code,
            uniformity: &uniformity,
            steps: &steps,
            storage: &storage,
            comparison_budget: std::cell::Cell::new(COMPARISON_BUDGET),
        };
        let mut widths = BTreeMap::new();
        collect_widths(&steps.steps, &mut widths);
        let rows = (0..steps.regions.len()).map(|region| {
            let width = widths.get(&region).copied().unwrap_or(width);
            analysis.row(region, width, form)
        });
        let rows = rows.collect();
        Ok(Self { named: uses.into_named(), steps, storage, rows, guarded, hoisted })
    }
}

impl Analysis<'_, '_> {
    fn row(&self, region: usize, width: u32, form: Form) -> RowSchedule {
        if form == Form::Plain {
            return RowSchedule::default();
        }
        let row_facts = self.row_facts(region);
        RowSchedule {
            general_is_independent: self.is_independent(region, &RowFacts::default()),
            fast_is_independent: !row_facts.is_empty() && self.is_independent(region, &row_facts),
            nontemporal_stores: self.nontemporal_stores(region, width, &row_facts),
            row_facts,
        }
    }
}

/// The accesses that only the conditions before them keep in range, except those moved ahead of these conditions. With checks turned
/// off the caller guarantees all accesses that the program makes, but none that it does not make.
fn guarded(context: FunctionContext<'_>, checks: Checks, ahead: &BTreeSet<Value>) -> BTreeSet<Value> {
    let mut found = BTreeSet::new();
    for (handle, expression) in context.function.expressions.iter() {
        match *expression {
            Expression::Binary {
                op: BinaryOperator::ShiftLeft | BinaryOperator::ShiftRight, right, ..
            } => {
                let fits = |scope| range::upper(context, scope, right, 0).is_some_and(|bits| bits < 32);
                if fits(context.bounds.scope(right)) && !fits(Scope::default()) {
                    found.insert(right);
                }
            }
            _ => {
                if let Some(element) = Element::of(context.function, handle)
                    && (checks == Checks::Unchecked || range::limit(context, element).is_none())
                    && range::limit_anywhere(context, element).is_some()
                {
                    found.insert(handle);
                }
            }
        }
    }
    found.retain(|handle| !ahead.contains(handle));
    found
}

fn collect_widths(steps: &[Step], widths: &mut BTreeMap<usize, u32>) {
    for step in steps {
        match step {
            Step::Rows(rows) => {
                let mut regions = Vec::new();
                row_schedule::leaves(&rows.steps, &mut regions);
                widths.extend(regions.into_iter().map(|region| (region, rows.width)));
            }
            other => other.inner().for_each(|inner| collect_widths(inner, widths)),
        }
    }
}
