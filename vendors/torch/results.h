// SPDX-License-Identifier: Apache-2.0
// From what a kernel returned to handles and an outcome: described as it is, or made to fit what the client expects.
#pragma once

#include <c10/util/FunctionRef.h>

#include <span>
#include <vector>

#include "vendors/torch/call_frame.h"

namespace flagos::torch_host {

// What results are compared with. Everything here lives as long as the call.
struct CallInputs {
  // The storages of the call's inputs by number.
  c10::function_ref<const c10::StorageImpl*(size_t)> input;
  size_t count = 0;
  std::span<const std::byte> arena;
  uint8_t device = 0;
  c10::Device kernel_device;
  c10::DispatchKey key;
};

struct Results {
  Outcome outcome;
  std::vector<c10::Storage> storages;  // for the new handles, in order
};

// Describes a call whose results nobody knows yet. A result that shares an input's storage is an alias; one that shares
// another result's storage, or memory of the client, becomes a copy. Behind the results stand the sparse arguments that
// the call writes, as it left them. Throws Refusal for what the wire cannot carry.
Results Describe(const PreparedCall& call, CallFrame& frame, const CallInputs& inputs);

// The out= tensors that the call has resized, with their storages as they are now (`input` in order).
struct ResizedInput {
  Resized resized;
  c10::Storage storage;
};
std::vector<ResizedInput> DescribeResized(const PreparedCall& call, const CallFrame& frame, uint8_t device);

// New memory for a result that has to be moved.
using AllocateResult = c10::function_ref<c10::Storage(uint64_t bytes)>;

// Takes the storages of results that are what `call.expected` says, and moves the values of others to where they are
// expected. `bound` are storages that the client may already be using: then every new result is moved into its own.
// Returns whether all results were as expected. Throws Refusal where a result cannot be made to fit.
bool Adapt(const PreparedCall& call, CallFrame& frame, const CallInputs& inputs, AllocateResult allocate,
           std::span<const c10::Storage> bound, std::vector<c10::Storage>& storages);

// The plain values among the results written into `outcome`, which says where they are.
void ReadValues(const PreparedCall& call, const CallFrame& frame, Outcome& outcome);

}  // namespace flagos::torch_host
