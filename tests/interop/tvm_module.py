"""Builds a shared object for this machine with TVM: `add` and `matmul` in its FFI convention.

    tvm_module.py OUT.so

Prints, a line each, the libraries that the module needs. Wants `apache-tvm` from PyPI (0.27): exit code 3 without it.
"""

import sys

try:
    import tvm
    from tvm import te
    from tvm_ffi import libinfo
except ModuleNotFoundError as error:
    print(f"Python has no module {error.name}")
    sys.exit(3)


def add():
    n = te.var("n")
    x, y = (te.placeholder((n,), "float32", name=name) for name in "xy")
    z = te.compute((n,), lambda i: x[i] + y[i], name="z")
    return te.create_prim_func([x, y, z])


def matmul():
    n, m, k = (te.var(name) for name in "nmk")
    a, b = te.placeholder((n, k), "float32", name="a"), te.placeholder((k, m), "float32", name="b")
    axis = te.reduce_axis((0, k), "axis")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="c")
    return te.create_prim_func([a, b, c])


def main():
    functions = {"add": add(), "matmul": matmul()}
    functions = {name: function.with_attr("global_symbol", name) for name, function in functions.items()}
    tvm.compile(tvm.IRModule(functions), target="llvm").export_library(sys.argv[1])
    print(libinfo.find_libtvm_ffi())


main()
