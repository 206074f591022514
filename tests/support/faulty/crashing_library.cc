// SPDX-License-Identifier: Apache-2.0
// A library that takes whoever loads it along.
#include <cstdlib>

namespace {

[[gnu::constructor]] void Crash() { std::abort(); }

}  // namespace
