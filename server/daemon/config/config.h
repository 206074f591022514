// SPDX-License-Identifier: Apache-2.0
// What flagosd can be told, with its defaults. deploy/flagosd.toml documents every key.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "proto/shm/arbiter_page.h"
#include "server/common/log.h"
#include "server/daemon/config/memory_limit.h"

namespace flagos::daemon {

inline constexpr int64_t kConfigSchema = 1;
inline constexpr const char* kDefaultConfigFile = "/etc/flagos/flagosd.toml";
inline constexpr const char* kDefaultSocket = "/run/flagos/flagosd.sock";

// How executors are started: as children of flagosd, or as transient units of systemd.
enum class SpawnerKind { kFork, kSystemd };

struct DaemonConfig {
  std::string listen = kDefaultSocket;
  std::string state;  // folder of what outlives flagosd; empty: beside `listen`
  SpawnerKind spawner = SpawnerKind::kFork;
  log::Options log;
  // A session without a call for this long shows as IDLE.
  std::chrono::nanoseconds idle_after = std::chrono::seconds(60);
};

struct DevicesConfig {
  std::string vendor = "cpu";
  uint32_t count = 0;             // devices that the vendor presents (its option "devices"); 0: its own choice
  std::vector<uint32_t> include;  // of those, the ones that flagosd hands out; empty: all
  // Between two readings of what devices tell of themselves; 0: they are not read.
  std::chrono::nanoseconds telemetry = std::chrono::seconds(1);
};

struct PoolConfig {
  uint32_t warm = 1;       // executors held ready for each device set
  uint32_t max_warm = 16;  // of all sets together; the default set has its `warm` in any case
  std::chrono::nanoseconds start_timeout = std::chrono::seconds(60);
};

struct SessionConfig {
  uint64_t ring = 4ull << 20;   // bytes; a power of two
  uint64_t arena = 1ull << 30;  // bytes; takes memory where it is touched
  // How long a session that ended or faulted can still be looked at.
  std::chrono::nanoseconds faulted_keep = std::chrono::minutes(5);
  // Of one user at a time; root and flagosd's user have no limit.
  uint32_t max_per_user = 128;        // sessions
  uint32_t max_leases_per_user = 64;  // leases that were opened
};

struct ContainersConfig {
  std::string folder;  // of the socket of containers and of a folder for each lease; empty: in the state folder
  std::string cdi;     // file that tells container runtimes of leases; empty: none
};

struct QuotaConfig {
  // Of each device, for a lease that was opened without one, as processes without a token open them.
  MemoryLimit default_memory;
};

struct ComputeConfig {
  // When the maximum of a lease's share holds.
  ComputeMode mode = ComputeMode::kStrict;
};

struct MetricsConfig {
  std::string listen;            // address and port; empty: none
  std::string socket;            // path of a unix socket; empty: none
  uint32_t max_series = 20'000;  // samples on a page
};

struct AuditConfig {
  std::string file;               // of records; empty: none are kept
  std::string head;               // of their chain's end; empty: FILE.head
  uint64_t max_size = 16u << 20;  // bytes of a file before the next one
  uint32_t keep = 16;             // full files that are kept; 0: all
};

struct VendorConfig {
  std::string libtorch;  // folder of libtorch_cpu.so; empty: what the vendor's manifest says
  std::map<std::string, std::string> options;
};

struct Config {
  DaemonConfig daemon;
  DevicesConfig devices;
  PoolConfig pool;
  SessionConfig session;
  QuotaConfig quota;
  ComputeConfig compute;
  ContainersConfig containers;
  MetricsConfig metrics;
  AuditConfig audit;
  std::map<std::string, VendorConfig> vendors;

  const VendorConfig& vendor() const;  // of devices.vendor

  // Where values come from, by key ("pool.warm", "vendor.cpu.libtorch"): "FILE:LINE", "environment NAME" or "flag
  // --NAME". A key that is not here has its default.
  std::map<std::string, std::string, std::less<>> origins;
  std::vector<std::string> files;  // that were read, in this order

  // From the command line only.
  std::string vendor_dir;  // holds NAME/libflagos_NAME.so and NAME/manifest.toml
  std::string executor;    // the program flagos-executor
  std::string monitor;     // the program flagos-monitor; empty: there is none
  int connection_fd = -1;  // embedded: the one client's end
  int ready_fd = -1;
  bool embedded = false;
};

// [daemon] state, or what takes its place. Empty: embedded, nothing outlives flagosd.
std::string StateFolder(const Config& config);
// Where executors find the flagosd that follows the one that started them; empty: they look for none.
std::string ExecutorSocket(const Config& config);

// [containers] folder, or what takes its place. Empty: embedded.
std::string ContainersFolder(const Config& config);

// What is wrong with the values as a whole, one text for each mistake, behind where the value was given.
std::vector<std::string> Validate(const Config& config);

}  // namespace flagos::daemon
