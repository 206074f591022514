// SPDX-License-Identifier: Apache-2.0
#include "client/register.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceType.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <mutex>

#include "client/forward/register.h"
#include "client/handles.h"
#include "client/session.h"

namespace flagos::client {
namespace {

void RecordStreamOfTensor(at::Tensor& self, c10::Stream stream) { RecordStream(self.storage().data_ptr(), stream); }

void RegisterRecordStream() {
  static auto& library =
      *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library.impl("record_stream", TORCH_FN(RecordStreamOfTensor));
}

}  // namespace

void RegisterDevice() {
  static std::mutex mutex;
  static bool done = false;
  const std::lock_guard lock(mutex);
  if (done) return;
  TORCH_CHECK(!c10::is_privateuse1_backend_registered() || c10::get_privateuse1_backend() == "flagos",
              "PyTorch has room for one more device besides its own, and in this process it is '",
              c10::get_privateuse1_backend(), "' already; import flagos in a process without that backend");
  c10::register_privateuse1_backend("flagos");
  Session::HandleForks();
  RegisterHooks();
  RegisterGuard();
  RegisterAllocators();
  RegisterRecordStream();
  RegisterForwarding();
  RegisterAutocast();
  done = true;
}

}  // namespace flagos::client
