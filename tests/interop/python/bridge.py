"""The test library through ctypes: tensors that implement Python's DLPack protocol in both directions."""

import ctypes
import math
import time
from ctypes import POINTER, byref, c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint8, c_uint64, c_void_p

VERSIONED, UNVERSIONED = b"dltensor_versioned", b"dltensor"
USED = {VERSIONED: b"used_dltensor_versioned", UNVERSIONED: b"used_dltensor"}


class Description(ctypes.Structure):
    _fields_ = [
        ("code", c_uint8),
        ("bits", c_uint8),
        ("frozen", c_uint8),
        ("ndim", c_uint8),
        ("shape", c_int64 * 8),
        ("strides", c_int64 * 8),
    ]


def describe(code=0, bits=0, shape=(), strides=()):
    return Description(code, bits, 0, len(shape), (c_int64 * 8)(*shape), (c_int64 * 8)(*strides))


def eventually(condition, seconds=20):
    """Waits until it is true: the wait thread of the device may need time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


class Error(Exception):
    """The last error of the library."""


class Library:
    SIGNATURES = {
        "open": (c_void_p, c_char_p),
        "close": (None, c_void_p),
        "scale": (c_int, c_void_p, c_void_p, c_float, c_int64),
        "use_stream": (c_int, c_void_p, c_uint64),
        "native": (c_int, c_void_p, c_void_p, c_void_p),
        "wait": (c_int, c_void_p),
        "error": (None, c_char_p, c_size_t),
        "tensor": (c_void_p, c_void_p, POINTER(Description), c_char_p, c_size_t),
        "view": (c_void_p, c_void_p, POINTER(Description), c_size_t),
        "describe": (None, c_void_p, POINTER(Description)),
        "read": (c_int, c_void_p, c_char_p, c_size_t),
        "write": (c_int, c_void_p, c_char_p, c_size_t),
        "freeze": (c_int, c_void_p),
        "drop": (None, c_void_p),
        "drop_on_thread": (c_int, c_void_p),
        "export": (c_void_p, c_void_p, c_bool),
        "deletions": (c_uint64,),
        "import": (c_void_p, c_void_p, c_void_p, c_bool),
        "load": (c_void_p, c_void_p, c_char_p, c_char_p, c_bool),
        "save": (c_int, c_char_p, c_char_p, c_void_p),
    }

    def __init__(self, path):
        library = ctypes.CDLL(path)
        for name, (result, *arguments) in self.SIGNATURES.items():
            function = getattr(library, "interop_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        api = ctypes.pythonapi
        library.interop_python(api.PyCapsule_IsValid, api.PyCapsule_GetPointer)
        self.destructors = {
            VERSIONED: ctypes.cast(library.interop_destroy_versioned, c_void_p),
            UNVERSIONED: ctypes.cast(library.interop_destroy_unversioned, c_void_p),
        }

    def check(self, result):
        if result is None or result == -1:
            buffer = ctypes.create_string_buffer(4096)
            self.error(buffer, len(buffer))
            raise Error(buffer.value.decode())
        return result


def python(name, result, *arguments):
    """A function of the interpreter; objects are passed as addresses, so that dying objects can be passed, too."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


capsule_new = python("PyCapsule_New", ctypes.py_object, c_void_p, c_char_p, c_void_p)
capsule_is_valid = python("PyCapsule_IsValid", c_int, c_void_p, c_char_p)
capsule_pointer = python("PyCapsule_GetPointer", c_void_p, c_void_p, c_char_p)
capsule_rename = python("PyCapsule_SetName", c_int, c_void_p, c_char_p)


class Device:
    def __init__(self, library, name):
        self.library = library
        self.handle = library.check(library.open(name.encode()))

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.close(self.handle)

    def tensor(self, code, bits, shape, data):
        made = self.library.tensor(self.handle, byref(describe(code, bits, shape)), data, len(data))
        return Tensor(self, self.library.check(made))

    def take(self, producer, **dlpack_kwargs):
        """Imports an object that has `__dlpack__`."""
        return self.take_capsule(producer.__dlpack__(**dlpack_kwargs))

    def take_capsule(self, capsule):
        name = VERSIONED if capsule_is_valid(id(capsule), VERSIONED) else UNVERSIONED
        managed = capsule_pointer(id(capsule), name)
        # On an error the capsule keeps its tensor, and releases it when it is collected.
        taken = self.library.check(getattr(self.library, "import")(self.handle, managed, name == VERSIONED))
        capsule_rename(id(capsule), USED[name])
        return Tensor(self, taken)

    def load(self, path, name, map=False):
        return Tensor(self, self.library.check(self.library.load(self.handle, str(path).encode(), name.encode(), map)))

    def scale(self, tensor, factor, pause_ms=0):
        self.library.check(self.library.scale(self.handle, tensor.handle, factor, pause_ms))

    def use_stream(self, stream):
        self.library.check(self.library.use_stream(self.handle, stream))

    def native(self, tensor, work):
        callback = ctypes.CFUNCTYPE(None, c_uint64)(work)
        self.library.check(self.library.native(self.handle, tensor.handle, ctypes.cast(callback, c_void_p)))

    def wait(self):
        self.library.check(self.library.wait(self.handle))


class Tensor:
    def __init__(self, device, handle):
        self.device, self.library, self.handle = device, device.library, handle
        description = Description()
        self.library.describe(handle, byref(description))
        self.dtype = (description.code, description.bits)
        self.shape = tuple(description.shape[: description.ndim])
        self.strides = tuple(description.strides[: description.ndim])
        self.frozen = bool(description.frozen)

    def drop(self, on_thread=False):
        handle, self.handle = self.handle, None
        (self.library.drop_on_thread if on_thread else self.library.drop)(handle)

    def __del__(self):
        if getattr(self, "handle", None):
            self.drop()

    def view(self, shape, strides, offset=0):
        made = self.library.view(self.handle, byref(describe(shape=shape, strides=strides)), offset)
        return Tensor(self.device, self.library.check(made))

    def read(self):
        buffer = ctypes.create_string_buffer(math.prod(self.shape) * self.dtype[1] // 8)
        self.library.check(self.library.read(self.handle, buffer, len(buffer)))
        return buffer.raw

    def write(self, data):
        self.library.check(self.library.write(self.handle, data, len(data)))

    def freeze(self):
        self.library.check(self.library.freeze(self.handle))

    def save(self, path, name):
        self.library.check(self.library.save(str(path).encode(), name.encode(), self.handle))

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.capsule(VERSIONED if max_version and max_version[0] >= 1 else UNVERSIONED)

    def capsule(self, name):
        managed = self.library.check(self.library.export(self.handle, name == VERSIONED))
        # A capsule stores only the addresses of name and destructor; both live as long as the library.
        return capsule_new(managed, name, self.library.destructors[name])
