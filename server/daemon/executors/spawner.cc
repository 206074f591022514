// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/executors/systemd/spawner.h"
#include "server/daemon/executors/handle.h"
#include "server/daemon/executors/pidfd_handle.h"

namespace flagos::daemon {

std::unique_ptr<Spawner> MakeSpawner(EventLoop& loop, const Config& config) {
  switch (config.daemon.spawner) {
    case SpawnerKind::kSystemd: return MakeSystemdSpawner(loop);
    case SpawnerKind::kFork: break;
  }
  return std::make_unique<ForkSpawner>();
}

}  // namespace flagos::daemon
