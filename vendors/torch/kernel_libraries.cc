// SPDX-License-Identifier: Apache-2.0
#include "vendors/torch/kernel_libraries.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "proto/routing/route.h"
#include "vendors/torch/failures.h"
#include "vendors/torch/operator.h"

namespace flagos::torch_host {
namespace {

constexpr std::string_view kPrefix = "libflagos_kernels_", kSuffix = ".so";

// The folder of the library that this code is part of: the vendor's.
std::string OwnFolder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return std::filesystem::canonical(info.dli_fname, ignored).parent_path().string();
}

Error Unusable(const std::string& path, const std::string& why) {
  return MakeError(ErrorCode::kValue, "the kernel library " + path + " cannot be used: " + why);
}

}  // namespace

Result<KernelLibraries> KernelLibraries::Find(const std::vector<std::string>& folders, c10::DeviceType device) {
  KernelLibraries libraries(device);
  for (const std::string& folder : folders) {
    if (Error error = libraries.look_in(folder); !error.ok()) return error;
  }
  if (const std::string own = OwnFolder(); !own.empty()) {
    if (Error error = libraries.look_in(own); !error.ok()) return error;
  }
  return libraries;
}

Error KernelLibraries::look_in(const std::string& folder) {
  std::error_code wrong;
  for (std::filesystem::directory_iterator entry(folder, wrong), end; !wrong && entry != end; entry.increment(wrong)) {
    const std::string file = entry->path().filename().string();
    if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix) || file.size() <= kPrefix.size() + kSuffix.size())
      continue;
    const std::string name = file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
    if (IsLibraryName(name) && name != kNativeKernels)
      files_.try_emplace(name, File{entry->path().string(), false, {}, {}});
  }
  if (!wrong) return Error::Ok();
  return MakeError(ErrorCode::kValue, "the folder of kernel libraries " + folder +
                                          " cannot be read: " + wrong.message() +
                                          "; correct the vendor's option kernels in flagosd's "
                                          "configuration");
}

Result<const LoadedLibrary*> KernelLibraries::load(const std::string& name) {
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return MakeError(ErrorCode::kValue, "there is no kernel library '" + name + "'");
  }
  File& file = found->second;
  if (!std::exchange(file.tried, true)) file.error = open(name, file);
  if (!file.error.ok()) return file.error;
  return static_cast<const LoadedLibrary*>(&file.library);
}

Error KernelLibraries::open(const std::string& name, File& file) const {
  void* const handle = ::dlopen(file.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return Unusable(file.path, std::string(why == nullptr ? "unknown reason" : why) +
                                   "; install what it needs, or build it for the executor's libtorch");
  }
  const auto entry_of = reinterpret_cast<KernelEntry (*)()>(::dlsym(handle, kKernelEntrySymbol));
  if (entry_of == nullptr) {
    return Unusable(file.path, "it exports no flagos_kernels(); add FLAGOS_REGISTER_KERNELS to it");
  }
  const KernelEntry entry = entry_of();
  if (entry.interface_version != kKernelInterfaceVersion) {
    return Unusable(file.path, "it was built for version " + std::to_string(entry.interface_version) +
                                   " of the interface and this executor has version " +
                                   std::to_string(kKernelInterfaceVersion) + "; install both from one release");
  }
  if (std::string_view(entry.torch_version) != TORCH_VERSION) {
    return Unusable(file.path, std::string("it was built for torch ") + entry.torch_version +
                                   " and this executor hosts " + TORCH_VERSION + "; build it for that");
  }
  if (entry.name != name) {
    return Unusable(file.path, std::string("it is the library '") + entry.name + "'; its file must have that name");
  }
  if (entry.device != device_) {
    return Unusable(file.path, "its kernels are for " + c10::DeviceTypeName(entry.device, true) +
                                   " and the vendor's device is " + c10::DeviceTypeName(device_, true));
  }
  file.library.name = name;
  file.library.description = entry.description;
  try {
    for (Kernel& kernel : entry.kernels()) {
      if (Error error = take(std::move(kernel), file.library); !error.ok()) return Unusable(file.path, error.message);
    }
  } catch (...) {
    return Unusable(file.path, CurrentError().message);
  }
  return Error::Ok();
}

// A kernel of another schema would read the stack amiss.
Error KernelLibraries::take(Kernel kernel, LoadedLibrary& library) {
  const auto wrong = [&](const std::string& why) { return MakeError(ErrorCode::kValue, kernel.op + " " + why); };
  const OperatorParts parts = SplitOperator(kernel.op);
  const c10::OperatorName name{std::string(parts.op), std::string(parts.overload)};
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  if (!op || !IsAllowed(name)) return wrong("is no operator of this PyTorch that a client can call");
  if (IsNeverRouted(parts.op)) return wrong("makes storages, views or copies, which is never a library's to do");
  if (!kernel.function.isValid()) return wrong("has an empty kernel");
  if (kernel.schema) {
    const auto difference = c10::findSchemaDifferences(*kernel.schema, op->schema());
    if (difference) return wrong("has a kernel of another schema: " + *difference);
  }
  const std::string full = kernel.op;
  if (!library.kernels.try_emplace(full, std::move(kernel)).second) {
    return MakeError(ErrorCode::kValue, full + " has two kernels");
  }
  return Error::Ok();
}

std::vector<KernelLibraryInfo> KernelLibraries::list() {
  std::vector<KernelLibraryInfo> all;
  for (const auto& [name, file] : files_) {
    const auto loaded = load(name);
    KernelLibraryInfo& info = all.emplace_back();
    info.name = name;
    if (!loaded.ok()) {
      info.error = loaded.error().message;
      continue;
    }
    info.description = file.library.description;
    for (const auto& [op, kernel] : file.library.kernels) info.operators.push_back(op);
    std::ranges::sort(info.operators);
  }
  return all;
}

}  // namespace flagos::torch_host
