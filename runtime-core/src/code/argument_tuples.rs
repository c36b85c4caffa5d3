//! Arguments of a launch: a list of [`Arg`], or a tuple of tensors and scalars.

use num_complex::Complex;
use smallvec::SmallVec;

use crate::code::record::Record;
use crate::code::scalar::Scalar;
use crate::model::access::ArgKind;
use crate::model::kernel_info::Param;
use crate::{Arg, Error, Kernel, Result, Tensor};

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
///
/// A complex number in a tuple is two arguments: its real and its imaginary part. [`layout(&tensor, rank)`](crate::code::layout) is
/// the shape and the strides of a tensor, for a kernel that declares them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of launch arguments",
    label = "expected a tuple such as `(&x, &y, 2.0f32)`, or a list of `Arg`",
    note = "one argument is a tuple, too: `(&x,)`",
    note = "integers need the width that the kernel takes: write `n as u32` or `n as i64` for a `usize`"
)]
pub trait Arguments<'a> {
    /// Calls `launch` with the list of arguments of `kernel`. Without a kernel, a tensor whose access the list does not
    /// state counts as read and written.
    ///
    /// # Errors
    /// `InvalidArgument` for a tensor whose access is not known; whatever `launch` returns.
    fn with<T>(self, kernel: Option<&Kernel>, launch: impl FnOnce(&[Arg<'a>]) -> Result<T>) -> Result<T>;
}

/// The arguments of a tuple whose elements may be several arguments each. Up to 24 need no allocation.
#[derive(Debug, Default)]
pub struct ArgList<'a>(SmallVec<[Arg<'a>; 24]>);

impl<'a> ArgList<'a> {
    /// Appends an argument.
    pub fn push(&mut self, arg: Arg<'a>) {
        self.0.push(arg);
    }
}

impl<'a> Extend<Arg<'a>> for ArgList<'a> {
    fn extend<I: IntoIterator<Item = Arg<'a>>>(&mut self, args: I) {
        self.0.extend(args);
    }
}

/// An element of a tuple of arguments: an [`Arg`], a `&Tensor`, a `&Record`, a scalar, a complex number, or a
/// [`layout`](crate::code::layout).
pub trait IntoArg<'a>: Sized {
    /// Whether it is one argument.
    const IS_ONE: bool = true;

    /// Appends its arguments to those before it.
    ///
    /// # Errors
    /// `InvalidArgument` for a tensor whose access is not known, or whose layout the kernel cannot take.
    fn push_args(self, kernel: Option<&Kernel>, list: &mut ArgList<'a>) -> Result<()> {
        let index = list.0.len();
        list.push(self.into_arg(kernel, index)?);
        Ok(())
    }

    /// The argument, at `index` of the launch of `kernel`; see [`Arguments::with`].
    ///
    /// # Errors
    /// `InvalidArgument` for a tensor whose access is not known, or if it is more than one argument.
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

macro_rules! complex {
    ($($part:ty)*) => {$(
        impl<'a> IntoArg<'a> for Complex<$part> {
            const IS_ONE: bool = false;

            #[inline]
            fn push_args(self, _kernel: Option<&Kernel>, list: &mut ArgList<'a>) -> Result<()> {
                list.extend([Arg::scalar(self.re), Arg::scalar(self.im)]);
                Ok(())
            }

            fn into_arg(self, _kernel: Option<&Kernel>, index: usize) -> Result<Arg<'a>> {
                Err(Error::invalid(format!("argument {index} is a complex number, which is two arguments")))
            }
        }
    )*};
}

complex! { f32 f64 }

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
        let Some(params) = &kernel.info().params else { return Err(unknown_access(kernel, index)) };
        match params.get(index) {
            Some(Param { access: Some(access), .. }) => Ok(Arg::tensor(self, *access)),
            Some(Param { kind: ArgKind::Tensor, access: None, .. }) => Err(unknown_access(kernel, index)),
            // The check of the signature fails, with the kind or the number of arguments.
            _ => Ok(Arg::read(self)),
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
                if const { true $(&& $name::IS_ONE)* } {
                    return launch(&[$(self.$index.into_arg(kernel, $index)?),*]);
                }
                #[allow(unused_mut, reason = "the empty tuple has none")]
                let mut list = ArgList::default();
                $(self.$index.push_args(kernel, &mut list)?;)*
                launch(&list.0)
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
