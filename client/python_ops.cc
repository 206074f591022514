// SPDX-License-Identifier: Apache-2.0
// torch.ops.flagos: what the Python package calls. Loading the library defines these and does nothing else.
#include <ATen/core/Generator.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/connection.h"
#include "client/device.h"
#include "client/errors.h"
#include "client/forward/kernels.h"
#include "client/forward/operator.h"
#include "client/generator.h"
#include "client/memory.h"
#include "client/register.h"
#include "client/session.h"
#include "client/session_info.h"
#include "client/sharing.h"
#include "client/streams.h"

namespace flagos::client {
namespace {

c10::DeviceIndex Index(int64_t device) {
  CheckDevice(device);  // before it is narrowed: 256 is not 0
  return static_cast<c10::DeviceIndex>(device);
}

void Init() { Session::Get(); }
bool InBadFork() { return Session::InBadFork(); }
bool IsInitialized() { return Session::Current() != nullptr; }
int64_t DeviceCount() { return Devices().count; }

int64_t GetDevice() { return CurrentDevice(); }
void SetDevice(int64_t device) {
  if (device != CurrentDevice()) SetCurrentDevice(Index(device));
}
int64_t ExchangeDevice(int64_t device) {
  const int64_t before = CurrentDevice();
  if (device >= 0) SetDevice(device);
  return before;
}

// Keeps what is warned of while it lives, for a caller that raises it in Python: torch.ops itself would print it, as
// happens to what nobody takes.
class KeptWarnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const bool deprecation = std::holds_alternative<c10::Warning::DeprecationWarning>(warning.type());
    (deprecation ? deprecations_ : others_).push_back(warning.msg());
  }
  ~KeptWarnings() override {
    guard_.reset();
    for (const auto* texts : {&others_, &deprecations_}) {
      for (const std::string& text : *texts) TORCH_WARN(text);
    }
  }
  std::tuple<std::vector<std::string>, std::vector<std::string>> take() {
    return {std::exchange(others_, {}), std::exchange(deprecations_, {})};
  }

 private:
  std::vector<std::string> others_, deprecations_;
  std::optional<c10::WarningUtils::WarningHandlerGuard> guard_{this};
};

std::tuple<std::vector<std::string>, std::vector<std::string>> Synchronize(int64_t device) {
  const c10::DeviceIndex index = Index(device);
  if (Session::Current() == nullptr && !Session::InBadFork()) return {};
  KeptWarnings warnings;
  Session::Get().synchronize(kAllStreams, static_cast<uint8_t>(index));
  return warnings.take();
}

std::string FormatUuid(const uint8_t (&uuid)[16]) {
  std::string text;
  for (size_t i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

// Descriptor (the caller's), then SharedStorage in its order; the tensor has all of the storage's bytes.
std::vector<int64_t> Export(const at::Tensor& tensor) {
  ExportedStorage exported = ExportStorage(tensor.storage());
  const SharedStorage& at = exported.storage;
  const auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
  return {exported.descriptor.release(), number(at.descriptor_bytes), number(at.offset), number(at.bytes),
          number(at.identity[0]),        number(at.identity[1])};
}

at::Tensor Import(int64_t descriptor, at::IntArrayRef storage, int64_t device) {
  TORCH_CHECK(storage.size() == 5, "flagos: a shared storage is described by 5 numbers, not ", storage.size());
  const auto number = [&](size_t i) { return static_cast<uint64_t>(storage[i]); };
  const SharedStorage at{number(0), number(1), number(2), {number(3), number(4)}};
  const c10::Device on(c10::kPrivateUse1, Index(device));
  return at::empty({0}, at::device(on).dtype(at::kByte))
      .set_(ImportStorage(static_cast<int>(descriptor), at, on), 0, {storage[2]}, {1});
}

// An embedded daemon is started for this: it alone knows.
std::tuple<std::string, int64_t, int64_t, int64_t, int64_t, std::string> DeviceProperties(int64_t device) {
  const c10::DeviceIndex index = Index(device);
  if (Session::KnownDevices().empty()) Session::Get();
  const DeviceRecord& record = Session::KnownDevices()[static_cast<size_t>(index)];
  return {ReadText(record.name),
          static_cast<int64_t>(record.total_memory),
          record.multi_processor_count,
          record.major,
          record.minor,
          FormatUuid(record.uuid)};
}

std::vector<int64_t> MemoryStatsOf(int64_t device) {
  const MemoryStats stats = DeviceMemoryStats(Index(device));
  return {stats.allocated_bytes, stats.reserved_bytes, stats.peak_allocated_bytes, stats.peak_reserved_bytes,
          stats.allocations,     stats.frees,          stats.device_allocations,   stats.device_frees,
          stats.retries,         stats.total_bytes,    stats.free_bytes,           stats.quota_bytes};
}
std::tuple<int64_t, int64_t> MemoryInfoOf(int64_t device) { return MemoryInfo(Index(device)); }
void ResetPeaks(int64_t device) { ResetPeakMemoryStats(Index(device)); }

// Names of the operators that were called, and for each: calls, waits by cause (kWaitNames), calls on the CPU, bytes to
// the device, bytes to the host.
std::tuple<std::vector<std::string>, std::vector<int64_t>> Tallies() {
  std::vector<std::string> names;
  std::vector<int64_t> figures;
  Session* const session = Session::Current();
  if (session == nullptr) return {};
  const std::vector<Operator*> all = Operator::All();
  const std::lock_guard lock(session->lock());
  for (const Operator* const op : all) {
    const Tally& tally = op->tally;
    if (tally.calls == 0 && tally.fallbacks == 0) continue;
    names.push_back(op->name);
    figures.push_back(static_cast<int64_t>(tally.calls));
    for (const uint64_t waits : tally.waits) figures.push_back(static_cast<int64_t>(waits));
    for (const uint64_t figure : {tally.fallbacks, tally.bytes_to_device, tally.bytes_to_host})
      figures.push_back(static_cast<int64_t>(figure));
  }
  return {std::move(names), std::move(figures)};
}
void ResetTallies() {
  Session* const session = Session::Current();
  if (session == nullptr) return;
  std::vector<KernelFigures> figures;
  if (HasKernelLibraries(*session) && session->alive()) figures = KernelCalls(*session);
  const std::vector<Operator*> all = Operator::All();
  const std::lock_guard lock(session->lock());
  for (Operator* const op : all) op->tally = {};
  for (const KernelFigures& figure : figures) {
    for (Operator* const op : all) {
      if (op->number == figure.op) op->tally.kernel_calls_before = figure.calls;
    }
  }
}
// What the executor says of kernel libraries: operators for which one was chosen, the libraries, and the calls that
// these ran. And whether it could be asked.
std::tuple<bool, std::vector<std::string>, std::vector<std::string>, std::vector<int64_t>> KernelTallies() {
  Session* const session = Session::Current();
  if (session == nullptr || !HasKernelLibraries(*session) || !session->alive()) return {};
  const std::vector<KernelFigures> figures = KernelCalls(*session);
  const std::vector<Operator*> all = Operator::All();
  std::vector<std::string> names, libraries;
  std::vector<int64_t> calls;
  const std::lock_guard lock(session->lock());
  for (const KernelFigures& figure : figures) {
    for (const Operator* const op : all) {
      if (op->number != figure.op) continue;
      names.push_back(op->name);
      libraries.push_back(figure.library);
      calls.push_back(static_cast<int64_t>(figure.calls - op->tally.kernel_calls_before));
    }
  }
  return {true, std::move(names), std::move(libraries), std::move(calls)};
}

// Names, descriptions, errors and counts of operators, of each library; then the operators of all.
std::tuple<std::vector<std::string>, std::vector<std::string>, std::vector<std::string>, std::vector<int64_t>,
           std::vector<std::string>>
ListKernelLibraries() {
  std::vector<std::string> names, descriptions, errors, operators;
  std::vector<int64_t> counts;
  Session& session = Session::Get();
  if (!HasKernelLibraries(session)) return {};
  for (KernelLibraryInfo& library : KernelLibraries(session)) {
    names.push_back(std::move(library.name));
    descriptions.push_back(std::move(library.description));
    errors.push_back(std::move(library.error));
    counts.push_back(static_cast<int64_t>(library.operators.size()));
    operators.insert(operators.end(), library.operators.begin(), library.operators.end());
  }
  return {names, descriptions, errors, counts, operators};
}

std::vector<std::string> WaitNames() { return {kWaitNames.begin(), kWaitNames.end()}; }

at::Generator DefaultGeneratorOf(int64_t device) { return DefaultGenerator(Index(device)); }
std::tuple<int64_t, int64_t> PriorityRange() { return StreamPriorityRange(); }
std::tuple<int64_t, int64_t> ErrorCodes() { return {kDeviceLostErrorCode, kDeviceFaultErrorCode}; }

}  // namespace

TORCH_LIBRARY(flagos, m) {
  m.def("_register() -> ()", &RegisterDevice);
  m.def("_init() -> ()", &Init);
  m.def("_is_initialized() -> bool", &IsInitialized);
  m.def("_in_bad_fork() -> bool", &InBadFork);
  m.def("_session_info() -> str", &SessionInfo);       // JSON; "{}" before the first attach
  m.def("_error_codes() -> (int, int)", &ErrorCodes);  // AcceleratorError.error_code: device lost, device fault

  m.def("_device_count() -> int", &DeviceCount);
  m.def("_check_device(int device) -> ()", &CheckDevice);
  m.def("_current_device() -> int", &GetDevice);
  m.def("_set_device(int device) -> ()", &SetDevice);
  m.def("_exchange_device(int device) -> int", &ExchangeDevice);
  m.def("_synchronize(int device) -> (str[], str[])", &Synchronize);  // warnings of users, of deprecation
  // Name, total memory, multiprocessors, capability (major, minor), UUID.
  m.def("_device_properties(int device) -> (str, int, int, int, int, str)", &DeviceProperties);

  m.def("_memory_stats(int device) -> int[]", &MemoryStatsOf);     // in the order of MemoryStats
  m.def("_memory_info(int device) -> (int, int)", &MemoryInfoOf);  // free, total
  m.def("_reset_peak_memory_stats(int device) -> ()", &ResetPeaks);
  m.def("_empty_cache() -> ()", &EmptyCache);

  m.def("_export_storage(Tensor bytes) -> int[]", &Export);
  m.def("_import_storage(int descriptor, int[] storage, int device) -> Tensor", &Import);

  m.def("_tallies() -> (str[], int[])", &Tallies);
  m.def("_reset_tallies() -> ()", &ResetTallies);
  m.def("_kernel_tallies() -> (bool, str[], str[], int[])", &KernelTallies);
  m.def("_kernel_libraries() -> (str[], str[], str[], int[], str[])", &ListKernelLibraries);
  m.def("_wait_names() -> str[]", &WaitNames);

  m.def("_default_generator(int device) -> Generator?", &DefaultGeneratorOf);
  m.def("_stream_priority_range() -> (int, int)", &PriorityRange);
}

}  // namespace flagos::client
