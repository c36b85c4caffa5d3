//! Conversions between ABI structures and Rust types: strings, errors, options. Used by core and by the
//! backend shims.

#![allow(unsafe_code, reason = "reads raw memory as the contract of each structure describes it")]

use std::fmt::Display;

use crate::abi::{
    Allocation, Error as RawError, Handle, MAX_LOG_BYTES, MAX_PROPERTIES, MAX_TEXT_BYTES, Property, Status,
    Str, VALUE_FLAG, VALUE_INTEGER, VALUE_NUMBER, VALUE_TEXT, Value,
};
use crate::{Error, ErrorKind, OptionValue, Options, Result, end_of};

/// Addresses below this one are never mapped; such a value is an integer mistaken for a pointer.
const MIN_ADDRESS: usize = 4096;

/// Whether `pointer` is aligned and not in the unmapped first page.
pub(crate) fn is_plausible_pointer<T>(pointer: *const T) -> bool {
    pointer.addr() >= MIN_ADDRESS && pointer.is_aligned()
}

/// Reads a string; `field` names it in error messages.
///
/// # Errors
/// `AbiMismatch` for a non-empty string at an invalid address, more than [`MAX_TEXT_BYTES`] bytes, or invalid
/// UTF-8.
///
/// # Safety
/// `text.ptr` is null or readable for `text.len` bytes.
pub unsafe fn read_str(field: impl Display, text: Str) -> Result<String> {
    // SAFETY: guaranteed by the caller.
    unsafe { borrow_str(field, text) }.map(str::to_owned)
}

/// Borrows a string for as long as its structure's contract allows; `field` names it in error messages.
///
/// # Errors
/// As [`read_str`].
///
/// # Safety
/// `text.ptr` is null or readable for `text.len` bytes for `'a`.
pub unsafe fn borrow_str<'a>(field: impl Display, text: Str) -> Result<&'a str> {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { borrow_slice(&field, text.ptr, text.len, MAX_TEXT_BYTES) }?;
    std::str::from_utf8(bytes).map_err(|error| {
        let (at, lossy) = (error.valid_up_to(), String::from_utf8_lossy(&bytes[..bytes.len().min(80)]));
        abi_mismatch(format!("{field} is not UTF-8: byte {at} of {} is invalid: {lossy:?}", bytes.len()))
    })
}

/// Borrows an array of at most `max_len` elements; `field` names it in error messages.
///
/// # Errors
/// `AbiMismatch` for a non-empty array at an invalid address, or too many elements.
///
/// # Safety
/// `ptr` is null or points to `len` valid elements for `'a`.
pub unsafe fn borrow_slice<'a, T>(
    field: impl Display,
    ptr: *const T,
    len: usize,
    max_len: usize,
) -> Result<&'a [T]> {
    if len == 0 {
        return Ok(&[]);
    }
    let max_len = max_len.min(isize::MAX as usize / size_of::<T>().max(1));
    if len > max_len {
        return Err(abi_mismatch(format!("{field} has {len} elements; at most {max_len} are accepted")));
    }
    if !is_plausible_pointer(ptr) {
        return Err(abi_mismatch(match ptr.is_null() {
            true => format!("{field} has {len} elements at a null pointer"),
            false => format!("{field} has {len} elements at {ptr:p}, which is not a valid address"),
        }));
    }
    // SAFETY: not null, aligned, of a possible size, and the caller guarantees `len` elements.
    Ok(unsafe { std::slice::from_raw_parts(ptr, len) })
}

/// Reads a property list; `field` names it in error messages.
///
/// # Errors
/// `AbiMismatch` for an invalid string or an unknown value kind.
///
/// # Safety
/// `list` is null or points to `count` properties whose strings are readable.
pub unsafe fn read_properties(field: impl Display, list: *const Property, count: usize) -> Result<Options> {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { borrow_slice(&field, list, count, MAX_PROPERTIES) }?;
    let mut options = Options::new();
    for (index, property) in list.iter().enumerate() {
        // SAFETY: the caller promises readable text.
        let key = unsafe { borrow_str(format_args!("{field}[{index}].key"), property.key) }?;
        // SAFETY: as above.
        options.push(key, unsafe { read_value(format_args!("{field}[{index}]"), property) }?);
    }
    Ok(options)
}

unsafe fn read_value(field: impl Display, property: &Property) -> Result<OptionValue> {
    Ok(match property.kind {
        // SAFETY: the kind says which member is set.
        VALUE_FLAG => OptionValue::Flag(unsafe { property.value.integer } != 0),
        // SAFETY: as above.
        VALUE_INTEGER => OptionValue::Integer(unsafe { property.value.integer }),
        // SAFETY: as above.
        VALUE_NUMBER => OptionValue::Number(unsafe { property.value.number }),
        VALUE_TEXT => {
            // SAFETY: the kind says which member is set.
            let text = unsafe { property.value.text };
            // SAFETY: the caller promises readable text.
            OptionValue::Text(unsafe { read_str(format_args!("{field}.value.text"), text) }?)
        }
        kind => return Err(abi_mismatch(format!("{field}.kind is {kind}, which is not one of `VALUE_*`"))),
    })
}

/// Converts `options` to properties, which borrow its strings.
#[must_use]
pub fn properties(options: &Options) -> Vec<Property> {
    let property = |(key, value): (&str, &OptionValue)| {
        let raw = match value {
            OptionValue::Flag(flag) => Value { integer: i64::from(*flag) },
            OptionValue::Integer(integer) => Value { integer: *integer },
            OptionValue::Number(number) => Value { number: *number },
            OptionValue::Text(text) => Value { text: Str::new(text) },
        };
        Property { key: Str::new(key), kind: value.kind(), reserved: 0, value: raw }
    };
    options.iter().map(property).collect()
}

/// An error object with the strings that it points to. `repr(C)`, so that the address of the box is that of
/// the error.
#[repr(C)]
struct OwnedError {
    raw: RawError,
    _text: [String; 3],
}

unsafe extern "C" fn release_owned(error: *mut RawError) {
    // SAFETY: `into_status` created it as the first field of a boxed `OwnedError`, and the receiver calls
    // this once.
    drop(unsafe { Box::from_raw(error.cast::<OwnedError>()) });
}

/// Converts an error to an owned error object for the receiver.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "the error is consumed by the conversion")]
pub fn into_status(error: Error) -> Status {
    let (symbol, code) = error.driver().unwrap_or(("", 0));
    let text = [error.operation().to_owned(), error.message().to_owned(), symbol.to_owned()];
    let raw = RawError {
        struct_size: end_of!(RawError, release),
        kind: error.kind().code(),
        code,
        operation: Str::new(&text[0]),
        message: Str::new(&text[1]),
        symbol: Str::new(&text[2]),
        release: Some(release_owned),
    };
    // Boxing does not move the bytes of the strings.
    Box::into_raw(Box::new(OwnedError { raw, _text: text })).cast()
}

/// Converts a received error object and releases it.
///
/// # Errors
/// The error, unless `status` is null.
///
/// # Safety
/// `status` is null, or an owned error object that is not released elsewhere.
pub unsafe fn from_status(status: Status) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: not null, so by contract it is an error object.
    Err(unsafe { take_owned_error(status) })
}

#[cold]
unsafe fn take_owned_error(status: Status) -> Error {
    if !is_plausible_pointer(status) {
        return abi_mismatch(format!("it returned {status:p}; expected null or a pointer to an error"));
    }
    // SAFETY: a plausible address, and the caller guarantees an error object.
    let raw = unsafe { &*status };
    let kind = ErrorKind::from_code(raw.kind);
    let mut unreadable = None;
    let mut text = |field: &str, text: Str| {
        // SAFETY: the strings of an error object are readable until it is released.
        match unsafe { borrow_slice(format_args!("Error.{field}"), text.ptr, text.len, MAX_LOG_BYTES) } {
            Ok(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Err(error) => {
                unreadable.get_or_insert(error);
                String::new()
            }
        }
    };
    let mut message = text("message", raw.message);
    let (operation, symbol) = (text("operation", raw.operation), text("symbol", raw.symbol));
    if message.is_empty() {
        message = format!("an error of kind {kind} ({}) without a message", raw.kind);
    }
    let mut error = Error::new(kind, message);
    if let Some(unreadable) = unreadable {
        error = error.with_note(unreadable.message());
    }
    if raw.code != 0 || !symbol.is_empty() {
        error = error.with_driver(symbol, raw.code);
    }
    if !operation.is_empty() {
        error = error.in_operation(&operation);
    }
    if let Some(release) = raw.release {
        // SAFETY: released once, here, and not read afterwards.
        unsafe { release(status) };
    }
    error
}

pub(crate) fn abi_mismatch(message: String) -> Error {
    Error::new(ErrorKind::AbiMismatch, message)
}

/// Checks the handle that a successful call returned.
///
/// # Errors
/// `AbiMismatch` for a null handle.
pub(crate) fn check_handle(what: &str, handle: Handle) -> Result<()> {
    match handle.is_null() {
        true => Err(abi_mismatch(format!("it succeeded but returned a null {what} handle"))),
        false => Ok(()),
    }
}

/// Checks an allocation of `bytes` bytes that a backend returned.
///
/// # Errors
/// `AbiMismatch` for a null handle, an invalid host pointer, or an address that is not a multiple of
/// `alignment_bytes`.
pub(crate) fn check_allocation(made: &Allocation, bytes: usize, alignment_bytes: u64) -> Result<()> {
    check_handle("buffer", made.buffer)?;
    let host = made.host_pointer;
    if bytes == 0 {
        return Ok(());
    }
    if !host.is_null() && !is_plausible_pointer(host) {
        return Err(abi_mismatch(format!(
            "the field `host_pointer` is {:#x}, which is not a valid address",
            host.addr()
        )));
    }
    for (field, address) in [("host_pointer", host.addr() as u64), ("kernel_address", made.kernel_address)] {
        if !address.is_multiple_of(alignment_bytes) {
            let message = format!(
                "the field `{field}` is {address:#x}, which is not a multiple of {alignment_bytes} bytes"
            );
            return Err(abi_mismatch(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_round_trip() {
        let error = Error::new(ErrorKind::OutOfMemory, "16 GiB")
            .with_driver("CUDA_ERROR_OUT_OF_MEMORY", 2)
            .in_operation("cuMemAlloc");
        // SAFETY: a fresh status, taken once.
        let back = unsafe { from_status(into_status(error.clone())) }.unwrap_err();
        assert_eq!(back.to_string(), error.to_string());
        assert_eq!(back.kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn options_round_trip() {
        let options =
            Options::new().with("a", true).with("b", 7i64).with("c", 0.5).with("d", "x").with("d", "y");
        let raw = properties(&options);
        // SAFETY: `raw` borrows from `options`, which is still alive.
        assert_eq!(unsafe { read_properties("options", raw.as_ptr(), raw.len()) }.unwrap(), options);
    }
}
