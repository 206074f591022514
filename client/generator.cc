// SPDX-License-Identifier: Apache-2.0
#include "client/generator.h"

#include <ATen/ATen.h>
#include <ATen/Utils.h>
#include <ATen/core/Generator.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "client/connection.h"
#include "client/device.h"
#include "client/errors.h"
#include "client/session.h"

namespace flagos::client {
namespace {

// Of Philox, the generator of vendors that count: u64 seed, i64 offset.
constexpr size_t kPhiloxBytes = 16;

std::mutex numbers_mutex;
NumberPool numbers{kMaxDevices, kMaxGenerators - kMaxDevices};  // of explicit generators. GUARDED_BY(numbers_mutex)

// PyTorch's rule: callers hold mutex_ for all but reading.
class Generator final : public c10::GeneratorImpl {
 public:
  // A device's default generator.
  explicit Generator(c10::DeviceIndex device)
      : GeneratorImpl({c10::kPrivateUse1, device}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        number_(static_cast<uint32_t>(device)),
        created_(true) {}
  // An explicit one, which the executor learns of when it is first used.
  Generator(c10::DeviceIndex device, uint32_t number)
      : GeneratorImpl({c10::kPrivateUse1, device}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        number_(number) {}
  ~Generator() override {
    if (number_ < kMaxDevices || Session::InBadFork()) return;
    Session* const session = Session::Current();
    if (created_ && (session == nullptr || !session->try_send(header(RecordKind::kDestroyGenerator)))) return;
    const std::lock_guard lock(numbers_mutex);
    numbers.give_back(number_);
  }

  void set_current_seed(uint64_t seed) override {
    seed_ = seed;
    // Before the first attach, and before an explicit generator's first use, the seed goes with that.
    Session* const session = Session::Current();
    if (session != nullptr && created_) send_seed(*session);
  }
  uint64_t current_seed() const override { return seed_; }
  uint64_t seed() override {
    set_current_seed(c10::detail::getNonDeterministicRandom());
    return seed_;
  }

  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const auto bytes = read_state();
    auto state = at::empty({static_cast<int64_t>(bytes.size())}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    std::memcpy(state.mutable_data_ptr(), bytes.data(), bytes.size());
    return state.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& state) override {
    at::detail::check_rng_state(state);
    write_state({static_cast<const std::byte*>(state.data()), static_cast<size_t>(state.numel())});
  }
  // Generators that do not count have offset 0 only. PyTorch pickles every generator with its offset and its state.
  uint64_t get_offset() const override {
    uint64_t offset = 0;
    const auto state = read_state();
    if (state.size() == kPhiloxBytes) std::memcpy(&offset, state.data() + sizeof(uint64_t), sizeof offset);
    return offset;
  }
  void set_offset(uint64_t offset) override {
    auto state = read_state();
    if (offset == 0 && state.size() != kPhiloxBytes) return;
    check_counts(state);
    std::memcpy(state.data() + sizeof(uint64_t), &offset, sizeof offset);
    write_state(state);
  }

  uint32_t number() const { return number_; }
  // Tells the executor of an explicit generator.
  void create() const {
    if (created_.load(std::memory_order_acquire)) return;
    Session& session = Session::Get();
    const std::lock_guard lock(creation_);
    if (created_.load(std::memory_order_relaxed)) return;
    session.send(header(RecordKind::kCreateGenerator));
    send_seed(session);
    created_.store(true, std::memory_order_release);
  }
  void send_seed(Session& session) const {
    session.send(header(RecordKind::kSeedGenerator), std::as_bytes(std::span(&seed_, 1)));
  }

 private:
  Generator* clone_impl() const override;

  RecordHeader header(RecordKind kind) const {
    return MakeHeader(kind, number_, CurrentStreamSlot(device_.index()), static_cast<uint8_t>(device_.index()));
  }
  std::vector<std::byte> read_state() const {
    Session& session = Session::Get();
    create();
    return session.request(header(RecordKind::kGetGeneratorState));
  }
  void write_state(std::span<const std::byte> state) {
    Session& session = Session::Get();
    create();
    session.request(header(RecordKind::kSetGeneratorState), state);
    // Every layout there is starts with the seed: Philox's, and the Mersenne twister's of the CPU.
    if (state.size() >= sizeof seed_) std::memcpy(&seed_, state.data(), sizeof seed_);
  }
  static void check_counts(std::span<const std::byte> state) {
    TORCH_CHECK_NOT_IMPLEMENTED(state.size() == kPhiloxBytes, "this vendor's generator has no offset (its state has ",
                                state.size(), " bytes): save and restore the whole state instead");
  }

  const uint32_t number_;
  mutable std::mutex creation_;  // operators do not hold mutex_
  mutable std::atomic<bool> created_{false};
  uint64_t seed_ = c10::default_rng_seed_val;
};

uint32_t NewNumber() {
  const std::lock_guard lock(numbers_mutex);
  const uint32_t number = numbers.take();
  TORCH_CHECK(number != NumberPool::kNone, "flagos: ", kMaxGenerators, " generators are alive in this process");
  return number;
}

Generator* Generator::clone_impl() const {
  auto copy = std::make_unique<Generator>(device_.index(), NewNumber());  // gives its number back where this throws
  copy->seed_ = seed_;
  // Without a session there is no state but the seed.
  if (Session::Current() != nullptr && created_) copy->write_state(read_state());
  return copy.release();
}

// One for each device, made at the first need; never destroyed.
std::vector<at::Generator>& DefaultGenerators() {
  static auto& generators = *[] {
    auto* const made = new std::vector<at::Generator>;
    for (uint32_t device = 0; device < Devices().count; ++device) {
      made->push_back(at::make_generator<Generator>(static_cast<c10::DeviceIndex>(device)));
    }
    return made;
  }();
  return generators;
}

}  // namespace

const at::Generator& DefaultGenerator(c10::DeviceIndex device) {
  const c10::DeviceIndex index = device == -1 ? CurrentDevice() : device;
  CheckDevice(index);
  return DefaultGenerators()[static_cast<size_t>(index)];
}

at::Generator NewGenerator(c10::DeviceIndex device) {
  const c10::DeviceIndex index = device == -1 ? CurrentDevice() : device;
  CheckDevice(index);
  return at::make_generator<Generator>(index, NewNumber());
}

uint32_t GeneratorNumber(const at::Generator& generator) {
  TORCH_CHECK(generator.device().type() == c10::kPrivateUse1,
              "Expected a 'flagos' device type for generator but found '", generator.device().type(), "'");
  const auto& ours = *static_cast<const Generator*>(generator.unsafeGetGeneratorImpl());
  ours.create();
  return ours.number();
}

void SeedDefaultGenerators(Session& session) {
  for (const at::Generator& generator : DefaultGenerators()) {
    static_cast<const Generator*>(generator.unsafeGetGeneratorImpl())->send_seed(session);
  }
}

}  // namespace flagos::client
