//! Between the seam's structures and Rust's: strings, errors, options, element types. Used by both sides.

#![allow(unsafe_code, reason = "reads raw memory that the contract of each structure describes")]

use std::fmt::Display;

use crate::abi::{
    Allocation, Error as RawError, Handle, MAX_LOG_BYTES, MAX_PROPERTIES, MAX_TEXT_BYTES, Property, Status,
    Str, VALUE_FLAG, VALUE_INTEGER, VALUE_NUMBER, VALUE_TEXT, Value,
};
use crate::{Error, ErrorKind, Options, Result, Value as OptionValue, end_of};

/// No object lies at so low an address: it is a number that was taken for a pointer.
const MIN_ADDRESS: usize = 4096;

/// Whether something may lie at the address.
pub(crate) fn is_plausible_pointer<T>(pointer: *const T) -> bool {
    pointer.addr() >= MIN_ADDRESS && pointer.is_aligned()
}

/// Reads text; `field` is what messages call it.
///
/// # Errors
/// `AbiMismatch` for a bad address with a length, more than [`MAX_TEXT_BYTES`], or bytes that are not UTF-8.
///
/// # Safety
/// `text.ptr` is null or readable for `text.len` bytes.
pub unsafe fn read_str(field: impl Display, text: Str) -> Result<String> {
    // SAFETY: guaranteed by the caller.
    unsafe { borrow_str(field, text) }.map(str::to_owned)
}

/// Borrows text for as long as its structure's contract says; `field` is what messages call it.
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
        abi_mismatch(format!("{field} is not UTF-8, from byte {at} of {} on: {lossy:?}", bytes.len()))
    })
}

/// Borrows an array of at most `most` elements; `field` is what messages call it.
///
/// # Errors
/// `AbiMismatch` for a bad address with a length, or too many elements.
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
        return Err(abi_mismatch(format!(
            "{field} has {len} elements; more than {max_len} are not believed"
        )));
    }
    if !is_plausible_pointer(ptr) {
        return Err(abi_mismatch(match ptr.is_null() {
            true => format!("{field} has {len} elements at a null pointer"),
            false => format!("{field} has {len} elements at {ptr:p}, which is no address of such an array"),
        }));
    }
    // SAFETY: not null, aligned, of a size that can be, and the caller promises `len` elements.
    Ok(unsafe { std::slice::from_raw_parts(ptr, len) })
}

/// Reads a property list; `field` is what messages call it.
///
/// # Errors
/// `AbiMismatch` for broken text or an unknown value kind.
///
/// # Safety
/// `list` is null or points to `count` properties whose text is readable.
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
        kind => return Err(abi_mismatch(format!("{field}.kind is {kind}, which is none of `VALUE_*`"))),
    })
}

/// The properties of `options`; they borrow its text.
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

/// An error object with the text that it points to. In C's layout, so that the object's address is the box's.
#[repr(C)]
struct OwnedError {
    raw: RawError,
    _text: [String; 3],
}

unsafe extern "C" fn release_owned(error: *mut RawError) {
    // SAFETY: `into_status` made it as the first field of an `OwnedError` box, and the receiver calls this once.
    drop(unsafe { Box::from_raw(error.cast::<OwnedError>()) });
}

/// Turns an error into an owned object for the other side.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "the error ends here and goes on as another object")]
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
    // The strings' bytes stay where they are when the box is made.
    Box::into_raw(Box::new(OwnedError { raw, _text: text })).cast()
}

/// Takes over and releases an error object of the other side.
///
/// # Errors
/// The error, if there is one.
///
/// # Safety
/// `status` is null or an owned error object that nobody else releases.
pub unsafe fn from_status(status: Status) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    // SAFETY: not null, so it is the error object that the contract promises.
    Err(unsafe { take_owned_error(status) })
}

#[cold]
unsafe fn take_owned_error(status: Status) -> Error {
    if !is_plausible_pointer(status) {
        return abi_mismatch(format!("it returned {status:p} where a pointer to an error, or null, is due"));
    }
    // SAFETY: an address, and the caller promises an error object.
    let raw = unsafe { &*status };
    let kind = ErrorKind::from_code(raw.kind);
    let mut unreadable = None;
    let mut text = |field: &str, text: Str| {
        // SAFETY: text of an error object is readable until it is released.
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
        // SAFETY: it is released once, here, and not read any more.
        unsafe { release(status) };
    }
    error
}

pub(crate) fn abi_mismatch(message: String) -> Error {
    Error::new(ErrorKind::AbiMismatch, message)
}

/// Refuses to go on where a call has succeeded without the object that it makes.
///
/// # Errors
/// `AbiMismatch` for a null handle.
pub(crate) fn check_handle(what: &str, handle: Handle) -> Result<()> {
    match handle.is_null() {
        true => Err(abi_mismatch(format!("it succeeded, but gave no {what}: the handle is null"))),
        false => Ok(()),
    }
}

/// Checks what a backend says of `bytes` bytes of memory, aligned to `alignment_bytes`.
///
/// # Errors
/// `AbiMismatch` for a null handle, a host pointer that nothing can be at, and addresses of another alignment.
pub(crate) fn check_allocation(made: &Allocation, bytes: usize, alignment_bytes: u64) -> Result<()> {
    check_handle("buffer", made.buffer)?;
    let host = made.host_pointer;
    if bytes == 0 {
        return Ok(());
    }
    if !host.is_null() && !is_plausible_pointer(host) {
        return Err(abi_mismatch(format!(
            "the field `host_pointer` is {:#x}, where no memory is",
            host.addr()
        )));
    }
    for (field, address) in [("host_pointer", host.addr() as u64), ("kernel_address", made.kernel_address)] {
        if !address.is_multiple_of(alignment_bytes) {
            let message = format!(
                "the field `{field}` is {address:#x}, which is no multiple of {alignment_bytes} bytes"
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
    fn errors_survive_the_crossing() {
        let error = Error::new(ErrorKind::OutOfMemory, "16 GiB")
            .with_driver("CUDA_ERROR_OUT_OF_MEMORY", 2)
            .in_operation("cuMemAlloc");
        // SAFETY: a fresh status, taken once.
        let back = unsafe { from_status(into_status(error.clone())) }.unwrap_err();
        assert_eq!(back.to_string(), error.to_string());
        assert_eq!(back.kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn options_survive_the_crossing() {
        let options =
            Options::new().with("a", true).with("b", 7i64).with("c", 0.5).with("d", "x").with("d", "y");
        let raw = properties(&options);
        // SAFETY: `raw` borrows from `options`, which is alive.
        assert_eq!(unsafe { read_properties("options", raw.as_ptr(), raw.len()) }.unwrap(), options);
    }
}
