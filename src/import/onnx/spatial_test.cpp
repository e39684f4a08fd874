// Convolutions and poolings over more axes than the planar operators have, against loops that follow the standard's
// definitions word by word. The standard's own node tests cover few combinations of attributes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "graph/testing/interpret.h"
#include "import/import.h"
#include "import/testing/onnx_writer.h"

namespace bantam::import {
namespace {

using graph::testing::host_tensor;
using testing::attr;
using testing::Dim;
using testing::GraphWriter;
using testing::source_of;
using testing::tensor;

using Ints = std::vector<std::int64_t>;

struct Array {
  Ints dims;
  std::vector<float> values;

  std::int64_t offset(const Ints& at) const {
    std::int64_t result = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) result = result * dims[i] + at[i];
    return result;
  }
  float at(const Ints& index) const { return values[static_cast<std::size_t>(offset(index))]; }
};

std::int64_t count(const Ints& dims) {
  std::int64_t n = 1;
  for (const std::int64_t dim : dims) n *= dim;
  return n;
}

Array random_array(const Ints& dims, std::mt19937& random) {
  Array a{dims, std::vector<float>(static_cast<std::size_t>(count(dims)))};
  for (float& value : a.values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return a;
}

/// Calls f for every index below `dims`.
void for_each_index(const Ints& dims, const std::function<void(const Ints&)>& f) {
  for (std::int64_t n = 0; n < count(dims); ++n) {
    Ints index(dims.size());
    std::int64_t rest = n;
    for (std::size_t i = dims.size(); i-- > 0; rest /= dims[i]) index[i] = rest % dims[i];
    f(index);
  }
}

struct Window {
  Ints kernel, strides, dilations, before, after;

  Ints pads() const {
    Ints pads = before;
    pads.insert(pads.end(), after.begin(), after.end());
    return pads;
  }
  std::vector<std::string> attributes() const {
    return {attr("kernel_shape", kernel), attr("strides", strides), attr("dilations", dilations), attr("pads", pads())};
  }
};

Window random_window(std::size_t axes, std::mt19937& random) {
  const auto any = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  Window w;
  for (std::size_t i = 0; i < axes; ++i) {
    w.kernel.push_back(any(1, 3));
    w.strides.push_back(any(1, 3));
    w.dilations.push_back(any(1, 2));
    w.before.push_back(any(0, w.kernel[i] - 1));
    w.after.push_back(any(0, w.kernel[i] - 1));
  }
  return w;
}

Array run(const std::string& op, const Array& x, const std::vector<std::pair<std::string, Array>>& constants,
          const std::vector<std::string>& attributes) {
  GraphWriter writer;
  writer.input("x", std::vector<Dim>(x.dims.begin(), x.dims.end()));
  std::vector<std::string> operands{"x"};
  for (const auto& [name, array] : constants) {
    writer.initializer(tensor<float>(name, array.dims, array.values));
    operands.push_back(name);
  }
  writer.node(op, operands, {"y"}, attributes).output("y");
  auto graph = import_model(source_of(writer.model(18)), {});
  EXPECT_TRUE(graph) << graph.error().message;
  if (!graph) return {};
  EXPECT_TRUE(graph::verify(*graph));
  auto found = graph::testing::interpret(*graph, {{"x", host_tensor<float>(x.dims, std::span<const float>(x.values))}});
  EXPECT_TRUE(found) << found.error().message;
  if (!found) return {};
  const auto& y = found->at("y");
  const auto elements = y.as<float>();
  return {{y.desc.dims, y.desc.dims + y.desc.rank}, {elements.begin(), elements.end()}};
}

void expect_near(const Array& found, const Array& expected, const std::string& what) {
  ASSERT_EQ(found.dims, expected.dims) << what;
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    ASSERT_NEAR(found.values[i], expected.values[i], 2e-5) << what << ", element " << i;
}

std::string describe(const Window& w, unsigned seed) {
  std::string text = "seed " + std::to_string(seed) + ", kernel";
  for (const std::int64_t k : w.kernel) text += ' ' + std::to_string(k);
  return text;
}

/// The sizes of spatial axes such that at least one window fits.
Ints image_dims(std::int64_t n, std::int64_t c, const Window& w, std::mt19937& random) {
  Ints dims{n, c};
  for (std::size_t i = 0; i < w.kernel.size(); ++i)
    dims.push_back(w.dilations[i] * (w.kernel[i] - 1) + 1 + std::uniform_int_distribution<std::int64_t>(0, 3)(random));
  return dims;
}

Array convolve(const Array& x, const Array& weights, const Array& bias, const Window& w, std::int64_t groups) {
  Array y;
  y.dims = {x.dims[0], weights.dims[0]};
  for (std::size_t i = 0; i < w.kernel.size(); ++i)
    y.dims.push_back(
        (x.dims[2 + i] + w.before[i] + w.after[i] - w.dilations[i] * (w.kernel[i] - 1) - 1) / w.strides[i] + 1);
  const std::int64_t out_per_group = weights.dims[0] / groups;
  for_each_index(y.dims, [&](const Ints& at) {
    float sum = bias.values[static_cast<std::size_t>(at[1])];
    Ints taps = weights.dims;
    taps.erase(taps.begin());
    for_each_index(taps, [&](const Ints& tap) {
      Ints from{at[0], at[1] / out_per_group * weights.dims[1] + tap[0]};
      Ints weight{at[1], tap[0]};
      for (std::size_t i = 0; i < w.kernel.size(); ++i) {
        from.push_back(at[2 + i] * w.strides[i] - w.before[i] + tap[1 + i] * w.dilations[i]);
        weight.push_back(tap[1 + i]);
        if (from.back() < 0 || from.back() >= x.dims[2 + i]) return;
      }
      sum += x.at(from) * weights.at(weight);
    });
    y.values.push_back(sum);
  });
  return y;
}

/// Compares a convolution with the window `w` of a random image of `groups` groups.
void expect_convolves(const Window& w, std::int64_t groups, std::mt19937& random, unsigned seed) {
  const Array x = random_array(image_dims(2, 4, w, random), random);
  Ints dims{groups == 4 ? 8 : 6, 4 / groups};
  dims.insert(dims.end(), w.kernel.begin(), w.kernel.end());
  const Array weights = random_array(dims, random);
  const Array bias = random_array({dims[0]}, random);
  auto attributes = w.attributes();
  attributes.push_back(attr("group", groups));
  expect_near(run("Conv", x, {{"w", weights}, {"b", bias}}, attributes), convolve(x, weights, bias, w, groups),
              describe(w, seed));
}

TEST(OnnxSpatial, ConvolutionsOfThreeAndFourAxes) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    const Window w = random_window(seed % 4 == 3 ? 4 : 3, random);
    expect_convolves(w, std::array<std::int64_t, 3>{1, 2, 4}[seed % 3], random, seed);
  }
}

// They are planes with one row for the last two axes.
TEST(OnnxSpatial, ConvolutionsAlongTheFirstOfThreeOrFourAxes) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    Window w = random_window(seed % 4 == 3 ? 4 : 3, random);
    for (std::size_t i = w.kernel.size() - 2; i < w.kernel.size(); ++i) {
      w.kernel[i] = w.strides[i] = 1;
      w.before[i] = w.after[i] = 0;
    }
    expect_convolves(w, std::array<std::int64_t, 3>{1, 2, 4}[seed % 3], random, seed);
  }
}

TEST(OnnxSpatial, TransposedConvolutionsOfThreeAxes) {
  for (unsigned seed = 0; seed < 24; ++seed) {
    std::mt19937 random(seed);
    Window w = random_window(3, random);
    const std::int64_t groups = 1 + seed % 2;
    const Array x = random_array({2, 4, 3, 2, 3}, random);
    const Array weights = random_array({4, 3, w.kernel[0], w.kernel[1], w.kernel[2]}, random);
    const Array bias = random_array({3 * groups}, random);
    Ints extra;
    Array y;
    y.dims = {2, 3 * groups};
    for (std::size_t i = 0; i < 3; ++i) {
      extra.push_back(w.strides[i] > 1 ? static_cast<std::int64_t>(seed / 2 % 2) : 0);
      y.dims.push_back(std::max<std::int64_t>(w.strides[i] * (x.dims[2 + i] - 1) + w.dilations[i] * (w.kernel[i] - 1) +
                                                  1 + extra[i] - w.before[i] - w.after[i],
                                              0));
    }
    y.values.assign(static_cast<std::size_t>(count(y.dims)), 0);
    for_each_index(y.dims, [&](const Ints& at) {
      y.values[static_cast<std::size_t>(y.offset(at))] = bias.values[static_cast<std::size_t>(at[1])];
    });
    // Every element of x adds its weighted kernel where it lands.
    for_each_index(x.dims, [&](const Ints& from) {
      for_each_index({3, w.kernel[0], w.kernel[1], w.kernel[2]}, [&](const Ints& tap) {
        Ints to{from[0], from[1] / (4 / groups) * 3 + tap[0]};
        for (std::size_t i = 0; i < 3; ++i) {
          to.push_back(from[2 + i] * w.strides[i] + tap[1 + i] * w.dilations[i] - w.before[i]);
          if (to.back() < 0 || to.back() >= y.dims[2 + i]) return;
        }
        y.values[static_cast<std::size_t>(y.offset(to))] +=
            x.at(from) * weights.at({from[1], tap[0], tap[1], tap[2], tap[3]});
      });
    });
    auto attributes = w.attributes();
    attributes.push_back(attr("group", groups));
    attributes.push_back(attr("output_padding", extra));
    expect_near(run("ConvTranspose", x, {{"w", weights}, {"b", bias}}, attributes), y, describe(w, seed));
  }
}

/// Gathers the elements of every window and how many places it has inside image and padding.
Array pooled(const Array& x, const Window& w, bool ceil_mode,
             const std::function<float(const std::vector<float>&, std::int64_t)>& f) {
  Array y;
  y.dims = {x.dims[0], x.dims[1]};
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    const std::int64_t room = x.dims[2 + i] + w.before[i] + w.after[i] - w.dilations[i] * (w.kernel[i] - 1) - 1;
    std::int64_t positions = room / w.strides[i] + 1;
    if (ceil_mode && room % w.strides[i] != 0 && positions * w.strides[i] < x.dims[2 + i] + w.before[i]) ++positions;
    y.dims.push_back(positions);
  }
  for_each_index(y.dims, [&](const Ints& at) {
    std::vector<float> elements;
    std::int64_t places = 0;
    for_each_index(w.kernel, [&](const Ints& tap) {
      Ints from{at[0], at[1]};
      bool inside = true;
      for (std::size_t i = 0; i < w.kernel.size(); ++i) {
        from.push_back(at[2 + i] * w.strides[i] - w.before[i] + tap[i] * w.dilations[i]);
        if (from.back() >= x.dims[2 + i] + w.after[i]) return;
        inside = inside && from.back() >= 0 && from.back() < x.dims[2 + i];
      }
      ++places;
      if (inside) elements.push_back(x.at(from));
    });
    y.values.push_back(f(elements, places));
  });
  return y;
}

TEST(OnnxSpatial, PoolingsOfThreeAxes) {
  for (unsigned seed = 0; seed < 32; ++seed) {
    std::mt19937 random(seed);
    const Window w = random_window(seed % 8 == 7 ? 4 : 3, random);
    const bool ceil_mode = seed % 2 == 1;
    const bool count_padding = seed / 2 % 2 == 1;
    const Array x = random_array(image_dims(2, 3, w, random), random);
    auto attributes = w.attributes();
    attributes.push_back(attr("ceil_mode", std::int64_t{ceil_mode}));
    expect_near(run("MaxPool", x, {}, attributes),
                pooled(x, w, ceil_mode,
                       [](const auto& elements, std::int64_t) {
                         return elements.empty() ? -INFINITY : *std::max_element(elements.begin(), elements.end());
                       }),
                "MaxPool, " + describe(w, seed));
    attributes.push_back(attr("count_include_pad", std::int64_t{count_padding}));
    expect_near(run("AveragePool", x, {}, attributes),
                pooled(x, w, ceil_mode,
                       [&](const auto& elements, std::int64_t places) {
                         float sum = 0;
                         for (const float e : elements) sum += e;
                         const auto n =
                             count_padding ? static_cast<float>(places) : static_cast<float>(elements.size());
                         return n > 0 ? sum / n : 0.0F;
                       }),
                "AveragePool, " + describe(w, seed));
    attributes.pop_back();
    for (const std::int64_t p : {1, 2, 3}) {
      attributes.push_back(attr("p", p));
      expect_near(run("LpPool", x, {}, attributes),
                  pooled(x, w, ceil_mode,
                         [&](const auto& elements, std::int64_t) {
                           double sum = 0;
                           for (const float e : elements) sum += std::pow(std::abs(static_cast<double>(e)), p);
                           return static_cast<float>(std::pow(sum, 1.0 / static_cast<double>(p)));
                         }),
                  "LpPool, p " + std::to_string(p) + ", " + describe(w, seed));
      attributes.pop_back();
    }
  }
}

TEST(OnnxSpatial, UnpooledElementsReturnToWhereTheyWere) {
  // Seven rows pooled by two leave three; the indices still count rows of the operand.
  GraphWriter writer;
  writer.input("x", {1, 1, 1, 7})
      .initializer(tensor<std::int64_t>("shape", {4}, {1, 1, 1, 7}))
      .node("MaxPool", {"x"}, {"p", "i"}, {attr("kernel_shape", Ints{1, 2}), attr("strides", Ints{1, 2})})
      .node("MaxUnpool", {"p", "i", "shape"}, {"y"}, {attr("kernel_shape", Ints{1, 2}), attr("strides", Ints{1, 2})})
      .output("y");
  auto graph = import_model(source_of(writer.model(12)), {});
  ASSERT_TRUE(graph) << graph.error().message;
  const std::vector<float> x{1, 5, 4, 2, 3, 6, 9};
  const Ints dims{1, 1, 1, 7};
  auto found = graph::testing::interpret(*graph, {{"x", host_tensor<float>(dims, std::span<const float>(x))}});
  ASSERT_TRUE(found) << found.error().message;
  const auto y = found->at("y").as<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), (std::vector<float>{0, 5, 4, 0, 0, 6, 0}));
}

}  // namespace
}  // namespace bantam::import
