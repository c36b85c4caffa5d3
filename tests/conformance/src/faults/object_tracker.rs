//! Tracks what passes through the layer: calls of each function, and open objects. It also decides which call gets
//! the fault.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use runtime_core::ErrorKind;
use runtime_core::abi::Handle;

use super::corrupt;
use super::corruption::Corruption;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Instance,
    Device,
    Buffer,
    Module,
    Kernel,
    Queue,
    Graph,
    CounterSet,
    Compiled,
}

/// The fault of a run.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    /// `table.function`.
    pub(super) function: String,
    /// Which of its calls gets the fault, counted from 1.
    pub(super) nth: u64,
    pub(super) injection: Injection,
}

/// What is injected into a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Injection {
    /// The call fails with an error of this kind.
    Error(ErrorKind),
    /// The call returns corrupted values.
    Corrupt(Corruption),
}

pub(super) type Counts = BTreeMap<&'static str, u64>;

/// An object: its kind and address. Objects of different kinds may share an address.
type Object = (Kind, usize);

/// The state of an open object.
#[derive(Debug, Default)]
struct Open {
    /// One parent for each time that it was opened.
    parents: Vec<Object>,
    /// A backend may return the same kernel more than once: then its parent at close is ambiguous.
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

/// The observations of a run.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) counts: Counts,
    /// Whether the faulted call was reached.
    pub(super) reached: bool,
    /// Objects that are still open, counted by kind.
    pub(super) leaked: Vec<String>,
    /// Uses of closed objects, and parents closed before their children.
    pub(super) violations: Vec<String>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a run; resets all state.
pub(super) fn begin(fault: Option<Fault>) {
    *state() = State { fault, ..State::default() };
}

/// The calls of each function so far.
pub(super) fn counts() -> Counts {
    state().counts.clone()
}

/// Whether all objects are closed.
pub(super) fn is_clean() -> bool {
    state().open.is_empty()
}

/// The observations since the run began.
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

/// Records a call and the objects it uses; returns the kind of error to inject.
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
        Injection::Error(kind) => Some(kind),
        Injection::Corrupt(corruption) => {
            corrupt::arm(corruption);
            None
        }
    }
}

/// Records that an object was opened.
pub(super) fn opened((kind, handle): (Kind, Handle), (parent, parent_handle): (Kind, Handle)) {
    let mut state = state();
    let open = state.open.entry((kind, handle.addr())).or_default();
    open.shared |= !open.parents.is_empty();
    open.parents.push((parent, parent_handle.addr()));
}

/// Records that an object is being closed.
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
        let text = format!("{name} of a {kind} with an open {child}");
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
            Self::CounterSet => "counter set",
            Self::Compiled => "compiled code",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(address: usize) -> Handle {
        std::ptr::without_provenance_mut(address)
    }

    /// A single test, because the state is global.
    #[test]
    fn objects_are_closed_once_and_after_their_children() {
        let (device, queue, none) =
            ((Kind::Device, handle(8)), (Kind::Queue, handle(8)), (Kind::Instance, handle(0)));
        let fault =
            Fault { function: "queue.signal".into(), nth: 2, injection: Injection::Error(ErrorKind::Driver) };
        begin(Some(fault));
        opened(device, none);
        opened(queue, device);
        assert_eq!(
            [1, 2, 3].map(|_| before_call("queue.signal", &[queue])),
            [None, Some(ErrorKind::Driver), None]
        );
        assert!(observed().reached && observed().violations.is_empty());
        assert_eq!(observed().leaked, ["1 device", "1 queue"]);
        closing("device.close", device);
        assert_eq!(observed().violations, ["device.close of a device with an open queue"]);
        closing("queue.close", queue);
        assert!(is_clean());
        closing("queue.close", queue);
        assert_eq!(before_call("queue.signal", &[queue]), None);
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
