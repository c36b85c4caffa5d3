//! Plans which launches become one kernel.

use std::ops::Range;

use runtime_core::lowering::{FusedCode, FusionPlan, FusionRequest, PlannedKernel, Promotion, Seam};
use runtime_core::{DeviceInfo, Result};

use super::collide::{Overlap, overlap};
use super::keep::Promotions;
use super::kernel::{Body, Kernel};
use super::legality::{self, Geometry, Launch, Use, shown};
use super::linear::Scalars;
use super::merge::{Guard, MergedLaunch, Promoted, merge};
use super::text::{Check, Text, text};
use super::walk::{Access, Accesses, Shape, accesses};
use crate::parse::limits::Depth;

/// Plans the fusion of launches; `check` fails on what the device does not support.
///
/// # Errors
/// Those of parsing their code.
pub(crate) fn plan(request: &FusionRequest<'_>, device: &DeviceInfo, check: Check<'_>) -> Result<FusionPlan> {
    let mut kernels: Vec<(usize, Kernel)> = Vec::new();
    let mut places = Vec::with_capacity(request.launches.len());
    for (index, launch) in request.launches.iter().enumerate() {
        let same = kernels.iter().position(|(first, _)| {
            let other = &request.launches[*first].source;
            (other.code, other.options) == (launch.source.code, launch.source.options)
        });
        let place = match same {
            Some(place) => place,
            None => {
                kernels.push((index, Kernel::parse(&launch.source)?));
                kernels.len() - 1
            }
        };
        places.push((place, kernels[place].1.entry(launch.entry)?));
    }
    let launches =
        request.launches.iter().zip(&places).enumerate().map(|(index, (launch, (place, entry)))| {
            let body = Body { program: &kernels[*place].1.program, entry: *entry };
            Launch { index, body, launch }
        });
    let launches: Vec<_> = launches.collect();
    let mut planner =
        Planner { request, device, check, launches: &launches, walked: Vec::new(), variables: 0 };
    Ok(planner.plan())
}

/// Launches that become one kernel.
pub(super) struct Run {
    pub(super) first: usize,
    geometry: Option<Geometry>,
    /// The launches with a barrier before them.
    barriers: Vec<usize>,
    /// What the proofs rely on.
    relies: Vec<(usize, Scalars)>,
}

/// The code of a run, and what it relies on.
struct Written {
    code: FusedCode,
    relies: Vec<(usize, Scalars)>,
    groups: Vec<usize>,
    notes: Vec<String>,
}

pub(super) struct Planner<'a> {
    pub(super) request: &'a FusionRequest<'a>,
    pub(super) device: &'a DeviceInfo,
    check: Check<'a>,
    pub(super) launches: &'a [Launch<'a>],
    /// The accesses of launches that were walked.
    walked: Vec<(usize, Shape, Option<Accesses>)>,
    /// The number of variables that the walks created.
    variables: u32,
}

impl<'a> Planner<'a> {
    fn plan(&mut self) -> FusionPlan {
        let mut plan = FusionPlan::default();
        let mut run = Run::at(0);
        for next in 1..self.launches.len() {
            match self.extended(&run, next) {
                Ok(longer) => {
                    plan.seams.push(longer.seam(next));
                    run = longer;
                }
                Err(reason) => {
                    self.finish(&run, next, &mut plan);
                    plan.seams.push(Seam { fused: false, reason });
                    run = Run::at(next);
                }
            }
        }
        if !self.launches.is_empty() {
            self.finish(&run, self.launches.len(), &mut plan);
        }
        plan.relies_on.sort_unstable();
        plan.relies_on.dedup();
        plan.relies_on_groups.sort_unstable();
        plan.relies_on_groups.dedup();
        plan
    }

    /// A run with one more launch.
    fn extended(&mut self, run: &Run, next: usize) -> Result<Run, String> {
        let launches = self.launches;
        let (before, all) = (&launches[run.first..next], &launches[run.first..=next]);
        for launch in all {
            legality::check_alone(launch)?;
        }
        legality::check((self.request, self.device), before, &launches[next])?;
        let geometry = legality::geometry(self.request, all)?;
        // Other groups change what is known of all launches.
        let changed =
            run.geometry.as_ref().is_some_and(|old| old.shapes[..] != geometry.shapes[..before.len()]);
        let mut longer = match changed {
            true => Run::at(run.first),
            false => Run {
                first: run.first,
                geometry: None,
                barriers: run.barriers.clone(),
                relies: run.relies.clone(),
            },
        };
        let first_new = if changed { run.first + 1 } else { next };
        for later in first_new..=next {
            let mut needs_barrier = false;
            for earlier in run.first..later {
                let shapes = [earlier, later].map(|index| geometry.shapes[index - run.first]);
                let is_group = self.pair([earlier, later], shapes, &mut longer.relies)?;
                let has_barrier = longer.barriers.iter().any(|barrier| *barrier > earlier);
                needs_barrier |= is_group && !has_barrier;
            }
            if needs_barrier {
                longer.barriers.push(later);
            }
        }
        longer.geometry = Some(geometry);
        Ok(longer)
    }

    /// Whether two launches need a barrier between them.
    ///
    /// # Errors
    /// Why they cannot be fused.
    fn pair(
        &mut self,
        pair: [usize; 2],
        shapes: [Shape; 2],
        relies: &mut Vec<(usize, Scalars)>,
    ) -> Result<bool, String> {
        let launches = pair.map(|index| self.launches[index]);
        let shared: Vec<_> = launches[0]
            .tensors()
            .flat_map(|one| launches[1].tensors().map(move |two| (one, two)))
            .filter(|(one, two)| one.tensor == two.tensor && (one.is_written || two.is_written))
            .collect();
        if shared.is_empty() {
            return Ok(false);
        }
        for (index, shape) in pair.into_iter().zip(shapes) {
            self.walk(index, shape);
        }
        let mut needs_barrier = false;
        for (one, two) in shared {
            let accesses =
                [(pair[0], shapes[0], one), (pair[1], shapes[1], two)].map(|(index, shape, tensor)| {
                    self.accesses(index, shape)
                        .map(|all| all.list.iter().filter(move |access| access.argument == tensor.argument))
                });
            let [Some(first), Some(second)] = accesses else {
                return Err(format!("the types of {} are not understood", launches[1].name()));
            };
            let second: Vec<_> = second.collect();
            for a in first {
                for b in second.iter().filter(|b| a.is_write || b.is_write) {
                    let (overlap, on) = overlap(a, b);
                    match overlap {
                        Overlap::Anywhere if self.request.assume_group_local => {}
                        Overlap::Anywhere => {
                            return Err(apart([&launches[0], &launches[1]], [(&one, a), (&two, b)]));
                        }
                        Overlap::SameGroup => needs_barrier = true,
                        Overlap::Never | Overlap::SameItem => {}
                    }
                    relies.extend(pair.into_iter().zip(on).filter(|(_, on)| *on != 0));
                }
            }
        }
        Ok(needs_barrier)
    }

    pub(super) fn walk(&mut self, index: usize, shape: Shape) {
        if self.walked.iter().any(|(known, of, _)| (*known, *of) == (index, shape)) {
            return;
        }
        let launch = &self.launches[index];
        let found = accesses(launch.body, (launch.launch, self.request.tensors), shape, &mut self.variables);
        self.walked.push((index, shape, found));
    }

    pub(super) fn accesses(&self, index: usize, shape: Shape) -> Option<&Accesses> {
        let found = self.walked.iter().find(|(known, of, _)| (*known, *of) == (index, shape));
        found.and_then(|(.., accesses)| accesses.as_ref())
    }

    /// Adds the kernels of a run that ends before a launch. If they cannot be one, it ends as late as it can, and another one begins.
    fn finish(&mut self, run: &Run, end: usize, plan: &mut FusionPlan) {
        if run.geometry.is_none() {
            plan.kernels.extend(
                (run.first..end).map(|index| PlannedKernel { launches: index..index + 1, code: None }),
            );
            return;
        }
        match self.code(run, end) {
            Ok(code) => self.add(run.first..end, code, plan),
            Err(reason) => self.shorten(run.first..end, reason, plan),
        }
    }

    fn add(&self, launches: Range<usize>, written: Written, plan: &mut FusionPlan) {
        let Written { code, relies, groups, notes } = written;
        let seam = &mut plan.seams[launches.end - 2];
        for note in notes {
            let comma = if seam.reason.is_empty() { "" } else { "; " };
            seam.reason = format!("{}{comma}{note}", seam.reason);
        }
        plan.kernels.push(PlannedKernel { launches, code: Some(code) });
        plan.relies_on_groups.extend(groups);
        if !self.request.constants {
            plan.relies_on.extend(relies.iter().flat_map(|(launch, scalars)| {
                (0..64).filter(move |bit| scalars >> bit & 1 == 1).map(move |arg| (*launch, arg))
            }));
        }
    }

    /// Adds the longest prefix that can be one kernel, then the kernels of the rest; all of them together cannot be one.
    fn shorten(&mut self, launches: Range<usize>, mut reason: String, plan: &mut FusionPlan) {
        let Range { start, end } = launches;
        let mut longest = None;
        // If a prefix does not fit, no longer one does.
        let (mut fits, mut fails) = (start + 1, end);
        while fails - fits > 1 {
            let middle = fits.midpoint(fails);
            match self.run_of(start..middle).and_then(|run| self.code(&run, middle)) {
                Ok(code) => {
                    longest = Some(code);
                    fits = middle;
                }
                Err(why) => {
                    reason = why;
                    fails = middle;
                }
            }
        }
        match longest {
            Some(code) => self.add(start..fits, code, plan),
            None => plan.kernels.push(PlannedKernel { launches: start..fits, code: None }),
        }
        plan.seams[fits - 1] = Seam { fused: false, reason };
        match self.run_of(fits..end) {
            Ok(rest) => {
                for later in fits + 1..end {
                    plan.seams[later - 1] = rest.seam(later);
                }
                self.finish(&rest, end, plan);
            }
            Err(reason) => {
                let open = Seam { fused: false, reason };
                plan.seams[fits..end - 1].fill(open);
                self.finish(&Run::at(fits), end, plan);
            }
        }
    }

    /// The run of some launches.
    fn run_of(&mut self, launches: Range<usize>) -> Result<Run, String> {
        let first = Run::at(launches.start);
        (launches.start + 1..launches.end).try_fold(first, |run, next| self.extended(&run, next))
    }

    /// The code of a run.
    fn code(&mut self, run: &Run, end: usize) -> Result<Written, String> {
        let Some(geometry) = &run.geometry else { return Err("it is a single launch".to_owned()) };
        let Promotions { promoted, relies, groups, notes } = self.promoted(run, end, geometry);
        let constants = self.request.constants;
        let written = self.written(run, end, geometry, (&promoted, constants));
        // A value may make a constant expression that overflows.
        let written = match written {
            Err(_) if constants => self.written(run, end, geometry, (&promoted, false)),
            other => other,
        };
        match written {
            Err(_) if !promoted.is_empty() => {
                let text = self.written(run, end, geometry, (&[], false))?;
                let code = self.fused(run, geometry, text, &[]);
                Ok(Written { code, relies: run.relies.clone(), groups: Vec::new(), notes: Vec::new() })
            }
            other => {
                let code = self.fused(run, geometry, other?, &promoted);
                let relies = run.relies.iter().copied().chain(relies).collect();
                Ok(Written { code, relies, groups, notes })
            }
        }
    }

    fn fused(
        &self,
        run: &Run,
        geometry: &Geometry,
        Text { text, entry, args }: Text,
        promoted: &[Promoted],
    ) -> FusedCode {
        let place = |each: &Promoted| match &each.array {
            Some(array) if array.is_shared => Promotion::Workgroup,
            _ => Promotion::Private,
        };
        FusedCode {
            text,
            entry,
            options: legality::fused_options(self.launches[run.first].launch),
            groups_of: run.first + geometry.of,
            args,
            promoted: promoted.iter().map(|each| (each.tensor, place(each))).collect(),
            barriers: run.barriers.len(),
        }
    }

    fn written(
        &self,
        run: &Run,
        end: usize,
        geometry: &Geometry,
        (promoted, constants): (&[Promoted], bool),
    ) -> Result<Text, String> {
        let all = self.launches[run.first + geometry.of].launch.groups;
        let parts: Vec<_> = self.launches[run.first..end]
            .iter()
            .zip(&geometry.guards)
            .map(|(launch, guard)| MergedLaunch {
                body: launch.body,
                launch: launch.index,
                guard: *guard,
                has_all_groups: launch.launch.groups == all && !matches!(guard, Guard::Items(_)),
                barrier: run.barriers.contains(&launch.index),
            })
            .collect();
        let merged = merge(self.request, &parts, promoted, (geometry.group_size, constants))
            .map_err(|error| error.message().to_owned())?;
        let is_deep = parts.iter().any(|part| part.body.program.depth == Depth::Deep);
        let depth = if is_deep { Depth::Deep } else { Depth::Shallow };
        text(self.request, (&merged, depth), self.check)
    }
}

impl Run {
    /// What became of the seam before a launch.
    fn seam(&self, launch: usize) -> Seam {
        let reason = if self.barriers.contains(&launch) { "with a barrier between them" } else { "" };
        Seam { fused: true, reason: reason.to_owned() }
    }

    const fn at(first: usize) -> Self {
        Self { first, geometry: None, barriers: Vec::new(), relies: Vec::new() }
    }
}

/// Why two accesses keep launches apart.
fn apart(launches: [&Launch<'_>; 2], [(one, a), (two, b)]: [(&Use<'_>, &Access); 2]) -> String {
    let [first, second] = launches.map(Launch::name);
    let verb = |access: &Access| if access.is_write { "writes" } else { "reads" };
    let place = match (&a.offset, &b.offset) {
        (Some(_), Some(_)) if a.depends_on_data() || b.depends_on_data() => {
            "at indices that depend on data".to_owned()
        }
        (Some(_), Some(_)) => "at indices of other items".to_owned(),
        (None, _) => format!("at indices of {first} that are not understood"),
        (_, None) => format!("at indices of {second} that are not understood"),
    };
    format!(
        "{second} {} {}, which {first} {} ({}), {place}",
        verb(b),
        shown(two),
        verb(a),
        match one.name == two.name {
            true => format!("argument {}", one.argument),
            false => format!("\"{}\", argument {}", one.name, one.argument),
        }
    )
}
