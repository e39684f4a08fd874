// The sizes of a session: which there are, and how they change.
#include <algorithm>

#include "bantam/runtime.h"
#include "package/layout.h"
#include "package/size_patches.h"
#include "package/verify.h"

namespace bantam {
namespace {

/// The place of the dimension of that name, or -1.
std::int32_t find_dimension(const format::Model& model, std::string_view name) {
  for (std::uint32_t i = 0; i < format::dimension_count(model); ++i)
    if (format::view(model.dimensions()->Get(i)->name()) == name) return static_cast<std::int32_t>(i);
  return -1;
}

bool is_measured(const format::Model& model, std::int32_t dimension) {
  for (std::uint32_t m = 0; m < format::measure_count(model); ++m)
    if (model.measures()->Get(m)->dimension() == static_cast<std::uint32_t>(dimension)) return true;
  return false;
}

std::int64_t read_size(const Tensor& tensor) {
  return tensor.desc->type == ElementType::kI64 ? *tensor.as<std::int64_t>() : *tensor.as<std::int32_t>();
}

/// Rewrites a session's tables for other sizes, and back.
class Resizing {
 public:
  Resizing(const format::Model& model, const void* values, const std::byte* weights)
      : model_(model),
        values_(const_cast<format::Value*>(static_cast<const format::Value*>(values))),
        tables_(SizeTables::of(values, model)),
        weights_(weights) {
    std::copy_n(tables_.sizes, format::dimension_count(model), before_);
  }

  Status choose(const DimSize& wanted) {
    const std::int32_t d = find_dimension(model_, wanted.name);
    if (d < 0) return failure(StatusCode::kNotFound, "no such dimension");
    const format::Dimension& dimension = *model_.dimensions()->Get(static_cast<std::uint32_t>(d));
    if (is_measured(model_, d))
      return failure(StatusCode::kInvalidArgument, "the model computes the size of this dimension").at(d);
    if (wanted.size > dimension.bound())
      return failure(StatusCode::kInvalidArgument, "the size is larger than the dimension's bound", wanted.size,
                     dimension.bound())
          .at(d);
    if (wanted.size < dimension.least())
      return failure(StatusCode::kInvalidArgument, "the size is smaller than the model works with", wanted.size,
                     dimension.least())
          .at(d);
    tables_.sizes[d] = static_cast<std::int32_t>(wanted.size);
    return ok_status();
  }

  Status measure(std::uint32_t d, std::int64_t size) {
    const format::Dimension& dimension = *model_.dimensions()->Get(d);
    if (size > dimension.bound())
      return failure(StatusCode::kOutOfRange, "a size that the model computes is larger than its bound", size,
                     dimension.bound());
    if (size < dimension.least())
      return failure(StatusCode::kOutOfRange, "a size that the model computes is smaller than the model works with",
                     size, dimension.least());
    tables_.sizes[d] = static_cast<std::int32_t>(size);
    return ok_status();
  }

  /// Measured sizes from the `first` measure on go back to their bounds: what they were in the last invoke need not go
  /// together with what changes now.
  void forget_measured(std::uint32_t first) {
    for (std::uint32_t m = first; m < format::measure_count(model_); ++m) {
      const std::uint32_t d = model_.measures()->Get(m)->dimension();
      tables_.sizes[d] = model_.dimensions()->Get(d)->bound();
    }
  }

  /// As the sizes are, or with those that are still to be measured, from the `first` measure on, at their bounds.
  Status rewrite(std::uint32_t first) {
    const Status rewritten = rewrite();
    if (rewritten.ok() || first >= format::measure_count(model_)) return rewritten;
    forget_measured(first);
    return rewrite();
  }

  Status rewrite() {
    BANTAM_RETURN_IF_ERROR(format::apply_patches(model_, tables_.sizes, values_, tables_.params));
    return format::verify_sizes(model_, values_, tables_.params, tables_.kernels, weights_);
  }

  /// Back to the sizes from before. They were verified when they were set, or are the package's own; should a package's
  /// patches contradict its tables, its tables count.
  void undo() {
    std::copy_n(before_, format::dimension_count(model_), tables_.sizes);
    if (!rewrite().ok()) tables_.load(model_);
  }

 private:
  const format::Model& model_;
  format::Value* values_;
  SizeTables& tables_;
  const std::byte* weights_;
  std::int32_t before_[format::kMaxDimensions];
};

}  // namespace

std::size_t Session::dim_count() const noexcept { return format::dimension_count(*model_); }

std::string_view Session::dim_name(std::size_t i) const noexcept {
  return format::view(model_->dimensions()->Get(static_cast<std::uint32_t>(i))->name());
}

std::int64_t Session::dim_least(std::size_t i) const noexcept {
  return model_->dimensions()->Get(static_cast<std::uint32_t>(i))->least();
}

std::int64_t Session::dim_bound(std::size_t i) const noexcept {
  return model_->dimensions()->Get(static_cast<std::uint32_t>(i))->bound();
}

std::int64_t Session::dim(std::string_view name) const noexcept {
  const std::int32_t d = find_dimension(*model_, name);
  return d < 0 ? -1 : SizeTables::of(values_, *model_).sizes[d];
}

bool Session::dim_is_measured(std::size_t i) const noexcept {
  return is_measured(*model_, static_cast<std::int32_t>(i));
}

Status Session::take_sizes(std::uint32_t step) noexcept {
  for (std::uint32_t m = 0; m < format::measure_count(*model_); ++m) {
    const format::Measure& measure = *model_->measures()->Get(m);
    if (measure.step() != step) continue;
    const std::int64_t size = read_size(tensor(measure.value()));
    if (size == SizeTables::of(values_, *model_).sizes[measure.dimension()]) continue;
    Resizing resizing(*model_, values_, weights_);
    Status taken = resizing.measure(measure.dimension(), size);
    if (taken.ok()) taken = resizing.rewrite(m + 1);
    if (taken.ok()) continue;
    resizing.undo();
    // The index is the step that computed the size: which step would not work with it is the package's affair.
    return failure(StatusCode::kOutOfRange, taken.message, taken.found, taken.expected)
        .at(static_cast<std::int32_t>(step) - 1);
  }
  return ok_status();
}

Status Session::set_dim(std::string_view name, std::int64_t size) noexcept {
  const DimSize one{name, size};
  return set_dims({&one, 1});
}

Status Session::set_dims(std::span<const DimSize> sizes) noexcept {
  if (sizes.empty()) return ok_status();
  if (dim_count() == 0) return failure(StatusCode::kNotFound, "the model was compiled for one size only");
  Resizing resizing(*model_, values_, weights_);
  for (const DimSize& wanted : sizes) {
    if (const Status chosen = resizing.choose(wanted); !chosen.ok()) {
      resizing.undo();
      return chosen;
    }
  }
  const Status rewritten = resizing.rewrite(0);
  if (rewritten.ok()) return ok_status();
  resizing.undo();
  return failure(StatusCode::kInvalidArgument, rewritten.message, rewritten.found, rewritten.expected)
      .at(rewritten.index);
}

}  // namespace bantam
