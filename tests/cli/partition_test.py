#!/usr/bin/env python3
"""`bantam partition` as a user meets it. Usage: partition_test.py BANTAM (in the root)."""

import json
import os
import struct
import sys
import unittest

import cli_test
from cli_test import CommandTest, FAILED, OVER_BUDGET, USAGE, bantam

MODELS = {
    "wn9_hello": {"wn9_index": b"the index", "wn9_data": b"the weights", "_MODEL_INFO_": b"wakenet9_v1_hello_3_0.6_0.7"},
    "nsnet2": {"nsnet2_data": b"other weights", "_MODEL_INFO_": b"# comment\nnsnet2_v1_ns_0_0.0_0.0\n"},
}


def image(models):
    """srmodels.bin as ESP-SR's own packer lays it out."""
    header = 4 + sum(36 + 40 * len(files) for files in models.values())
    entries, data = struct.pack("<I", len(models)), b""
    for model, files in models.items():
        entries += struct.pack("<32sI", model.encode(), len(files))
        for name, content in files.items():
            entries += struct.pack("<32sII", name.encode(), header + len(data), len(content))
            data += content
    return entries + data


def parse(data):
    """The models of an image, read as a loader reads them."""
    models, at = {}, 4
    for _ in range(struct.unpack_from("<I", data)[0]):
        name, count = struct.unpack_from("<32sI", data, at)
        files = models[name.rstrip(b"\0").decode()] = {}
        at += 36
        for _ in range(count):
            file, start, length = struct.unpack_from("<32sII", data, at)
            files[file.rstrip(b"\0").decode()] = data[start:start + length]
            at += 40
    return models


class PartitionTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.image = self.write("srmodels.bin", image(MODELS))
        for model, files in MODELS.items():
            (self.folder / "models" / model).mkdir(parents=True)
            for name, content in files.items():
                (self.folder / "models" / model / name).write_bytes(content)

    def check(self, path, *arguments):
        """Exit code and the JSON document; errors are also on stderr, with a remedy."""
        done = bantam("partition", "check", path, *arguments, "--json")
        if done.returncode != 0:
            self.assertTrue(done.stderr.startswith("bantam: "), done.stderr)
            self.assertEqual(done.stderr.count("\n  to mend it: "), 1, done.stderr)
        return done.returncode, json.loads(done.stdout)

    def errors(self, data, *arguments):
        code, result = self.check(self.write("damaged.bin", data), *arguments)
        errors = [f["object"] + ": " + f["message"] for f in result["findings"] if f["severity"] == "error"]
        self.assertEqual(code, FAILED if errors else 0)
        self.assertEqual(result["ok"], not errors)
        return "\n".join(errors)


class ListAndCheck(PartitionTest):
    def test_list(self):
        text = self.succeed("partition", "list", self.image)
        for word in ("wn9_hello", "nsnet2_data", "'hello'", "2 models, 5 files"):
            self.assertIn(word, text)
        result = self.succeed_json("partition", "list", self.image)
        self.assertEqual([m["name"] for m in result["models"]], list(MODELS))
        self.assertEqual(result["models"][0]["info"]["words"],
                         [{"word": "hello", "window": 3, "threshold_90": 0.6, "threshold_95": 0.7}])
        self.assertEqual(result["needed_bytes"], len(image(MODELS)))

    def test_list_refuses_what_a_loader_would_misread(self):
        self.refuse(["partition", "list", self.write("cut.bin", image(MODELS)[:-5])], ["5 bytes are missing", "nsnet2"])

    def test_check_of_a_healthy_image(self):
        code, result = self.check(self.image)
        self.assertEqual(code, 0)
        self.assertTrue(result["ok"])
        self.assertEqual(result["needed_bytes"], len(image(MODELS)))
        self.assertEqual(result["needed_sector_bytes"], 4096)
        self.assertEqual(result["partitions_csv_line"], "model, data, spiffs, , 0x1000")
        self.assertIn(f"needs {len(image(MODELS))} bytes", self.succeed("partition", "check", self.image))

    def test_erased_flash(self):
        self.assertIn("erased flash", self.errors(b"\xff" * 8192))

    def test_every_truncation(self):
        data = image(MODELS)
        for size in range(0, len(data), 7):
            self.assertNotEqual(self.errors(data[:size]), "", size)

    def test_several_faults_at_once(self):
        data = bytearray(image(MODELS))
        data[4:36] = b"w" * 32
        struct.pack_into("<I", data, 40 + 32, 8)
        struct.pack_into("<I", data, 80 + 36, 1 << 31)
        errors = self.errors(bytes(data))
        for word in ("no room for its terminator", "within the header", "are missing"):
            self.assertIn(word, errors)

    def test_missing_file(self):
        self.refuse(["partition", "check", self.folder / "none.bin"], ["none.bin", "cannot open"])

    def test_strict_fails_on_warnings(self):
        path = self.write("empty.bin", image({"nsnet2": {"data": b"x", "empty": b""}}))
        self.succeed("partition", "check", path)
        self.assertEqual(bantam("partition", "check", path, "--strict").returncode, FAILED)


class Tables(PartitionTest):
    def against(self, table, *arguments):
        return self.check(self.image, "--partitions", self.write("partitions.csv", table), *arguments)

    def test_a_partition_that_fits(self):
        code, result = self.against("nvs, data, nvs, 0x9000, 0x6000\nmodel, data, spiffs, , 4K\n")
        self.assertEqual(code, 0)
        self.assertEqual(result["partition"], {"name": "model", "found": True, "bytes": 4096, "fits": True})

    def test_a_partition_that_is_too_small(self):
        big = {"wn9_x": {"data": b"x" * 10000}}
        path = self.write("big.bin", image(big))
        table = self.write("partitions.csv", "model, data, spiffs, , 8K\n")
        done = bantam("partition", "check", path, "--partitions", table)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(f"has 8192 bytes, but the models need {len(image(big))}", done.stderr)
        self.assertIn("model, data, spiffs, , 0x3000", done.stderr)

    def test_other_names_and_kinds(self):
        self.assertEqual(self.against("speech, data, spiffs, , 4K", "--name", "speech")[0], 0)
        self.assertEqual(self.against("speech, data, spiffs, , 4K")[0], FAILED)
        self.assertEqual(self.against("model, app, ota_0, , 64K")[0], FAILED)
        self.assertEqual(self.against("model, data, nvs, , 64K")[0], FAILED)
        self.assertEqual(self.against("model, data, nonsense, , 64K")[0], FAILED)

    def test_missing_table(self):
        self.refuse(["partition", "check", self.image, "--partitions", self.folder / "none.csv"], ["none.csv"])


class PackAndExtract(PartitionTest):
    def test_round_trip(self):
        out = self.folder / "out.bin"
        self.succeed("partition", "pack", self.folder / "models", "-o", out)
        self.assertEqual(parse(out.read_bytes()), MODELS)
        self.assertEqual(self.check(out)[0], 0)
        self.succeed("partition", "extract", out, "-o", self.folder / "again")
        self.succeed("partition", "pack", self.folder / "again", "-o", self.folder / "again.bin")
        self.assertEqual((self.folder / "again.bin").read_bytes(), out.read_bytes())
        self.refuse(["partition", "extract", out, "-o", self.folder / "again"], ["is there already"])

    def test_layout_of_esp_sr(self):
        out = self.folder / "out.bin"
        order = {m: dict(sorted(MODELS[m].items())) for m in ("wn9_hello", "nsnet2")}
        self.succeed("partition", "pack", self.folder / "models", "-o", out, "--align", "1", "--order", "wn9_hello")
        self.assertEqual(out.read_bytes(), image(order))

    def test_refusals_write_nothing(self):
        out = self.folder / "out.bin"
        table = self.write("partitions.csv", "model, data, spiffs, , 0x100\n")
        self.refuse(["partition", "pack", self.folder / "models", "-o", out, "--partitions", table],
                    ["bytes too few", "model, data, spiffs, , 0x1000"], OVER_BUDGET)
        self.refuse(["partition", "pack", self.folder / "models", "-o", out, "--order", "nobody"], ["'nobody'"])
        self.refuse(["partition", "pack", self.folder / "models", "-o", out, "--align", "3"], ["--align"], USAGE)
        (self.folder / "models" / "nsnet2" / ("n" * 32)).write_bytes(b"x")
        self.refuse(["partition", "pack", self.folder / "models", "-o", out], ["n" * 32, "32 bytes"])
        self.assertFalse(out.exists())

    def test_extract_never_leaves_its_folder(self):
        for name in ("../outside", "/outside", ".."):
            bad = self.write("bad.bin", image({name: {"data": b"x"}}))
            self.refuse(["partition", "extract", bad, "-o", self.folder / "into"], ["model 0"])
            bad = self.write("bad.bin", image({"model": {name: b"x"}}))
            self.refuse(["partition", "extract", bad, "-o", self.folder / "into"], ["file 0"])
        self.assertFalse((self.folder / "into").exists())
        self.assertFalse((self.folder / "outside").exists())


class Usage(PartitionTest):
    def test_needs_a_command(self):
        self.refuse(["partition"], [], USAGE)

    def test_help_has_examples(self):
        for command in ("list", "check", "pack", "extract"):
            text = self.succeed("partition", command, "--help")
            self.assertIn(f"bantam partition {command} ", text)


if __name__ == "__main__":
    cli_test.BANTAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
