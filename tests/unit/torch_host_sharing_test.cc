// SPDX-License-Identifier: Apache-2.0
// Memory that the CPU vendor hands to another session. Both sessions here are of one process, which has one vendor:
// what is exported is imported under another handle.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "torch_host_driver.h"

namespace flagos::testing {
namespace {

DeviceTensor Import(Driver& driver, vendor::SharedMemory shared, const Geometry& geometry) {
  const DeviceTensor imported{driver.new_handle(), geometry};
  const Error error = driver.backend().import_memory(imported.handle, std::move(shared), 0);
  EXPECT_TRUE(error.ok()) << error.message;
  return imported;
}

TEST(TorchHostSharing, BothSidesSeeTheSameBytes) {
  Driver driver;
  const DeviceTensor x = driver.put(at::arange(5, at::kFloat));
  auto shared = driver.backend().export_memory(x.handle, 0);
  ASSERT_TRUE(shared.ok()) << shared.error().message;
  EXPECT_EQ(shared.value().storage.bytes, 20u);
  const DeviceTensor y = Import(driver, std::move(shared).value(), x.geometry);
  EXPECT_TRUE(driver.get(y).equal(at::arange(5, at::kFloat)));
  ASSERT_TRUE(driver.call("aten::add_.Scalar", {Of(x), Scalar(1.0), Scalar(1.0)}).error.ok());
  EXPECT_TRUE(driver.get(y).equal(at::arange(1, 6, at::kFloat)));
  driver.free(x);
  const DeviceTensor other = driver.put(at::zeros({5}));  // would take the memory if it were free
  EXPECT_TRUE(driver.get(y).equal(at::arange(1, 6, at::kFloat)));
  EXPECT_TRUE(driver.get(other).equal(at::zeros({5})));
}

TEST(TorchHostSharing, ADescriptorShowsItsStorageAlone) {
  Driver driver;
  const DeviceTensor secret = driver.put(at::full({100}, 42.0f)), x = driver.put(at::ones({1}));
  auto shared = driver.backend().export_memory(x.handle, 0);
  ASSERT_TRUE(shared.ok());
  const size_t bytes = shared.value().storage.descriptor_bytes;
  const auto* const seen =
      static_cast<const float*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, shared.value().descriptor.get(), 0));
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(seen[0], 1.0f);
  for (size_t i = 1; i < bytes / sizeof(float); ++i) ASSERT_EQ(seen[i], 0.0f) << i;
}

TEST(TorchHostSharing, TheSameMemoryHasOneIdentity) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({4})), z = driver.put(at::ones({4}));
  auto first = driver.backend().export_memory(x.handle, 0), again = driver.backend().export_memory(x.handle, 0);
  auto other = driver.backend().export_memory(z.handle, 0);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  const auto identity = [](const vendor::SharedMemory& shared) {
    return std::pair(shared.storage.identity[0], shared.storage.identity[1]);
  };
  EXPECT_EQ(identity(first.value()), identity(again.value()));
  EXPECT_NE(identity(first.value()), identity(other.value()));
  const auto expected = identity(first.value());
  const DeviceTensor y = Import(driver, std::move(first).value(), x.geometry);
  EXPECT_EQ(identity(driver.backend().export_memory(y.handle, 0).value()), expected);
}

TEST(TorchHostSharing, MemoryIsCountedAndHeldToTheQuota) {
  Driver driver({}, 8 << 20);
  const auto allocated = [&] { return driver.host().figures(0).allocated_bytes.load(); };
  const int64_t before = allocated();
  const DeviceTensor x = driver.put(at::ones({1 << 14}));
  auto shared = driver.backend().export_memory(x.handle, 0);
  ASSERT_TRUE(shared.ok());
  EXPECT_EQ(allocated() - before, 1 << 16);
  const DeviceTensor y = Import(driver, std::move(shared).value(), x.geometry);
  EXPECT_EQ(allocated() - before, 2 << 16);
  driver.free(x);
  driver.free(y);
  EXPECT_EQ(allocated(), before);
  // No room for the storage twice. (The test's own tensors are counted too: it is the vendor's process.)
  const uint32_t large = driver.new_handle();
  ASSERT_TRUE(driver.backend().allocate(large, 4 << 20, 0, 0).ok());
  EXPECT_EQ(driver.backend().export_memory(large, 0).error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(allocated() - before, 4 << 20);
}

TEST(TorchHostSharing, WhatIsNoStorageIsRefused) {
  Driver driver;
  EXPECT_EQ(driver.backend().export_memory(0, 0).error().code, ErrorCode::kValue);
  EXPECT_FALSE(driver.backend().export_memory(driver.new_handle(), 0).ok());
}

// What a peer may send instead of what it should.
TEST(TorchHostSharing, OtherDescriptorsAndPlacesAreRefused) {
  Driver driver;
  const DeviceTensor x = driver.put(at::ones({4}));
  const auto import = [&](UniqueFd descriptor, uint64_t offset, uint64_t bytes) {
    vendor::SharedMemory shared;
    shared.descriptor = std::move(descriptor);
    shared.storage = {.descriptor_bytes = 4096, .offset = offset, .bytes = bytes, .identity = {1, 2}};
    return driver.backend().import_memory(driver.new_handle(), std::move(shared), 0).code;
  };
  const auto region = [&] { return std::move(driver.backend().export_memory(x.handle, 0)).value().descriptor; };
  EXPECT_EQ(import(region(), 0, 4096), ErrorCode::kOk);
  EXPECT_EQ(import(region(), 4000, 96), ErrorCode::kOk);
  EXPECT_EQ(import(region(), 0, 0), ErrorCode::kMalformed);
  EXPECT_EQ(import(region(), 0, 4097), ErrorCode::kMalformed);
  EXPECT_EQ(import(region(), 4000, 97), ErrorCode::kMalformed);
  EXPECT_EQ(import(region(), ~uint64_t{0}, 1), ErrorCode::kMalformed);
  EXPECT_EQ(import(UniqueFd(open("/dev/zero", O_RDWR)), 0, 16), ErrorCode::kMalformed);
  UniqueFd unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(import(std::move(unsealed), 0, 16), ErrorCode::kMalformed);
}

}  // namespace
}  // namespace flagos::testing
