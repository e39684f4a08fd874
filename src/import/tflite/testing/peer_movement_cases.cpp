// Operators that move elements.
#include "import/tflite/testing/peer_case_builder.h"

namespace bantam::import::tflite::testing {
namespace {

using enum BuiltinOperator;
using Shape = std::vector<std::int32_t>;

TensorSpec numbers(TensorType type, Shape shape) {
  TensorSpec spec{.type = type, .shape = std::move(shape)};
  if (type == INT8 || type == INT16) {
    spec.scale = {0.1F};
    spec.zero_point = {type == INT8 ? 5 : 0};
  }
  return spec;
}

std::string name_of(BuiltinOperator code, TensorType type) {
  return std::string(schema::EnumNameBuiltinOperator(code)) + "_" + schema::EnumNameTensorType(type);
}

void add_joining(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32, INT64, BOOL}) {
    CaseBuilder c(name_of(CONCATENATION, type));
    const int a = c.input(numbers(type, {2, 3, 4}));
    const int b = c.input(numbers(type, {2, 1, 4}));
    c.op(CONCATENATION, {a, b}, {c.output(numbers(type, {2, 4, 4}))}, BuiltinOptions::ConcatenationOptions,
         schema::CreateConcatenationOptions(c.fbb(), 1).Union());
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32, INT64}) {
    CaseBuilder c(name_of(PACK, type));
    const int a = c.input(numbers(type, {2, 3}));
    const int b = c.input(numbers(type, {2, 3}));
    c.op(PACK, {a, b}, {c.output(numbers(type, {2, 2, 3}))}, BuiltinOptions::PackOptions,
         schema::CreatePackOptions(c.fbb(), 2, 1).Union());
    cases.push_back(c.finish());
  }
}

void add_cutting(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32}) {
    CaseBuilder split(name_of(SPLIT, type));
    const int x = split.input(numbers(type, {2, 6}));
    const int axis = split.integers({}, {1});
    const int s0 = split.output(numbers(type, {2, 3}));
    const int s1 = split.output(numbers(type, {2, 3}));
    split.op(SPLIT, {axis, x}, {s0, s1}, BuiltinOptions::SplitOptions,
             schema::CreateSplitOptions(split.fbb(), 2).Union());
    cases.push_back(split.finish());

    CaseBuilder parts(name_of(SPLIT_V, type));
    const int px = parts.input(numbers(type, {5, 3}));
    const int sizes = parts.integers({2, -1});
    const int p0 = parts.output(numbers(type, {2, 3}));
    const int p1 = parts.output(numbers(type, {3, 3}));
    parts.op(SPLIT_V, {px, sizes, parts.integers({}, {0})}, {p0, p1});
    cases.push_back(parts.finish());

    CaseBuilder unpack(name_of(UNPACK, type));
    const int ux = unpack.input(numbers(type, {3, 2, 2}));
    const int u0 = unpack.output(numbers(type, {3, 2}));
    const int u1 = unpack.output(numbers(type, {3, 2}));
    unpack.op(UNPACK, {ux}, {u0, u1}, BuiltinOptions::UnpackOptions,
              schema::CreateUnpackOptions(unpack.fbb(), 2, 1).Union());
    cases.push_back(unpack.finish());
  }
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32, BOOL}) {
    CaseBuilder c(name_of(SLICE, type));
    const int x = c.input(numbers(type, {4, 5, 3}));
    c.op(SLICE, {x, c.integers({1, 0, 2}), c.integers({2, -1, 1})}, {c.output(numbers(type, {2, 5, 1}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32, BOOL}) {
    CaseBuilder c(name_of(STRIDED_SLICE, type));
    const int x = c.input(numbers(type, {4, 5, 3}));
    c.op(STRIDED_SLICE, {x, c.integers({3, 1, 0}), c.integers({-5, 5, 3}), c.integers({-1, 2, 1})},
         {c.output(numbers(type, {4, 2, 3}))}, BuiltinOptions::StridedSliceOptions,
         schema::CreateStridedSliceOptions(c.fbb()).Union());
    cases.push_back(c.finish());
  }
}

void add_padding(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32}) {
    CaseBuilder c(name_of(PAD, type));
    const int x = c.input(numbers(type, {1, 3, 2, 2}));
    const int pads = c.integers({4, 2}, {0, 0, 1, 2, 0, 1, 0, 0});
    c.op(PAD, {x, pads}, {c.output(numbers(type, {1, 6, 3, 2}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8}) {
    CaseBuilder c(name_of(PADV2, type));
    const int x = c.input(numbers(type, {1, 3, 2, 2}));
    const int pads = c.integers({4, 2}, {0, 0, 1, 2, 0, 1, 0, 0});
    const int value = c.weights(numbers(type, {}));
    c.op(PADV2, {x, pads, value}, {c.output(numbers(type, {1, 6, 3, 2}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8}) {
    for (const bool symmetric : {false, true}) {
      CaseBuilder c(name_of(MIRROR_PAD, type) + (symmetric ? "_symmetric" : "_reflect"));
      const int x = c.input(numbers(type, {3, 4}));
      c.op(MIRROR_PAD, {x, c.integers({2, 2}, {1, 2, 2, 1})}, {c.output(numbers(type, {6, 7}))},
           BuiltinOptions::MirrorPadOptions,
           schema::CreateMirrorPadOptions(c.fbb(),
                                          symmetric ? schema::MirrorPadMode::SYMMETRIC : schema::MirrorPadMode::REFLECT)
               .Union());
      cases.push_back(c.finish());
    }
  }
}

void add_picking(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8}) {
    CaseBuilder gather(name_of(GATHER, type));
    const int gx = gather.input(numbers(type, {2, 5, 3}));
    const int gi = gather.input({.type = INT32, .shape = {4}}, Range{0, 4});
    gather.op(GATHER, {gx, gi}, {gather.output(numbers(type, {2, 4, 3}))}, BuiltinOptions::GatherOptions,
              schema::CreateGatherOptions(gather.fbb(), 1).Union());
    cases.push_back(gather.finish());

    CaseBuilder nd(name_of(GATHER_ND, type));
    const int nx = nd.input(numbers(type, {3, 4, 2}));
    const int ni = nd.input({.type = INT32, .shape = {5, 2}}, Range{0, 2});
    nd.op(GATHER_ND, {nx, ni}, {nd.output(numbers(type, {5, 2}))});
    cases.push_back(nd.finish());
  }
  const std::pair<TensorType, TensorType> kTables[] = {{FLOAT32, FLOAT32}, {INT8, INT8}, {INT8, FLOAT32}};
  for (const auto& [from, to] : kTables) {
    CaseBuilder c(name_of(EMBEDDING_LOOKUP, from) + "_" + schema::EnumNameTensorType(to));
    const int rows = c.input({.type = INT32, .shape = {4}}, Range{0, 6});
    TensorSpec table = numbers(from, {7, 3});
    if (from == INT8) table.zero_point = {0};
    c.op(EMBEDDING_LOOKUP, {rows, c.weights(table)}, {c.output(numbers(to, {4, 3}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32}) {
    CaseBuilder c(name_of(DYNAMIC_UPDATE_SLICE, type), 3);
    const int x = c.input(numbers(type, {4, 5, 2}));
    const int update = c.input(numbers(type, {2, 3, 1}));
    const int starts = c.input({.type = INT32, .shape = {3}}, Range{-2, 5});
    c.op(DYNAMIC_UPDATE_SLICE, {x, update, starts}, {c.output(numbers(type, {4, 5, 2}))});
    cases.push_back(c.finish());
  }
}

void add_rearranging(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16}) {
    CaseBuilder c(name_of(TRANSPOSE, type));
    const int x = c.input(numbers(type, {2, 3, 4}));
    c.op(TRANSPOSE, {x, c.integers({2, 0, 1})}, {c.output(numbers(type, {4, 2, 3}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8, UINT8, INT16, INT32, INT64, BOOL}) {
    CaseBuilder c(name_of(REVERSE_V2, type));
    const int x = c.input(numbers(type, {3, 4, 2}));
    c.op(REVERSE_V2, {x, c.integers({1})}, {c.output(numbers(type, {3, 4, 2}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8}) {
    CaseBuilder depth(name_of(SPACE_TO_DEPTH, type));
    const int dx = depth.input(numbers(type, {1, 4, 6, 2}));
    depth.op(SPACE_TO_DEPTH, {dx}, {depth.output(numbers(type, {1, 2, 3, 8}))}, BuiltinOptions::SpaceToDepthOptions,
             schema::CreateSpaceToDepthOptions(depth.fbb(), 2).Union());
    cases.push_back(depth.finish());

    CaseBuilder space(name_of(DEPTH_TO_SPACE, type));
    const int sx = space.input(numbers(type, {1, 2, 3, 8}));
    space.op(DEPTH_TO_SPACE, {sx}, {space.output(numbers(type, {1, 4, 6, 2}))}, BuiltinOptions::DepthToSpaceOptions,
             schema::CreateDepthToSpaceOptions(space.fbb(), 2).Union());
    cases.push_back(space.finish());

    CaseBuilder batch(name_of(SPACE_TO_BATCH_ND, type));
    // Zero point 0: the original pads with stored zeros, whatever the zero point.
    TensorSpec before = numbers(type, {1, 3, 4, 2});
    TensorSpec after = numbers(type, {4, 2, 3, 2});
    if (type == INT8) before.zero_point = after.zero_point = {0};
    const int bx = batch.input(before);
    batch.op(SPACE_TO_BATCH_ND, {bx, batch.integers({2, 2}), batch.integers({2, 2}, {1, 0, 0, 2})},
             {batch.output(after)});
    cases.push_back(batch.finish());

    CaseBuilder image(name_of(BATCH_TO_SPACE_ND, type));
    const int ix = image.input(numbers(type, {4, 2, 3, 2}));
    image.op(BATCH_TO_SPACE_ND, {ix, image.integers({2, 2}), image.integers({2, 2}, {1, 0, 0, 2})},
             {image.output(numbers(type, {1, 3, 4, 2}))});
    cases.push_back(image.finish());
  }
}

void add_shapes(std::vector<PeerCase>& cases) {
  for (const TensorType type : {FLOAT32, INT8, INT16}) {
    CaseBuilder c(name_of(EXPAND_DIMS, type));
    const int x = c.input(numbers(type, {3, 2}));
    c.op(EXPAND_DIMS, {x, c.integers({}, {-2})}, {c.output(numbers(type, {3, 1, 2}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8, INT32}) {
    CaseBuilder c(name_of(FILL, type));
    const int value = c.input(numbers(type, {}));
    c.op(FILL, {c.integers({2, 3}), value}, {c.output(numbers(type, {2, 3}))});
    cases.push_back(c.finish());
  }
  for (const TensorType type : {FLOAT32, INT8, INT16, INT32}) {
    CaseBuilder c(name_of(BROADCAST_TO, type));
    const int x = c.input(numbers(type, {3, 1}));
    c.op(BROADCAST_TO, {x, c.integers({2, 3, 4})}, {c.output(numbers(type, {2, 3, 4}))});
    cases.push_back(c.finish());
  }
  CaseBuilder shape("SHAPE");
  const int x = shape.input(numbers(FLOAT32, {3, 1, 7}));
  shape.op(SHAPE, {x}, {shape.output({.type = INT32, .shape = {3}})}, BuiltinOptions::ShapeOptions,
           schema::CreateShapeOptions(shape.fbb(), INT32).Union());
  cases.push_back(shape.finish());

  CaseBuilder squeeze("SQUEEZE");
  const int sx = squeeze.input(numbers(FLOAT32, {1, 3, 1, 2}));
  squeeze.op(SQUEEZE, {sx}, {squeeze.output(numbers(FLOAT32, {3, 2}))}, BuiltinOptions::SqueezeOptions,
             schema::CreateSqueezeOptions(squeeze.fbb(), squeeze.fbb().CreateVector(Shape{0, 2})).Union());
  cases.push_back(squeeze.finish());
}

}  // namespace

void add_movement_cases(std::vector<PeerCase>& cases) {
  add_joining(cases);
  add_cutting(cases);
  add_padding(cases);
  add_picking(cases);
  add_rearranging(cases);
  add_shapes(cases);
}

}  // namespace bantam::import::tflite::testing
