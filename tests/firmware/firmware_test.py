#!/usr/bin/env python3
"""Firmware images in the emulator: what they compute, what they refuse. Usage: firmware_test.py BANTAM FOLDER (in the
root). Needs the bare-metal compiler and qemu-system-arm; models of ../shared are used where they are there."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BANTAM = ""
FOLDER = pathlib.Path()
FLEETS = pathlib.Path("ports/cortex-m/fleets")
SHARED = pathlib.Path("../shared/models")
BOARDS = {"cortex-m4": "mps2-an386", "cortex-m55": "mps3-an547"}


def run(*command, cwd=None):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=600, check=False, cwd=cwd,
                          stdin=subprocess.DEVNULL)


def firmware(fleet, core, *options):
    return run("scripts/firmware.sh", fleet, "--core", core, "--bantam", BANTAM, "--folder", FOLDER, *options)


def emulate(elf, core, folder):
    return run("qemu-system-arm", "-M", BOARDS[core], "-nographic", "-serial", "none", "-monitor", "none", "-icount",
               "shift=0", "-semihosting-config", "enable=on,target=native", "-kernel", elf, cwd=folder)


class FirmwareTest(unittest.TestCase):
    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="bantam-firmware-"))
        self.addCleanup(shutil.rmtree, self.scratch)

    def figures(self, fleet, core, *options):
        file = self.scratch / "figures.json"
        result = firmware(fleet, core, "--json", file, *options)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return json.loads(file.read_text()), result.stdout

    def check_figures(self, figures, core):
        plan = json.loads((FOLDER / core / "image/plan.json").read_text())
        self.assertEqual(figures["arena_bytes"], plan["arena_bytes"])
        self.assertEqual(figures["package_bytes"], plan["file_bytes"])
        self.assertGreaterEqual(figures["flash_bytes"], figures["code_bytes"] + figures["package_bytes"])
        self.assertGreaterEqual(figures["ram_bytes"], figures["arena_bytes"] + figures["stack_reserved_bytes"])
        self.assertLess(figures["stack_bytes"], figures["stack_reserved_bytes"])
        for session in figures["sessions"]:
            self.assertGreater(session["instructions"], 100 * session["steps"])
            # The executor itself takes some hundred instructions a step at most, whatever the kernels do.
            self.assertGreater(session["executor_instructions"], 0)
            self.assertLess(session["executor_instructions"], 1000 * session["steps"])
            self.assertGreater(session["stack_bytes"], 0)

    def test_bundled_models_agree_with_the_host(self):
        for core in BOARDS:
            with self.subTest(core=core):
                figures, said = self.figures(FLEETS / "bundled.toml", core)
                self.check_figures(figures, core)
                self.assertEqual([s["name"] for s in figures["sessions"]], ["keyword", "voice-activity"])
                self.assertLess(said.index("flash "), said.index("running"))

    def test_int8_models_of_other_people_agree_to_the_bit(self):
        if not SHARED.is_dir():
            print("skipped: ../shared/models is not there", file=sys.stderr)
            return
        for core in BOARDS:
            with self.subTest(core=core):
                figures, _ = self.figures(FLEETS / "tflm.toml", core, "--rounds", 4)
                self.check_figures(figures, core)
                self.assertTrue(figures["equal"])
                self.assertEqual({s["invokes"] for s in figures["sessions"]}, {4})

    def test_unfed_inputs_are_random(self):
        figures, _ = self.figures("models/voice-activity.onnx", "cortex-m4")
        self.assertEqual(figures["sessions"][0]["name"], "voice-activity")

    def image(self):
        """The image of the bundled voice activity model for the Cortex-M4, and a folder to run it in."""
        result = firmware("models/voice-activity.onnx", "cortex-m4")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        shutil.copy(FOLDER / "cortex-m4/image/recording.host", self.scratch)
        return FOLDER / "cortex-m4/build/ports/cortex-m/firmware.elf"

    def test_device_refuses_a_damaged_package(self):
        elf = self.image().read_bytes()
        package = (FOLDER / "cortex-m4/image/fleet.bantam").read_bytes()
        at = elf.index(package)
        for offset in (20, 100, len(package) // 2, len(package) - 1):
            with self.subTest(offset=offset):
                damaged = bytearray(elf)
                damaged[at + offset] ^= 0x40
                file = self.scratch / "damaged.elf"
                file.write_bytes(damaged)
                result = emulate(file, "cortex-m4", self.scratch)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertRegex(result.stdout, "error open: invalid package")

    def test_arena_that_is_one_byte_too_small_is_refused(self):
        self.image()
        build = FOLDER / "cortex-m4/build"
        need = json.loads((FOLDER / "cortex-m4/image/plan.json").read_text())["arena_bytes"]
        small = run("cmake", build, f"-DBANTAM_ARENA_BYTES={need - 1}")
        self.assertEqual(small.returncode, 0, small.stderr)
        built = run("cmake", "--build", build, "--target", "firmware")
        self.assertEqual(built.returncode, 0, built.stdout)
        result = emulate(build / "ports/cortex-m/firmware.elf", "cortex-m4", self.scratch)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(f"found {need - 1}, expected {need}", result.stdout)

    def test_damaged_recording_is_refused(self):
        elf = self.image()
        recording = (self.scratch / "recording.host").read_bytes()
        for damaged in (b"", recording[:10], b"X" + recording[1:], recording[:30], recording[:20] + b"\xff" * 16):
            (self.scratch / "recording.host").write_bytes(damaged)
            result = emulate(elf, "cortex-m4", self.scratch)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("error recording: ", result.stdout)

    def test_stack_overflow_ends_in_a_fault(self):
        for core in BOARDS:
            with self.subTest(core=core):
                result = firmware("models/voice-activity.onnx", core, "--stack", 1024)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertIn("fault: the stack overflowed", result.stderr)
                self.assertIn("--stack", result.stderr)

    def test_image_that_allocates_is_found(self):
        source = self.scratch / "allocates.c"
        source.write_text("#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(n); *p = n; return *v == p; }\n")
        elf = self.scratch / "allocates.elf"
        built = run("arm-none-eabi-gcc", "-mcpu=cortex-m4", "-mthumb", "--specs=nosys.specs", "-w", source, "-o", elf)
        self.assertEqual(built.returncode, 0, built.stderr)
        result = run(sys.executable, "scripts/check_symbols.py", elf, "--nm", "arm-none-eabi-nm")
        self.assertEqual(result.returncode, 1)
        self.assertIn("the C allocator", result.stderr)

    def test_bad_command_lines_are_refused(self):
        for options in (("--core", "cortex-m0"), ("--core",), ("--colour",), ("a.toml", "b.toml")):
            result = run("scripts/firmware.sh", *options)
            self.assertEqual(result.returncode, 2, options)
            self.assertIn("to mend it", result.stderr)
        missing = firmware(self.scratch / "no.toml", "cortex-m4")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("no.toml", missing.stderr)


if __name__ == "__main__":
    BANTAM = pathlib.Path(sys.argv.pop(1)).resolve()
    FOLDER = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)
