#!/usr/bin/env python3
"""`bantam listen` as a user meets it. Usage: listen_test.py BANTAM (in the root)."""

import os
import sys
import unittest
import wave

import cli_test
from cli_test import CommandTest, USAGE


class Listen(CommandTest):
    CONFIG = cli_test.MODELS / "front-end.toml"
    MIXTURE = cli_test.MODELS / "inputs/mixture.wav"

    def test_says_the_plan_first_and_then_what_it_hears(self):
        said = self.succeed("listen", self.CONFIG, self.MIXTURE)
        lines = said.splitlines()
        self.assertEqual(lines[0], "[input] -> |NS(denoise)| -> |VAD(voice-activity)| -> "
                                   "|WAKE(keyword: yes, stop)| -> [output]")
        heard = next(i for i, line in enumerate(lines) if 'wake word "yes"' in line)
        planned = next(i for i, line in enumerate(lines) if line.startswith("one block"))
        self.assertLess(planned, heard)
        self.assertRegex(said, r"speech until \d")
        self.assertRegex(said, r"real-time factor \d")
        self.assertRegex(said, "allocations after start: (0|not counted in this build)\n")

    def test_json_is_the_same_for_every_chunk(self):
        results = []
        for chunk in (1, 160, 100000):
            results.append(self.succeed_json("listen", self.CONFIG, self.MIXTURE, "--chunk", chunk))
            self.assertEqual(results[-1]["allocations"], 0)
        self.assertEqual([e["word"] for e in results[0]["events"] if e["kind"] == "wake"], ["yes"])
        for result in results[1:]:
            self.assertEqual(result["events"], results[0]["events"])
        self.assertEqual(sum(part["bytes"] for part in results[0]["parts"]), results[0]["block_bytes"])

    def test_writes_the_enhanced_sound(self):
        out = self.folder / "clean.wav"
        self.succeed("listen", self.CONFIG, self.MIXTURE, "-o", out)
        with wave.open(str(out)) as sound, wave.open(str(self.MIXTURE)) as original:
            self.assertEqual((sound.getframerate(), sound.getnchannels()), (16000, 1))
            self.assertGreaterEqual(sound.getnframes(), original.getnframes())

    def test_takes_channels_from_several_files_at_any_rate(self):
        fast = self.folder / "fast.wav"
        with wave.open(str(fast), "wb") as sound:
            sound.setparams((2, 2, 44100, 0, "NONE", ""))
            sound.writeframes(b"\x00\x01" * 2 * 44100)
        document = self.succeed_json("listen", self.CONFIG, self.MIXTURE, fast, "--format", "MNR")
        self.assertIn("AEC(speex)", document["pipeline"])
        self.assertEqual(document["changes"], [])
        self.assertIn("yes", [e.get("word") for e in document["events"]])

    def test_reports_changes_and_strict_refuses_them(self):
        two = self.folder / "two.wav"
        with wave.open(str(two), "wb") as sound:
            sound.setparams((2, 2, 16000, 0, "NONE", ""))
            sound.writeframes(bytes(4 * 16000))
        said = self.succeed("listen", self.CONFIG, two, "--format", "MM")
        self.assertIn("changed: input.format: 2 microphones -> number 0: there is no beam forming", said)
        self.refuse(["listen", self.CONFIG, two, "--format", "MM", "--strict"], ["2 microphones would become number 0"])

    def test_bad_input_is_told(self):
        self.refuse(["listen", self.CONFIG, self.MIXTURE, "--format", "MR"],
                    ['the files have 1 channels, the format "MR" has 2'])
        self.refuse(["listen", self.CONFIG, self.MIXTURE, "--format", "X"], ["none of M, R, N"])
        self.refuse(["listen", self.CONFIG, self.folder / "none.wav"], ["none.wav"])
        bad = self.folder / "bad.toml"
        bad.write_text("[ns]\nmodel = \"nobody\"\nvolume = 11\n")
        self.refuse(["listen", bad, self.MIXTURE], ["bad.toml:3: unknown key 'volume'"])
        bad.write_text("[ns]\nmodel = \"nobody\"\n")
        self.refuse(["listen", bad, self.MIXTURE], ["'nobody', which the fleet does not have"])
        self.refuse(["listen", self.CONFIG, self.MIXTURE, "--chunk", "0"], ["--chunk"], USAGE)


if __name__ == "__main__":
    cli_test.BANTAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
