#!/usr/bin/env python3
"""`bantam plan` and fleet files as a user meets them. Usage: plan_test.py BANTAM (in the root)."""

import os
import sys
import unittest
import zipfile

import cli_test
from cli_test import FAILED, KEYWORD, MEMORY_KEYS, MODELS, OVER_BUDGET, CommandTest, bantam, onnx_model


class Plan(CommandTest):
    def test_budget_is_exact_to_the_byte(self):
        need = self.succeed_json("plan", KEYWORD, "--frontier")["frontier"][-1]["arena_bytes"]
        self.succeed("plan", KEYWORD, "--budget", need)
        words = [str(need), str(need - 1), "keyword", "set by layer"]
        for command in (["plan"], ["plan", "--json"], ["pack", "-o", self.folder / "out.bantam"], ["run"], ["bench"]):
            self.refuse([*command, KEYWORD, "--budget", need - 1], words, OVER_BUDGET)
        self.assertFalse((self.folder / "out.bantam").exists())

    def test_reductions_say_what_they_save(self):
        points = self.succeed_json("plan", KEYWORD, "--frontier")["frontier"]
        free = self.succeed_json("plan", KEYWORD)
        self.assertEqual(points[0]["arena_bytes"], free["arena_bytes"])
        self.assertEqual(free["models"][0]["reductions"], [])
        for point in points[1:]:
            plan = self.succeed_json("plan", KEYWORD, "--budget", point["arena_bytes"])
            self.assertLessEqual(plan["arena_bytes"], point["arena_bytes"])
            bytes_now = free["models"][0]["activation_bytes"]
            for step in plan["models"][0]["reductions"]:
                self.assertEqual(step["before_bytes"], bytes_now)
                self.assertLess(step["after_bytes"], bytes_now)
                bytes_now = step["after_bytes"]
            self.assertEqual(bytes_now, plan["models"][0]["activation_bytes"])

    def test_values_larger_than_the_caches_are_computed_in_bands(self):
        nodes = [("Conv", ["x", "v"], ["a"]), ("Relu", ["a"], ["b"]), ("Conv", ["b", "w"], ["y"])]
        model = onnx_model(nodes, {"x": [1, 1, 514, 514], "v": [16, 1, 3, 3], "w": [1, 16, 3, 3]},
                           {"y": [1, 1, 510, 510]})
        wide = [self.write("wide.onnx", model), "--set", "v=0.5", "--set", "w=0.25", "--target", "x86-64-avx2"]
        value = 16 * 512 * 512 * 4
        in_bands = self.succeed_json("plan", *wide)
        self.assertEqual([r["bytes_spared"] for r in in_bands["models"][0]["reductions"]], [2 * value])
        self.assertLess(in_bands["arena_bytes"], value)
        self.assertIn("values stay in the caches", self.succeed("plan", *wide))
        whole = self.succeed_json("plan", *wide, "--no-bands")
        self.assertEqual(whole["models"][0]["reductions"], [])
        self.assertGreater(whole["arena_bytes"], value)
        self.assertNotIn("caches", self.succeed("plan", *wide, "--no-bands"))

    def test_frontier_is_drawn(self):
        for name, mark in (("curve.svg", "<?xml"), ("curve.html", "<!DOCTYPE html>")):
            path = self.folder / name
            self.assertIn("without reductions", self.succeed("plan", KEYWORD, "--frontier", "--map", path))
            self.assertTrue(path.read_text().startswith(mark))
            self.assertIn("<circle", path.read_text())

    def test_external_inputs_are_not_in_the_arena(self):
        inside = self.succeed_json("plan", KEYWORD)
        outside = self.succeed_json("plan", KEYWORD, "--external-inputs")
        self.assertNotIn("input", [b["kind"] for b in outside["models"][0]["buffers"]])
        self.assertLessEqual(outside["arena_bytes"], inside["arena_bytes"])
        self.succeed("run", KEYWORD, "--external-inputs", "--input", "wave=zeros")

    def test_json_has_the_stable_keys(self):
        plan = self.succeed_json("plan", KEYWORD)
        self.assertLessEqual(MEMORY_KEYS, plan.keys())
        self.assertLessEqual(plan["lower_bound_bytes"], plan["arena_bytes"])
        self.assertLessEqual(plan["activation_bytes"] + plan["state_bytes"] + plan["table_bytes"], plan["arena_bytes"])
        self.assertTrue(plan["models"][0]["steps"])
        self.assertTrue(plan["models"][0]["buffers"])

    def test_lanes_and_priorities_are_disjoint_and_the_rest_shares(self):
        model = '[[model]]\npath = "%s"\nlane = "%s"\npriority = %d\n'
        voice = MODELS.absolute() / "voice-activity.onnx"
        session = '[[session]]\nname = "%s"\nmodel = "voice-activity"\n'
        fleet = self.write("fleet.toml", model % (voice, "sound", 0) + session % "a" + session % "b" +
                           session % "urgent" + "priority = 1\n" + session % "other" + 'lane = "more"\n')
        plan = self.succeed_json("plan", fleet)
        at = {s["name"]: s["activation_offset"] for s in plan["sessions"]}
        self.assertEqual(at["a"], at["b"])
        self.assertEqual(len({at["a"], at["urgent"], at["other"]}), 3)
        self.assertGreaterEqual(plan["activation_bytes"], 3 * plan["sessions"][0]["activation_bytes"])
        self.assertIn("urgent", self.succeed("plan", fleet))
        self.succeed("run", fleet, "--feed", "random:1")
        bad = self.write("bad.toml", model % (voice, "sound", 0) + session % "a" + 'priority = "high"\nlane = 3\n')
        self.refuse(["plan", bad], ["bad.toml:8", "'priority' must be an integer", "'lane' must be a text"])

    def test_memories(self):
        alone = self.succeed_json("plan", KEYWORD)
        fast = alone["arena_bytes"] // 2
        plan = self.succeed_json("plan", KEYWORD, "--memory", "slow=1MiB:6", "--memory", f"fast={fast}:1")
        self.assertEqual([m["name"] for m in plan["memories"]], ["fast", "slow"])
        self.assertLessEqual(plan["memories"][0]["arena_bytes"], fast)
        self.assertEqual({b["tier"] for b in plan["models"][0]["buffers"]}, {0, 1})
        cost = plan["access_cost"]
        self.assertLess(cost["all_fastest"], cost["planned"])
        self.assertLess(cost["planned"], cost["all_slowest"])
        self.succeed("run", KEYWORD, "--input", "wave=random:1", "--memory", "slow=1MiB:6", "--memory", f"fast={fast}:1")
        self.succeed("plan", KEYWORD, "--profile", "esp32-s3")
        self.succeed("plan", KEYWORD, "--memory", f"fast={fast}:1", "--memory", "slow=1MiB:6", "--map",
                     self.folder / "map.html")
        self.refuse(["plan", KEYWORD, "--memory", "a=4KiB:1", "--memory", "b=1KiB:6"],
                    ["memory 'b' of 1024 bytes is too small", "keyword", "layer '"], OVER_BUDGET)
        self.refuse(["plan", KEYWORD, "--memory", "a=many:1"], ["--memory", "a=many:1"])
        self.refuse(["plan", KEYWORD, "--memory", "a=1MiB:0"], ["'a'", "cost"])
        self.refuse(["plan", KEYWORD, "--memory", "a=1MiB", "--weights", "rom"], ["'rom'"])
        for example in ("esp32-s3", "cortex-m7"):
            self.assertIn("access cost", self.succeed("plan", MODELS.parent / "examples" / f"{example}.toml"))

    def test_weights_in_a_slow_memory_are_streamed(self):
        memories = ("--memory", "ram=256KiB:1", "--memory", "flash:24")
        near = self.succeed_json("plan", KEYWORD, *memories[:2])
        self.assertEqual((near["models"][0]["streamed"], near["access_cost"]["weights"]), ([], 0))
        plan = self.succeed_json("plan", KEYWORD, *memories, "--weights", "flash")
        model, cost = plan["models"][0], plan["access_cost"]
        self.assertTrue(model["streamed"])
        self.assertEqual(model["streamed_bytes"], sum(s["bytes"] for s in model["streamed"]))
        self.assertEqual(sum(b["bytes"] for b in model["buffers"] if b["kind"] == "weights"), model["streamed_bytes"])
        self.assertLess(cost["planned"], cost["unstreamed"])
        self.assertLess(cost["weights"], cost["planned"])
        copies = [s["name"] for s in model["steps"] if s["name"].endswith(" weights") and s["operator"] == "copy"]
        self.assertEqual(copies, [s["layer"] + " weights" for s in model["streamed"]])
        text = self.succeed("plan", KEYWORD, *memories, "--weights", "flash", "--map", self.folder / "map.html")
        self.assertIn("bytes of weights are copied per invoke", text)
        self.assertIn("if no weights were copied", text)
        self.assertIn(model["streamed"][0]["layer"], (self.folder / "map.html").read_text())
        kept = self.succeed_json("plan", KEYWORD, *memories, "--weights", "flash", "--resident")
        self.assertGreater(kept["models"][0]["resident_bytes"], 0)
        self.assertLessEqual(kept["memories"][0]["arena_bytes"], 256 << 10)
        self.assertLess(kept["access_cost"]["planned"], cost["planned"])
        both = (*memories, "--weights", "flash", "--resident", "--budget")
        within = self.succeed_json("plan", KEYWORD, *both, "140KiB")
        self.assertLessEqual(within["arena_bytes"], 140 << 10)
        self.assertLess(within["access_cost"]["planned"], within["access_cost"]["unstreamed"])
        said = []
        for more in ((), (*memories, "--weights", "flash"), (*memories, "--weights", "flash", "--resident")):
            self.succeed("run", KEYWORD, "--input", "wave=random:1", "-o", self.folder / "y.npz", *more)
            with zipfile.ZipFile(self.folder / "y.npz") as file:  # whose bytes say when it was written
                said.append({name: file.read(name) for name in file.namelist()})
        self.assertEqual(said[0], said[1])
        self.assertEqual(said[0], said[2])
        self.refuse(["plan", KEYWORD, "--resident"], ["resident", "package"])

    def test_states_are_counted(self):
        with_states = self.succeed_json("plan", MODELS / "voice-activity.onnx", "--state", "state_in=state_out")
        self.assertGreater(with_states["state_bytes"], 0)
        self.assertEqual(self.succeed_json("plan", MODELS / "voice-activity.onnx")["state_bytes"], 0)

    def test_maps(self):
        for name, start in (("map.svg", "<svg"), ("map.html", "<!")):
            self.succeed("plan", KEYWORD, "--map", self.folder / name)
            self.assertIn(start, (self.folder / name).read_text()[:200])
        self.refuse(["plan", KEYWORD, "--map", self.folder / "absent" / "map.html"], ["map.html", "No such file"])

    def test_layers(self):
        self.assertIn("* the peak", self.succeed("plan", KEYWORD, "--layers"))

    def test_problem(self):
        problem = self.write("p.csv", "id,lower,upper,size\na,0,3,4\nb,0,1,3\nc,2,3,3\n")
        solved = self.succeed_json("plan", "--problem", problem)
        self.assertEqual((solved["peak_bytes"], solved["lower_bound_bytes"], solved["fits"]), (7, 7, True))
        self.succeed("plan", "--problem", problem, "--capacity", 7, "--solution", self.folder / "s.csv")
        self.assertIn("a,0,3,4", (self.folder / "s.csv").read_text())
        too_small = bantam("plan", "--problem", problem, "--capacity", 6)
        self.assertEqual(too_small.returncode, OVER_BUDGET)
        self.assertIn("none needs less than 7", too_small.stderr)

    def test_bad_problems(self):
        for text in ("", "id,lower\n", "id,lower,upper,size\na,3,0,4\n", "id,lower,upper,size\na,0,x,4\n"):
            self.refuse(["plan", "--problem", self.write("p.csv", text)], ["p.csv"])
        self.refuse(["plan", "--problem", self.folder / "absent.csv"], ["absent.csv"])
        self.refuse(["plan"], ["--problem"])
        self.refuse(["plan", KEYWORD, "--problem", self.write("p.csv", "id,lower,upper,size\n")], ["--problem"])


class FleetFiles(CommandTest):
    def expect(self, text, words, code=FAILED):
        path = self.write("fleet.toml", text)
        for command in (["plan"], ["run"], ["bench"], ["pack", "-o", self.folder / "out.bantam"]):
            with self.subTest(command=command[0], text=text):
                self.refuse([*command, path], words, code)

    def test_typo_in_a_key(self):
        self.expect(f'[[model]]\npath = "{KEYWORD}"\ndimz = {{ batch = 1 }}\n', ["fleet.toml:3", "dimz", "dims"])

    def test_syntax_error(self):
        self.expect("[[model]\n", ["fleet.toml:1"])

    def test_every_finding_in_one_go(self):
        self.expect(f'budgett = 3\n[[model]]\npath = "{KEYWORD}"\nstep = {{ wave = 0 }}\n[[link]]\nfrom = "a"\nto = "b.c"\n',
                    ["budgett", "step.wave", "session.port"])

    def test_wrong_types(self):
        self.expect('[[model]]\npath = 3\n', ["path", "text"])
        self.expect(f'budget = "lots"\n[[model]]\npath = "{KEYWORD}"\n', ["lots"])
        self.expect('model = 3\n', ["[[model]]"])

    def test_empty(self):
        self.expect("", ["no model"])

    def test_model_that_is_not_there(self):
        self.expect('[[model]]\npath = "absent.onnx"\n', ["absent.onnx", "No such file"])

    def test_bad_references(self):
        model = f'[[model]]\npath = "{KEYWORD}"\n'
        self.expect(model + '[[session]]\nname = "s"\nmodel = "keywort"\n', ["keywort"])
        self.expect(model + '[[link]]\nfrom = "keyword.nothing"\nto = "keyword.wave"\n', ["nothing", "log_probabilities"])
        self.expect(model + '[[link]]\nfrom = "keywort.x"\nto = "keyword.wave"\n', ["keywort"])
        self.expect(model + model, ["two models", "keyword"])

    def test_budget_in_the_file(self):
        need = self.succeed_json("plan", KEYWORD, "--frontier")["frontier"][-1]["arena_bytes"]
        self.expect(f'budget = {need - 1}\n[[model]]\npath = "{KEYWORD}"\n', [str(need)], OVER_BUDGET)

    def test_the_bundled_fleet(self):
        plan = self.succeed_json("plan", MODELS / "demo.toml")
        self.assertLessEqual(MEMORY_KEYS, plan.keys())
        self.assertLess(plan["arena_bytes"], plan["separate_bytes"])
        run = self.succeed_json("run", MODELS / "demo.toml", "--rounds", 2)
        self.assertEqual(run["arena_bytes"], plan["arena_bytes"])
        self.assertEqual(run["allocations"], 0)


if __name__ == "__main__":
    cli_test.BANTAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
