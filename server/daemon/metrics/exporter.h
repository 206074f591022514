// SPDX-License-Identifier: Apache-2.0
// Serves the latest page of metrics by HTTP, on a TCP address, on a unix socket, or both.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace flagos::daemon {

// A thread of its own answers GET /metrics with what was published last: a scrape costs the control plane nothing and
// waits for nothing. It takes 32 connections at a time, requests of 8 KiB, and has ten seconds of patience.
class MetricsExporter {
 public:
  // `address` is as ParseMetricsAddress() takes it; empty: none. `unix_socket` listens already and is borrowed; -1:
  // none.
  static absl::StatusOr<std::unique_ptr<MetricsExporter>> Start(const std::string& address, int unix_socket);
  ~MetricsExporter();
  MetricsExporter(const MetricsExporter&) = delete;
  MetricsExporter& operator=(const MetricsExporter&) = delete;

  // Thread safe. Until the first page there is none to serve: 503.
  void publish(std::string page);

 private:
  struct Server;
  explicit MetricsExporter(std::unique_ptr<Server> server);
  const std::unique_ptr<Server> server_;
};

}  // namespace flagos::daemon
