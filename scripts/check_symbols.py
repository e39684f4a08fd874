#!/usr/bin/env python3
"""Checks with nm that the freestanding libraries, or a whole firmware image, use no allocator, exception, stream, thread
or static constructor.

Usage: check_symbols.py BUILD_DIR | IMAGE.elf [--nm NM]
"""

import argparse
import pathlib
import re
import subprocess
import sys

FREESTANDING = ("base", "ops", "package", "runtime", "dsp")

FORBIDDEN = [
    (r"^_*(malloc|calloc|realloc|free|aligned_alloc|posix_memalign|memalign|sbrk)(_r)?$", "the C allocator"),
    (r"^_Zn[wa]|^_Zd[la]", "operator new or delete"),
    (r"^__cxa_(throw|begin_catch|allocate_exception|rethrow)|^_Unwind_Resume$", "exceptions"),
    (r"^_ZT[IS]|^__dynamic_cast$", "run-time type information"),
    (r"^_ZNSt.*(stream|locale)|^_ZNKSt.*(stream|locale)|^_ZSt4cout", "streams or locales"),
    (r"^_GLOBAL__sub_I|^__cxa_guard|^__cxa_atexit$|^atexit$", "static constructors"),
    (r"^(printf|fprintf|puts|fopen|open|read|write|exit|abort_message)$", "the operating system"),
]


def symbols(nm, library):
    out = subprocess.run([nm, "--format=posix", str(library)], capture_output=True, text=True, check=True).stdout
    member = library.name
    for line in out.splitlines():
        if line.endswith(":"):
            member = line[:-1]
            continue
        fields = line.split()
        if len(fields) >= 2:
            yield member, fields[0], fields[1]


def check(nm, binary):
    """The number of forbidden symbols in a library or image; each is reported."""
    problems = 0
    for member, symbol, kind in symbols(nm, binary):
        for pattern, what in FORBIDDEN:
            if re.search(pattern, symbol):
                print(f"{binary.name}({member}): {symbol} ({kind}) means {what}", file=sys.stderr)
                problems += 1
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--nm", default="nm")
    args = parser.parse_args()
    if args.build.is_file():
        problems = check(args.nm, args.build)
        print(f"symbols: {args.build.name}, {problems} problems")
        return 1 if problems else 0
    problems = 0
    checked = 0
    for name in FREESTANDING:
        library = args.build / "src" / f"libbantam_{name}.a"
        if not library.exists():
            print(f"{library} was not built", file=sys.stderr)
            problems += 1
            continue
        checked += 1
        problems += check(args.nm, library)
    print(f"symbols: {checked} freestanding libraries, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
