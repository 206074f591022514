// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "client/forward/predict/tables.h"

namespace flagos::client {
namespace {

std::unordered_map<std::string, Predictor> MakeTable() {
  PredictorRows rows;
  for (const auto add : {&AddUnary, &AddBinary, &AddReductions, &AddLinearAlgebra, &AddNeural, &AddPlainRules,
                         &AddIndexingRules, &AddLayerRules, &AddMultiTensorRules}) {
    add(rows);
  }
  return {rows.begin(), rows.end()};
}

}  // namespace

Predictor FindPredictor(std::string_view name) {
  static const auto& table = *new std::unordered_map<std::string, Predictor>(MakeTable());
  const auto found = table.find(std::string(name));
  return found == table.end() ? nullptr : found->second;
}

}  // namespace flagos::client
