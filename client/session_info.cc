// SPDX-License-Identifier: Apache-2.0
#include "client/session_info.h"

#include <torch/version.h>

#include <cstdio>
#include <mutex>
#include <string_view>

#include "client/session.h"

namespace flagos::client {
namespace {

class JsonObject {
 public:
  void add(std::string_view key, std::string_view value) {
    begin(key);
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') text_ += '\\';
      if (static_cast<unsigned char>(c) < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
        text_ += escaped;
      } else {
        text_ += c;
      }
    }
    text_ += '"';
  }
  void add(std::string_view key, uint64_t value) {
    begin(key);
    text_ += std::to_string(value);
  }
  void add_bool(std::string_view key, bool value) {
    begin(key);
    text_ += value ? "true" : "false";
  }
  std::string finish() { return text_ + "}"; }

 private:
  void begin(std::string_view key) {
    if (text_.size() > 1) text_ += ", ";
    text_ += '"';
    text_ += key;
    text_ += "\": ";
  }
  std::string text_ = "{";
};

}  // namespace

std::string SessionInfo() {
  JsonObject json;
  Session* const session = Session::Current();
  if (session == nullptr) return json.finish();
  const Connection& connection = session->connection();
  json.add("session", connection.name);
  json.add("generation", connection.generation);
  json.add("endpoint", connection.endpoint.text());
  json.add("vendor", connection.vendor);
  json.add("executor_pid", connection.executor_pid);
  json.add("client_torch", TORCH_VERSION);
  json.add("executor_torch", connection.executor_torch);
  json.add("calls", session->counters().calls.load(std::memory_order_relaxed));
  json.add("synchronous_calls", session->counters().synchronous_calls.load(std::memory_order_relaxed));
  json.add("mispredictions", session->page().mispredictions.load(std::memory_order_relaxed));
  json.add("signatures", session->counters().signatures.load(std::memory_order_relaxed));
  json.add("predictions", session->counters().predictions.load(std::memory_order_relaxed));
  json.add("arena_bytes", session->arena().size());
  json.add("arena_in_use", session->arena().in_use());
  {
    const std::lock_guard lock(session->lock());
    json.add("handles", session->handles().live());
  }
  json.add_bool("lost", !session->alive());
  return json.finish();
}

}  // namespace flagos::client
