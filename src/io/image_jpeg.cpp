// libjpeg reports errors by a function that must not return. Here it jumps back to the latest call_guarded, whose frame
// and callers' frames up to it own no C++ objects with destructors, as longjmp requires.
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>
// jerror.h needs jpeglib.h.
#include <jerror.h>

#include <array>

#include "fmt/format.h"
#include "io/image_format.h"

namespace bantam::io {
namespace {

/// A progressive file may ask for any number of passes over the picture; real ones have about ten.
constexpr int kMaxScans = 100;

struct Decoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf on_error{};
  std::array<char, JMSG_LENGTH_MAX> message{};
  bool damaged = false;

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&info); }  // allowed, and without effect, before creation
};

Decoder& decoder_of(j_common_ptr info) { return *static_cast<Decoder*>(info->client_data); }

[[noreturn]] void leave(j_common_ptr info) {
  Decoder& decoder = decoder_of(info);
  info->err->format_message(info, decoder.message.data());
  std::longjmp(decoder.on_error, 1);
}

/// libjpeg warns (level -1), and invents pixels, where data are damaged or missing; other levels are traces. Bytes
/// between segments, which some cameras write, do no harm.
void note_warning(j_common_ptr info, int level) {
  if (level >= 0 || info->err->msg_code == JWRN_EXTRANEOUS_DATA) return;
  Decoder& decoder = decoder_of(info);
  if (!decoder.damaged) info->err->format_message(info, decoder.message.data());
  decoder.damaged = true;
}

void ignore_text(j_common_ptr) {}

void check_scans(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number <= kMaxScans) return;
  info->err->msg_code = JERR_BAD_PROGRESSION;
  leave(info);
}

/// Runs `step` and returns true unless libjpeg gave up in it.
bool call_guarded(Decoder& decoder, void (*step)(Decoder&, void*), void* argument) {
  if (setjmp(decoder.on_error) != 0) return false;
  step(decoder, argument);
  return true;
}

void read_header(Decoder& decoder, void* argument) {
  const auto& bytes = *static_cast<std::span<const std::byte>*>(argument);
  jpeg_create_decompress(&decoder.info);
  decoder.info.progress = &decoder.progress;
  jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&decoder.info, TRUE);
}

void read_pixels(Decoder& decoder, void* argument) {
  auto* row = static_cast<std::uint8_t*>(argument);
  decoder.info.out_color_space = decoder.info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&decoder.info);
  while (decoder.info.output_scanline < decoder.info.output_height) {
    if (jpeg_read_scanlines(&decoder.info, &row, 1) == 1)
      row += std::size_t{decoder.info.output_width} * static_cast<std::size_t>(decoder.info.output_components);
  }
  jpeg_finish_decompress(&decoder.info);
}

tl::unexpected<Error> failure(const Decoder& decoder) {
  return fail(StatusCode::kInvalidArgument, fmt::format("cannot read JPEG: {}", decoder.message.data()));
}

}  // namespace

Result<void> decode_jpeg(std::span<const std::byte> bytes, const PixelMemory& memory) {
  Decoder decoder;
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.info.client_data = &decoder;
  decoder.errors.error_exit = leave;
  decoder.errors.emit_message = note_warning;
  decoder.errors.output_message = ignore_text;
  decoder.progress.progress_monitor = check_scans;
  if (!call_guarded(decoder, read_header, &bytes)) return failure(decoder);

  const int channels = decoder.info.num_components;
  if (channels != 1 && channels != 3)
    return fail(StatusCode::kUnsupported, fmt::format("the JPEG has {} colour components, expected 1 or 3", channels),
                "convert it to RGB");
  // libjpeg refuses sides beyond 65500.
  const auto pixels =
      memory({static_cast<int>(decoder.info.image_width), static_cast<int>(decoder.info.image_height), channels});
  if (!pixels) return fail(pixels.error());
  if (!call_guarded(decoder, read_pixels, *pixels) || decoder.damaged) return failure(decoder);
  return {};
}

}  // namespace bantam::io
