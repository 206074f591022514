// SPDX-License-Identifier: Apache-2.0
#include "vendors/cpu/shared_storage.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace flagos::cpu {
namespace {

// What a shared storage's DataPtr owns.
class Owner {
 public:
  Owner(Allocator& allocator, uint8_t device, UniqueFd fd, Mapping mapping)
      : allocator_(allocator), device_(device), fd_(std::move(fd)), mapping_(std::move(mapping)) {
    allocator_.count(device_, mapping_.size());
  }
  ~Owner() { allocator_.uncount(device_, mapping_.size()); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  std::byte* data() const { return mapping_.data(); }
  uint64_t size() const { return mapping_.size(); }
  int fd() const { return fd_.get(); }

 private:
  Allocator& allocator_;
  const uint8_t device_;
  const UniqueFd fd_;
  const Mapping mapping_;
};

void Release(void* context) { delete static_cast<Owner*>(context); }

c10::DataPtr Own(std::unique_ptr<Owner> owner, uint64_t offset) {
  void* const data = owner->data() + offset;
  return {data, owner.release(), &Release, c10::Device(c10::kCPU)};
}

Error NoDescriptor() {
  return MakeError(ErrorCode::kUnavailable,
                   std::string("the executor cannot make a descriptor of a tensor's memory: ") + std::strerror(errno) +
                       "; raise its limit of open files");
}

Result<vendor::SharedMemory> Describe(const Owner& owner, const c10::StorageImpl& storage) {
  vendor::SharedMemory shared;
  shared.descriptor = UniqueFd(::fcntl(owner.fd(), F_DUPFD_CLOEXEC, 0));
  struct stat status {};
  if (!shared.descriptor || ::fstat(owner.fd(), &status) != 0) return NoDescriptor();
  const auto offset = static_cast<const std::byte*>(storage.data()) - owner.data();
  shared.storage = {.descriptor_bytes = owner.size(),
                    .offset = static_cast<uint64_t>(offset),
                    .bytes = storage.nbytes(),
                    .identity = {status.st_dev, status.st_ino}};
  return shared;
}

}  // namespace

Result<vendor::SharedMemory> Share(c10::StorageImpl& storage, uint8_t device, Allocator& allocator) {
  if (storage.data_ptr().get_deleter() == &Release) {
    return Describe(*static_cast<Owner*>(storage.data_ptr().get_context()), storage);
  }
  auto region = CreateRegion("flagos-shared", storage.nbytes());
  if (!region.ok()) return region.error();
  auto mapping = Mapping::Map(region.value().get(), Access::kReadWrite, storage.nbytes());
  if (!mapping.ok()) return mapping.error();
  auto owner = std::make_unique<Owner>(allocator, device, std::move(region).value(), std::move(mapping).value());
  std::memcpy(owner->data(), storage.data(), storage.nbytes());
  const Owner& kept = *owner;
  storage.set_data_ptr_noswap(Own(std::move(owner), 0));
  storage.set_resizable(false);
  return Describe(kept, storage);
}

Result<c10::Storage> Adopt(vendor::SharedMemory memory, uint8_t device, Allocator& allocator) {
  const SharedStorage& shared = memory.storage;
  auto mapping = Mapping::Map(memory.descriptor.get(), Access::kReadWrite, shared.bytes);
  if (!mapping.ok()) return mapping.error();
  const uint64_t size = mapping.value().size();
  if (shared.bytes == 0 || shared.offset > size || shared.bytes > size - shared.offset) {
    return MakeError(ErrorCode::kMalformed, "a shared tensor of " + std::to_string(shared.bytes) + " bytes at offset " +
                                                std::to_string(shared.offset) + " does not lie in the " +
                                                std::to_string(size) + " bytes that came with it; send it again");
  }
  auto owner = std::make_unique<Owner>(allocator, device, std::move(memory.descriptor), std::move(mapping).value());
  return c10::Storage(c10::Storage::use_byte_size_t(), shared.bytes, Own(std::move(owner), shared.offset), nullptr,
                      false);
}

}  // namespace flagos::cpu
