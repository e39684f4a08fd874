"""What every training script shares: seeds, the training loop, ONNX export, reference tensors, scores.

Each script in this folder builds one model (or a linked pair), trains it on data it synthesises itself, measures it on
held-out data and calls `publish`, which writes `models/<name>.onnx`, `models/reference/<name>.npz`,
`models/labels/<name>.txt` and the model's entry in `models/scores.json`.
"""

import argparse
import json
import math
import random
import re
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import torch

MODELS = Path(__file__).resolve().parent.parent
INPUTS = MODELS / "inputs"
OPSET = 13


@dataclass
class ModelSpec:
    """Names and shapes of a model's tensors, in the order of the module's arguments and results."""

    name: str
    inputs: dict  # tensor name -> shape
    outputs: list  # tensor names
    states: dict = field(default_factory=dict)  # input name -> the output that is fed back to it
    dynamic_axes: dict = field(default_factory=dict)
    labels: list = field(default_factory=list)
    keep_batch_norm: bool = True  # False lets the exporter fold batch norm into the convolutions


def parse_steps(default):
    """The number of training steps; `--steps` shortens a trial run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=default, help=f"training steps (default {default})")
    return parser.parse_args().steps


def set_seed(seed):
    """One thread and fixed seeds, so that a second run on the same machine gives the same weights. The threads of the
    library for matrix products are not PyTorch's: OMP_NUM_THREADS=1, set before Python starts, keeps them to one."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def train(model, steps, next_batch, loss_of, learning_rate=3e-3, weight_decay=1e-4, warm_up=100, after_step=None):
    """AdamW with a short warm-up and a cosine decay. Returns the minutes of processor time it took. `after_step` is
    called with the number of each finished step."""
    start = time.process_time()
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_factor(step, steps, warm_up))
    model.train()
    running = None
    for step in range(steps):
        loss = loss_of(model, next_batch(step))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        if step % 100 == 99 or step + 1 == steps:
            print(f"step {step + 1}/{steps} loss {running:.4f} {time.process_time() - start:.0f} s", flush=True)
        if after_step:
            after_step(step + 1)
    model.eval()
    return (time.process_time() - start) / 60


def rate_factor(step, steps, longest_warm_up):
    warm_up = max(1, min(longest_warm_up, steps // 10))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 + 0.5 * math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up))


def publish(spec, module, cases, scores, minutes):
    """Writes everything that is kept of a trained model. `cases` maps a case name to a list of steps, each a dict of
    input arrays without the states; a model with states runs the steps of a case in order from zero states."""
    module.eval()
    path = export(spec, module)
    write_reference(spec, module, cases)
    if spec.labels:
        target = MODELS / "labels" / f"{spec.name}.txt"
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n".join(spec.labels) + "\n")
    record_scores(spec.name, scores, minutes, path.stat().st_size)


def export(spec, module):
    """Exports a model to models/<name>.onnx. Returns the path."""
    path = MODELS / f"{spec.name}.onnx"
    example = tuple(torch.zeros(shape) for shape in spec.inputs.values())
    write_onnx(path, module, dict(zip(spec.inputs, example)), spec.outputs, spec.dynamic_axes, spec.keep_batch_norm)
    return path


def write_onnx(path, module, example, outputs, dynamic_axes, keep_batch_norm=True, metadata=None):
    """Writes a module as ONNX without anything that tells of the machine it was made on. `example` maps the names of
    its arguments, in their order, to tensors."""
    mode = torch.onnx.TrainingMode.PRESERVE if keep_batch_norm else torch.onnx.TrainingMode.EVAL
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(example.values()),
            str(path),
            opset_version=OPSET,
            training=mode,
            input_names=list(example),
            output_names=outputs,
            dynamic_axes=dynamic_axes,
        )
    model = onnx.load(str(path))
    clean(model, path.stem)
    state_sizes(model.graph.output, run(module, example.values()), dynamic_axes)
    onnx.helper.set_model_props(model, metadata or {})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, str(path))


def state_sizes(outputs, results, dynamic_axes):
    """Replaces names that the exporter made up for dimensions which are no dynamic axes by their sizes."""
    for output, result in zip(outputs, results):
        for axis, dimension in enumerate(output.type.tensor_type.shape.dim):
            if axis not in dynamic_axes.get(output.name, {}):
                dimension.dim_value = result.shape[axis]


def clean(model, name):
    """Drops doc strings, names the graph, and gives the weights and constants the exporter numbered a name that says
    where they belong (`/lstm/LSTM.1` is the second input of node `/lstm/LSTM`)."""
    model.doc_string = ""
    model.graph.doc_string = ""
    model.graph.name = name
    renamed = {}
    for node in model.graph.node:
        node.doc_string = ""
        for slot, value in enumerate(node.input):
            if value.startswith("onnx::"):
                node.input[slot] = renamed.setdefault(value, f"{node.name}.{slot}")
    for node in model.graph.node:
        for slot, value in enumerate(node.output):
            node.output[slot] = renamed.get(value, value)
    for tensor in model.graph.initializer:
        tensor.name = renamed.get(tensor.name, tensor.name)


def run(module, arguments):
    """The module's results, always as a tuple."""
    with torch.no_grad():
        result = module(*arguments)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def run_module(spec, module, feeds):
    results = run(module, [torch.from_numpy(feeds[name]) for name in spec.inputs])
    return {name: value.numpy() for name, value in zip(spec.outputs, results)}


def write_reference(spec, module, cases):
    """Writes inputs and outputs of all cases as `in.<tensor>.<case>` and `out.<tensor>.<case>`; the steps of a model
    with states are cases `<case>-s0`, `<case>-s1`, ..."""
    tensors = {}
    for case, steps in cases.items():
        state = {name: np.zeros(spec.inputs[name], np.float32) for name in spec.states}
        for index, step in enumerate(steps):
            feeds = {**{k: np.ascontiguousarray(v, np.float32) for k, v in step.items()}, **state}
            results = run_module(spec, module, feeds)
            label = f"{case}-s{index}" if spec.states else case
            tensors.update({f"in.{key_of(k)}.{label}": v for k, v in feeds.items()})
            tensors.update({f"out.{key_of(k)}.{label}": v for k, v in results.items()})
            state = {name: results[source] for name, source in spec.states.items()}
    target = MODELS / "reference" / f"{spec.name}.npz"
    target.parent.mkdir(exist_ok=True)
    np.savez_compressed(target, **tensors)


def key_of(tensor):
    return re.sub(r"[^A-Za-z0-9_]", "_", tensor)


def record_scores(name, scores, minutes, size):
    """Replaces the model's entry in scores.json; numbers are rounded so that the file stays readable."""
    path = MODELS / "scores.json"
    table = json.loads(path.read_text()) if path.exists() else {}
    rounded = {key: round(float(value), 4) for key, value in scores.items()}
    table[name] = {"bytes": size, "training_cpu_minutes": round(minutes, 1), **rounded}
    path.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n")
    print(name, json.dumps(table[name]), flush=True)


def coarse_noise(seed, shape, low=0.0, high=1.0):
    """Seeded random input on a grid of 1/256, so that a reference file compresses."""
    values = np.random.default_rng(seed).uniform(low, high, shape)
    return (np.round(values * 256) / 256).astype(np.float32)
