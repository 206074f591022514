// SPDX-License-Identifier: Apache-2.0
// The operators that the null vendor claims to have: those of a small training loop.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flagos::null {

std::vector<std::string> OperatorNames();
// "aten::add.Tensor"; "aten::relu" where the overload is empty.
bool HasOperator(std::string_view name);

}  // namespace flagos::null
