"""Runs the cases of a module: run.py LIBRARY MODULE. A line for each: "begin NAME", then "ok NAME" or "FAILED NAME"."""

import gc
import importlib
import sys
import traceback

import bridge


def main(path, module):
    # Exit code 3: what the module needs is not installed.
    try:
        cases = importlib.import_module(module)
    except ModuleNotFoundError as error:
        print(f"Python has no module {error.name}")
        sys.exit(3)
    library = bridge.Library(path)
    failed = False
    for name, case in [(name, case) for name, case in vars(cases).items() if name.startswith("case_")]:
        print("begin", name, flush=True)
        try:
            case(library)
            gc.collect()
            print("ok", name, flush=True)
        except Exception:
            failed = True
            traceback.print_exc(file=sys.stdout)
            print("FAILED", name, flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
