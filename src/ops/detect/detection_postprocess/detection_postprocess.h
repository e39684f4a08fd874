// Boxes of a single-shot detector from its encodings: decoded at their anchors, overlapping ones suppressed. To the bit
// as TFLite Micro's TFLite_Detection_PostProcess in float.
//
// Operands, f32: 0 encodings [1, boxes, >= 4] (y, x, h, w first); 1 scores [1, boxes, classes] or, with a background in
// front, [1, boxes, classes + 1]; 2 anchors [boxes, 4] (y, x, h, w of the centre's form).
// Results, f32: 0 boxes [1, results, 4] (ymin, xmin, ymax, xmax); 1 classes [1, results]; 2 scores [1, results]; 3
// their number [1]. What no detection fills is 0. Decoding in double: centre = encoding / scale * anchor size + anchor
// centre, half = exp(encoding / scale) / 2 * anchor size. regular: each class on its own keeps up to
// detections_per_class boxes, the best max_detections of all classes stay. Else: each box counts by its best class, up
// to max_detections boxes stay and each gives its classes_per_detection best classes; class k of the i-th box goes to
// place classes_per_detection * (classes_per_detection * i + k) + k, as the original has it, and is dropped beyond
// `results`. Scores below the threshold and NaNs count for nothing; equal scores in order of boxes. Operands are dense.
#pragma once

#include "ops/op.h"

namespace bantam::ops {

struct DetectionPostprocessParams {
  std::int32_t results = 0;                 ///< places; with `regular` at least max_detections
  std::int32_t max_detections = 0;          ///< 0..results
  std::int32_t classes = 1;                 ///< > 0
  std::int32_t classes_per_detection = 1;   ///< > 0
  std::int32_t detections_per_class = 100;  ///< > 0
  std::int32_t regular = 0;
  float score_threshold = 0.0F;
  float overlap_threshold = 0.5F;  ///< intersection over union, in (0, 1]
  float scale_y = 1.0F;
  float scale_x = 1.0F;
  float scale_h = 1.0F;
  float scale_w = 1.0F;
};

extern const OpDef kDetectionPostprocess;  // "detection_postprocess". Accuracy: consistent

}  // namespace bantam::ops
