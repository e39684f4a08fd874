// The entry points of the fuzzers: one function per reader of untrusted bytes. A libFuzzer program calls one of them
// (driver.cpp); fuzz_regression_test replays the inputs that once failed through all of them.
//
// Each function takes any bytes and returns when the reader has answered as it promises; a broken promise ends the
// process (support.h). Nothing is kept between calls, except by a reader that leaks.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace bantam::fuzz {

struct Target {
  std::string_view name;  ///< of the program, the seeds' folder and the reproducers' folder
  void (*run)(std::span<const std::byte> bytes);
};

void fuzz_onnx(std::span<const std::byte> bytes);
void fuzz_tflite(std::span<const std::byte> bytes);
void fuzz_package(std::span<const std::byte> bytes);
void fuzz_fleet_file(std::span<const std::byte> bytes);
void fuzz_front_end_file(std::span<const std::byte> bytes);
void fuzz_problem_csv(std::span<const std::byte> bytes);
void fuzz_npy(std::span<const std::byte> bytes);
void fuzz_npz(std::span<const std::byte> bytes);
void fuzz_sound(std::span<const std::byte> bytes);
void fuzz_image(std::span<const std::byte> bytes);
void fuzz_input_spec(std::span<const std::byte> bytes);
void fuzz_graph_text(std::span<const std::byte> bytes);
void fuzz_partition(std::span<const std::byte> bytes);
void fuzz_flash_table(std::span<const std::byte> bytes);
void fuzz_units(std::span<const std::byte> bytes);

inline constexpr Target kTargets[] = {
    {"onnx", fuzz_onnx},
    {"tflite", fuzz_tflite},
    {"package", fuzz_package},
    {"fleet_file", fuzz_fleet_file},
    {"front_end_file", fuzz_front_end_file},
    {"problem_csv", fuzz_problem_csv},
    {"npy", fuzz_npy},
    {"npz", fuzz_npz},
    {"sound", fuzz_sound},
    {"image", fuzz_image},
    {"input_spec", fuzz_input_spec},
    {"graph_text", fuzz_graph_text},
    {"partition", fuzz_partition},
    {"flash_table", fuzz_flash_table},
    {"units", fuzz_units},
};

}  // namespace bantam::fuzz
