//! Describes the kernel of a dispatcher.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::dispatch::overloads::{Overload, Overloads};
use crate::dispatch::source_table::SourceTable;
use crate::dispatch::{Dispatcher, Shared, signature_text};
use crate::model::signature::SignatureParam;
use crate::{Error, ModuleSource, Result};

/// Overloads that a dispatcher keeps if nothing else is said.
const OVERLOADS: usize = 1024;

/// Describes the kernel of a [`Dispatcher`]; made by [`Dispatcher::builder`].
///
/// ```
/// # use runtime_core::{ModuleSource, Runtime};
/// # use runtime_core::dispatch::Dispatcher;
/// # let runtime = Runtime::builder().discover(false).register(runtime_host::backend()).build();
/// # let device = runtime.open("host")?;
/// const SCALE: &str =
///     "void scale(T *x, T a, long begin, long end) { for (; begin < end; begin++) x[begin] *= a; }";
/// // SAFETY: the calls below stay within x.
/// let source = unsafe { ModuleSource::native("c", SCALE) };
/// let scale = Dispatcher::builder("scale")
///     .source(source) // more sources, such as `cuda-c` or WGSL, serve other devices
///     .signature("x: read_write T, a: T")
///     .on_compile(|overload| println!("{overload}")) // scale(f32[1], f32) on host:0
///     .build()?;
/// let (x, y) = (device.tensor([2], &[1.0f32, 2.0])?, device.tensor([1], &[3i64])?);
/// scale.call(2, (&x, 2.0f32))?;
/// scale.call(1, (&y, 2i64))?; // compiles it for `i64`
/// assert_eq!((x.to_vec::<f32>()?, y.to_vec::<i64>()?), (vec![2.0, 4.0], vec![6]));
/// # Ok::<(), runtime_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct DispatcherBuilder {
    entry: String,
    sources: Vec<ModuleSource>,
    signature: Option<String>,
    max_overloads: usize,
    hook: Option<OverloadHook>,
}

/// A callback of the program, called after each compilation.
#[derive(Clone)]
pub(super) struct OverloadHook(pub(super) Arc<dyn Fn(&Overload) + Send + Sync>);

impl fmt::Debug for OverloadHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OverloadHook")
    }
}

impl DispatcherBuilder {
    pub(super) fn new(entry: &str) -> Self {
        let (sources, signature) = (Vec::new(), None);
        Self { entry: entry.to_owned(), sources, signature, max_overloads: OVERLOADS, hook: None }
    }

    /// Adds a source of the kernel, with its constants and options. With several sources, a device gets the first format of its
    /// list that has one, so native code goes before portable code.
    ///
    /// A function for the host has two more parameters, `int64_t begin` and `int64_t end`, and is called for parts of the range, on
    /// several threads.
    pub fn source(mut self, source: ModuleSource) -> Self {
        self.sources.push(source);
        self
    }

    /// States the parameters of native code, which portable code states itself: `"x: read T, y: write T, n: u32"`.
    ///
    /// Each parameter is `[NAME:] [read|write|read_write] TYPE [strided]`; one without an access is a scalar. `TYPE` is an
    /// element type such as `f32`, a type parameter such as `T` that the code uses as a type and that the arguments determine,
    /// `any`, `bytes` (a structure), or `local`. After a `strided` tensor the code receives its shape and strides as a
    /// `struct Layout`, which is `{ unsigned int shape[4]; int strides[4]; }` and defined for it.
    pub fn signature(mut self, parameters: &str) -> Self {
        self.signature = Some(parameters.to_owned());
        self
    }

    /// Keeps at most so many overloads; those not used for the longest time are dropped. The default is 1024.
    pub fn max_overloads(mut self, count: usize) -> Self {
        self.max_overloads = count;
        self
    }

    /// Calls `hook` after each compilation, successful or not, with no lock held.
    pub fn on_compile(mut self, hook: impl Fn(&Overload) + Send + Sync + 'static) -> Self {
        self.hook = Some(OverloadHook(Arc::new(hook)));
        self
    }

    /// Makes the dispatcher. Nothing is read or compiled yet.
    ///
    /// # Errors
    /// `InvalidArgument` without a source, for two sources of one format, and for a malformed signature.
    pub fn build(self) -> Result<Dispatcher> {
        let Self { entry, sources, .. } = &self;
        let annotate = |error: Error| error.in_operation("dispatcher");
        if sources.is_empty() {
            return Err(annotate(Error::invalid(format!("\"{entry}\" has no source"))));
        }
        let formats: Vec<_> = sources.iter().map(ModuleSource::format).collect();
        if let Some(twice) = formats.iter().enumerate().find(|(at, format)| formats[..*at].contains(format)) {
            let format = twice.1;
            return Err(annotate(Error::invalid(format!(
                "\"{entry}\" has two sources in the format {format}"
            ))));
        }
        let signature = self.signature.as_deref().map(signature_text::parse).transpose().map_err(annotate)?;
        Ok(self.build_unchecked(signature))
    }

    pub(super) fn build_unchecked(self, signature: Option<Vec<SignatureParam>>) -> Dispatcher {
        let Self { entry, sources, max_overloads, hook, .. } = self;
        let shared = Shared {
            sources: SourceTable::new(&entry, sources, signature),
            overloads: Overloads::new(max_overloads),
            variants: Mutex::default(),
            hook,
        };
        Dispatcher { shared: Arc::new(shared), variant: Arc::default() }
    }
}
