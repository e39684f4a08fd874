// NumPy's .npy format: versions 1, 2 and 3, little and big endian, C and Fortran order on reading; version 1, little
// endian, C order on writing. Element types: bool, i1..i8, u1..u8, f2, f4, f8, of any shape up to rank 8, 0-d and
// zero-length included. Called by the npz reader and by the input loader.
//
// Untrusted bytes: nothing is allocated before the declared shape has been compared with the bytes that are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bantam/error.h"
#include "io/array.h"

namespace bantam::io {

struct NpyHeader {
  TensorDesc desc;              ///< dense, row-major
  bool fortran_order = false;   ///< the file lists the first index fastest
  bool big_endian = false;      ///< elements of more than one byte need their bytes swapped
  std::size_t data_offset = 0;  ///< bytes from the start of the file to the first element
};

/// Longest header that is read, in bytes; NumPy's own are below 200 for arrays of these types.
inline constexpr std::size_t kMaxNpyHeaderBytes = 1 << 16;

/// Bytes at the start of a file that tell how long its header is.
inline constexpr std::size_t kNpyPrefixBytes = 12;

/// Total length of magic, version and header, from at least the first kNpyPrefixBytes bytes (or all of a shorter file).
Result<std::size_t> npy_header_bytes(std::span<const std::byte> prefix);

/// The header alone; `bytes` must hold at least npy_header_bytes(bytes).
Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes);

/// The elements that follow a header, in C order and host byte order. `data` must have header.desc.bytes() bytes.
Result<Array> parse_npy_data(const NpyHeader& header, std::span<const std::byte> data);

/// A whole file. Bytes after the last element are an error.
Result<Array> parse_npy(std::span<const std::byte> bytes);

/// The array as a .npy file. Fails for bf16 and i4, which NumPy has no name for.
Result<std::vector<std::byte>> encode_npy(const Array& array);

Result<Array> read_npy(const std::string& path);
Result<void> write_npy(const std::string& path, const Array& array);

}  // namespace bantam::io
