// SPDX-License-Identifier: Apache-2.0
// Random number generators: their states live in the executor, ordered with the calls; here are their numbers and
// seeds.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <cstdint>

namespace flagos::client {

class Session;

// The device's default generator; the current device's for -1. Never attaches: a seed set before the first attach is
// sent with it.
const at::Generator& DefaultGenerator(c10::DeviceIndex device);
// A generator of its own, with PyTorch's default seed.
at::Generator NewGenerator(c10::DeviceIndex device);

// The number by which records name a generator, created in the executor if it was not yet. Throws PyTorch's error where
// the generator is not for this device. REQUIRES a defined generator; call it without the session's lock.
uint32_t GeneratorNumber(const at::Generator& generator);

// Sends the seeds of the default generators of a session that nobody uses yet.
void SeedDefaultGenerators(Session& session);

}  // namespace flagos::client
