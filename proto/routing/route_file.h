// SPDX-License-Identifier: Apache-2.0
// Routes as text, a line each:
//
//   # A comment; also behind a route.
//   sum = accurate               every overload of aten::sum
//   aten::mean.dim = accurate    one overload; "aten::" may be left out
//   mean.default = native        the overload without a name, to the vendor's own kernels
//   include more.conf            the lines of another file, whose path is relative to this file
//
// Of the lines that speak of an operator the last one holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/routing/route.h"
#include "proto/wire/error.h"

namespace flagos {

// How many files deep a file may include others.
inline constexpr int kMaxIncludeDepth = 8;

// Reads a file and what it includes, in the order of their lines. `named_by` says who wants the file, for the error. An
// error says file and line, what is wrong there, and what to do. Whether what is named exists is not looked at
// (check.h).
Result<std::vector<Route>> ReadRouteFile(const std::string& path, std::string_view named_by);

}  // namespace flagos
