//! The tensors of a run that need no memory.

use runtime_core::lowering::Promotion;

use super::arrays::{Refusal, array};
use super::legality::{Geometry, Launch, shown};
use super::linear::Scalars;
use super::merge::{Guard, Promoted};
use super::plan::{Planner, Run};
use super::promote::{Uses, private};
use super::walk::{Accesses, Shape};

/// Tensors that are kept in variables.
#[derive(Default)]
pub(super) struct Promotions {
    pub(super) promoted: Vec<Promoted>,
    /// The launches and scalars that the proofs rely on.
    pub(super) relies: Vec<(usize, Scalars)>,
    /// The launches whose number of groups they rely on.
    pub(super) groups: Vec<usize>,
    /// Why others are not.
    pub(super) notes: Vec<String>,
}

/// A launch that uses a tensor, and how it runs: as a plan may rely on, and with its own number of groups.
#[derive(Clone, Copy)]
struct User<'a> {
    launch: Launch<'a>,
    shapes: [Shape; 2],
}

impl<'a> Planner<'a> {
    /// The tensors of a run that need no memory.
    pub(super) fn promoted(&mut self, run: &Run, end: usize, geometry: &Geometry) -> Promotions {
        let mut promotions = Promotions::default();
        if geometry.guards.iter().any(|guard| *guard != Guard::None) {
            return promotions;
        }
        let request = self.request;
        for (tensor, described) in request.tensors.iter().enumerate() {
            if described.promotion == Promotion::None || !described.overlaps.is_empty() {
                continue;
            }
            let users = self.users(tensor, (run.first, end), geometry);
            if !users.is_empty() {
                self.keep(&users, (tensor, described.promotion), (run.first, end), &mut promotions);
            }
        }
        promotions
    }

    /// The launches that use a tensor; none if some of them are not in the run.
    fn users(&self, tensor: usize, (first, end): (usize, usize), geometry: &Geometry) -> Vec<User<'a>> {
        let uses = |launch: &&Launch<'_>| launch.tensors().any(|each| each.tensor == tensor);
        if self.launches[..first].iter().chain(&self.launches[end..]).any(|launch| uses(&launch)) {
            return Vec::new();
        }
        let user = |launch: &Launch<'a>| {
            let shape = geometry.shapes[launch.index - first];
            let groups = launch.launch.groups;
            let has_own = launch.body.interface().group_size == shape.group_size;
            let own = Shape { groups, known_groups: groups.map(Some), ..shape };
            User { launch: *launch, shapes: [shape, if has_own { own } else { shape }] }
        };
        self.launches[first..end].iter().filter(uses).map(user).collect()
    }

    /// Keeps a tensor in variables, if that is proven to be right.
    fn keep(
        &mut self,
        users: &[User<'a>],
        (tensor, promotion): (usize, Promotion),
        (first, end): (usize, usize),
        promotions: &mut Promotions,
    ) {
        let bytes = self.request.tensors[tensor].bytes;
        for (exact, user) in [0, 1].into_iter().flat_map(|exact| users.iter().map(move |user| (exact, user)))
        {
            self.walk(user.launch.index, user.shapes[exact]);
        }
        let accesses = |exact: usize| -> Option<Vec<(Launch<'_>, &Accesses)>> {
            let of =
                |user: &User<'a>| Some((user.launch, self.accesses(user.launch.index, user.shapes[exact])?));
            users.iter().map(of).collect()
        };
        let [Some(bounded), Some(exact)] = [accesses(0), accesses(1)] else { return };
        let [Some(bounded), Some(exact)] =
            [bounded, exact].map(|accesses| Uses::of(&accesses, (tensor, bytes)))
        else {
            return;
        };
        let is_own = promotion != Promotion::Workgroup;
        if let Some((promoted, relies)) = is_own.then(|| private(&bounded)).flatten() {
            promotions.promoted.push(promoted);
            promotions.relies.extend(relies);
            return;
        }
        let room = self.room((first, end), &promotions.promoted);
        let wanted = [(false, is_own), (true, promotion != Promotion::Private)];
        for (is_shared, _) in wanted.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            match array(&exact, (is_shared, room)) {
                Ok((promoted, relies)) => {
                    promotions.promoted.push(promoted);
                    promotions.relies.extend(relies);
                    let relying = users.iter().filter(|user| user.shapes[0] != user.shapes[1]);
                    promotions.groups.extend(relying.map(|user| user.launch.index));
                    return;
                }
                Err(Refusal::TooLarge(bytes)) => {
                    promotions.notes.push(too_large(&users[0].launch, tensor, (bytes, room)));
                }
                Err(Refusal::Unproven) => {}
            }
        }
    }

    /// Bytes of work-group memory that the launches of a run, and what is kept already, leave.
    fn room(&self, (first, end): (usize, usize), promoted: &[Promoted]) -> i128 {
        let shared = self.launches[first..end].iter().map(|launch| launch.body.interface().shared_bytes);
        let arrays = promoted.iter().filter_map(|each| Some((each.array.as_ref()?, each.stride)));
        let arrays = arrays.filter(|(array, _)| array.is_shared);
        let used = shared.map(i128::from).sum::<i128>()
            + arrays.map(|(array, stride)| i128::from(array.len) * i128::from(stride)).sum::<i128>();
        i128::from(self.device.limits.shared_bytes) - used
    }
}

fn too_large(launch: &Launch<'_>, tensor: usize, (bytes, room): (i128, i128)) -> String {
    let used = launch.tensors().find(|used| used.tensor == tensor);
    let name = used.map_or_else(String::new, |used| shown(&used));
    let room = room.max(0);
    format!(
        "{name} of {} stays in memory: a group uses {bytes} bytes of it, and {room} bytes of work-group memory are left",
        launch.name()
    )
}
