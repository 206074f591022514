// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faulty/faulty_vendor.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "vendors/null/backend.h"

namespace flagos::testing {
namespace {

std::chrono::microseconds Milliseconds(double number) {
  return std::chrono::microseconds(static_cast<int64_t>(number * 1000));
}

class FaultyBackend final : public null::NullBackend {
 public:
  explicit FaultyBackend(vendor::Host& host) : NullBackend(host, 1) {}
  ~FaultyBackend() override { join(); }

  bool has_operator(const std::string& name) override {
    return name.starts_with("test::") || NullBackend::has_operator(name);
  }

  Error define_operator(uint32_t op, const OperatorDefinition& definition) override {
    operators_[op] = definition.name;
    return NullBackend::define_operator(op, definition);
  }
  Error define_signature(uint32_t signature, Signature definition) override {
    behaviours_[signature] = operators_[definition.op];
    return NullBackend::define_signature(signature, std::move(definition));
  }

  void call(const vendor::Call& call, std::unique_ptr<vendor::Responder> responder) override {
    const std::string& behaviour = behaviours_[call.signature];
    double number = 0;
    if (call.free_bytes.size() >= sizeof number) std::memcpy(&number, call.free_bytes.data(), sizeof number);
    const Error broken = MakeError(ErrorCode::kDevice, "device-side assert");
    if (behaviour == "test::fail") {
      if (responder) return responder->respond(broken, {}, {});
      host().fail(call.sequence, broken);
    } else if (behaviour == "test::lose") {
      const Error lost = host().device_failed(broken);
      if (responder) return responder->respond(lost, {}, {});
      host().fail(call.sequence, lost);
    } else if (behaviour == "test::fail_later") {
      later(number, [this, sequence = call.sequence, broken] { host().fail(sequence, broken); });
    } else if (behaviour == "test::twice") {
      responder->respond(Error::Ok(), {}, Empty());
      responder->respond(broken, {}, {});
    } else if (behaviour == "test::slow") {
      std::shared_ptr<vendor::Responder> shared = std::move(responder);
      later(number, [shared] { shared->respond(Error::Ok(), {}, Empty()); });
    } else if (behaviour == "test::large") {
      responder->respond(Error::Ok(), {}, std::vector<std::byte>(static_cast<size_t>(number), std::byte{7}));
    } else if (behaviour == "test::warn") {
      host().warn({{WarningKind::kUser, "asynchronous"}});
      const Warning own{WarningKind::kDeprecation, "synchronous"};
      if (responder) responder->respond(Error::Ok(), std::span(&own, 1), Empty());
    } else if (behaviour == "test::stall") {
      std::this_thread::sleep_for(Milliseconds(number));
      if (responder) responder->respond(Error::Ok(), {}, Empty());
    } else if (behaviour == "test::abort") {
      std::abort();
    } else if (behaviour != "test::drop") {
      NullBackend::call(call, std::move(responder));
    }
  }

  void fence(uint16_t stream, uint8_t device, std::function<void(const Error&)> done) override {
    if (threads_.empty()) return NullBackend::fence(stream, device, std::move(done));
    // After all that is under way.
    std::thread waiter([before = std::exchange(threads_, {}), done = std::move(done)]() mutable {
      for (std::thread& thread : before) thread.join();
      done(Error::Ok());
    });
    threads_.push_back(std::move(waiter));
  }

 private:
  static std::span<const std::byte> Empty() {  // an Outcome with nothing in it
    static constexpr std::byte kBytes[4] = {};
    return kBytes;
  }
  template <class Work>
  void later(double milliseconds, Work work) {
    threads_.emplace_back([milliseconds, work] {
      std::this_thread::sleep_for(Milliseconds(milliseconds));
      work();
    });
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::map<uint32_t, std::string> operators_;
  std::map<uint32_t, std::string> behaviours_;  // by signature
  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<vendor::Backend>> FaultyVendor::open(vendor::Host& host) {
  return std::unique_ptr<vendor::Backend>(std::make_unique<FaultyBackend>(host));
}

}  // namespace flagos::testing
