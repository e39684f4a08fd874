#!/usr/bin/env python3
"""The second half of scripts/firmware.sh: accounts for a firmware image, runs it in QEMU, compares with the host.

Usage: firmware.py FOLDER --core CORE [--json FILE]
FOLDER has build/ (with the image) and image/ (package, plan, the host's recording), as firmware.sh leaves them.
"""

import argparse
import json
import math
import pathlib
import re
import struct
import subprocess
import sys

BOARDS = {"cortex-m4": "mps2-an386", "cortex-m55": "mps3-an547"}
FLASH = {"code": (".vectors", ".text", ".ARM.exidx"), "constants": (".rodata",), "package": (".package",),
         "initial data": (".data",)}
RAM = {"arena": (".arena",), "stack": (".stack",), "data": (".data", ".bss")}
RUN_SECONDS = 150
# Largest difference of a float output from the host's, relative to the largest magnitude in the output: both compute
# the same sums in different orders. Integer outputs must be equal.
FLOAT_TOLERANCE = 1e-4

INPUT, INVOKE, OUTPUT = 1, 2, 3
# Codes of bantam::ElementType that are compared as numbers.
F32 = 1


class Failed(Exception):
    def __init__(self, cause, remedy):
        super().__init__(cause)
        self.remedy = remedy


def section_sizes(elf):
    out = subprocess.run(["arm-none-eabi-size", "-A", "-d", str(elf)], capture_output=True, text=True, check=True).stdout
    return {m[1]: int(m[2]) for m in re.finditer(r"^(\.\S+)\s+(\d+)", out, re.M)}


def account(sizes, kinds):
    return {kind: sum(sizes.get(s, 0) for s in sections) for kind, sections in kinds.items()}


def check_plan(sizes, image, plan):
    """The image takes what the plan promised, to the byte."""
    package = (image / "fleet.bantam").stat().st_size
    for what, found, expected in ((".arena", sizes[".arena"], plan["arena_bytes"]),
                                  (".package", sizes[".package"], package)):
        if found != expected:
            raise Failed(f"section {what} of the image has {found} bytes, planned were {expected}",
                         "remove the build folder and try again")


def check_symbols(elf):
    script = pathlib.Path(__file__).with_name("check_symbols.py")
    result = subprocess.run([sys.executable, str(script), str(elf), "--nm", "arm-none-eabi-nm"], capture_output=True,
                            text=True, check=False)
    if result.returncode != 0:
        raise Failed(f"the image has forbidden symbols:\n{result.stderr.strip()}", "find who uses them in firmware.map")


def emulate(elf, image, board):
    """What the firmware prints."""
    (image / "recording.device").unlink(missing_ok=True)
    command = ["qemu-system-arm", "-M", board, "-nographic", "-serial", "none", "-monitor", "none", "-icount", "shift=0",
               "-semihosting-config", "enable=on,target=native", "-kernel", str(elf)]
    try:
        result = subprocess.run(command, cwd=image, capture_output=True, text=True, timeout=RUN_SECONDS, check=False,
                                stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as e:
        raise Failed(f"the image still runs after {RUN_SECONDS} s", "use fewer --rounds or a smaller fleet") from e
    if result.returncode != 0 or not result.stdout.endswith("end\n"):
        said = (result.stdout + result.stderr).strip().splitlines()
        raise Failed(f"the image failed with code {result.returncode}: {said[-1] if said else 'it printed nothing'}",
                     "an overflow of the stack needs a larger --stack; other errors name what is wrong")
    return result.stdout


def facts(text):
    """The firmware's lines "word [number] key number ..." as (word, index, {key: number})."""
    for line in text.splitlines():
        words = line.split()
        index = words.pop(1) if len(words) % 2 == 0 else None
        if words[0] == "stack":
            yield "stack", int(index), {}
        elif words[0] in ("open", "place", "invoke"):
            yield words[0], None if index is None else int(index), dict(zip(words[1::2], map(int, words[2::2])))


def outputs(path):
    """Session, port, element type and bytes of every recorded output, in order."""
    data = path.read_bytes()
    at = 16
    while at < len(data):
        kind, session, port, element, size = struct.unpack_from("<5I", data, at)
        at += 20
        if kind == OUTPUT:
            yield session, port, element, data[at:at + size]
        at += size


def difference(element, host, device):
    """0 for equal bytes; for floats the largest difference relative to the largest magnitude; else infinity."""
    if host == device:
        return 0.0
    if element != F32 or len(host) != len(device):
        return math.inf
    a, b = (struct.unpack(f"<{len(x) // 4}f", x) for x in (host, device))
    if any(math.isfinite(x) != math.isfinite(y) for x, y in zip(a, b)):
        return math.inf
    pairs = [(x, y) for x, y in zip(a, b) if math.isfinite(x)]
    largest = max((abs(x) for x, _ in pairs), default=0.0)
    return max((abs(x - y) for x, y in pairs), default=0.0) / (largest or 1.0)


def compare(image, names):
    """Largest difference by session."""
    host, device = list(outputs(image / "recording.host")), list(outputs(image / "recording.device"))
    if [h[:3] for h in host] != [d[:3] for d in device]:
        raise Failed("the device did not record the outputs that the host recorded", "report this fleet")
    worst = dict.fromkeys(names, 0.0)
    for (session, port, element, a), (*_, b) in zip(host, device):
        found = difference(element, a, b)
        worst[names[session]] = max(worst[names[session]], found)
        if found > FLOAT_TOLERANCE:
            at = next(i for i in range(min(len(a), len(b))) if a[i] != b[i])
            raise Failed(f"session '{names[session]}', output {port}: byte {at} of {len(a)} is {b[at]} on the device and "
                         f"{a[at]} on the host", "`bantam compare` finds the first operator that differs")
    return worst, len(host)


def table(rows):
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())


def spell(parts):
    return ", ".join(f"{kind} {size}" for kind, size in parts.items() if size)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--core", choices=BOARDS, required=True)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    image, elf = args.folder / "image", args.folder / "build/ports/cortex-m/firmware.elf"
    plan = json.loads((image / "plan.json").read_text())
    names = [s["name"] for s in json.loads((image / "host.json").read_text())["sessions"]]
    kernels = len((image / "kernels.inc").read_text().splitlines())

    sizes = section_sizes(elf)
    flash, ram = account(sizes, FLASH), account(sizes, RAM)
    check_plan(sizes, image, plan)
    check_symbols(elf)
    print(f"{args.core} ({BOARDS[args.core]}): {len(names)} sessions, {kernels} kernels linked")
    print(f"flash {sum(flash.values())} bytes: {spell(flash)}; weights {plan['weights_bytes']}, used in place")
    print(f"RAM   {sum(ram.values())} bytes: {spell(ram)}; no heap")
    print("running ...", flush=True)

    said = list(facts(emulate(elf, image, BOARDS[args.core])))
    reserved = next(index for word, index, _ in said if word == "stack")
    opened, placed = (next(f for word, _, f in said if word == which) for which in ("open", "place"))
    if placed["arena"] != plan["arena_bytes"]:
        raise Failed(f"the device needs an arena of {placed['arena']} bytes, planned were {plan['arena_bytes']}",
                     "report this fleet: the plan must be the same on the host and on the device")
    worst, count = compare(image, names)

    sessions = []
    rows = [["session", "invokes", "steps", "instructions", "executor", "stack", "outputs"]]
    for i, name in enumerate(names):
        mine = [f for word, index, f in said if word == "invoke" and index == i]
        measured = [f for f in mine if "instructions" in f]
        executor = [f["executor"] for f in mine if "executor" in f]
        session = {"name": name, "invokes": len(mine), "steps": measured[0]["steps"],
                   "instructions": measured[0]["instructions"],
                   "executor_instructions": sum(executor) // len(executor) if executor else None,
                   "stack_bytes": max(f["stack"] for f in measured), "difference": worst[name]}
        sessions.append(session)
        rows.append([name, str(len(mine)), str(session["steps"]), str(session["instructions"]),
                     str(session["executor_instructions"] if executor else "-"), str(session["stack_bytes"]),
                     "equal" if worst[name] == 0 else f"within {worst[name]:.1e}"])
    rows.insert(1, ["(open package)", "1", "", str(opened["instructions"]), "", str(opened["stack"]), ""])
    rows.insert(2, ["(place fleet)", "1", "", str(placed["instructions"]), "", str(placed["stack"]), ""])
    table(rows)
    deepest = max([opened["stack"], placed["stack"]] + [s["stack_bytes"] for s in sessions])
    equal = all(w == 0 for w in worst.values())
    print(f"stack: {deepest} of {reserved} bytes used at the deepest")
    print(f"outputs: all {count} agree with the host's, " +
          ("to the bit" if equal else f"integers to the bit, floats within {max(worst.values()):.1e} of the largest value "
                                      f"({FLOAT_TOLERANCE:.0e} allowed)"))
    if args.json:
        args.json.write_text(json.dumps({
            "core": args.core, "board": BOARDS[args.core], "flash_bytes": sum(flash.values()), "ram_bytes": sum(ram.values()),
            "code_bytes": flash["code"] + flash["constants"], "package_bytes": flash["package"],
            "weights_bytes": plan["weights_bytes"], "arena_bytes": ram["arena"], "stack_bytes": deepest,
            "stack_reserved_bytes": reserved, "open_instructions": opened["instructions"],
            "place_instructions": placed["instructions"], "kernels": kernels, "outputs": count, "equal": equal,
            "sessions": sessions}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        print(f"firmware: {failure}\n  to mend it: {failure.remedy}", file=sys.stderr)
        sys.exit(1)
