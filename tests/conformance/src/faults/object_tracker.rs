//! What the layer has observed: how often each function was called, which objects are open; and which call it refuses.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use runtime_core::ErrorKind;
use runtime_core::abi::Handle;

use super::corrupt;
use super::corruption::Corruption;

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
    pub(super) function: String,
    /// Which of its calls, counted from 1.
    pub(super) nth: u64,
    pub(super) injection: Injection,
}

/// What is wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Injection {
    /// It is refused, with this error.
    Refused(ErrorKind),
    /// It returns something else than it should.
    Corrupt(Corruption),
}

pub(super) type Counts = BTreeMap<&'static str, u64>;

/// An object: addresses are unique among those of one kind, if at all.
type Object = (Kind, usize);

/// What is known of an address.
#[derive(Debug, Default)]
struct Open {
    /// The parent of each time that it was opened.
    parents: Vec<Object>,
    /// A backend may result with the same kernel twice: then nobody can tell whose is closed.
    shared: bool,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    fault: Option<Fault>,
    reached: bool,
    open: HashMap<Object, Open>,
    violations: Vec<String>,
}

/// What was observed in a run.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) counts: Counts,
    /// The call that was to fail came.
    pub(super) reached: bool,
    /// Objects that are still open, counted by kind.
    pub(super) leaked: Vec<String>,
    /// Uses of what is not open, and parents that went before their children.
    pub(super) violations: Vec<String>,
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

/// What was observed since the run began.
pub(super) fn observed() -> Observed {
    let state = state();
    let mut left = BTreeMap::new();
    for (&(kind, _), open) in &state.open {
        *left.entry(kind).or_insert(0) += open.parents.len();
    }
    Observed {
        counts: state.counts.clone(),
        reached: state.reached,
        leaked: left.into_iter().map(|(kind, count)| format!("{count} {kind}")).collect(),
        violations: state.violations.clone(),
    }
}

/// Notes a call that uses objects; says with which error it is to be refused.
pub(super) fn before_call(name: &'static str, used: &[(Kind, Handle)]) -> Option<ErrorKind> {
    let mut state = state();
    for &(kind, handle) in used {
        if !state.open.contains_key(&(kind, handle.addr())) {
            state.violations.push(format!("{name} uses a {kind} that is not open"));
        }
    }
    let count = state.counts.entry(name).or_default();
    *count += 1;
    let count = *count;
    let fault = state.fault.as_ref().filter(|fault| fault.function == name && fault.nth == count);
    let wrong = fault.map(|fault| fault.injection);
    state.reached |= wrong.is_some();
    match wrong? {
        Injection::Refused(kind) => Some(kind),
        Injection::Corrupt(corruption) => {
            corrupt::arm(corruption);
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
        None => state.violations.push(format!("{name} of a {kind} that is not open")),
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
        state.violations.push(text);
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
        let fault =
            Fault { function: "queue.mark".into(), nth: 2, injection: Injection::Refused(ErrorKind::Driver) };
        begin(Some(fault));
        opened(device, none);
        opened(queue, device);
        assert_eq!(
            [1, 2, 3].map(|_| before_call("queue.mark", &[queue])),
            [None, Some(ErrorKind::Driver), None]
        );
        assert!(observed().reached && observed().violations.is_empty());
        assert_eq!(observed().leaked, ["1 device", "1 queue"]);
        closing("device.close", device);
        assert_eq!(observed().violations, ["device.close before a queue of it"]);
        closing("queue.close", queue);
        assert!(is_clean());
        closing("queue.close", queue);
        assert_eq!(before_call("queue.mark", &[queue]), None);
        assert_eq!(
            observed().violations.len(),
            3,
            "closed twice, and used afterwards: {:?}",
            observed().violations
        );
        begin(None);
        let (kernel, modules) = ((Kind::Kernel, handle(64)), [1, 2].map(|n| (Kind::Module, handle(n))));
        for module in modules {
            opened(module, device);
            opened(kernel, module);
        }
        closing("module.release_kernel", kernel);
        closing("module.unload", modules[1]);
        assert!(
            observed().violations.is_empty(),
            "the kernel that is left may be of the other: {:?}",
            observed().violations
        );
    }
}
