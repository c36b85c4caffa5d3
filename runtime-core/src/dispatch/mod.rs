//! Dispatch: one kernel for any argument types on any device. Compute follows the data.

mod arg_type;
mod builder;
mod c_types;
mod device;
mod group_size;
mod overloads;
mod prepared;
mod range;
mod signature_text;
mod source_table;
mod typing;

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

pub use arg_type::ArgType;
pub use builder::DispatcherBuilder;
pub use overloads::Overload;
pub use range::{Domain, Extents, NdRange, Range};

use crate::code::argument_tuples::Arguments;
use crate::code::module;
use crate::dispatch::arg_type::Key;
use crate::dispatch::builder::OverloadHook;
use crate::dispatch::overloads::{Overloads, Slot};
use crate::dispatch::prepared::{Args, Prepared};
use crate::dispatch::source_table::SourceTable;
use crate::timeline::open_device::OpenDevice;
use crate::{Arg, CommonRuntime, Error, ErrorKind, Event, Kernel, LaunchConfig, ModuleSource, Queue, Result};

/// A kernel that is compiled for the types of its arguments when it is called, and runs where they are.
///
/// The device is that of the tensors, and the queue that device's [default queue](trait.CommonRuntime.html#method.default_queue);
/// [`Dispatcher::on`] names another one. Each combination of argument types, constants and device is an overload, which is
/// compiled once and kept: by one thread, while others that need it wait. An error that compiling it again would repeat is
/// kept, too. The overloads keep their devices open; [`Dispatcher::clear`] lets go of them. Clones share everything.
///
/// ```
/// # use runtime_core::dispatch::Dispatcher;
/// # use runtime_core::{ModuleSource, Runtime};
/// # let runtime = Runtime::builder().discover(false).register(runtime_null::backend()).build();
/// # let device = runtime.open("null")?;
/// # let source = unsafe { ModuleSource::native("null", "scale_f32") };
/// let scale = Dispatcher::new(source, "scale_f32");
/// let x = device.tensor([2], &[1.0f32, 2.0])?;
/// scale.call(1, (&x, 2.0f32))?; // compiles it for this device, runs it and waits
/// let twice = scale.submit(1, &[], (&x, 2.0f32))?; // returns at once
/// scale.submit(1, &[&twice], (&x, 2.0f32))?.wait()?; // after the other one
/// assert_eq!(x.to_vec::<f32>()?, [8.0, 16.0]);
/// assert_eq!((scale.overloads().len(), scale.misses()), (1, 1));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dispatcher {
    shared: Arc<Shared>,
    variant: Arc<Variant>,
}

/// What the variants of a kernel share.
#[derive(Debug)]
struct Shared {
    sources: SourceTable,
    overloads: Overloads,
    variants: Mutex<Variants>,
    hook: Option<OverloadHook>,
}

type Constants = Vec<(String, String)>;

/// The constants that distinguish one variant of a kernel from another.
#[derive(Debug, Default)]
struct Variant {
    id: u64,
    constants: Constants,
}

/// The variants in use. Equal constants are one variant.
#[derive(Debug, Default)]
struct Variants {
    known: HashMap<Constants, Weak<Variant>>,
    last_id: u64,
}

impl Variants {
    fn with(&mut self, constants: Constants) -> Arc<Variant> {
        if constants.is_empty() {
            return Arc::default();
        }
        if let Some(known) = self.known.get(&constants).and_then(Weak::upgrade) {
            return known;
        }
        if self.known.len() == self.known.capacity() {
            self.known.retain(|_, variant| variant.strong_count() > 0);
        }
        self.last_id += 1;
        let variant = Arc::new(Variant { id: self.last_id, constants: constants.clone() });
        self.known.insert(constants, Arc::downgrade(&variant));
        variant
    }
}

impl Dispatcher {
    /// A dispatcher of one source. Use [`Dispatcher::builder`] for several, or for native code with parameters to describe.
    #[must_use]
    pub fn new(source: ModuleSource, entry: &str) -> Self {
        DispatcherBuilder::new(entry).source(source).build_unchecked(None)
    }

    /// Describes a dispatcher of the entry point `entry`.
    pub fn builder(entry: &str) -> DispatcherBuilder {
        DispatcherBuilder::new(entry)
    }

    /// The same kernel with an `override` constant of portable code set, by name or numeric ID. Both share their overloads'
    /// bound and hook.
    #[must_use]
    pub fn constant(&self, name: &str, value: impl Display) -> Self {
        let mut constants: Vec<_> =
            self.variant.constants.iter().filter(|(known, _)| known != name).cloned().collect();
        constants.push((name.to_owned(), value.to_string()));
        constants.sort();
        Self { shared: self.shared.clone(), variant: self.shared.variants.lock().with(constants) }
    }

    /// Runs the kernel on the default queue of the device that holds the arguments, and waits for it.
    ///
    /// # Errors
    /// As [`Dispatcher::submit`]; the kernel's failure.
    #[inline]
    pub fn call<'a>(&self, range: impl Into<Domain>, args: impl Arguments<'a>) -> Result<()> {
        self.call_on(None, &range.into(), args)
    }

    /// Submits the kernel to the default queue of the device that holds the arguments, after `deps`, and returns at once. The
    /// first call for new types compiles.
    ///
    /// # Errors
    /// `InvalidArgument` for arguments on different devices or none, arguments that the kernel does not take, and a range that
    /// does not fit; `Unsupported` if the device accepts no format of the kernel; `CompileFailed`; otherwise as
    /// [`Queue::launch`].
    #[inline]
    pub fn submit<'a>(
        &self,
        range: impl Into<Domain>,
        deps: &[&Event],
        args: impl Arguments<'a>,
    ) -> Result<Event> {
        self.submit_on(None, &range.into(), deps, args)
    }

    /// Names the queue to run on. The arguments must be on its device.
    #[must_use]
    pub const fn on<'d>(&'d self, queue: &'d Queue) -> Dispatch<'d> {
        Dispatch { dispatcher: self, queue }
    }

    /// Compiles the overload for arguments of these types on a device, so that the first call need not.
    ///
    /// # Errors
    /// As [`Dispatcher::submit`].
    pub fn precompile(&self, device: &dyn CommonRuntime, types: &[ArgType]) -> Result<()> {
        let device = device.opened().0;
        let annotate = |error: Error| error.in_operation("precompile").on_device(&device.name);
        let words = Key::of_types(device, self.variant.id, types).map_err(annotate)?;
        let slot = self.compiled(device, &words, None, || types.to_vec()).map_err(annotate)?;
        ready(&slot).map(drop).map_err(annotate)
    }

    /// The overloads, in no order, without those that are being compiled.
    #[must_use]
    pub fn overloads(&self) -> Vec<Overload> {
        self.shared.overloads.list()
    }

    /// How often an overload was compiled or loaded, or failed to be.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.shared.overloads.misses()
    }

    /// Drops all overloads, also those of the other variants.
    pub fn clear(&self) {
        self.shared.overloads.clear();
    }

    #[inline]
    fn call_on<'a>(&self, queue: Option<&Queue>, domain: &Domain, args: impl Arguments<'a>) -> Result<()> {
        args.with(None, |args| {
            self.dispatch("call", (queue, &[]), domain, args, |queue, kernel, config, args| {
                queue.call_as(kernel, config, args)
            })
        })
    }

    #[inline]
    fn submit_on<'a>(
        &self,
        queue: Option<&Queue>,
        domain: &Domain,
        deps: &[&Event],
        args: impl Arguments<'a>,
    ) -> Result<Event> {
        args.with(None, |args| {
            self.dispatch("submit", (queue, deps), domain, args, |queue, kernel, config, args| {
                queue.launch_as(kernel, config, args, true)
            })
        })
        .map(|event| event.with_dependencies(deps))
    }

    /// Finds or compiles the overload, and launches it by `launch`.
    #[inline]
    fn dispatch<T>(
        &self,
        operation: &'static str,
        (queue, deps): (Option<&Queue>, &[&Event]),
        domain: &Domain,
        args: &[Arg<'_>],
        launch: impl FnOnce(&Queue, &Kernel, &LaunchConfig, &[Arg<'_>]) -> Result<T>,
    ) -> Result<T> {
        let entry = &self.shared.sources.entry;
        let device =
            device::of_arguments(entry, queue, args).map_err(|error| error.in_operation(operation))?;
        let annotate = |error: Error| error.in_operation(operation).on_device(&device.name);
        let words = Key::of(device, self.variant.id, args);
        let types = || args.iter().map(ArgType::of).collect();
        let slot = match self.shared.overloads.find(&words) {
            Some(slot) if slot.is_usable(queue) => slot,
            found => self.compiled(device, &words, found.as_ref(), types).map_err(annotate)?,
        };
        let prepared = ready(&slot).map_err(annotate)?;
        let config = prepared.config(domain, args).map_err(annotate)?;
        let queue = queue.unwrap_or(&prepared.queue);
        queue.wait_for_all(deps).map_err(annotate)?;
        if prepared.is_plain() {
            let mut list = Args::new();
            prepared.narrow_all(args, &mut list);
            return launch(queue, &prepared.kernel, &config, &list);
        }
        let records = prepared.records(args).map_err(annotate)?;
        let args = prepared.with_layouts(args, &records).map_err(annotate)?;
        launch(queue, &prepared.kernel, &config, &args)
    }

    /// The overload for `words`, compiled now unless it was before. `found` is the one that is known already.
    #[cold]
    fn compiled(
        &self,
        device: &Arc<OpenDevice>,
        words: &[u64],
        found: Option<&Arc<Slot>>,
        types: impl FnOnce() -> Vec<ArgType>,
    ) -> Result<Arc<Slot>> {
        let Shared { sources, overloads, hook, .. } = &*self.shared;
        if let Some(found) = found.filter(|found| found.outcome().is_some()) {
            // Its queue has failed. What the device has loaded is shared, so this only takes another queue.
            overloads.remove(words, found);
        }
        let types = types();
        let overload = Overload {
            kernel: sources.entry.clone(),
            device: device.name.clone(),
            types: types.clone(),
            constants: self.variant.constants.clone(),
            load: None,
            error: None,
        };
        let slot = overloads.insert(words, Slot::new(overload, device, self.variant.clone()));
        let compiled = overloads.compile(words, &slot, || {
            let typed = sources.typed(device, &self.variant.constants, &types)?;
            Prepared::load(device, &sources.entry, &typed)
        })?;
        // With no lock held: a hook may call this dispatcher.
        if let Some(overload) = compiled {
            if let Some(load) = &overload.load {
                module::report(device, load);
            }
            if let Some(OverloadHook(hook)) = hook {
                hook(&overload);
            }
        }
        Ok(slot)
    }
}

/// The kernel of an overload, or the error that compiling it ended in.
#[inline]
fn ready(slot: &Slot) -> Result<&Prepared> {
    match slot.outcome() {
        Some(Ok(prepared)) => Ok(prepared),
        Some(Err(error)) => Err(error.clone()),
        None => Err(Error::new(ErrorKind::Internal, "an overload without a result")),
    }
}

/// A [`Dispatcher`] with a queue to run on; made by [`Dispatcher::on`].
#[derive(Clone, Copy, Debug)]
pub struct Dispatch<'d> {
    dispatcher: &'d Dispatcher,
    queue: &'d Queue,
}

impl Dispatch<'_> {
    /// As [`Dispatcher::call`], on this queue.
    ///
    /// # Errors
    /// As [`Dispatcher::call`]; `InvalidArgument` for an argument on another device than the queue.
    #[inline]
    pub fn call<'a>(&self, range: impl Into<Domain>, args: impl Arguments<'a>) -> Result<()> {
        self.dispatcher.call_on(Some(self.queue), &range.into(), args)
    }

    /// As [`Dispatcher::submit`], on this queue.
    ///
    /// # Errors
    /// As [`Dispatcher::submit`]; `InvalidArgument` for an argument on another device than the queue.
    #[inline]
    pub fn submit<'a>(
        &self,
        range: impl Into<Domain>,
        deps: &[&Event],
        args: impl Arguments<'a>,
    ) -> Result<Event> {
        self.dispatcher.submit_on(Some(self.queue), &range.into(), deps, args)
    }
}
