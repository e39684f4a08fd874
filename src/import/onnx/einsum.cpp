// ONNX Einsum as a chain of transposes, reshapes and matrix products.
//
// Operands are contracted from left to right. For each pair, indices that both have and a later operand or the result
// still needs become the batch, indices that both have and nobody needs any more are summed by the matrix product, and
// the others become rows and columns.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "import/onnx/lowering.h"
#include "ops/data/slice/slice.h"
#include "ops/nn/matmul/matmul.h"

namespace bantam::import::onnx {
namespace {

/// An index of the equation: a letter, or kEllipsis + k for the k-th dimension from the end that "..." stands for.
using Index = int;
using Indices = std::vector<Index>;
constexpr Index kEllipsis = 1000;

bool contains(const Indices& indices, Index i) { return std::find(indices.begin(), indices.end(), i) != indices.end(); }

/// A tensor whose axes have names.
struct Term {
  ValueId value = kNone;
  Indices indices;
};

/// The sizes of the equation's indices; 1 gives way to any other size.
using Sizes = std::map<Index, std::int64_t>;

class Einsum {
 public:
  explicit Einsum(NodeLowering& n) : n_(n) {}
  ValueId run(std::string_view equation);

 private:
  bool parse(std::string_view equation);
  Indices parse_term(std::string_view text, int ellipsis_rank);
  void infer_result();
  Term diagonal(Term term);
  Term sum_unneeded(Term term, const Indices& needed);
  Term spread(Term term);
  Term contract(Term a, Term b, const Indices& needed);
  ValueId arrange(const Term& term, const Indices& order);
  std::int64_t product(const Indices& indices) const;
  void invalid(std::string_view what) {
    n_.fail(fmt::format("attribute 'equation' = '{}': {}", printable(equation_), what), StatusCode::kInvalidModel);
  }

  NodeLowering& n_;
  std::string equation_;
  std::vector<Term> terms_;
  Indices result_;
  bool explicit_result_ = false;
  Sizes sizes_;
};

Indices Einsum::parse_term(std::string_view text, int ellipsis_rank) {
  Indices indices;
  bool ellipsis = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "..." && !ellipsis) {
      ellipsis = true;
      for (int k = ellipsis_rank; k-- > 0;) indices.push_back(kEllipsis + k);
      i += 2;
    } else if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
      indices.push_back(text[i]);
    } else {
      invalid("only letters, commas, '...' and '->' are allowed");
      return {};
    }
  }
  return indices;
}

bool Einsum::parse(std::string_view equation) {
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(equation_), [](char c) { return c != ' '; });
  const std::size_t arrow = equation_.find("->");
  explicit_result_ = arrow != std::string::npos;
  std::string_view left = std::string_view(equation_).substr(0, arrow);
  int ellipsis_rank = 0;
  for (int operand = 0; operand < n_.inputs(); ++operand) {
    const std::size_t comma = left.find(',');
    const std::string_view text = left.substr(0, comma);
    if ((comma == std::string_view::npos) != (operand + 1 == n_.inputs()))
      invalid("it does not have one term per operand");
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    const ValueId value = n_.input(operand);
    const bool ellipsis = text.find("...") != std::string_view::npos;
    const int letters = static_cast<int>(text.size()) - (ellipsis ? 3 : 0);
    const int covered = n_.rank(value) - letters;
    if (covered < 0 || (!ellipsis && covered != 0)) invalid("a term does not fit the rank of its operand");
    if (n_.failed()) return false;
    ellipsis_rank = std::max(ellipsis_rank, covered);
    Term term{value, parse_term(text, covered)};
    if (n_.failed()) return false;
    const auto dims = n_.dims(value);
    for (std::size_t i = 0; i < dims.size(); ++i) {
      std::int64_t& size = sizes_.emplace(term.indices[i], dims[i]).first->second;
      if (size == 1) size = dims[i];
      if (dims[i] != 1 && dims[i] != size) invalid("an index stands for dimensions of different size");
    }
    terms_.push_back(std::move(term));
  }
  if (explicit_result_) result_ = parse_term(std::string_view(equation_).substr(arrow + 2), ellipsis_rank);
  if (!explicit_result_) infer_result();
  for (const Index i : result_)
    if (!sizes_.contains(i) || std::count(result_.begin(), result_.end(), i) > 1)
      invalid("the result has an index twice or one that no operand has");
  return !n_.failed();
}

/// Without "->": the ellipsis, then the letters that occur once, in order.
void Einsum::infer_result() {
  std::map<Index, int> count;
  for (const Term& term : terms_)
    for (const Index i : term.indices) ++count[i];
  for (auto i = count.rbegin(); i != count.rend() && i->first >= kEllipsis; ++i) result_.push_back(i->first);
  for (const auto& [index, times] : count)
    if (index < kEllipsis && times == 1) result_.push_back(index);
}

std::int64_t Einsum::product(const Indices& indices) const {
  std::int64_t p = 1;
  for (const Index i : indices) p *= sizes_.at(i);
  return p;
}

/// The axes of a term in another order.
ValueId Einsum::arrange(const Term& term, const Indices& order) {
  std::vector<int> perm;
  for (const Index i : order)
    perm.push_back(static_cast<int>(std::find(term.indices.begin(), term.indices.end(), i) - term.indices.begin()));
  return n_.transpose(term.value, perm);
}

/// An index that stands twice in one term selects the diagonal: every (size + 1)-th element of both axes as one.
Term Einsum::diagonal(Term term) {
  for (std::size_t i = 0; i < term.indices.size() && !n_.failed(); ++i) {
    const auto again =
        std::find(term.indices.begin() + static_cast<std::ptrdiff_t>(i) + 1, term.indices.end(), term.indices[i]);
    if (again == term.indices.end()) continue;
    const auto j = static_cast<std::size_t>(again - term.indices.begin());
    const auto dims = n_.dims(term.value);
    if (dims[i] != dims[j]) {
      invalid("an index stands for dimensions of different size");
      break;
    }
    std::vector<int> perm;
    Indices rest;
    std::vector<std::int64_t> flat;
    for (std::size_t k = 0; k < dims.size(); ++k) {
      if (k == i || k == j) continue;
      perm.push_back(static_cast<int>(k));
      rest.push_back(term.indices[k]);
      flat.push_back(dims[k]);
    }
    perm.push_back(static_cast<int>(i));
    perm.push_back(static_cast<int>(j));
    rest.push_back(term.indices[i]);
    flat.push_back(dims[i] * dims[j]);
    const ValueId square = n_.reshape(n_.transpose(term.value, perm), flat);
    if (n_.failed()) break;
    ops::SliceParams params;
    const TensorDesc& d = n_.desc(square);
    params.starts.size = params.steps.size = params.sizes.size = d.rank;
    for (int k = 0; k < d.rank; ++k) {
      params.steps.v[k] = 1;
      params.sizes.v[k] = d.dims[k];
    }
    params.steps.v[d.rank - 1] = static_cast<std::int32_t>(dims[i] + 1);
    params.sizes.v[d.rank - 1] = static_cast<std::int32_t>(dims[i]);
    term = {n_.emit(ops::kSlice, params, {square}), rest};
    i = static_cast<std::size_t>(-1);  // the indices have moved: start over
  }
  return term;
}

Term Einsum::sum_unneeded(Term term, const Indices& needed) {
  std::vector<int> axes;
  Indices kept;
  for (std::size_t i = 0; i < term.indices.size(); ++i) {
    if (contains(needed, term.indices[i])) {
      kept.push_back(term.indices[i]);
    } else {
      axes.push_back(static_cast<int>(i));
    }
  }
  if (axes.empty()) return term;
  // A size of 1 that stands for more counts once for each.
  term = spread(std::move(term));
  return {n_.reduce(ops::ReduceFunction::kSum, term.value, axes, false), kept};
}

/// Repeats dimensions of size 1 that stand for larger ones.
Term Einsum::spread(Term term) {
  std::vector<std::int64_t> dims;
  for (const Index i : term.indices) dims.push_back(sizes_.at(i));
  term.value = n_.expand(term.value, dims);
  return term;
}

Term Einsum::contract(Term a, Term b, const Indices& needed) {
  Indices needed_by_a = needed;
  needed_by_a.insert(needed_by_a.end(), b.indices.begin(), b.indices.end());
  Indices needed_by_b = needed;
  needed_by_b.insert(needed_by_b.end(), a.indices.begin(), a.indices.end());
  a = sum_unneeded(std::move(a), needed_by_a);
  b = sum_unneeded(std::move(b), needed_by_b);
  a = spread(std::move(a));
  b = spread(std::move(b));
  if (n_.failed()) return a;
  Indices batch;
  Indices inner;
  Indices rows;
  Indices columns;
  for (const Index i : a.indices) (!contains(b.indices, i) ? rows : contains(needed, i) ? batch : inner).push_back(i);
  for (const Index i : b.indices)
    if (!contains(a.indices, i)) columns.push_back(i);
  const auto joined = [](Indices x, const Indices& y, const Indices& z) {
    x.insert(x.end(), y.begin(), y.end());
    x.insert(x.end(), z.begin(), z.end());
    return x;
  };
  const ValueId left =
      n_.reshape(arrange(a, joined(batch, rows, inner)), {product(batch), product(rows), product(inner)});
  const ValueId right =
      n_.reshape(arrange(b, joined(batch, inner, columns)), {product(batch), product(inner), product(columns)});
  const ValueId y = n_.emit(ops::kMatmul, ops::MatmulParams{}, {left, right});
  Term result{kNone, joined(batch, rows, columns)};
  if (result.indices.size() > static_cast<std::size_t>(kMaxRank)) {
    n_.fail(fmt::format("an intermediate result would have rank {}, at most {} is supported", result.indices.size(),
                        kMaxRank));
    return result;
  }
  std::vector<std::int64_t> dims;
  for (const Index i : result.indices) dims.push_back(sizes_.at(i));
  result.value = n_.reshape(y, dims);
  return result;
}

ValueId Einsum::run(std::string_view equation) {
  if (!parse(equation)) return kNone;
  for (Term& term : terms_) term = diagonal(std::move(term));
  Term result = terms_.front();
  for (std::size_t i = 1; i < terms_.size() && !n_.failed(); ++i) {
    Indices needed = result_;
    for (std::size_t later = i + 1; later < terms_.size(); ++later)
      needed.insert(needed.end(), terms_[later].indices.begin(), terms_[later].indices.end());
    result = contract(std::move(result), terms_[i], needed);
  }
  if (n_.failed()) return kNone;
  result = spread(sum_unneeded(std::move(result), result_));
  return n_.failed() ? kNone : arrange(result, result_);
}

void lower_einsum(NodeLowering& n) {
  const std::string_view equation = n.attr_string("equation", "");
  if (n.inputs() == 0) n.fail("it has no operands", StatusCode::kInvalidModel);
  if (n.failed()) return;
  n.set_output(0, Einsum(n).run(equation));
}

constexpr OperatorRow kEinsumOperators[] = {{"", "Einsum", 12, kNewest, lower_einsum}};

}  // namespace

std::span<const OperatorRow> einsum_operators() { return kEinsumOperators; }

}  // namespace bantam::import::onnx
