// SPDX-License-Identifier: Apache-2.0
// What the client knows of one operator, worked out once from its schema.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client/forward/predict/predictor.h"
#include "client/forward/proven_types.h"
#include "client/forward/tally.h"
#include "proto/wire/definitions.h"

namespace flagos::client {

enum class ArgumentKind : uint8_t {
  kTensor,
  kTensorList,
  kOptionalTensorList,
  kScalar,
  kFixedScalar,  // a Scalar on which the result's geometry depends
  kInt,
  kDouble,
  kBool,
  kString,
  kIntList,
  kDoubleList,
  kBoolList,
  kScalarList,
  kDevice,
  kDType,
  kLayout,
  kMemoryFormat,
  kGenerator,
  kUnsupported,  // cannot cross; None can
};

// What becomes of a CPU tensor with dimensions among the operands of a call on the device.
enum class HostTensor : uint8_t {
  kRefused,  // PyTorch's error about several devices
  kTaken,    // its bytes travel with the call
  kShared,   // the same, but in place where it lies in the arena: the caller keeps it there until the call is complete
};

struct ArgumentPlan {
  ArgumentKind kind;
  HostTensor host;
  bool written;  // the call writes to this tensor
  bool out;      // an out= argument, which the call may resize
};

struct ReturnPlan {
  ReturnKind kind;
  uint16_t argument;  // kMutatedArgument: which one
};

// Constant after construction, but for the last four. Lives until the process ends.
class Operator {
 public:
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

  // One for each operator, made when first asked for. Thread safe. Find() throws where PyTorch has no such operator.
  static Operator& Of(const c10::OperatorHandle& handle);
  static Operator& Find(const char* name, const char* overload = "");
  // All that there are so far.
  static std::vector<Operator*> All();

  const c10::OperatorHandle handle;
  const std::string name;  // "aten::add.Tensor"
  const uint32_t number;   // on the wire
  const std::vector<ArgumentPlan> arguments;
  const std::vector<ReturnPlan> returns;
  const bool depends_on_data;    // what it returns, or its geometry: one call's outcome says nothing of the next
  const bool reads_all_context;  // chooses kernels or precision by PyTorch's backend flags
  const bool spans_devices;      // takes operands of several devices
  const bool is_power;           // of integers, refuses negative exponents
  const bool is_distribution;    // checks the numbers that it is given, its parameters
  const bool makes_sparse;       // may return a sparse tensor where it is given none
  const Predictor predictor;     // null: its results' geometry is asked of the executor
  ProvenTypes proven;            // without them a predictor is not asked
  ProvenTypes accepted_numbers;  // of a distribution: keys of parameters that were accepted
  Tally tally;                   // GUARDED_BY(Session::lock())
  uint32_t defined_in = 0;       // generation of the session that knows `number`. GUARDED_BY(Session::lock())

  OperatorDefinition definition() const;

 private:
  explicit Operator(const c10::OperatorHandle& handle);
};

}  // namespace flagos::client
