#!/usr/bin/env bash
# Runs a program for 64-bit Arm in the emulator: scripts/run_arm64.sh SYSROOT PROGRAM [ARGUMENT ...]
# BANTAM_EMULATED_CPU names the processor (default: max, which has every instruction set).
exec qemu-aarch64 -cpu "${BANTAM_EMULATED_CPU:-max}" -L "$1" "${@:2}"
