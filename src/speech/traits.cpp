#include "speech/traits.h"

#include <initializer_list>
#include <string_view>

namespace bantam::speech {
namespace {

// Beyond this, sizes are no recogniser's, and their products would leave 32-bit addresses.
constexpr std::int32_t kLargest = 1 << 20;
constexpr std::int64_t kMostElements = 1 << 28;

bool parse_number(std::string_view text, std::int32_t* out) noexcept {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 7) return false;
  std::int32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  *out = negative ? -value : value;
  return true;
}

/// Reads one package's recogniser. Each step returns at the first contradiction.
class Reader {
 public:
  Reader(const Package& package, Traits& traits) : package_(package), t_(traits) {}

  Status run() noexcept {
    t_.encoder = find("encoder");
    t_.ctc = find("ctc");
    t_.decoder = find("decoder");
    if (t_.encoder == kNoModel || t_.ctc == kNoModel)
      return failure(StatusCode::kNotFound, "a recogniser needs sessions called 'encoder' and 'ctc'");
    BANTAM_RETURN_IF_ERROR(read_metadata());
    BANTAM_RETURN_IF_ERROR(read_encoder());
    BANTAM_RETURN_IF_ERROR(read_ctc());
    if (t_.decoder != kNoModel) BANTAM_RETURN_IF_ERROR(read_decoder());
    return check_chunks();
  }

 private:
  std::int32_t find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < package_.session_count(); ++i)
      if (package_.session_name(i) == name) return static_cast<std::int32_t>(i);
    return kNoModel;
  }

  std::size_t model(std::int32_t session) const noexcept {
    return package_.session_model(static_cast<std::size_t>(session));
  }

  /// The first of these keys that the encoder's metadata have.
  bool number(std::initializer_list<std::string_view> keys, std::int32_t* out) const noexcept {
    for (const std::string_view key : keys)
      if (parse_number(package_.model_metadata(model(t_.encoder), key), out)) return true;
    return false;
  }

  Status read_metadata() noexcept {
    if (!number({"subsampling_rate", "subsampling_factor"}, &t_.subsampling) || t_.subsampling < 1)
      return failure(StatusCode::kInvalidModel, "the encoder's metadata have no valid subsampling_rate");
    if (!number({"right_context"}, &t_.right_context) || t_.right_context < t_.subsampling - 1)
      return failure(StatusCode::kInvalidModel, "the encoder's metadata have no valid right_context");
    has_chunk_ = number({"chunk_size"}, &declared_chunk_);
    has_left_ = number({"left_chunks"}, &declared_left_);
    return ok_status();
  }

  /// A dense f32 tensor of rank 3 with a leading 1.
  static Status check_sequence(const PortInfo& port, const char* message) noexcept {
    const TensorDesc& d = *port.desc;
    if (d.type != ElementType::kF32 || d.rank != 3 || d.dims[0] != 1 || d.dims[1] < 1 || d.dims[2] < 1 ||
        d.dims[1] > kLargest || d.dims[2] > kLargest)
      return failure(StatusCode::kInvalidModel, message);
    return ok_status();
  }

  Status read_encoder() noexcept {
    const std::size_t encoder = model(t_.encoder);
    bool has_features = false;
    bool has_offset = false;
    for (std::size_t i = 0; i < package_.model_input_count(encoder); ++i) {
      const PortInfo port = package_.model_input(encoder, i);
      if (port.name == "chunk") {
        has_features = true;
        BANTAM_RETURN_IF_ERROR(check_sequence(port, "the encoder's 'chunk' is not f32[1,T,bins]"));
        t_.window = port.desc->dims[1];
        t_.feature_bins = port.desc->dims[2];
      } else if (port.name == "att_mask") {
        t_.masked = true;
        mask_ = port.desc->elements();
        if (port.desc->type != ElementType::kBool)
          return failure(StatusCode::kInvalidModel, "the encoder's 'att_mask' is not of type bool");
      } else if (port.name == "offset") {
        has_offset = true;
        if (port.desc->type != ElementType::kI64 || port.desc->elements() != 1)
          return failure(StatusCode::kInvalidModel, "the encoder's 'offset' is not an i64 scalar");
      } else {
        return failure(StatusCode::kUnsupported,
                       "the encoder has an input that is neither chunk, offset nor att_mask; caches are states")
            .at(static_cast<std::int32_t>(i));
      }
    }
    if (!has_features) return failure(StatusCode::kInvalidModel, "the encoder has no input 'chunk'");
    if (t_.masked && !has_offset) return failure(StatusCode::kInvalidModel, "the encoder has no input 'offset'");
    if (package_.model_output_count(encoder) < 1)
      return failure(StatusCode::kInvalidModel, "the encoder has no output");
    const PortInfo output = package_.model_output(encoder, 0);
    BANTAM_RETURN_IF_ERROR(check_sequence(output, "the encoder's first output is not f32[1,T,width]"));
    t_.frames = output.desc->dims[1];
    t_.width = output.desc->dims[2];
    return ok_status();
  }

  Status read_ctc() noexcept {
    const std::size_t ctc = model(t_.ctc);
    if (package_.model_input_count(ctc) != 1 || package_.model_output_count(ctc) < 1)
      return failure(StatusCode::kInvalidModel, "the CTC model does not have one input and an output");
    const PortInfo input = package_.model_input(ctc, 0);
    const PortInfo output = package_.model_output(ctc, 0);
    BANTAM_RETURN_IF_ERROR(check_sequence(input, "the CTC model's input is not f32[1,T,width]"));
    BANTAM_RETURN_IF_ERROR(check_sequence(output, "the CTC model's output is not f32[1,T,vocabulary]"));
    if (input.desc->dims[1] != t_.frames || input.desc->dims[2] != t_.width || output.desc->dims[1] != t_.frames)
      return failure(StatusCode::kInvalidModel, "the CTC model does not take the encoder's output", input.desc->dims[1],
                     t_.frames);
    t_.vocabulary = output.desc->dims[2];
    return ok_status();
  }

  Status read_decoder() noexcept {
    const std::size_t decoder = model(t_.decoder);
    bool has_length = false;
    for (std::size_t i = 0; i < package_.model_input_count(decoder); ++i) {
      const PortInfo port = package_.model_input(decoder, i);
      const TensorDesc& d = *port.desc;
      if (port.name == "hyps" && d.type == ElementType::kI64 && d.rank == 2 && d.dims[0] == 1) {
        t_.decoder_length = d.dims[1];
      } else if (port.name == "hyps_lens" && d.type == ElementType::kI64 && d.elements() == 1) {
        has_length = true;
      } else if (port.name == "encoder_out") {
        BANTAM_RETURN_IF_ERROR(check_sequence(port, "the decoder's 'encoder_out' is not f32[1,T,width]"));
        t_.decoder_frames = d.dims[1];
        if (d.dims[2] != t_.width)
          return failure(StatusCode::kInvalidModel, "the decoder takes frames of another width", d.dims[2], t_.width);
      } else {
        return failure(StatusCode::kUnsupported,
                       "the decoder has an input that is neither hyps i64[1,L], hyps_lens i64[1] nor encoder_out")
            .at(static_cast<std::int32_t>(i));
      }
    }
    if (t_.decoder_length < 1 || !has_length || t_.decoder_frames < 1)
      return failure(StatusCode::kInvalidModel, "the decoder lacks one of hyps, hyps_lens and encoder_out");
    const std::size_t outputs = package_.model_output_count(decoder);
    if (outputs < 1 || !is_score(package_.model_output(decoder, 0)))
      return failure(StatusCode::kInvalidModel, "the decoder's first output is not f32[1,L,vocabulary]");
    std::int32_t bidirectional = 1;
    number({"is_bidirectional_decoder"}, &bidirectional);
    t_.reverse = bidirectional != 0 && outputs > 1 && is_score(package_.model_output(decoder, 1));
    if (!number({"sos_symbol"}, &t_.sos) || !number({"eos_symbol"}, &t_.eos) || t_.sos < 0 || t_.eos < 0 ||
        t_.sos >= t_.vocabulary || t_.eos >= t_.vocabulary)
      return failure(StatusCode::kInvalidModel, "the encoder's metadata have no valid sos_symbol and eos_symbol");
    return ok_status();
  }

  bool is_score(const PortInfo& port) const noexcept {
    const TensorDesc& d = *port.desc;
    return d.type == ElementType::kF32 && d.rank == 3 && d.dims[0] == 1 && d.dims[1] == t_.decoder_length &&
           d.dims[2] == t_.vocabulary;
  }

  /// Chunk and history follow from the shapes that the package was planned for; the metadata must say the same.
  Status check_chunks() noexcept {
    if (t_.encoded(t_.window) != t_.frames)
      return failure(StatusCode::kInvalidModel,
                     "encoder frames per call do not follow from subsampling_rate and right_context", t_.frames,
                     t_.encoded(t_.window));
    const std::int64_t features = std::int64_t{t_.window} * t_.feature_bins;
    const std::int64_t encoded = std::int64_t{t_.frames > t_.decoder_frames ? t_.frames : t_.decoder_frames} * t_.width;
    if (features > kMostElements || encoded > kMostElements)
      return failure(StatusCode::kUnsupported, "a stream would keep too many numbers", features + encoded,
                     kMostElements);
    const bool whole = has_chunk_ ? declared_chunk_ <= 0 : !t_.masked;
    if (whole) return ok_status();
    if (!t_.masked)
      return failure(StatusCode::kUnsupported,
                     "streaming needs an encoder with an 'att_mask': exported with left_chunks > 0");
    t_.chunk = t_.frames;
    if (has_chunk_ && declared_chunk_ != t_.chunk)
      return failure(StatusCode::kInvalidModel,
                     "the encoder was planned for another chunk_size than it was exported with", t_.chunk,
                     declared_chunk_);
    if (t_.chunk < 1 || mask_ % t_.chunk != 0 || mask_ / t_.chunk < 2 || mask_ > kLargest)
      return failure(StatusCode::kInvalidModel, "the length of 'att_mask' is not chunk_size * (left_chunks + 1)", mask_,
                     0);
    t_.left_chunks = static_cast<std::int32_t>(mask_ / t_.chunk) - 1;
    if (has_left_ && declared_left_ != t_.left_chunks)
      return failure(StatusCode::kInvalidModel,
                     "the encoder was planned for other left_chunks than it was exported with", t_.left_chunks,
                     declared_left_);
    return ok_status();
  }

  const Package& package_;
  Traits& t_;
  bool has_chunk_ = false;
  bool has_left_ = false;
  std::int32_t declared_chunk_ = 0;
  std::int32_t declared_left_ = 0;
  std::int64_t mask_ = 0;
};

}  // namespace

Status read_traits(const Package& package, Traits* out) noexcept {
  *out = {};
  return Reader(package, *out).run();
}

}  // namespace bantam::speech
