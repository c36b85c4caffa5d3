"""Evaluates kernels that are given as text, and prints a verdict for each: python3 serve.py runtime serve --stdio"""

import json
import subprocess
import sys

DEVICE = "host:0"
SIGNATURE = "void scale(const float *x, float *y, float a, long long n)"
LOOP = "for (long long i = 0; i < n; i++)"
CANDIDATES = {
    "loop": f"{SIGNATURE} {{ {LOOP} y[i] = a * x[i]; }}",
    "backwards": f"{SIGNATURE} {{ for (long long i = n; i-- > 0;) y[i] = a * x[i]; }}",
    "too short": f"{SIGNATURE} {{ n--; {LOOP} y[i] = a * x[i]; }}",
    "no C": f"{SIGNATURE} {{ y = 2 x; }}",
    "endless": f'{SIGNATURE} {{ for (;;) __asm__ volatile(""); }}',
}


def spec(name, code):
    """The tables of a spec file (docs/spec.md), with the code in the place of its path."""
    return {
        "version": 1,
        "name": name,
        "kernel": {"code": code, "format": "c", "entry": "scale"},
        "arg": [
            {"name": "x", "dtype": "f32", "shape": ["n"], "init": "random"},
            {"name": "y", "dtype": "f32", "shape": ["n"], "use": "write"},
            {"name": "a", "scalar": "f32", "value": 3},
            {"name": "n", "scalar": "i64", "value": 10000},
        ],
        "cost": {"flops": "n", "bytes": "bytes(x) + bytes(y)"},
        "reference": {"code": CANDIDATES["loop"], "format": "c", "entry": "scale"},
        "eval": {"repeat": 5, "min_repeat_ms": 2},
    }


def verdict(reply):
    if "error" in reply:
        return f"not evaluated: {reply['error']}"
    if "cancelled" in reply:
        return f"cancelled while {reply['cancelled']}"
    row = reply["row"]
    if row["reason"]:
        return f"{row['status']}: {row['reason'].splitlines()[0]}"
    return f"{row['status']}, {row['measurement']['statistics']['median_ns'] / 1000:.1f} us"


def main():
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(request):
        print(json.dumps(request), file=server.stdin, flush=True)

    if 2 not in json.loads(server.stdout.readline())["hello"]["protocols"]:
        sys.exit("the command is too old for this program")
    names = list(CANDIDATES)
    for number, name in enumerate(names):
        candidate = {"spec": spec(name, CANDIDATES[name]), "device": DEVICE, "require": ["fresh"]}
        send({"id": number, "candidate": candidate})
    answered = 0
    while answered < len(names):
        reply = json.loads(server.stdout.readline())
        if reply.get("phase") == "run" and names[reply["id"]] == "endless":
            send({"cancel": reply["id"]})
        elif "row" in reply or "cancelled" in reply or "error" in reply:
            answered += 1
            print(f"{names[reply['id']]}: {verdict(reply)}")
    server.stdin.close()
    sys.exit(server.wait())


main()
