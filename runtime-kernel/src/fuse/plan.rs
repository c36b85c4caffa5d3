//! Plans which launches become one kernel.

use runtime_core::{
    DeviceInfo, FusedArg, FusedCode, FusionPlan, FusionRequest, PlannedKernel, Promotion, Result, Seam,
};

use super::collide::{Meeting, meeting};
use super::kernel::{Body, Kernel};
use super::legality::{self, Geometry, Launch, Use, shown};
use super::linear::Scalars;
use super::merge::{Guard, Part, Promoted, merge};
use super::promote;
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
struct Run {
    first: usize,
    geometry: Option<Geometry>,
    /// The launches with a barrier before them.
    barriers: Vec<usize>,
    /// What the proofs rely on.
    relies: Vec<(usize, Scalars)>,
}

struct Planner<'a> {
    request: &'a FusionRequest<'a>,
    device: &'a DeviceInfo,
    check: Check<'a>,
    launches: &'a [Launch<'a>],
    /// The accesses of launches that were walked.
    walked: Vec<(usize, Shape, Option<Accesses>)>,
    /// Those that the walks made.
    variables: u32,
}

impl<'a> Planner<'a> {
    fn plan(&mut self) -> FusionPlan {
        let mut plan = FusionPlan::default();
        let mut run = Run::at(0);
        for next in 1..self.launches.len() {
            match self.extended(&run, next) {
                Ok(longer) => {
                    let reason =
                        if longer.barriers.contains(&next) { "with a barrier between them" } else { "" };
                    plan.seams.push(Seam { fused: true, reason: reason.to_owned() });
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
                    let (meeting, on) = meeting(a, b);
                    match meeting {
                        Meeting::Anywhere if self.request.assume_group_local => {}
                        Meeting::Anywhere => {
                            return Err(apart([&launches[0], &launches[1]], [(&one, a), (&two, b)]));
                        }
                        Meeting::SameGroup => needs_barrier = true,
                        Meeting::Never | Meeting::SameItem => {}
                    }
                    relies.extend(pair.into_iter().zip(on).filter(|(_, on)| *on != 0));
                }
            }
        }
        Ok(needs_barrier)
    }

    fn walk(&mut self, index: usize, shape: Shape) {
        if self.walked.iter().any(|(known, of, _)| (*known, *of) == (index, shape)) {
            return;
        }
        let launch = &self.launches[index];
        let found = accesses(launch.body, (launch.launch, self.request.tensors), shape, &mut self.variables);
        self.walked.push((index, shape, found));
    }

    fn accesses(&self, index: usize, shape: Shape) -> Option<&Accesses> {
        let found = self.walked.iter().find(|(known, of, _)| (*known, *of) == (index, shape));
        found.and_then(|(.., accesses)| accesses.as_ref())
    }

    /// Adds the kernels of a run that ends before a launch.
    fn finish(&mut self, run: &Run, end: usize, plan: &mut FusionPlan) {
        if let Some(geometry) = &run.geometry {
            match self.code(run, end, geometry) {
                Ok((code, relies)) => {
                    plan.kernels.push(PlannedKernel { launches: run.first..end, code: Some(code) });
                    if !self.request.constants {
                        plan.relies_on.extend(relies.iter().flat_map(|(launch, scalars)| {
                            (0..64).filter(move |bit| scalars >> bit & 1 == 1).map(move |arg| (*launch, arg))
                        }));
                    }
                    return;
                }
                Err(reason) => {
                    for seam in &mut plan.seams[run.first..end - 1] {
                        *seam = Seam { fused: false, reason: reason.clone() };
                    }
                }
            }
        }
        plan.kernels
            .extend((run.first..end).map(|index| PlannedKernel { launches: index..index + 1, code: None }));
    }

    /// The code of a run, and what it relies on.
    fn code(
        &mut self,
        run: &Run,
        end: usize,
        geometry: &Geometry,
    ) -> Result<(FusedCode, Vec<(usize, Scalars)>), String> {
        let mut relies = run.relies.clone();
        let promoted = self.promoted(run, end, geometry, &mut relies);
        let constants = self.request.constants;
        let written = self.written(run, end, geometry, (&promoted, constants));
        // A value may make a constant expression that overflows.
        let written = match written {
            Err(_) if constants => self.written(run, end, geometry, (&promoted, false)),
            other => other,
        };
        let (Text { text, entry }, args) = match written {
            Err(_) if !promoted.is_empty() => {
                let relies = run.relies.clone();
                let (text, args) = self.written(run, end, geometry, (&[], false))?;
                return Ok((self.fused(run, geometry, (text, args), &[]), relies));
            }
            other => other?,
        };
        Ok((self.fused(run, geometry, (Text { text, entry }, args), &promoted), relies))
    }

    fn fused(
        &self,
        run: &Run,
        geometry: &Geometry,
        (Text { text, entry }, args): (Text, Vec<FusedArg>),
        promoted: &[Promoted],
    ) -> FusedCode {
        FusedCode {
            text,
            entry,
            options: legality::fused_options(self.launches[run.first].launch),
            groups_of: run.first + geometry.of,
            args,
            promoted: promoted.iter().map(|each| (each.tensor, Promotion::Private)).collect(),
            barriers: run.barriers.len(),
        }
    }

    fn written(
        &self,
        run: &Run,
        end: usize,
        geometry: &Geometry,
        (promoted, constants): (&[Promoted], bool),
    ) -> Result<(Text, Vec<FusedArg>), String> {
        let all = self.launches[run.first + geometry.of].launch.groups;
        let parts: Vec<_> = self.launches[run.first..end]
            .iter()
            .zip(&geometry.guards)
            .map(|(launch, guard)| Part {
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
        let text = text(self.request, (&merged, depth), self.check)?;
        Ok((text, merged.args))
    }

    /// The tensors of a run that need no memory.
    fn promoted(
        &mut self,
        run: &Run,
        end: usize,
        geometry: &Geometry,
        relies: &mut Vec<(usize, Scalars)>,
    ) -> Vec<Promoted> {
        let mut list = Vec::new();
        if geometry.guards.iter().any(|guard| *guard != Guard::None) {
            return list;
        }
        for (tensor, described) in self.request.tensors.iter().enumerate() {
            if matches!(described.promotion, Promotion::None | Promotion::Workgroup)
                || !described.overlaps.is_empty()
            {
                continue;
            }
            let uses = |launch: &Launch<'_>| launch.tensors().any(|each| each.tensor == tensor);
            let users: Vec<_> =
                self.launches[run.first..end].iter().filter(|launch| uses(launch)).copied().collect();
            let outside = self.launches[..run.first].iter().chain(&self.launches[end..]).any(uses);
            if outside || users.is_empty() {
                continue;
            }
            for launch in &users {
                self.walk(launch.index, geometry.shapes[launch.index - run.first]);
            }
            let found: Vec<_> = users
                .iter()
                .filter_map(|launch| {
                    Some((*launch, self.accesses(launch.index, geometry.shapes[launch.index - run.first])?))
                })
                .collect();
            if let Some((promoted, on)) = promote::private(&found, (tensor, described.bytes)) {
                list.push(promoted);
                relies.extend(on);
            }
        }
        list
    }
}

impl Run {
    const fn at(first: usize) -> Self {
        Self { first, geometry: None, barriers: Vec::new(), relies: Vec::new() }
    }
}

/// Why two accesses keep launches apart.
fn apart(launches: [&Launch<'_>; 2], [(one, a), (two, b)]: [(&Use<'_>, &Access); 2]) -> String {
    let [first, second] = launches.map(Launch::name);
    let verb = |access: &Access| if access.is_write { "writes" } else { "reads" };
    let place = match (&a.offset, &b.offset) {
        (Some(_), Some(_)) => "at indices of other items".to_owned(),
        (None, _) => format!("at indices of {first} that are not linear in the item"),
        (_, None) => format!("at indices of {second} that are not linear in the item"),
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
