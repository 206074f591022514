// SPDX-License-Identifier: Apache-2.0
#include "client/forward/kernels.h"

#include <mutex>
#include <unordered_map>
#include <utility>

#include "client/errors.h"

namespace flagos::client {
namespace {

constexpr size_t kRemembered = size_t{1} << 16;

template <class T>
T Taken(Result<T> result) {
  if (!result.ok()) Throw(result.error());
  return std::move(result).value();
}

}  // namespace

bool HasKernelLibraries(Session& session) { return (session.connection().features & kFeatureKernels) != 0; }

std::vector<KernelLibraryInfo> KernelLibraries(Session& session) {
  return Taken(DecodeKernelLibraries(session.request(MakeHeader(RecordKind::kListKernels))));
}

std::vector<KernelFigures> KernelCalls(Session& session) {
  return Taken(DecodeKernelFigures(session.request(MakeHeader(RecordKind::kKernelFigures))));
}

std::string KernelOf(Session& session, uint64_t hash, uint32_t signature) {
  static std::mutex mutex;
  static auto& known = *new std::unordered_map<uint64_t, std::string>;  // of one generation: a process has one
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(hash); found != known.end()) return found->second;
  }
  const std::vector<std::byte> answer = session.request(MakeHeader(RecordKind::kQueryKernel, signature));
  std::string library = ByteReader(answer).get_string(kMaxLibraryName);
  if (library.empty()) return library;
  const std::lock_guard lock(mutex);
  if (known.size() >= kRemembered) known.clear();
  known.emplace(hash, library);
  return library;
}

}  // namespace flagos::client
