"""Exchange with the safetensors library."""

import pathlib
import tempfile

import numpy as np
from bridge import Device
from numpy_cases import DTYPES, ours, same, sample
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

# The format has no complex128.
STORED = [dtype for dtype in DTYPES if dtype.itemsize < 16]


def case_their_files_are_read(library):
    arrays = {str(dtype): sample(dtype, (3, 5)) for dtype in STORED}
    arrays.update(empty=np.zeros((0, 4), np.float32), scalar=np.array(7, np.int32), large=np.arange(3_000_001, dtype=np.float64))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "theirs.safetensors")
        save_file(arrays, path, metadata={"format": "np"})
        for name in ("host", "null"):
            device = Device(library, name)
            for key, array in arrays.items():
                same(array, device.load(path, key))
        host = Device(library, "host")
        for key, array in arrays.items():
            mapped = host.load(path, key, map=True)
            assert mapped.frozen
            same(array, mapped)
        kept = host.load(path, "large", map=True)
    # The folder is removed, but the mapping remains.
    same(arrays["large"], kept)


def case_our_files_are_read(library):
    device = Device(library, "host")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "ours.safetensors")
        for dtype in STORED:
            array = sample(dtype, (3, 5))
            ours(device, array).save(path, "x")
            loaded = load_file(path)
            assert list(loaded) == ["x"] and loaded["x"].dtype == dtype and (loaded["x"] == array).all(), dtype
        ours(device, np.arange(24)).view((4, 6), (1, 4)).save(path, "view")
        with safe_open(path, "np") as file:
            assert (file.get_tensor("view") == np.arange(24).reshape(6, 4).T).all()
