//! Arguments of a launch: a list of [`Arg`], or a tuple of tensors and scalars.

use crate::code::scalar::Scalar;
use crate::{Arg, Error, Kernel, Record, Result, Tensor};

/// A tensor argument that the kernel only reads; the same as [`Arg::read`].
#[must_use]
pub const fn read(tensor: &Tensor) -> Arg<'_> {
    Arg::read(tensor)
}

/// A tensor argument that the kernel only writes; the same as [`Arg::write`].
#[must_use]
pub const fn write(tensor: &Tensor) -> Arg<'_> {
    Arg::write(tensor)
}

/// A tensor argument that the kernel reads and writes; the same as [`Arg::read_write`].
#[must_use]
pub const fn read_write(tensor: &Tensor) -> Arg<'_> {
    Arg::read_write(tensor)
}

/// What a launch takes as arguments: `&[Arg]`, `&[Arg; N]`, `&Vec<Arg>`, or a tuple of up to twelve [`IntoArg`]s.
///
/// In a tuple, `&tensor` is accessed as the kernel's code states, which a portable kernel always does. Where the
/// code does not say, write [`read(&tensor)`](read), [`write(&tensor)`](write()) or
/// [`read_write(&tensor)`](read_write).
pub trait Arguments<'a> {
    /// Calls `launch` with the list of arguments of `kernel`. Without a kernel, a tensor whose access the list does not
    /// state counts as read and written.
    ///
    /// # Errors
    /// `InvalidArgument` for a tensor whose access is not known; whatever `launch` returns.
    fn with<T>(self, kernel: Option<&Kernel>, launch: impl FnOnce(&[Arg<'a>]) -> Result<T>) -> Result<T>;
}

/// One argument in a tuple: an [`Arg`], a `&Tensor`, a `&Record`, or a scalar.
pub trait IntoArg<'a> {
    /// The argument, at `index` of the launch of `kernel`; see [`Arguments::with`].
    ///
    /// # Errors
    /// `InvalidArgument` for a tensor whose access is not known.
    fn into_arg(self, kernel: Option<&Kernel>, index: usize) -> Result<Arg<'a>>;
}

impl<'a> IntoArg<'a> for Arg<'a> {
    #[inline]
    fn into_arg(self, _kernel: Option<&Kernel>, _index: usize) -> Result<Self> {
        Ok(self)
    }
}

impl<'a, S: Scalar> IntoArg<'a> for S {
    #[inline]
    fn into_arg(self, _kernel: Option<&Kernel>, _index: usize) -> Result<Arg<'a>> {
        Ok(Arg::scalar(self))
    }
}

impl<'a> IntoArg<'a> for &'a Record {
    #[inline]
    fn into_arg(self, _kernel: Option<&Kernel>, _index: usize) -> Result<Arg<'a>> {
        Ok(Arg::record(self))
    }
}

impl<'a> IntoArg<'a> for &'a Tensor {
    #[inline]
    fn into_arg(self, kernel: Option<&Kernel>, index: usize) -> Result<Arg<'a>> {
        let Some(kernel) = kernel else { return Ok(Arg::read_write(self)) };
        match &kernel.info().params {
            // Without such a parameter, the check of the signature fails with the number of arguments.
            Some(params) => {
                Ok(params.get(index).map_or(Arg::read(self), |param| Arg::tensor(self, param.access)))
            }
            None => Err(unknown_access(kernel, index)),
        }
    }
}

#[cold]
fn unknown_access(kernel: &Kernel, index: usize) -> Error {
    Error::invalid(format!(
        "argument {index} of \"{}\": the code does not say how it accesses this tensor; pass read(&tensor), \
         write(&tensor) or read_write(&tensor)",
        kernel.name()
    ))
    .in_operation("launch")
    .on_device(&kernel.device().name)
}

impl<'a> Arguments<'a> for &[Arg<'a>] {
    #[inline]
    fn with<T>(self, _kernel: Option<&Kernel>, launch: impl FnOnce(&[Arg<'a>]) -> Result<T>) -> Result<T> {
        launch(self)
    }
}

impl<'a, const N: usize> Arguments<'a> for &[Arg<'a>; N] {
    #[inline]
    fn with<T>(self, _kernel: Option<&Kernel>, launch: impl FnOnce(&[Arg<'a>]) -> Result<T>) -> Result<T> {
        launch(self)
    }
}

impl<'a> Arguments<'a> for &Vec<Arg<'a>> {
    #[inline]
    fn with<T>(self, _kernel: Option<&Kernel>, launch: impl FnOnce(&[Arg<'a>]) -> Result<T>) -> Result<T> {
        launch(self)
    }
}

macro_rules! tuples {
    ($($($name:ident: $index:tt)*;)*) => {$(
        impl<'a $(, $name: IntoArg<'a>)*> Arguments<'a> for ($($name,)*) {
            #[inline]
            fn with<T>(self, kernel: Option<&Kernel>, launch: impl FnOnce(&[Arg<'a>]) -> Result<T>) -> Result<T> {
                let _ = kernel;
                launch(&[$(self.$index.into_arg(kernel, $index)?),*])
            }
        }
    )*};
}

tuples! {
    ;
    A: 0;
    A: 0 B: 1;
    A: 0 B: 1 C: 2;
    A: 0 B: 1 C: 2 D: 3;
    A: 0 B: 1 C: 2 D: 3 E: 4;
    A: 0 B: 1 C: 2 D: 3 E: 4 F: 5;
    A: 0 B: 1 C: 2 D: 3 E: 4 F: 5 G: 6;
    A: 0 B: 1 C: 2 D: 3 E: 4 F: 5 G: 6 H: 7;
    A: 0 B: 1 C: 2 D: 3 E: 4 F: 5 G: 6 H: 7 I: 8;
    A: 0 B: 1 C: 2 D: 3 E: 4 F: 5 G: 6 H: 7 I: 8 J: 9;
    A: 0 B: 1 C: 2 D: 3 E: 4 F: 5 G: 6 H: 7 I: 8 J: 9 K: 10;
    A: 0 B: 1 C: 2 D: 3 E: 4 F: 5 G: 6 H: 7 I: 8 J: 9 K: 10 L: 11;
}
