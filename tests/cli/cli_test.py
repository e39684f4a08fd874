#!/usr/bin/env python3
"""The command as a user meets it: what it prints, where, and its exit code. Usage: cli_test.py BANTAM (in the root)."""

import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

BANTAM = ""
MODELS = pathlib.Path("models").resolve()
KEYWORD = str(MODELS / "keyword.onnx")
SIGN = str(MODELS / "sign.onnx")
SHARED = pathlib.Path("../shared/models").resolve()
# Files are flushed to the disk when they are written; in memory that costs nothing.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
FAILED, USAGE, OVER_BUDGET = 1, 2, 3
MEMORY_KEYS = {"arena_bytes", "lower_bound_bytes", "weights_bytes", "state_bytes", "activation_bytes", "scratch_bytes",
               "table_bytes"}


def bantam(*arguments, limit_file_bytes=None):
    def limit():
        if limit_file_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit_file_bytes, limit_file_bytes))

    return subprocess.run([BANTAM, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          stdin=subprocess.DEVNULL, preexec_fn=limit, check=False)


def proto_field(number, value):
    """One protobuf field: an integer, or the bytes of a string or message."""
    def varint(n):
        out = bytearray()
        while n > 127:
            out.append(n & 127 | 128)
            n >>= 7
        return bytes(out + bytes([n]))

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def onnx_model(nodes, inputs, outputs, integers=()):
    """An ONNX file with nodes (operator, inputs, outputs) and ports name -> dims: i64 those in `integers`, else f32."""
    def port(name, dims):
        shape = b"".join(proto_field(1, proto_field(1, d)) for d in dims)
        tensor = proto_field(1, 7 if name in integers else 1) + proto_field(2, shape)
        return proto_field(1, name) + proto_field(2, proto_field(1, tensor))

    graph = b""
    for operator, ins, outs in nodes:
        node = b"".join(proto_field(1, i) for i in ins) + b"".join(proto_field(2, o) for o in outs)
        graph += proto_field(1, node + proto_field(3, "node of " + outs[0]) + proto_field(4, operator))
    graph += proto_field(2, "graph")
    graph += b"".join(proto_field(11, port(*p)) for p in inputs.items())
    graph += b"".join(proto_field(12, port(*p)) for p in outputs.items())
    return proto_field(1, 8) + proto_field(7, graph) + proto_field(8, proto_field(2, 13))


def npy(kind, shape, data):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bantam-cli-", dir=SCRATCH))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, data):
        path = self.folder / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def succeed(self, *arguments):
        done = bantam(*arguments)
        self.assertEqual(done.returncode, 0, f"{arguments}\n{done.stderr}")
        return done.stdout

    def succeed_json(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json"))

    def refuse(self, arguments, words, code=FAILED, **options):
        """The command fails with that code, says the words and a remedy on stderr, and nothing on stdout."""
        done = bantam(*arguments, **options)
        context = f"{arguments}\nstdout: {done.stdout}\nstderr: {done.stderr}"
        self.assertEqual(done.returncode, code, context)
        self.assertEqual(done.stdout, "", context)
        for word in words:
            self.assertIn(word, done.stderr, context)
        if code == USAGE:
            self.assertIn("--help", done.stderr, context)
        else:
            self.assertTrue(done.stderr.startswith("bantam: "), context)
            self.assertEqual(done.stderr.count("\n  to mend it: "), 1, context)
        return done.stderr


class BadModels(CommandTest):
    """A file that is no model, by every command that takes one."""

    def expect(self, path, words):
        for command in (["inspect"], ["plan"], ["plan", "--json"], ["pack", "-o", self.folder / "out.bantam"], ["run"],
                        ["bench"], ["verify", "--reference", MODELS / "reference/keyword.npz"]):
            with self.subTest(command=command[0], path=path):
                self.refuse([*command, path], words)
                self.assertFalse((self.folder / "out.bantam").exists())

    def test_empty_file(self):
        for name in ("empty.onnx", "empty.tflite", "empty.bantam"):
            self.expect(self.write(name, b""), [name, "empty"])

    def test_text_file(self):
        for name in ("text.onnx", "text.tflite"):
            self.expect(self.write(name, "these are words, not a model\n"), [name, "neither an ONNX nor a TensorFlow"])

    def test_truncated_model(self):
        data = pathlib.Path(KEYWORD).read_bytes()
        for size in (1, 100, len(data) // 2, len(data) - 1):
            stderr = self.refuse(["plan", self.write("cut.onnx", data[:size])], ["cut.onnx"])
            self.assertRegex(stderr, "truncated|damaged|neither")
        self.expect(self.write("cut.onnx", data[:len(data) // 2]), ["cut.onnx", "truncated"])

    def test_missing_file(self):
        self.expect(self.folder / "absent.onnx", ["absent.onnx", "No such file"])

    def test_folder(self):
        self.expect(self.folder, ["folder"])

    def test_cycle(self):
        cycle = onnx_model([("Relu", ["b"], ["a"]), ("Relu", ["a"], ["b"])], {"x": [1]}, {"b": [1]})
        path = self.write("cycle.onnx", cycle)
        for command in ("plan", "run", "bench"):
            self.refuse([command, path], ["cycle.onnx", "cycle"])

    def test_all_unsupported_operators_at_once(self):
        model = onnx_model([("FancyNorm", ["x"], ["a"]), ("Relu", ["a"], ["b"]), ("OtherThing", ["b"], ["y"])],
                           {"x": [1]}, {"y": [1]})
        self.refuse(["plan", self.write("odd.onnx", model)],
                  ["odd.onnx", "FancyNorm", "node of a", "OtherThing", "node of y"])

    def test_the_small_model_is_fine_without_its_fault(self):
        good = onnx_model([("Relu", ["x"], ["a"]), ("Relu", ["a"], ["b"])], {"x": [1]}, {"b": [1]})
        self.succeed("plan", self.write("good.onnx", good))


class Dimensions(CommandTest):
    def test_open_dimension_is_named(self):
        for command in ("plan", "run", "bench"):
            self.refuse([command, SIGN], ["picture", "batch", "--dim batch=VALUE"])

    def test_unknown_dimension_name(self):
        self.refuse(["plan", SIGN, "--dim", "batsh=1"], ["batsh", "no such dimension", "batch"])

    def test_value_that_is_no_number(self):
        self.refuse(["plan", SIGN, "--dim", "batch=many"], ["--dim batch=many", "integer"])
        self.refuse(["plan", SIGN, "--dim", "batch"], ["--dim batch", "NAME=VALUE"])

    def test_bound_is_planned_like_its_size(self):
        bound = self.succeed_json("plan", SIGN, "--bound", "batch=4")
        fixed = self.succeed_json("plan", SIGN, "--dim", "batch=4")
        # Results overlap operands only where their sizes are fixed.
        self.assertGreaterEqual(bound["activation_bytes"], fixed["activation_bytes"])
        # The session's own tables are the price of changing sizes, and only of that.
        self.assertGreater(bound["table_bytes"], fixed["table_bytes"])

    def test_bad_bounds(self):
        self.refuse(["plan", SIGN, "--bound", "batch=0"], ["sign.onnx", "batch", "0"])
        self.refuse(["plan", SIGN, "--bound", "batsh=4"], ["batsh", "no such dimension"])
        self.refuse(["plan", SIGN, "--bound", "batch=4", "--dim", "batch=2"], ["batch", "both"])

    def test_a_family_has_a_plan_for_each_size_and_the_weights_once(self):
        family = self.succeed_json("plan", SIGN, "--sizes", "batch=1,3")
        self.assertEqual([m["name"] for m in family["models"]], ["sign@batch:1", "sign@batch:3"])
        for model, size in zip(family["models"], (1, 3)):
            alone = self.succeed_json("plan", SIGN, "--dim", f"batch={size}")
            self.assertEqual(model["activation_bytes"], alone["activation_bytes"])
            self.assertEqual(family["weights_bytes"], alone["weights_bytes"])
        self.assertEqual(family["activation_bytes"], family["models"][1]["activation_bytes"])
        inputs = ["--input", "sign@batch:1.picture=random:1", "--input", "sign@batch:3.picture=random:2"]
        self.assertIn("sign@batch:3", self.succeed("run", SIGN, "--sizes", "batch=1,3", *inputs))
        self.refuse(["plan", SIGN, "--sizes", "batch=1,1"], ["batch", "twice"])
        self.refuse(["plan", SIGN, "--sizes", "batsh=1,2"], ["batsh"])
        self.refuse(["plan", SIGN, "--sizes", "batch=1,2", "--dim", "batch=1"], ["batch", "a value"])

    def test_formula(self):
        self.succeed("plan", SIGN, "--formula", "batch=(7 - 1) / 3")
        self.refuse(["plan", SIGN, "--formula", "batch=many"], ["batch", "'many'"])

    def test_wrong_shape(self):
        self.refuse(["plan", KEYWORD, "--shape", "wave=2x3"], ["wave", "16000"])
        self.refuse(["plan", KEYWORD, "--shape", "wafe=1x16000"], ["wafe", "wave"])

    def test_absurd_shape(self):
        self.refuse(["plan", SIGN, "--dim", "batch=9999999999999"], ["sign.onnx"])
        self.refuse(["plan", SIGN, "--dim", "batch=-1"], ["sign.onnx"])

    def test_shape_and_dimension_give_the_same_plan(self):
        by_name = self.succeed_json("plan", SIGN, "--dim", "batch=2")
        self.assertEqual(by_name, self.succeed_json("plan", SIGN, "--shape", "picture=2x3x32x32"))

    def test_unknown_state(self):
        self.refuse(["plan", KEYWORD, "--state", "wave=nothing"], ["nothing"])


class Usage(CommandTest):
    def test_unknown_option(self):
        for command in (["inspect"], ["plan"], ["pack", "-o", "x"], ["run"], ["verify", "--reference", "x"], ["bench"]):
            self.refuse([*command, KEYWORD, "--frobnicate"], ["--frobnicate"], USAGE)

    def test_unknown_command(self):
        self.refuse(["frobnicate"], ["frobnicate"], USAGE)
        self.refuse([], [], USAGE)

    def test_values_out_of_range(self):
        self.refuse(["plan", KEYWORD, "--threads", "0"], ["--threads"], USAGE)
        self.refuse(["plan", KEYWORD, "--backend", "slow"], ["--backend"], USAGE)
        self.refuse(["run", KEYWORD, "--rounds", "0"], ["--rounds"], USAGE)
        self.refuse(["plan", KEYWORD, "--budget", "12 parsecs"], ["--budget", "12 parsecs"])

    def test_help_of_every_command_has_an_example(self):
        for command in ("inspect", "plan", "pack", "run", "verify", "bench", "tune", "partition", "transcribe", "completion"):
            with self.subTest(command=command):
                text = self.succeed(command, "--help")
                self.assertIn("Example", text)
                self.assertIn(f"bantam {command} ", text)
        text = self.succeed("--help")
        self.assertIn("Examples:", text)
        self.assertIn("Exit codes:", text)

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^\d+\.\d+\.\d+\n$")

    def test_completion_scripts_parse(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.write("completion", self.succeed("completion", shell))
            for command in ("inspect", "plan", "pack", "run", "verify", "bench", "tune", "partition", "transcribe", "extract"):
                self.assertIn(command, script.read_text())
            if shutil.which(shell):
                subprocess.run([shell, "-n", script], check=True)
        self.refuse(["completion", "tcsh"], ["tcsh"], USAGE)


class Inputs(CommandTest):
    def expect(self, spec, words):
        for flags in ([], ["--json"]):
            self.refuse(["run", KEYWORD, *flags, "--input", spec], words)

    def test_nothing_feeds_an_input(self):
        self.refuse(["run", KEYWORD], ["wave", "--input wave=FILE"])

    def test_unknown_input(self):
        self.expect("wafe=zeros", ["wafe", "wave"])

    def test_missing_file(self):
        self.expect(f"wave={self.folder}/absent.wav", ["absent.wav", "No such file"])

    def test_wrong_shape(self):
        path = self.write("x.npy", npy("<f4", [1, 100], bytes(400)))
        self.expect(f"wave={path}", ["x.npy", "wave", "[1,100]", "[1,16000]"])

    def test_truncated_array(self):
        path = self.write("x.npy", npy("<f4", [1, 16000], bytes(4 * 15999)))
        self.expect(f"wave={path}", ["x.npy"])

    def test_picture_where_sound_is_wanted(self):
        self.expect(f"wave={MODELS}/inputs/sign-stop.png", ["sign-stop.png", "wave", "[1,16000]"])

    def test_text_where_sound_is_wanted(self):
        self.expect(f"wave={self.write('x.wav', 'words')}", ["x.wav"])

    def test_bad_options(self):
        self.expect("wave=zeros,scale=2", ["zeros"])
        self.expect(f"wave={MODELS}/inputs/keyword-yes.wav,sclae=2", ["sclae"])
        self.refuse(["run", KEYWORD, "--input", "wave"], ["wave", "NAME=VALUE"])


class Run(CommandTest):
    def test_says_the_arena_before_anything_else(self):
        lines = self.succeed("run", KEYWORD, "--input", f"wave={MODELS}/inputs/keyword-yes.wav", "--labels",
                             f"log_probabilities={MODELS}/labels/keyword.txt").splitlines()
        self.assertRegex(lines[0], r"^arena: \d+ bytes")
        self.assertTrue(any("yes" in line for line in lines[1:]), lines)
        # Sanitizers bring an allocator of their own, which is not counted.
        self.assertRegex("\n".join(lines), "allocations after start: (0$|not counted)")

    def test_json(self):
        result = self.succeed_json("run", KEYWORD, "--input", "wave=random:1", "--rounds", 3)
        self.assertEqual(result["allocations"], 0)
        self.assertEqual(result["sessions"][0]["invokes"], 3)
        self.assertEqual(result["arena_bytes"], self.succeed_json("plan", KEYWORD)["arena_bytes"])

    def test_quiet(self):
        self.assertEqual(self.succeed("run", KEYWORD, "--input", "wave=zeros", "--quiet"), "")

    def test_a_package_says_what_its_model_says(self):
        package = self.folder / "k.bantam"
        self.succeed("pack", KEYWORD, "-o", package)
        outputs = []
        for file in (KEYWORD, package):
            out = self.folder / "out.npz"
            self.succeed("run", file, "--input", "wave=random:5", "--output", out, "--quiet")
            with zipfile.ZipFile(out) as archive:
                outputs.append({name: archive.read(name) for name in archive.namelist()})
        self.assertEqual(list(outputs[0]), ["log_probabilities.npy"])
        self.assertEqual(outputs[0], outputs[1])


class Packages(CommandTest):
    def setUp(self):
        super().setUp()
        self.package = self.folder / "k.bantam"
        self.succeed("pack", KEYWORD, "-o", self.package)

    def test_json(self):
        result = self.succeed_json("pack", KEYWORD, "-o", self.package)
        self.assertEqual(result["file_bytes"], self.package.stat().st_size)
        self.assertEqual(result["arena_bytes"], self.succeed_json("plan", KEYWORD)["arena_bytes"])

    def test_package_for_a_device_needs_less_for_its_pointers_and_lists_its_kernels(self):
        kernels = self.folder / "kernels.inc"
        device = self.succeed_json("pack", KEYWORD, "--target", "cortex-m4", "-o", self.package, "--kernels", kernels)
        host = self.succeed_json("plan", KEYWORD)
        self.assertEqual(device["target"], "cortex-m4")
        self.assertEqual(device["arena_bytes"],
                         self.succeed_json("plan", KEYWORD, "--target", "cortex-m4")["arena_bytes"])
        self.assertLess(device["table_bytes"], host["table_bytes"])
        rows = kernels.read_text().splitlines()
        self.assertTrue(rows)
        for row in rows:
            self.assertRegex(row, r'^\{"[a-z0-9_]+", "[a-z0-9_]+__(ref|portable)"\},$')
        # The package runs on the host too, which has these kernels.
        self.succeed("run", self.package, "--feed", "random:1", "--quiet")
        self.refuse(["pack", KEYWORD, "--target", "toaster", "-o", self.package], ["cortex-m4", "host"], USAGE)

    def test_recording_holds_what_went_in_and_came_out(self):
        recording, out = self.folder / "recording", self.folder / "out.npz"
        self.succeed("run", self.package, "--feed", "fill:0.25", "--rounds", 3, "--record", recording, "--output", out,
                     "--quiet")
        data = recording.read_bytes()
        self.assertEqual(struct.unpack_from("<8sII", data), (b"BANTAMR1", 1, 0))
        at, records = 16, []
        while at < len(data):
            head = struct.unpack_from("<5I", data, at)
            at += 20 + head[4]
            records.append((head[0], data[at - head[4]:at]))
        self.assertEqual([kind for kind, _ in records], [1, 2, 3] * 3)
        self.assertEqual(set(struct.unpack(f"<{len(records[0][1]) // 4}f", records[0][1])), {0.25})
        with zipfile.ZipFile(out) as archive:
            self.assertTrue(archive.read("log_probabilities.npy").endswith(records[-1][1]))

    def test_packing_is_reproducible(self):
        first = self.package.read_bytes()
        self.succeed("pack", KEYWORD, "-o", self.package)
        self.assertEqual(self.package.read_bytes(), first)

    def test_package_where_a_model_is_wanted(self):
        for command in (["inspect"], ["plan"], ["pack", "-o", self.folder / "again.bantam"],
                        ["verify", "--reference", MODELS / "reference/keyword.npz"]):
            self.refuse([*command, self.package], ["k.bantam", "package", "bantam run"])

    def test_damaged_packages(self):
        data = self.package.read_bytes()
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 1
        foreign = bytearray(data)
        foreign[8] = 99
        for name, content, words in (("cut", data[:-1], ["truncated", str(len(data))]), ("short", data[:20], ["short"]),
                                     ("flipped", flipped, ["damaged"]), ("version", foreign, ["version", "99"])):
            path = self.write(f"{name}.bantam", bytes(content))
            for command in (["run", "--input", "wave=zeros"], ["bench"]):
                self.refuse([*command, path], [f"{name}.bantam", *words])

    def test_more_threads_than_planned(self):
        self.refuse(["run", self.package, "--input", "wave=zeros", "--threads", 2], ["threads"])

    def test_failure_leaves_no_file_behind(self):
        self.refuse(["pack", KEYWORD, "-o", self.folder / "absent" / "x.bantam"], ["x.bantam", "No such file"])
        self.refuse(["pack", KEYWORD, "-o", self.folder], ["folder"])
        before = self.package.read_bytes()
        # The disk is full after 64 KiB.
        self.refuse(["pack", KEYWORD, "-o", self.package], ["k.bantam"], limit_file_bytes=1 << 16)
        self.refuse(["pack", KEYWORD, "-o", self.folder / "new.bantam"], ["new.bantam"], limit_file_bytes=1 << 16)
        self.assertEqual(os.listdir(self.folder), ["k.bantam"])
        self.assertEqual(self.package.read_bytes(), before)

    @unittest.skipIf(os.geteuid() == 0, "permissions do not bind root")
    def test_folder_without_permission(self):
        locked = self.folder / "locked"
        locked.mkdir(mode=0o500)
        self.refuse(["pack", KEYWORD, "-o", locked / "x.bantam"], ["x.bantam", "Permission denied"])
        self.assertEqual(os.listdir(locked), [])


def proto_fields(data, start=0, end=None):
    """The fields of a protobuf message: (number, start of the value, end of the value)."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value, at

    at = start
    end = len(data) if end is None else end
    while at < end:
        key, at = varint(at)
        first = at
        if key & 7 == 0:
            _, at = varint(at)
        elif key & 7 == 2:
            size, first = varint(at)
            at = first + size
        else:
            at += {1: 8, 5: 4}[key & 7]
        yield key >> 3, first, at


def with_wrong_weight(path, nth_conv):
    """The bytes of an ONNX model with one weight of its n-th convolution changed, and that node's name."""
    data = bytearray(pathlib.Path(path).read_bytes())

    def texts(start, end, number):
        return [bytes(data[a:b]).decode() for n, a, b in proto_fields(data, start, end) if n == number]

    graph = next((a, b) for n, a, b in proto_fields(data) if n == 7)
    nodes = [(a, b) for n, a, b in proto_fields(data, *graph) if n == 1]
    node = [n for n in nodes if texts(*n, 4) == ["Conv"]][nth_conv]
    weights = texts(*node, 1)[1]
    for number, start, end in proto_fields(data, *graph):
        if number == 5 and texts(start, end, 8) == [weights]:
            raw = next(a for n, a, _ in proto_fields(data, start, end) if n == 9)
            data[raw:raw + 4] = struct.pack("<f", struct.unpack("<f", data[raw:raw + 4])[0] + 1)
    return bytes(data), texts(*node, 3)[0]


class Branches(CommandTest):
    HEADS = [("Neg", ["x"], ["features"]), ("Abs", ["features"], ["left"]), ("Exp", ["features"], ["e"]),
             ("Add", ["e", "z"], ["right"])]

    def setUp(self):
        super().setUp()
        self.model = self.write("heads.onnx",
                                onnx_model(self.HEADS, {"x": [8], "z": [8]}, {"left": [8], "right": [8]}))

    def test_only_what_the_outputs_need_is_planned(self):
        whole = self.succeed_json("plan", self.model)
        left = self.succeed_json("plan", self.model, "--outputs", "left")
        self.assertLess(left["activation_bytes"], whole["activation_bytes"])
        self.assertEqual([s["name"] for s in left["models"][0]["steps"]], ["node of features", "node of left"])
        self.succeed("run", self.model, "--outputs", "left", "--input", "x=fill:0.5")

    def test_any_tensor_may_be_an_output(self):
        out = self.folder / "out.npz"
        self.succeed("run", self.model, "--outputs", "e", "--input", "x=fill:0", "-o", out)
        with zipfile.ZipFile(out) as archive:
            self.assertEqual(archive.namelist(), ["e.npy"])
        self.succeed("run", self.model, "--keep", "features,e", "--input", "x=fill:0", "--input", "z=zeros", "-o", out)
        with zipfile.ZipFile(out) as archive:
            self.assertEqual(sorted(archive.namelist()), ["e.npy", "features.npy", "left.npy", "right.npy"])

    def test_unknown_tensors_are_refused(self):
        self.refuse(["plan", self.model, "--outputs", "lefd"], ["'lefd'", "left, right"])
        self.refuse(["plan", self.model, "--keep", "feat"], ["'feat'", "features"])
        self.refuse(["plan", KEYWORD, self.model, "--outputs", "features"], ["features", "no model has"])

    def test_a_package_computes_the_outputs_that_are_asked_for(self):
        package = self.folder / "heads.bantam"
        self.succeed("pack", self.model, "-o", package)
        inputs = ["--input", "x=random:1", "--input", "z=random:2"]
        whole = self.succeed_json("run", package, *inputs, "--trace")["sessions"][0]["trace"]
        right = self.succeed_json("run", package, *inputs, "--trace", "--outputs", "right")["sessions"][0]["trace"]
        self.assertEqual([t["name"] for t in whole], ["node of features", "node of left", "node of e", "node of right"])
        self.assertEqual([t["name"] for t in right], ["node of features", "node of e", "node of right"])
        self.assertEqual([(t["min"], t["max"], t["mean"]) for t in right],
                         [(t["min"], t["max"], t["mean"]) for t in whole if t["name"] != "node of left"])
        self.refuse(["run", package, *inputs, "--outputs", "features"], ["features", "no session"])

    def test_trace_counts_what_is_no_number(self):
        trace = self.succeed_json("run", self.model, "--input", "x=fill:-1e9", "--input", "z=zeros", "--trace")
        e = next(t for t in trace["sessions"][0]["trace"] if t["tensor"] == "e")
        self.assertEqual((e["inf"], e["nan"]), (8, 0))
        text = self.succeed("run", self.model, "--input", "x=zeros", "--input", "z=zeros", "--trace")
        self.assertIn("4 of 4 steps ran", text)
        self.assertRegex(text, r"unary .* right|binary .* right")

    def test_backends_by_branch(self):
        steps = self.succeed_json("plan", self.model, "--backend-of", "left=reference")["models"][0]["steps"]
        kernels = {s["name"]: s["kernel"].split("__")[-1] for s in steps}
        self.assertEqual(kernels["node of left"], "ref")
        self.assertEqual(kernels["node of features"], "simd")
        fleet = self.write("fleet.toml", f"""[[model]]
            path = "{self.model}"
            backend = "reference"
            backends = {{ "node of e" = "fast" }}""")
        steps = self.succeed_json("plan", fleet)["models"][0]["steps"]
        self.assertEqual([s["kernel"].split("__")[-1] for s in steps], ["ref", "ref", "simd", "ref"])
        self.refuse(["plan", self.model, "--backend-of", "left=opencl"], ["opencl", "fast, reference"])
        self.refuse(["plan", self.model, "--backend-of", "nothing*=fast"], ["nothing*"])

    def test_weights_stored_in_fewer_bits(self):
        model = MODELS / "denoise.onnx"
        plain = self.succeed_json("plan", model, "--store", "f32")
        small = self.succeed_json("plan", model, "--store", "i8", "--store", "/gains/*=f16")
        saved = sum(s["narrowed_bytes"] for s in small["models"][0]["steps"])
        self.assertGreater(saved, 200000)
        self.assertLess(small["weights_bytes"], plain["weights_bytes"] - saved + 1000)
        steps = {s["name"]: s for s in small["models"][0]["steps"]}
        self.assertEqual((steps["/gains/MatMul"]["stored_as"], steps["/Conv"]["stored_as"]), ("f16", "i8"))
        self.assertGreater(steps["/Conv"]["narrowing_error"], steps["/gains/MatMul"]["narrowing_error"])
        fleet = self.write("fleet.toml", f"""[[model]]
            path = "{model}"
            store = {{ "*" = "i8", "/gains/*" = "f16" }}""")
        self.assertEqual(self.succeed_json("plan", fleet)["weights_bytes"], small["weights_bytes"])
        self.refuse(["plan", model, "--store", "i16"], ["i16", "f32, f16, bf16, i8, i4"])
        self.refuse(["plan", model, "--store", "nothing*=i8"], ["nothing*"])

    def test_arithmetic_in_16_bits_where_the_target_has_it(self):
        model = MODELS / "keyword.onnx"

        def kernels(target, store):
            planned = self.succeed_json("plan", model, "--target", target, "--store", store)
            return {s["kernel"] for s in planned["models"][0]["steps"] if s["operator"] == "conv2d"}

        self.assertIn("f16_gemm__simd", kernels("cortex-a76", "f16-arithmetic"))
        self.assertNotIn("f16_gemm__simd", kernels("cortex-a76", "f16"))
        self.assertEqual(kernels("cortex-a53", "f16-arithmetic"), {"f32_gemm_f16__simd"})


class Accounts(CommandTest):
    """The four sources of memory beside what the process uses, and time by stage."""

    def test_vision_fleet(self):
        result = self.succeed_json("run", MODELS / "vision.toml")
        self.assertGreaterEqual(len(result["sessions"]), 10)
        self.assertEqual(result["allocations"], 0)
        memory = result["memory"]
        self.assertEqual(memory["dynamic_bytes"], result["arena_bytes"])
        self.assertEqual(memory["static_bytes"], result["weights_bytes"])
        self.assertGreater(memory["model_file_bytes"], 0)
        self.assertGreater(memory["stack_bytes"], 100)
        self.assertLess(memory["stack_bytes"], 1 << 20)
        self.assertEqual(set(result["stages_us"]), {"open", "place", "read", "preprocess", "run", "postprocess"})
        for stage, us in result["stages_us"].items():
            self.assertGreater(us, 0, stage)
        says = {event["output"]: event["says"] for event in result["events"]}
        self.assertEqual(says["sign-1.probabilities"], "stop")
        self.assertEqual(says["night-head.night"], "night")
        self.assertEqual(says["day-head.night"], "day")
        text = self.succeed("run", MODELS / "vision.toml")
        for word in ("model file", "static", "dynamic", "stack", "preprocess", "resident"):
            self.assertIn(word, text)

    @unittest.skipUnless(SHARED.is_dir(), "../shared/models is absent: no fleet of published vision models")
    def test_published_vision_models(self):
        rgb = "scale=0.00392156862745098"
        signed = "mean=127.5,scale=0.00784313725490196"
        models = {
            "face-rfb": ("face-rfb-320.onnx", "input", "astronaut-512.jpg,resize=320x240,layout=nchw," + signed),
            "yunet": ("yunet-n-320.onnx", "input", "astronaut-512.jpg,resize=320x320,layout=nchw,color=bgr"),
            "fastestdet": ("fastestdet.onnx", "input.1", "astronaut-512.jpg,resize=352x352,layout=nchw," + rgb),
            "vww96": ("vww96-int8.tflite", "input_1_int8", "astronaut-512.jpg," + rgb),
            "vww96-float": ("vww96-float.tflite", "input_1", "astronaut-512.jpg," + rgb),
            "person-detect": ("person-detect-int8.tflite", "input", "person-96x96-gray.png," + signed),
            "resnet8": ("resnet8-cifar10-int8.tflite", "input_1_int8", "coffee-600x400.jpg"),
            "resnet8-float": ("resnet8-cifar10-float.tflite", "input_1", "coffee-600x400.jpg"),
            "blazeface": ("blazeface-short-range-fp16.tflite", "input", "astronaut-512.jpg,resize=128x128," + signed),
        }
        fleet = "".join(f"""[[model]]\nname = "{name}"\npath = "{SHARED / file}"
            inputs = {{ "{port}" = "{SHARED / 'inputs' / picture}" }}\n"""
                        for name, (file, port, picture) in models.items())
        fleet += "".join(f"""[[model]]\npath = "{MODELS / name}.onnx"
            inputs = {{ {port} = "{MODELS / 'inputs' / picture},{rgb},layout=nchw" }}\n"""
                         for name, port, picture in (("scene-backbone", "picture", "scene-day.png"),
                                                     ("shape-detector", "scene", "shapes-1.png")))
        result = self.succeed_json("run", self.write("published.toml", fleet))
        self.assertEqual(len(result["sessions"]), 11)
        self.assertEqual(result["allocations"], 0)
        self.assertEqual(result["direct_inputs"], ["person-detect.input"])
        alone = max(session["alone"]["activation_bytes"] for session in result["sessions"])
        self.assertEqual(result["activation_bytes"], alone)

    def test_a_package_needs_little_more_than_its_sources(self):
        package = self.folder / "vision.bantam"
        self.succeed("pack", MODELS / "vision.toml", "-o", package)
        inputs = []
        for session in ("sign-1", "sign-2", "sign-3", "sign-4", "scene-day", "scene-night"):
            inputs += ["--input", f"{session}.picture=random:1"]
        for session in ("digits-1", "digits-2"):
            inputs += ["--input", f"{session}.strip=random:1"]
        for session in ("shapes-1", "shapes-2"):
            inputs += ["--input", f"{session}.scene=random:1"]
        result = self.succeed_json("run", package, *inputs)
        self.assertEqual(result["memory"]["model_file_bytes"] + result["memory"]["static_bytes"],
                         package.stat().st_size)


class Compare(CommandTest):
    MODEL = str(MODELS / "shape-detector.onnx")

    def test_good_models_have_no_fault(self):
        for arguments in ([self.MODEL], [KEYWORD, "--fill", "0.46875"], [SIGN, "--dim", "batch=2", "--seed", "5"]):
            result = self.succeed_json("compare", *arguments)
            self.assertTrue(result["within"])
            self.assertGreater(result["compared"], 10)
        self.assertIn("no operator's own error", self.succeed("compare", self.MODEL, "--all"))

    def test_a_wrong_weight_is_found_in_its_operator(self):
        right = self.folder / "right.npz"
        self.succeed("compare", self.MODEL, "--record", right)
        for nth in (0, 3, 9):
            data, node = with_wrong_weight(self.MODEL, nth)
            wrong = self.write("wrong.onnx", data)
            done = bantam("compare", wrong, "--against", right, "--json")
            self.assertEqual(done.returncode, FAILED, done.stderr)
            result = json.loads(done.stdout)
            self.assertEqual(result["first_fault"]["node"], node)
            self.assertEqual(len([c for c in result["checks"] if not c["within"]]), 1, "only one operator is wrong")
            text = bantam("compare", wrong, "--against", right)
            self.assertEqual(text.returncode, FAILED)
            self.assertIn("first fault", text.stdout)
            self.assertIn(node, text.stdout)
        self.succeed("compare", self.MODEL, "--against", right)

    def test_recorded_cases(self):
        result = self.succeed_json("compare", KEYWORD, "--against", MODELS / "reference/keyword.npz")
        self.assertEqual(result["compared"], 1)
        self.refuse(["compare", KEYWORD, "--against", MODELS / "reference/keyword.npz", "--case", "absent"], ["absent"])
        self.refuse(["compare", KEYWORD, "--against", MODELS / "reference/sign.npz"], ["no entry"])

    def test_a_missing_peer_is_no_crash(self):
        self.refuse(["compare", KEYWORD, "--against", "onnxruntime", "--library", self.folder / "none.so"],
                    ["none.so", "fetch_onnxruntime.sh"])
        self.refuse(["compare", KEYWORD, "--against", self.folder / "none.npz"], ["none.npz"])

    def test_against_onnxruntime(self):
        # There may be one for another processor than the program's, which an emulator may run.
        if "no ONNX Runtime under" in bantam("compare", KEYWORD, "--against", "onnxruntime").stderr:
            self.skipTest("ONNX Runtime is not under build/onnxruntime: not compared with it")
        for model in sorted(MODELS.glob("*.onnx")):
            dims = ["--dim", "batch=1"] if model.name == "sign.onnx" else []
            result = self.succeed_json("compare", model, "--against", "onnxruntime", "--fill", "0.46875", *dims)
            self.assertGreater(result["compared"], 3)


class VerifyAndBench(CommandTest):
    REFERENCE = MODELS / "reference/keyword.npz"

    def test_agreement(self):
        result = self.succeed_json("verify", KEYWORD, "--reference", self.REFERENCE)
        self.assertTrue(result["within"])
        self.assertGreater(result["cases"], 0)
        self.assertIn("all within tolerance", self.succeed("verify", KEYWORD, "--reference", self.REFERENCE))

    def test_disagreement_is_a_failure_with_a_table(self):
        done = bantam("verify", KEYWORD, "--reference", self.REFERENCE, "--tolerance", "0")
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("WRONG", done.stdout)
        self.assertIn("NOT within tolerance", done.stdout)
        self.assertIn("`bantam compare` names the operator", done.stdout)

    def test_bad_references(self):
        self.refuse(["verify", KEYWORD, "--reference", MODELS / "reference/sign.npz"], ["picture", "no input"])
        self.refuse(["verify", KEYWORD, "--reference", self.folder / "absent.npz"], ["absent.npz", "No such file"])
        self.refuse(["verify", KEYWORD, "--reference", self.write("x.npz", "words")], ["x.npz"])
        self.refuse(["verify", KEYWORD], ["--reference"], USAGE)
        for name, shape, words in (("in.wave.a.npy", [1, 100], ["wave", "16000"]), ("other.npy", [1], ["in.<tensor>"])):
            path = self.folder / "odd.npz"
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(name, npy("<f4", shape, bytes(4 * shape[-1])))
            self.refuse(["verify", KEYWORD, "--reference", path], words)
        self.refuse(["verify", MODELS / "demo.toml", "--reference", self.REFERENCE], ["one model"])

    def test_bench_json_has_the_stable_keys(self):
        result = self.succeed_json("bench", KEYWORD, "--runs", 3)
        self.assertLessEqual({"median_us", "min_us", "threads"}, result.keys())
        self.assertGreater(result["min_us"], 0)
        self.assertLessEqual(result["min_us"], result["median_us"])
        self.assertEqual((result["threads"], result["allocations"]), (1, 0))
        self.assertTrue(result["operators"])
        for key in ("open_us", "place_us", "first_us", "gops"):
            self.assertGreater(result[key], 0, key)
        layers = self.succeed_json("bench", KEYWORD, "--runs", 1, "--layers")["layers"]
        self.assertTrue(all(layer["layer"] and layer["us"] > 0 for layer in layers))

    def test_bench_gives_every_invoke_its_inputs(self):
        # The products lie where the indices were, and are no indices.
        model = self.write("lookup.onnx", onnx_model(
            [("Gather", ["table", "tokens"], ["rows"]), ("Transpose", ["rows"], ["turned"]),
             ("MatMul", ["turned", "rows"], ["product"]), ("Transpose", ["product"], ["turned product"]),
             ("MatMul", ["product", "turned product"], ["y"])],
            {"table": [2, 64], "tokens": [64]}, {"y": [64, 64]}, integers=["tokens"]))
        self.assertEqual(self.succeed_json("bench", model, "--runs", 3)["allocations"], 0)

    def test_bench_binds_threads_to_processors(self):
        cpu = min(os.sched_getaffinity(0))
        self.succeed("bench", KEYWORD, "--runs", 1, "--threads", 2, "--cpus", cpu)
        self.refuse(["bench", KEYWORD, "--cpus", f"{cpu},1023"], ["processor 1023"])
        self.refuse(["bench", KEYWORD, "--cpus", "one"], ["--cpus"], USAGE)

    def test_bench_lists_kernels_and_the_environment_limits_instruction_sets(self):
        listed = self.succeed_json("bench", "--kernels")
        kernels = {row["operator"]: row["kernels"] for row in listed["operators"]}
        self.assertTrue(all(names[-1].endswith("ref") for names in kernels.values()))
        last = [row["name"] for row in listed["instruction_sets"] if row["available"]][-1]
        try:
            os.environ["BANTAM_CPU"] = last
            sets = self.succeed_json("bench", "--kernels")["instruction_sets"]
            self.assertEqual([row["name"] for row in sets if row["used"]], [last])
            os.environ["BANTAM_CPU"] = "mmx"
            self.refuse(["bench", KEYWORD], ["BANTAM_CPU", "'mmx'", last])
        finally:
            del os.environ["BANTAM_CPU"]
        self.refuse(["bench"], ["model is required"], USAGE)


class Tune(CommandTest):
    def test_packs_models_that_run_and_says_what_it_measured(self):
        package = self.folder / "tuned.bantam"
        result = self.succeed_json("tune", KEYWORD, "--rounds", 1, "--seconds", 0, "-o", package)
        self.assertGreater(result["compared"], 0)
        self.assertLessEqual(result["after_us"], result["before_us"])
        self.assertEqual(self.succeed_json("bench", package, "--runs", 1)["allocations"], 0)

    def test_rules_of_a_fleet_file_choose_kernels(self):
        fleet = self.write("fleet.toml", f'[[model]]\npath = "{os.path.abspath(KEYWORD)}"\nkernels = {{ "*" = "any__ref" }}\n')
        kernels = {row["kernel"] for row in self.succeed_json("bench", fleet, "--runs", 1)["operators"]}
        self.assertIn("any__ref", kernels)
        fleet = self.write("fleet.toml", f'[[model]]\npath = "{os.path.abspath(KEYWORD)}"\nkernels = {{ "*" = "none" }}\n')
        self.refuse(["plan", fleet], ["'none'"])

    def test_what_cannot_work_is_refused(self):
        self.refuse(["tune", self.folder / "none.onnx"], ["none.onnx"])
        self.refuse(["tune", KEYWORD, "--rounds", 0], ["--rounds"], USAGE)
        self.refuse(["tune"], ["model is required"], USAGE)


class Inspect(CommandTest):
    def test_open_dimensions_are_shown_and_are_no_failure(self):
        text = self.succeed("inspect", SIGN)
        self.assertIn("open dimensions: batch of picture", text)
        self.assertIn("--dim", text)
        self.assertIn("undecided", self.succeed_json("inspect", SIGN))

    def test_a_dimension_that_was_given_wrong_is_a_failure(self):
        self.refuse(["inspect", SIGN, "--dim", "batch=0x"], ["--dim batch=0x"])

    def test_json(self):
        result = self.succeed_json("inspect", SIGN, "--dim", "batch=1")
        self.assertGreater(result["core"]["nodes"], 0)

    def test_inspect_predicts_the_time_of_kernels_on_a_target(self):
        def predicted(target):
            kernels = self.succeed_json("inspect", KEYWORD, "--target", target)["core"]["kernels"]
            self.assertIn("conv2d", {k["operator"] for k in kernels})
            self.assertEqual(sum(k["nodes"] for k in kernels),
                             sum(self.succeed_json("inspect", KEYWORD)["core"]["operators"].values()))
            return sum(k["predicted_us"] for k in kernels)

        self.assertLess(predicted("x86-64-avx512"), predicted("x86-64-avx2"))
        self.assertLess(predicted("x86-64-avx2"), predicted("cortex-a53"))
        self.assertLess(predicted("cortex-a53"), predicted("cortex-m4"))
        self.assertIn("predicted for one thread of 64-bit Arm Cortex-A53",
                      self.succeed("inspect", KEYWORD, "--target", "cortex-a53"))
        self.refuse(["inspect", KEYWORD, "--target", "z80"], ["z80"], USAGE)

    def test_text_after_a_pass(self):
        text = self.succeed("inspect", KEYWORD, "--text", "--stop-after", "dead-code")
        self.assertTrue(text.startswith("graph "), text[:80])
        self.refuse(["inspect", KEYWORD, "--text", "--stop-after", "no-such-pass"], ["no-such-pass"])


if __name__ == "__main__":
    BANTAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
