// A permutation of tensor axes, with the algebra that layout passes need. A small value type.
//
// As a layout of a value x it says: what is stored is transpose(x, perm), that is stored.dims[i] = x.dims[perm[i]].
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "bantam/tensor.h"
#include "ops/op.h"

namespace bantam::passes {

struct Permutation {
  int rank = 0;
  std::array<int, kMaxRank> v{};

  static Permutation identity(int rank) {
    Permutation p;
    p.rank = rank;
    for (int i = 0; i < rank; ++i) p.v[static_cast<std::size_t>(i)] = i;
    return p;
  }
  static Permutation of(const ops::IntList& list) {
    Permutation p;
    p.rank = list.size;
    for (int i = 0; i < list.size; ++i) p.v[static_cast<std::size_t>(i)] = list.v[i];
    return p;
  }
  static Permutation of(std::span<const int> axes) {
    Permutation p;
    p.rank = static_cast<int>(axes.size());
    for (int i = 0; i < p.rank; ++i) p.v[static_cast<std::size_t>(i)] = axes[static_cast<std::size_t>(i)];
    return p;
  }

  /// Empty for the identity.
  ops::IntList list() const {
    ops::IntList axes;
    if (is_identity()) return axes;
    axes.size = rank;
    for (int i = 0; i < rank; ++i) axes.v[i] = (*this)[i];
    return axes;
  }

  int operator[](int i) const { return v[static_cast<std::size_t>(i)]; }
  std::span<const int> span() const { return {v.data(), static_cast<std::size_t>(rank)}; }
  auto operator<=>(const Permutation&) const = default;

  bool is_identity() const { return *this == identity(rank); }

  /// transpose(transpose(x, *this), next) as one transpose of x.
  Permutation then(const Permutation& next) const {
    Permutation p;
    p.rank = rank;
    for (int i = 0; i < rank; ++i) p.v[static_cast<std::size_t>(i)] = (*this)[next[i]];
    return p;
  }
  Permutation inverse() const {
    Permutation p;
    p.rank = rank;
    for (int i = 0; i < rank; ++i) p.v[static_cast<std::size_t>((*this)[i])] = i;
    return p;
  }
  /// Where axis `axis` of the value lies in the stored tensor.
  int position(int axis) const { return inverse()[axis]; }

  /// The axes of `x` with more than one element in their stored order: two layouts with the same order hold the same
  /// bytes.
  std::vector<int> order(const TensorDesc& x) const {
    std::vector<int> axes;
    for (int i = 0; i < rank; ++i)
      if (x.dims[(*this)[i]] != 1) axes.push_back((*this)[i]);
    return axes;
  }
  /// True when transposing `x` moves no bytes: only axes of one element change their place.
  bool is_view(const TensorDesc& x) const {
    int last = -1;
    for (int i = 0; i < rank; ++i) {
      if (x.dims[(*this)[i]] == 1) continue;
      if ((*this)[i] < last) return false;
      last = (*this)[i];
    }
    return true;
  }
  /// The dims of transpose(x, *this), dense.
  TensorDesc apply(const TensorDesc& x) const {
    TensorDesc y = x;
    for (int i = 0; i < rank; ++i) y.dims[i] = x.dims[(*this)[i]];
    y.set_dense_strides();
    return y;
  }
};

}  // namespace bantam::passes
