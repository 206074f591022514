// SPDX-License-Identifier: Apache-2.0
// A session on the null vendor. Every stream and event is complete at once, every call is done when it returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "vendors/interface/vendor.h"
#include "vendors/null/generators.h"
#include "vendors/null/ledger.h"

namespace flagos::null {

class NullBackend : public vendor::Backend {
 public:
  // `host` is borrowed. `kernel_ns`: nanoseconds for which a call keeps the device.
  NullBackend(vendor::Host& host, uint32_t device_count, uint64_t kernel_ns = 0);

  std::vector<std::string> operators() override;
  bool has_operator(const std::string& name) override;

  Error define_operator(uint32_t op, const OperatorDefinition& definition) override;
  Error define_context(uint32_t context, const ContextState& state) override;
  Error define_signature(uint32_t signature, Signature definition) override;
  void drop_signature(uint32_t signature) override;

  void call(const vendor::Call& call, std::unique_ptr<vendor::Responder> responder) override;

  Error allocate(uint32_t handle, uint64_t bytes, uint8_t device, uint16_t stream) override;
  void free(uint32_t handle, uint16_t stream) override;
  Result<MemoryStats> memory_stats(uint8_t device) override { return ledger_.stats(device); }
  void reset_peak_memory(uint8_t device) override { ledger_.reset_peak(device); }
  void empty_cache(uint8_t) override {}  // nothing is cached

  Error create_stream(uint16_t, uint8_t, int32_t) override { return Error::Ok(); }
  void fence(uint16_t stream, uint8_t device, std::function<void(const Error&)> done) override;
  Error record_event(uint32_t event, uint16_t stream, bool timing, std::function<void(const Error&)> done) override;
  Error wait_event(uint32_t, uint16_t) override { return Error::Ok(); }
  void destroy_event(uint32_t event) override { events_.erase(event); }
  void elapsed_time(uint32_t first, uint32_t second, std::unique_ptr<vendor::Responder> responder) override;

  Error create_generator(uint32_t generator, uint8_t) override { return generators_.create(generator); }
  void destroy_generator(uint32_t generator) override { generators_.destroy(generator); }
  Error seed_generator(uint32_t generator, uint64_t seed) override { return generators_.seed(generator, seed); }
  Result<std::vector<std::byte>> generator_state(uint32_t generator) override { return generators_.state(generator); }
  Error set_generator_state(uint32_t generator, std::span<const std::byte> state) override {
    return generators_.set_state(generator, state);
  }

 protected:
  vendor::Host& host() { return host_; }

 private:
  struct NewStorage {
    uint64_t bytes;
    uint32_t device;
  };
  struct ResizedInput {
    uint16_t input;
    uint32_t device;
    uint64_t bytes;
  };
  // All that a call needs, worked out once.
  struct Plan {
    bool defined = false;
    std::vector<NewStorage> outputs;
    std::vector<ResizedInput> resized;
    std::vector<std::byte> reply;  // the Outcome
  };

  Error run(const vendor::Call& call, const Plan*& plan);
  Error check_inputs(const vendor::Call& call) const;
  void poison(uint32_t handle, const Error& error);

  vendor::Host& host_;
  const uint64_t kernel_ns_;
  Ledger ledger_;
  Generators generators_;
  std::vector<std::optional<OperatorDefinition>> operators_;  // by number
  std::vector<Plan> plans_;                                   // by signature
  std::unordered_map<uint32_t, Error> poisoned_;              // handles whose producer failed; nearly always empty
  std::unordered_map<uint32_t, uint64_t> events_;             // when each happened, CLOCK_MONOTONIC
};

}  // namespace flagos::null
