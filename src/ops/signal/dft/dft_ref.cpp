// Transforms by Stockham's method: every stage takes a factor of the length out of the front and leaves its results in
// order, so that nothing is permuted and inner loops run over neighbouring numbers. Real signals of even length are
// transformed as complex ones of half the length.
#include <type_traits>

#include "ops/common/operands.h"
#include "ops/common/parallel.h"
#include "ops/signal/dft/kernels.h"

namespace bantam::ops::dft {
namespace {

/// Not inline: for Cortex-M55, GCC 12 makes the conversion conditional in a way that its assembler does not know.
template <typename T>
[[gnu::noinline]] T reciprocal(std::int32_t n) {
  return T{1} / static_cast<T>(n);
}

template <typename T>
struct Complex {
  T re, im;

  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
};

template <typename T>
Complex<T> conjugate(Complex<T> a) {
  return {a.re, -a.im};
}

/// The roots of unity of a table: at(k) = e^(-2 pi i k / size), or its conjugate.
template <typename T>
struct Roots {
  const T* table;
  std::int64_t size;
  bool inverse;

  Complex<T> at(std::int64_t k) const {
    const T* root = table + k % size * 2;
    return {root[0], inverse ? -root[1] : root[1]};
  }
};

/// One stage: x holds transforms of `length` numbers, `stride` apart; y gets those of length / radix.
template <typename T>
struct Stage {
  const Complex<T>* x;
  Complex<T>* y;
  std::int64_t length;
  std::int64_t stride;
  Roots<T> roots;

  /// Root k of the stage's length.
  Complex<T> root(std::int64_t k) const { return roots.at(k * (roots.size / length)); }
};

template <typename T>
void run_radix_2(const Stage<T>& s) {
  const std::int64_t m = s.length / 2;
  for (std::int64_t q = 0; q < m; ++q) {
    const Complex<T> w = s.root(q);
    const Complex<T>* x = s.x + s.stride * q;
    Complex<T>* y = s.y + s.stride * 2 * q;
    for (std::int64_t j = 0; j < s.stride; ++j) {
      const Complex<T> a = x[j];
      const Complex<T> b = x[j + s.stride * m];
      y[j] = a + b;
      y[j + s.stride] = (a - b) * w;
    }
  }
}

template <typename T>
void run_radix_4(const Stage<T>& s) {
  const std::int64_t m = s.length / 4;
  for (std::int64_t q = 0; q < m; ++q) {
    const Complex<T> w1 = s.root(q);
    const Complex<T> w2 = s.root(2 * q);
    const Complex<T> w3 = s.root(3 * q);
    const Complex<T>* x = s.x + s.stride * q;
    Complex<T>* y = s.y + s.stride * 4 * q;
    for (std::int64_t j = 0; j < s.stride; ++j) {
      const Complex<T> even = x[j] + x[j + s.stride * 2 * m];
      const Complex<T> odd = x[j] - x[j + s.stride * 2 * m];
      const Complex<T> sum = x[j + s.stride * m] + x[j + s.stride * 3 * m];
      const Complex<T> difference = x[j + s.stride * m] - x[j + s.stride * 3 * m];
      const Complex<T> turned =
          s.roots.inverse ? Complex<T>{-difference.im, difference.re} : Complex<T>{difference.im, -difference.re};
      y[j] = even + sum;
      y[j + s.stride] = (odd + turned) * w1;
      y[j + s.stride * 2] = (even - sum) * w2;
      y[j + s.stride * 3] = (odd - turned) * w3;
    }
  }
}

template <typename T>
void run_radix(const Stage<T>& s, std::int64_t radix) {
  const std::int64_t m = s.length / radix;
  for (std::int64_t q = 0; q < m; ++q)
    for (std::int64_t r = 0; r < radix; ++r) {
      Complex<T>* y = s.y + s.stride * (radix * q + r);
      for (std::int64_t j = 0; j < s.stride; ++j) y[j] = s.x[s.stride * q + j] * s.root(q * r);
      for (std::int64_t t = 1; t < radix; ++t) {
        const Complex<T> w = s.root(r * (q + t * m) % s.length);
        const Complex<T>* x = s.x + s.stride * (q + t * m);
        for (std::int64_t j = 0; j < s.stride; ++j) y[j] = y[j] + x[j] * w;
      }
    }
}

/// The next factor to take out of `length` > 1.
std::int64_t next_radix(std::int64_t length) {
  if (length % 4 == 0) return 4;
  for (std::int64_t p = 2; p <= length / p; ++p)
    if (length % p == 0) return p;
  return length;
}

/// Transforms the `length` numbers in `a`; `length` divides the size of the table. Returns where the result is: in `a`
/// or `b`.
template <typename T>
Complex<T>* transform(const Roots<T>& roots, std::int64_t length, Complex<T>* a, Complex<T>* b) {
  std::int64_t stride = 1;
  for (std::int64_t left = length; left > 1;) {
    const std::int64_t radix = next_radix(left);
    const Stage<T> stage{a, b, left, stride, roots};
    if (radix == 4) {
      run_radix_4(stage);
    } else if (radix == 2) {
      run_radix_2(stage);
    } else {
      run_radix(stage, radix);
    }
    std::swap(a, b);
    left /= radix;
    stride *= radix;
  }
  return a;
}

/// The spectrum's number k from the transform z of the pairs (x[2n], x[2n + 1]) as complex numbers; m is their count.
template <typename T>
Complex<T> unpack(const Roots<T>& roots, const Complex<T>* z, std::int64_t m, std::int64_t k) {
  const Complex<T> a = z[k % m];
  const Complex<T> b = conjugate(z[(m - k % m) % m]);
  const Complex<T> even = a + b;
  const Complex<T> odd = (a - b) * roots.at(k);
  // (even - i odd) / 2
  return {(even.re + odd.im) / 2, (even.im - odd.re) / 2};
}

template <typename T>
class Transformer {
 public:
  Transformer(const Invocation& call, T* memory)
      : call_(call),
        p_(call.as<DftParams>()),
        samples_(frame_samples(call)),
        roots_{call.input<T>(kTwiddles), p_.length, p_.inverse != 0},
        a_(reinterpret_cast<Complex<T>*>(memory)),
        b_(a_ + p_.length) {}

  /// Transforms the frame that begins at `x`.
  void run(const T* x, T* y) {
    const std::int64_t n = p_.length;
    const bool real_signal = call_.in(kX).dims[2] == 1;
    const std::int64_t bins = call_.out().dims[2];
    if (real_signal && n % 2 == 0) {
      auto* pairs = reinterpret_cast<T*>(a_);
      for (std::int64_t i = 0; i < n; ++i) pairs[i] = i < samples_ ? x[i] * weight(i) : T{0};
      const Complex<T>* z = transform(roots_, n / 2, a_, b_);
      for (std::int64_t k = 0; k < bins; ++k) put(unpack(roots_, z, n / 2, k), y + 2 * k);
      return;
    }
    load(x, real_signal);
    const Complex<T>* result = transform(roots_, n, a_, b_);
    if (call_.out().dims[3] == 1) {
      for (std::int64_t k = 0; k < n; ++k) y[k] = result[k].re / static_cast<T>(n);
    } else {
      for (std::int64_t k = 0; k < bins; ++k) put(result[k], y + 2 * k);
    }
  }

 private:
  T weight(std::int64_t i) const { return call_.has(kWindow) ? call_.input<T>(kWindow)[i] : T{1}; }

  void put(Complex<T> value, T* y) const {
    const T scale = p_.inverse != 0 ? reciprocal<T>(p_.length) : T{1};
    y[0] = value.re * scale;
    y[1] = value.im * scale;
  }

  void load(const T* x, bool real_signal) {
    const std::int64_t n = p_.length;
    for (std::int64_t i = 0; i < n; ++i) {
      if (i >= samples_) {
        a_[i] = {T{0}, T{0}};
      } else if (real_signal) {
        a_[i] = {x[i] * weight(i), T{0}};
      } else {
        a_[i] = {x[2 * i] * weight(i), x[2 * i + 1] * weight(i)};
      }
    }
    if (p_.onesided == 0 || p_.inverse == 0) return;
    // The other half of the spectrum of a real signal; what the first half says beyond its own bins does not count.
    a_[0].im = T{0};
    if (n % 2 == 0) a_[n / 2].im = T{0};
    for (std::int64_t i = n / 2 + 1; i < n; ++i) a_[i] = conjugate(a_[n - i]);
  }

  const Invocation& call_;
  const DftParams& p_;
  std::int64_t samples_;
  Roots<T> roots_;
  Complex<T>* a_;
  Complex<T>* b_;
};

/// Elements of scratch of one task: two buffers of complex numbers.
std::int64_t task_elements(std::int32_t length) { return 4 * static_cast<std::int64_t>(length); }

template <typename T>
void run(const Invocation& call) {
  const TensorDesc& x = call.in(kX);
  const TensorDesc& y = call.out();
  if (y.elements() == 0) return;
  const auto& p = call.as<DftParams>();
  const std::int64_t frames = y.dims[1];
  const std::int64_t y_frame = static_cast<std::int64_t>(y.dims[2]) * y.dims[3];
  // A transform of a thousand numbers takes about ten microseconds.
  const std::int64_t grain = std::max<std::int64_t>(1024 / p.length, 1);
  parallel_slots(
      *call.threads, x.dims[0] * frames, grain, [&](std::int64_t slot, std::int64_t begin, std::int64_t end) {
        Transformer<T> transformer(call, reinterpret_cast<T*>(call.scratch) + slot * task_elements(p.length));
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t first = i / frames * x.dims[1] + i % frames * p.step;
          transformer.run(call.input<T>(kX) + first * x.dims[2], call.output<T>() + i * y_frame);
        }
      });
}

}  // namespace

Footprint reference_footprint(const OpCall& call, int threads) {
  return {.scratch_bytes = task_elements(call.as<DftParams>().length) * element_size(call.in(kX).type) * threads};
}

Status run_reference(const Invocation& call) {
  if (call.in(kX).type == ElementType::kF64) {
    run<double>(call);
  } else {
    run<float>(call);
  }
  return ok_status();
}

}  // namespace bantam::ops::dft
