// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace flagos::ctl {

// The text with "[redacted]" for what may be a secret: 64 hexadecimal digits, as a lease's token has, each of
// `secrets`, and what a name like PASSWORD, TOKEN, SECRET or API_KEY is set to.
std::string Redact(std::string text, const std::vector<std::string>& secrets);

// The values in this process's environment that are long enough to be told from ordinary words and whose names say that
// they are secret.
std::vector<std::string> SecretsOfEnvironment();

}  // namespace flagos::ctl
