"""Exchange with PyTorch, on the CPU."""

import gc

import torch
from bridge import UNVERSIONED, Device, Error

NAMES = {
    "bool": (6, 8),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "uint16": (1, 16),
    "uint32": (1, 32),
    "uint64": (1, 64),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "complex64": (5, 64),
    "complex128": (5, 128),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
}
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
# PyTorch supports DLPack 1.0 and these element types from version 2.8 on.
VERSIONED = VERSION >= (2, 8)
DTYPES = {
    getattr(torch, name): code
    for name, code in NAMES.items()
    if hasattr(torch, name) and (VERSIONED or name not in ("uint16", "uint32", "uint64") and "float8" not in name)
}


def dlpack_kwargs():
    return {"max_version": (1, 0)} if VERSIONED else {}


def sample(dtype, count=12):
    return (torch.arange(count) % 2).to(dtype)


def case_every_element_type_goes_out_and_comes_in(library):
    device = Device(library, "host")
    for dtype, code in DTYPES.items():
        source = sample(dtype)
        taken = device.take(source, **dlpack_kwargs())
        assert (taken.dtype, taken.shape, taken.strides) == (code, (12,), (1,)), (dtype, taken.dtype)
        data = taken.read()
        again = torch.from_dlpack(device.tensor(*code, (12,), data))
        assert again.dtype == dtype and again.data_ptr() != source.data_ptr()
        assert (again.float() == source.float()).all() if not dtype.is_complex else (again == source).all(), dtype


def case_memory_is_shared_both_ways(library):
    device = Device(library, "host")
    tensor = device.tensor(2, 32, (2, 3), b"\0" * 24)
    theirs = torch.from_dlpack(tensor)
    theirs[1, 2] = 7.0
    assert tensor.read()[20:] == b"\0\0\xe0\x40"
    source = torch.arange(6.0)
    taken = device.take(source, **dlpack_kwargs())
    device.scale(taken, 3.0)
    device.wait()
    assert (source == torch.arange(6.0) * 3).all()


def case_strides_and_offsets(library):
    device = Device(library, "host")
    source = torch.arange(60, dtype=torch.int64).reshape(3, 4, 5)
    for view in [source, source.permute(2, 0, 1), source[1:, ::2, 3:], source[2, 1], source[0, 0, 4], source[:0], source.expand(2, 3, 4, 5)]:
        taken = device.take(view, **dlpack_kwargs())
        expected = b"".join(value.to_bytes(8, "little") for value in view.flatten().tolist())
        assert (taken.shape, taken.read()) == (tuple(view.shape), expected), view.shape
        again = torch.from_dlpack(taken)
        assert again.shape == view.shape and (again == view).all()
        if view.numel():
            assert again.data_ptr() == view.data_ptr() and again.stride() == view.stride()
    tensor = device.tensor(0, 64, (60,), b"".join(value.to_bytes(8, "little") for value in range(60)))
    part = torch.from_dlpack(tensor.view((2, 3), (20, 5), 7))
    assert part.tolist() == [[7, 12, 17], [27, 32, 37]], part


def case_deleters_run_once(library):
    device = Device(library, "host")
    before = library.deletions()
    theirs = torch.from_dlpack(device.tensor(2, 32, (4,), b"\0" * 16))
    part = theirs[1:]
    del theirs
    gc.collect()
    assert library.deletions() == before and part.sum() == 0
    del part
    gc.collect()
    assert library.deletions() == before + 1

    for on_thread in (False, True):
        source = torch.full((1000,), 2.0)
        taken = device.take(source, **dlpack_kwargs())
        pointer = source.data_ptr()
        del source
        gc.collect()
        # If this memory were reused now, the kernel would overwrite it.
        others = [torch.full((1000,), 1.0) for _ in range(8)]
        assert all(other.data_ptr() != pointer for other in others)
        device.scale(taken, 4.0, pause_ms=50)
        taken.drop(on_thread)
        device.wait()
        assert all((other == 1.0).all() for other in others)


def case_structures_before_1_0_are_exchanged(library):
    device = Device(library, "host")
    before = library.deletions()
    tensor = device.tensor(2, 64, (2, 2), b"\0" * 32)
    theirs = torch.utils.dlpack.from_dlpack(tensor.capsule(UNVERSIONED))
    assert theirs.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    del theirs
    gc.collect()
    assert library.deletions() == before + 1
    source = torch.arange(4)
    taken = device.take_capsule(torch.utils.dlpack.to_dlpack(source))
    assert taken.dtype == (0, 64) and taken.read()[8] == 1


def case_what_is_refused_stays_theirs(library):
    null = Device(library, "null")
    source = torch.arange(4)
    capsule = torch.utils.dlpack.to_dlpack(source)
    try:
        null.take_capsule(capsule)
        raise AssertionError("memory of the host was taken for the null device's")
    except Error as error:
        assert "device is (type, id) (1, 0)" in str(error), error
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == [0, 1, 2, 3]
