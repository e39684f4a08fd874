#!/bin/sh
# Regenerates everything under models/: inputs, models, references, labels, scores and the tables of MODELS.md.
# Needs what scripts/dependencies.sh train installs; see MODELS.md.
# Runs on one core; synthesised speech is cached outside the repository (BANTAM_TRAIN_CACHE).
set -eu
cd "$(dirname "$0")"
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1

for script in make_inputs train_sign train_digit_reader train_scene train_shape_detector train_voice_activity \
    train_keyword train_denoise train_recogniser describe; do
  echo "== $script"
  /usr/bin/python3 "$script.py"
done
