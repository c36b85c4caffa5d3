"""Makes the PyTorch of PyPI importable without its CUDA packages, 2.5 GB that a CPU never uses.

Its wheels for Linux are linked against CUDA. This puts libraries of the same names beside them, with the symbols that are
wanted; every function answers 100, which is `cudaErrorNoDevice`. Needs `cc`, `nm` and `readelf`.
"""

import collections
import pathlib
import re
import subprocess
import sysconfig
import tempfile

FOREIGN = re.compile(r"lib(cu|nccl|nv)")
UNVERSIONED = re.compile(r"_*(cu|nccl|nvshmem)")


def tool(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(path, functions):
    """Writes a library; `functions` maps a symbol version, or "", to names."""
    versions = "".join(f"{version} {{ {'; '.join(names)}; }};\n" for version, names in functions.items() if version)
    body = "".join(f"int {name}(void) {{ return 100; }}\n" for names in functions.values() for name in names)
    with tempfile.TemporaryDirectory() as scratch:
        source, script = pathlib.Path(scratch, "stand_in.c"), pathlib.Path(scratch, "versions")
        source.write_text(body)
        script.write_text(versions)
        options = [f"-Wl,--version-script={script}"] if versions else []
        tool("cc", "-w", "-shared", "-fPIC", "-o", path, source, f"-Wl,-soname,{path.name}", *options)


def main():
    folder = pathlib.Path(sysconfig.get_path("purelib"), "torch", "lib")
    needed, defined, wanted, owner = set(), set(), collections.defaultdict(set), {}
    for library in folder.glob("*.so*"):
        needed.update(re.findall(r"NEEDED.*\[(.*)\]", tool("readelf", "-dW", library)))
        for line in tool("readelf", "-VW", library).splitlines():
            if found := re.search(r"File: (\S+)", line):
                soname = found[1]
            elif found := re.search(r"Name: (\S+) .*Version: ", line):
                owner[found[1]] = soname
        for line in tool("nm", "-D", library).splitlines():
            kind, symbol = line.split()[-2:]
            name, _, version = symbol.partition("@")
            (wanted[version] if kind in "Uwv" else defined).add(name)
    loose = {name for name in wanted.pop("", ()) - defined if UNVERSIONED.match(name)}
    missing = sorted(name for name in needed if FOREIGN.match(name) and not (folder / name).exists())
    for soname in missing:
        functions = {version: names for version, names in wanted.items() if owner.get(version) == soname}
        # Any library may define the unversioned symbols: the loader searches all of them.
        build(folder / soname, {**functions, "": loose if soname == missing[0] else ()})


if __name__ == "__main__":
    main()
