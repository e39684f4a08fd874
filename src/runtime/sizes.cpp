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
  const Status rewritten = resizing.rewrite();
  if (rewritten.ok()) return ok_status();
  resizing.undo();
  return failure(StatusCode::kInvalidArgument, rewritten.message, rewritten.found, rewritten.expected)
      .at(rewritten.index);
}

}  // namespace bantam
