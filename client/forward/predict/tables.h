// SPDX-License-Identifier: Apache-2.0
// The tables of predictors, by family.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/forward/predict/predictor.h"

namespace flagos::client {

using PredictorRows = std::vector<std::pair<std::string, Predictor>>;

// PyTorch's structured kernels.
void AddUnary(PredictorRows& rows);
void AddBinary(PredictorRows& rows);
void AddReductions(PredictorRows& rows);
void AddLinearAlgebra(PredictorRows& rows);
void AddNeural(PredictorRows& rows);

// Rules of our own, for what has no meta function in C++.
void AddPlainRules(PredictorRows& rows);  // element by element, fills, copies
void AddIndexingRules(PredictorRows& rows);
void AddLayerRules(PredictorRows& rows);        // norms, convolution, attention, embedding
void AddMultiTensorRules(PredictorRows& rows);  // _foreach_*, _fused_*

}  // namespace flagos::client
