#!/usr/bin/env python3
"""`bantam transcribe` as a user meets it. Usage: transcribe_test.py BANTAM (in the root)."""

import json
import os
import pathlib
import shutil
import struct
import sys
import unittest
import wave

import cli_test
from cli_test import CommandTest, USAGE

FOLDERS = [folder for folder in (pathlib.Path("models/recogniser"), pathlib.Path("../shared/models/wenet-tiny"))
           if (folder / "test/expected.json").is_file()]


def wav(rate, samples):
    """16-bit mono."""
    data = struct.pack(f"<{len(samples)}h", *samples)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16,
                       b"data", len(data))
    return head + data


def without_repeated_end(partials):
    """Some records leave out the partial result at the sound's end when no frame was left for the encoder."""
    return partials[:-1] if len(partials) > 1 and partials[-1] == partials[-2] else partials


class Transcribe(CommandTest):
    def sounds(self, folder):
        return sorted((folder / "test").glob("*.wav"))

    def expected(self, folder):
        return json.loads((folder / "test/expected.json").read_text())

    def test_texts_scores_and_error_rate(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                expected = self.expected(folder)
                done = self.succeed_json("transcribe", *self.sounds(folder), "--model", folder, "--ref",
                                         folder / "test/text")
                self.assertEqual({f["key"] for f in done["files"]}, set(expected))
                edits = characters = 0
                for file in done["files"]:
                    best = file["segments"][0]["nbest"][0]
                    recorded = expected[file["key"]]["rescored_rw0"]
                    self.assertEqual(file["text"], recorded["text"])
                    self.assertEqual(without_repeated_end(file["partials"]),
                                     without_repeated_end(expected[file["key"]]["partials"]))
                    self.assertAlmostEqual(best["score"], recorded["score"], delta=1e-3)
                    self.assertEqual("".join(u["unit"] for u in best["units"]).replace("\u2581", " ").strip(),
                                     best["text"])
                    for unit in best["units"]:
                        self.assertLessEqual(unit["start_ms"], unit["end_ms"])
                    edits += file["errors"]["edits"]
                    characters += file["errors"]["characters"]
                self.assertAlmostEqual(done["character_error_rate"], edits / characters)
                self.assertEqual(done["allocations"], 0)
                self.assertGreater(done["real_time_factor"], 0)
                memory = done["memory"]
                self.assertGreaterEqual(memory["stream_bytes"], memory["arena_bytes"] + memory["search_bytes"])

    def test_pieces_of_any_size_give_the_same(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                results = [self.succeed_json("transcribe", self.sounds(folder)[0], "--model", folder, "--chunk-ms", ms)
                           for ms in (10, 1000, 2.5)]
                for result in results[1:]:
                    for key in ("text", "partials", "segments"):
                        self.assertEqual(result["files"][0][key], results[0]["files"][0][key])

    def test_other_sample_rates_are_resampled(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                sound = self.sounds(folder)[0]
                with wave.open(str(sound)) as file:
                    samples = struct.unpack(f"<{file.getnframes()}h", file.readframes(file.getnframes()))
                # Every sample three times, a little smoothed: the same sound at 48 kHz.
                thrice = [s for s in samples for _ in range(3)]
                smooth = [(a + b + c) // 3 for a, b, c in zip([0] + thrice, thrice, thrice[1:] + [0])]
                path = self.write("fast.wav", wav(48000, smooth))
                text = self.expected(folder)[sound.stem]["rescored_rw0"]["text"]
                self.assertEqual(self.succeed_json("transcribe", path, "--model", folder)["files"][0]["text"], text)

    def test_says_what_it_needs_before_it_runs(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                text = self.succeed("transcribe", self.sounds(folder)[0], "--model", folder, "--partials")
                for words in ("a stream: ", "weights, shared", "real-time factor", "inside the clock", "allocations"):
                    self.assertIn(words, text)

    def test_what_cannot_work_is_refused(self):
        for folder in FOLDERS:
            with self.subTest(folder=folder):
                sound = self.sounds(folder)[0]
                self.refuse(["transcribe", sound, "--model", folder, "--chunk-size", "8"], ["chunk_size = 16", "8"])
                self.refuse(["transcribe", sound, "--model", folder, "--left-chunks", "-1"], ["left_chunks = 4"])
                self.refuse(["transcribe", sound, "--model", folder, "--reverse-weight", "2"], ["reverse_weight"])
                units = self.write("units.txt", "a 0\nb 1\n")
                self.refuse(["transcribe", sound, "--model", folder, "--units", units], ["units.txt", "2 units"])
                units = self.write("broken.txt", "a zero\n")
                self.refuse(["transcribe", sound, "--model", folder, "--units", units], ["broken.txt"])
                self.refuse(["transcribe", self.folder / "absent.wav", "--model", folder], ["absent.wav"])
                # A decoder of another model: its ports are not a decoder's.
                mixed = self.folder / "mixed"
                shutil.copytree(folder, mixed)
                shutil.copyfile(folder / "ctc.onnx", mixed / "decoder.onnx")
                self.refuse(["transcribe", sound, "--model", mixed], ["decoder.onnx", "hidden"])
                (mixed / "encoder.onnx").write_bytes((folder / "encoder.onnx").read_bytes()[:5000])
                self.refuse(["transcribe", sound, "--model", mixed], ["encoder.onnx"])
                shutil.rmtree(mixed)

    def test_a_model_that_is_not_there(self):
        sound = self.write("sound.wav", wav(16000, [0] * 1600))
        self.refuse(["transcribe", sound, "--model", self.folder / "none"], ["encoder.onnx"])
        self.refuse(["transcribe"], ["sounds"], USAGE)


if __name__ == "__main__":
    if not FOLDERS:
        print("no recogniser is there: neither models/recogniser nor ../shared/models/wenet-tiny")
    cli_test.BANTAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
