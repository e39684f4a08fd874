#!/usr/bin/env python3
"""Finds the inner loops of vector kernels in compiled objects, and those that keep vectors on the stack.

Usage: check_spills.py BUILD_DIR | OBJECT ... [--objdump OBJDUMP] [--list]

An inner loop is a backward jump around no other that uses vectors, in which a fifth of the instructions or more are
multiply-adds of vectors, with four sums or more: FMA, VNNI and pairs of products on x86-64; multiply-adds, dot products
and products of matrices on 64-bit Arm. A vector that such a loop stores to a place of the stack and loads from it again
did not fit the registers; sums that it writes there in every turn are kept twice. A constant that it only loads costs
no more than any operand in memory; it is told, and no mistake. --list prints every loop, how often it multiplies and in
how many registers it sums. The exit code is 1 if vectors are spilled.

Objects are those of the kernels in HOT of a build folder, or those named. Arm needs --objdump aarch64-linux-gnu-objdump.
"""

import argparse
import pathlib
import re
import subprocess
import sys

# Sources of kernels whose time is spent in such loops. Those of recurrent layers are not among them: their products are
# gemm's, and the polynomials of their gates have more constants than there are registers.
HOT = (
    "nn/gemm/*",
    "nn/conv2d/*_simd",
    "nn/conv2d_affine/*_simd",
    "nn/depthwise_conv2d/*_simd",
    "nn/matmul*/*_simd",
    "nn/attention/*_simd",
)

# Loops with less are no tiles.
LEAST_SUMS = 4
LEAST_SHARE = 0.2

X86_PRODUCT = re.compile(r"^v?(fn?m(add|sub)\d*p[sdh]|dpbusds?|dpwssds?|maddwd|maddubsw|pmaddwd|pmaddubsw|pdpbusds?|pdpwssds?|pmulld)$")
X86_VECTOR = re.compile(r"%[xyz]mm\d+")
X86_STACK = re.compile(r"-?(0x[0-9a-f]+)?\(%(rsp|rbp)\)")
ARM_PRODUCT = re.compile(r"^(fmla|fmls|sdot|udot|usdot|smmla|ummla|usmmla|[su]mlal2?|[su]mull2?|mla)$")
ARM_VECTOR = re.compile(r"\b[vqd]\d+\b")
ARM_STACK = re.compile(r"\[(sp|x29)(, #-?\d+)?\]")

INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
TARGET = re.compile(r"^(?:.*[ ,])?([0-9a-f]+)$")


class Machine:
    def __init__(self, arm):
        self.arm = arm

    def is_jump(self, name):
        return bool(re.match(r"^(b(\.\w+)?|cbn?z|tbn?z)$" if self.arm else r"^j\w+$", name))

    def is_product(self, name, operands):
        if self.arm:
            return bool(ARM_PRODUCT.match(name)) and re.match(r"v\d+", operands) is not None
        return bool(X86_PRODUCT.match(name))

    def stack_access(self, name, operands, frame):
        """The place on the stack that an instruction loads a vector from or stores it to, and what it does; or None."""
        stack = (ARM_STACK if self.arm else X86_STACK).search(operands)
        if stack is None or not (ARM_VECTOR if self.arm else X86_VECTOR).search(operands):
            return None
        if self.arm:
            return stack[0], {"st": "store", "ld": "load"}.get(name[:2])
        if stack[2] == "rbp" and not frame:
            return None
        return stack[0], "store" if "mov" in name and operands.endswith(stack[0]) else "load"

    def sum_of(self, operands):
        return re.match(r"v\d+", operands)[0] if self.arm else operands.split(",")[-1].strip()


class Loop:
    def __init__(self, function, body, machine, frame):
        products = [(name, operands) for name, operands in body if machine.is_product(name, operands)]
        self.function = function
        self.instructions = len(body)
        self.products = len(products)
        sums = {machine.sum_of(operands) for _, operands in products}
        self.sums = len(sums)
        places = {"store": set(), "load": set(), None: set()}
        # Sums that are kept on the stack as well, and written there in every turn. A single one may be a temporary.
        stored_sums = set()
        accesses = []
        for name, operands in body:
            access = machine.stack_access(name, operands, frame)
            if access is None:
                continue
            place, action = access
            accesses.append(access)
            places[action].add(place)
            if action == "store" and operands.split(",")[0].strip() in sums:
                stored_sums.add(place)
        spilled = places["store"] & places["load"]
        if 2 * len(stored_sums) >= self.sums:
            spilled |= stored_sums
        self.spills = sum(place in spilled for place, _ in accesses)
        self.constants = len(places["load"] - spilled)
        self.is_tile = self.sums >= LEAST_SUMS and self.products >= LEAST_SHARE * self.instructions

    def __str__(self):
        text = f"{short(self.function)}: {self.products} products in {self.sums} registers, {self.instructions} instructions"
        if self.constants > 0:
            text += f", {self.constants} constants from the stack"
        return text + (f", {self.spills} SPILL" if self.spills > 0 else "")


def functions(objdump, path):
    """Yields (name, [(address, mnemonic, operands)])."""
    out = subprocess.run([objdump, "-d", "-C", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True)
    name, body = None, []
    for line in out.stdout.splitlines():
        begins = FUNCTION.match(line)
        if begins:
            if body:
                yield name, body
            name, body = begins[1], []
            continue
        instruction = INSTRUCTION.match(line)
        if instruction and name is not None:
            body.append((int(instruction[1], 16), instruction[2], re.sub(r"\s*(//.*|<.*)$", "", instruction[3])))
    if body:
        yield name, body


def loops_of(name, body, machine):
    """The innermost loops of a function that use vectors."""
    index = {address: i for i, (address, _, _) in enumerate(body)}
    ranges = set()
    for i, (_, mnemonic, operands) in enumerate(body):
        if not machine.is_jump(mnemonic):
            continue
        target = TARGET.match(operands)
        begin = index.get(int(target[1], 16)) if target else None
        if begin is not None and begin <= i:
            ranges.add((begin, i))
    # A loop without vectors, which fetches what comes next, may lie in one that multiplies.
    vector = ARM_VECTOR if machine.arm else X86_VECTOR
    with_vectors = [(b, e) for b, e in sorted(ranges) if any(vector.search(o) for _, _, o in body[b : e + 1])]
    frame = any(m == "mov" and o.replace(" ", "") == "%rsp,%rbp" for _, m, o in body)
    for begin, end in with_vectors:
        if any((b, e) != (begin, end) and begin <= b and e <= end for b, e in with_vectors):
            continue
        loop = Loop(name, [(m, o) for _, m, o in body[begin : end + 1]], machine, frame)
        if loop.is_tile:
            yield loop


def objects_of(build):
    root = build / "src/CMakeFiles/bantam_ops.dir/ops"
    return sorted(path for pattern in HOT for path in root.glob(pattern + ".cpp.o"))


def short(name):
    """A function without namespaces and arguments: what is left names the tile."""
    name = re.sub(r"\(anonymous namespace\)::|bantam::|ops::|hwy::|std::", "", name)
    depth, kept = 0, ""
    for c in name:
        depth += {"<": 1, ">": -1}.get(c, 0)
        if c == "(" and depth == 0:
            break
        kept += c
    return kept.removeprefix("void ").strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    parser.add_argument("--objdump", default="objdump")
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    machine = Machine("aarch64" in args.objdump)
    objects = [o for path in args.paths for o in (objects_of(path) if path.is_dir() else [path])]
    if not objects:
        sys.exit(f"check_spills.py: no objects of kernels in {args.paths[0]}; build the release first")
    checked = spilled = 0
    for path in objects:
        for name, body in functions(args.objdump, path):
            for loop in loops_of(name, body, machine):
                checked += 1
                spilled += loop.spills > 0
                if args.list or loop.spills > 0:
                    print(f"{path.name.split('.')[0]}: {loop}")
    print(f"spills: {len(objects)} objects, {checked} inner loops, {spilled} of them spill vectors")
    return 1 if spilled or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
