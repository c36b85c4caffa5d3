//! What the layer has seen: how often each function was called, which objects are open; and which call it refuses.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use runtime_core::ErrorKind;
use runtime_core::abi::Handle;

use super::liar;
use super::lies::Lie;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Instance,
    Device,
    Buffer,
    Module,
    Kernel,
    Queue,
    Graph,
}

/// The call to refuse.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// `table.function`.
    pub(super) entry: String,
    /// Which of its calls, counted from 1.
    pub(super) nth: u64,
    pub(super) wrong: Wrong,
}

/// What is wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It is refused, with this error.
    Refused(ErrorKind),
    /// It returns something else than it should.
    Lie(Lie),
}

pub(super) type Counts = BTreeMap<&'static str, u64>;

/// An object: addresses are unique among those of one kind, if at all.
type Object = (Kind, usize);

/// What is known of an address.
#[derive(Debug, Default)]
struct Open {
    /// The parent of each time that it was opened.
    parents: Vec<Object>,
    /// A backend may answer with the same kernel twice: then nobody can tell whose is closed.
    shared: bool,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    fault: Option<Fault>,
    reached: bool,
    open: HashMap<Object, Open>,
    broken: Vec<String>,
}

/// What was seen in a run.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) counts: Counts,
    /// The call that was to fail came.
    pub(super) reached: bool,
    /// Objects that are still open, counted by kind.
    pub(super) left: Vec<String>,
    /// Uses of what is not open, and parents that went before their children.
    pub(super) broken: Vec<String>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a run: forgets everything.
pub(super) fn begin(fault: Option<Fault>) {
    *state() = State { fault, ..State::default() };
}

/// How often each function has been called so far.
pub(super) fn counts() -> Counts {
    state().counts.clone()
}

/// Whether all objects are closed.
pub(super) fn is_clean() -> bool {
    state().open.is_empty()
}

/// What was seen since the run began.
pub(super) fn seen() -> Seen {
    let state = state();
    let mut left = BTreeMap::new();
    for (&(kind, _), open) in &state.open {
        *left.entry(kind).or_insert(0) += open.parents.len();
    }
    Seen {
        counts: state.counts.clone(),
        reached: state.reached,
        left: left.into_iter().map(|(kind, count)| format!("{count} {kind}")).collect(),
        broken: state.broken.clone(),
    }
}

/// Notes a call that uses objects; says with which error it is to be refused.
pub(super) fn enter(name: &'static str, used: &[(Kind, Handle)]) -> Option<ErrorKind> {
    let mut state = state();
    for &(kind, handle) in used {
        if !state.open.contains_key(&(kind, handle.addr())) {
            state.broken.push(format!("{name} uses a {kind} that is not open"));
        }
    }
    let count = state.counts.entry(name).or_default();
    *count += 1;
    let count = *count;
    let fault = state.fault.as_ref().filter(|fault| fault.entry == name && fault.nth == count);
    let wrong = fault.map(|fault| fault.wrong);
    state.reached |= wrong.is_some();
    match wrong? {
        Wrong::Refused(kind) => Some(kind),
        Wrong::Lie(lie) => {
            liar::prepare(lie);
            None
        }
    }
}

/// Notes that an object was made.
pub(super) fn opened((kind, handle): (Kind, Handle), (parent, parent_handle): (Kind, Handle)) {
    let mut state = state();
    let open = state.open.entry((kind, handle.addr())).or_default();
    open.shared |= !open.parents.is_empty();
    open.parents.push((parent, parent_handle.addr()));
}

/// Notes that an object is being ended.
pub(super) fn closing(name: &'static str, (kind, handle): (Kind, Handle)) {
    let mut state = state();
    let object = (kind, handle.addr());
    match state.open.get_mut(&object) {
        None => state.broken.push(format!("{name} of a {kind} that is not open")),
        Some(open) => {
            open.parents.pop();
            if open.parents.is_empty() {
                state.open.remove(&object);
            }
        }
    }
    let orphan = state.open.iter().find(|(_, child)| !child.shared && child.parents.contains(&object));
    if let Some((&(child, _), _)) = orphan {
        let text = format!("{name} before a {child} of it");
        state.broken.push(text);
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instance => "instance",
            Self::Device => "device",
            Self::Buffer => "buffer",
            Self::Module => "module",
            Self::Kernel => "kernel",
            Self::Queue => "queue",
            Self::Graph => "graph",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(address: usize) -> Handle {
        std::ptr::without_provenance_mut(address)
    }

    /// One test, since the state is that of the process.
    #[test]
    fn objects_are_closed_once_and_after_their_children() {
        let (device, queue, none) =
            ((Kind::Device, handle(8)), (Kind::Queue, handle(8)), (Kind::Instance, handle(0)));
        let fault = Fault { entry: "queue.mark".into(), nth: 2, wrong: Wrong::Refused(ErrorKind::Driver) };
        begin(Some(fault));
        opened(device, none);
        opened(queue, device);
        assert_eq!([1, 2, 3].map(|_| enter("queue.mark", &[queue])), [None, Some(ErrorKind::Driver), None]);
        assert!(seen().reached && seen().broken.is_empty());
        assert_eq!(seen().left, ["1 device", "1 queue"]);
        closing("device.close", device);
        assert_eq!(seen().broken, ["device.close before a queue of it"]);
        closing("queue.close", queue);
        assert!(is_clean());
        closing("queue.close", queue);
        assert_eq!(enter("queue.mark", &[queue]), None);
        assert_eq!(seen().broken.len(), 3, "closed twice, and used afterwards: {:?}", seen().broken);
        begin(None);
        let (kernel, modules) = ((Kind::Kernel, handle(64)), [1, 2].map(|n| (Kind::Module, handle(n))));
        for module in modules {
            opened(module, device);
            opened(kernel, module);
        }
        closing("module.release_kernel", kernel);
        closing("module.unload", modules[1]);
        assert!(seen().broken.is_empty(), "the kernel that is left may be of the other: {:?}", seen().broken);
    }
}
