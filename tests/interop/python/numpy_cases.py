"""Exchange with NumPy."""

import gc
import random
import sys

import numpy as np
from bridge import UNVERSIONED, VERSIONED, Device, Error, eventually

KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
DTYPES = [np.dtype(name) for name in "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()]
PLAIN = tuple(int(part) for part in np.__version__.split(".")[:2]) < (2, 1)


def code(dtype):
    return (KINDS[dtype.kind], dtype.itemsize * 8)


def ours(device, array):
    return device.tensor(*code(array.dtype), array.shape, array.tobytes())


def dlpack_kwargs():
    return {} if PLAIN else {"max_version": (1, 0)}


def same(array, tensor):
    assert tensor.shape == array.shape, (tensor.shape, array.shape)
    assert tensor.dtype == code(array.dtype), (tensor.dtype, array.dtype)
    assert tensor.read() == array.tobytes()


def sample(dtype, shape):
    values = np.arange(int(np.prod(shape))) % 100
    values = values * (1 + 2j) if dtype.kind == "c" else values % 2 if dtype.kind == "b" else values
    return values.astype(dtype).reshape(shape)


def case_every_element_type_goes_out(library):
    device = Device(library, "host")
    for dtype in DTYPES:
        array = sample(dtype, (3, 4))
        theirs = np.from_dlpack(ours(device, array))
        assert theirs.dtype == dtype and (theirs == array).all(), dtype


def case_every_element_type_comes_in(library):
    device = Device(library, "host")
    for dtype in DTYPES:
        array = sample(dtype, (3, 4))
        same(array, device.take(array, **dlpack_kwargs()))


def case_memory_is_shared_both_ways(library):
    device = Device(library, "host")
    tensor = ours(device, np.zeros((2, 3), np.float32))
    theirs = np.from_dlpack(tensor)
    assert theirs.flags.writeable != PLAIN
    tensor.write(np.full((2, 3), 7, np.float32).tobytes())
    assert (theirs == 7).all()
    array = np.arange(6, dtype=np.float32)
    taken = device.take(array, **dlpack_kwargs())
    array[2] = 50
    same(array, taken)
    taken.write(np.full(6, 9, np.float32).tobytes())
    assert (array == 9).all()


def case_a_kernel_works_in_their_memory(library):
    device = Device(library, "host")
    array = np.arange(1000, dtype=np.float32)
    taken = device.take(array, **dlpack_kwargs())
    device.scale(taken, 3.0)
    device.wait()
    assert (array == np.arange(1000, dtype=np.float32) * 3).all()


def case_strides_of_all_signs_go_out(library):
    device = Device(library, "host")
    base = np.arange(24, dtype=np.int16)
    tensor = ours(device, base)
    for shape, strides, offset in [
        ((4, 6), (6, 1), 0),
        ((6, 4), (1, 6), 0),
        ((2, 3), (12, -2), 10),
        ((5,), (-4,), 23),
        ((3, 2, 2), (0, 4, 1), 1),
        ((2, 0), (1, 1), 0),
        ((), (), 5),
    ]:
        theirs = np.from_dlpack(tensor.view(shape, strides, offset))
        expected = np.lib.stride_tricks.as_strided(base[offset:], shape, [2 * stride for stride in strides])
        assert theirs.shape == shape and (theirs == expected).all(), (shape, strides, theirs, expected)


def case_any_view_comes_in_and_goes_out(library):
    device = Device(library, "host")
    rng = random.Random(7)
    for _ in range(300):
        shape = tuple(rng.randint(0, 5) for _ in range(rng.randint(0, 4)))
        array = sample(rng.choice(DTYPES), shape)
        for axis in range(array.ndim):
            begin = rng.randint(0, 2)
            cut = [slice(None)] * array.ndim
            cut[axis] = slice(None, None, -1) if rng.random() < 0.3 else slice(begin, None, rng.randint(1, 3))
            array = array[tuple(cut)]
        array = array.transpose(rng.sample(range(array.ndim), array.ndim))
        taken = device.take(array, **dlpack_kwargs())
        same(array, taken)
        if array.size > 1:
            # The stride of an axis of one element does not matter.
            for n, stride, theirs in zip(array.shape, taken.strides, array.strides):
                assert n == 1 or stride * array.itemsize == theirs, (array.shape, array.strides, taken.strides)
        again = np.from_dlpack(taken)
        assert again.shape == array.shape and (again == array).all()


def case_what_may_only_be_read_stays_so(library):
    device = Device(library, "host")
    tensor = ours(device, np.arange(3.0))
    tensor.freeze()
    if not PLAIN:
        theirs = np.from_dlpack(tensor)
        assert not theirs.flags.writeable and (theirs == np.arange(3.0)).all()
    try:
        tensor.capsule(UNVERSIONED)
        raise AssertionError("a frozen tensor was exported as writable")
    except Error as error:
        assert "read-only" in str(error), error
    array = np.arange(3.0)
    array.flags.writeable = False
    if not PLAIN:
        taken = device.take(array, max_version=(1, 0))
        assert taken.frozen
        try:
            taken.write(b"\0" * 24)
            raise AssertionError("read-only memory was written")
        except Error as error:
            assert "frozen" in str(error), error
        assert (array == np.arange(3.0)).all()


def case_structures_before_1_0_are_exchanged(library):
    class Old:
        """A producer of unversioned structures."""

        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, stream=None):
            return self.tensor.capsule(UNVERSIONED)

        def __dlpack_device__(self):
            return (1, 0)

    device = Device(library, "host")
    array = np.arange(12, dtype=np.float64).reshape(3, 4)
    before = library.deletions()
    theirs = np.from_dlpack(Old(ours(device, array)))
    assert (theirs == array).all()
    del theirs
    assert library.deletions() == before + 1
    same(array.T, device.take(array.T))


def case_our_deleter_runs_once_when_they_are_done(library):
    device = Device(library, "host")
    before = library.deletions()
    tensor = ours(device, np.arange(1000))
    theirs = np.from_dlpack(tensor)
    part = theirs[10:20]
    del theirs, tensor
    gc.collect()
    assert library.deletions() == before
    assert (part == np.arange(10, 20)).all()
    del part
    gc.collect()
    assert library.deletions() == before + 1
    # Not consumed: the capsule releases it.
    for name in (VERSIONED, UNVERSIONED):
        ours(device, np.arange(3)).capsule(name)
    gc.collect()
    assert library.deletions() == before + 3


def case_their_deleter_runs_once_on_any_thread(library):
    device = Device(library, "host")
    for on_thread in (False, True):
        array = np.arange(10)
        references = sys.getrefcount(array)
        taken = device.take(array, **dlpack_kwargs())
        view = taken.view((5,), (2,))
        assert sys.getrefcount(array) == references + 1
        taken.drop(on_thread)
        assert sys.getrefcount(array) == references + 1
        view.drop(on_thread)
        device.wait()
        assert sys.getrefcount(array) == references


def case_their_memory_outlives_our_work(library):
    device = Device(library, "host")
    array = np.full(100_000, 2, np.float32)
    references = sys.getrefcount(array)
    taken = device.take(array, **dlpack_kwargs())
    device.scale(taken, 4.0, pause_ms=100)
    taken.drop()
    device.wait()
    assert eventually(lambda: sys.getrefcount(array) == references)
    assert (array == 8).all()
    # Only the work in flight keeps this one alive.
    device.scale(device.take(np.full(100_000, 2, np.float32), **dlpack_kwargs()), 4.0, pause_ms=50)
    device.wait()


def case_closing_the_device_gives_their_memory_back(library):
    device = Device(library, "host")
    array = np.full(10, 2, np.float32)
    references = sys.getrefcount(array)
    device.scale(device.take(array, **dlpack_kwargs()), 4.0, pause_ms=100)
    del device
    gc.collect()
    assert eventually(lambda: sys.getrefcount(array) == references) and (array == 8).all()


def case_what_is_refused_stays_theirs(library):
    null = Device(library, "null")
    array = np.arange(3.0)
    references = sys.getrefcount(array)
    capsule = array.__dlpack__(**dlpack_kwargs())
    try:
        null.take_capsule(capsule)
        raise AssertionError("memory of the host was taken for the null device's")
    except Error as error:
        assert "device is (type, id) (1, 0); null:0 is (12, 0)" in str(error), error
    assert sys.getrefcount(array) == references + 1
    taken = Device(library, "host").take_capsule(capsule)
    same(array, taken)
    del capsule, taken
    gc.collect()
    assert sys.getrefcount(array) == references


def case_types_that_they_lack_are_their_error_and_no_leak(library):
    device = Device(library, "host")
    before = library.deletions()
    for dtype, size in [((4, 16), 2), ((10, 8), 1), ((12, 8), 1)]:
        known = False
        try:
            np.from_dlpack(device.tensor(*dtype, (4,), b"\0" * 4 * size))
            known = True
        except Exception as error:
            assert isinstance(error, (RuntimeError, BufferError)), error
        assert not known, dtype
    gc.collect()
    assert library.deletions() == before + 3


def case_many_exchanges_on_many_threads(library):
    import threading

    device = Device(library, "host")
    failures = []

    def work(seed):
        try:
            for i in range(50):
                array = np.full(50, seed + i, np.float32)
                same(array, device.take(array, **dlpack_kwargs()))
                assert (np.from_dlpack(ours(device, array)) == array).all()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
