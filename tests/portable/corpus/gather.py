#!/usr/bin/env python3
"""Usage: gather.py CLONES FOLDER. Copies the shaders that files.txt lists out of clones of their repositories.

CLONES holds a clone or bare repository per project, named OWNER+NAME or OWNER+NAME/repo. Each line of files.txt is a repository, a commit
and a path. FOLDER is then the value of RUNTIME_TEST_SHADERS for the tests `corpus`.
"""
import pathlib
import subprocess
import sys

clones, folder = map(pathlib.Path, sys.argv[1:])
missing = 0
for line in (pathlib.Path(__file__).parent / "files.txt").read_text().splitlines():
    repository, commit, path = line.split(" ", 2)
    name = repository.replace("/", "+")
    found = next((place for place in (clones / name / "repo", clones / name) if place.exists()), None)
    command = ["git", "-C", str(found), "show", f"{commit}:{path}"]
    shown = found and subprocess.run(command, capture_output=True)
    if not shown or shown.returncode:
        missing += 1
        print(f"{repository} {commit}: {path} is missing", file=sys.stderr)
        continue
    target = folder / name / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(shown.stdout)
sys.exit(1 if missing else 0)
