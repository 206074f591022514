// SPDX-License-Identifier: Apache-2.0
#include "client/connection.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string_view>

#include "client/attach_exchange.h"
#include "client/embedded.h"
#include "proto/shm/layout.h"
#include "proto/socket/unix_socket.h"

namespace flagos::client {
namespace {

// What to call this program in a list of sessions: the script, where an interpreter runs one.
std::string ProgramName() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line;
  std::getline(file, line);  // throws nothing where /proc cannot be read, unlike a stream's iterators
  std::string_view rest = line;
  const auto next = [&rest] {
    const std::string_view word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    return word;
  };
  const auto base = [](std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); };
  std::string program = base(next());
  if (!program.starts_with("python")) return program;
  for (std::string_view word = next(); !word.empty(); word = next()) {
    if (word == "-m") return std::string(next());
    if (word == "-c") break;
    if (word == "-W" || word == "-X" || word == "--check-hash-based-pycs") {  // their value is a word of its own
      next();
      continue;
    }
    if (!word.starts_with('-')) return base(word);
  }
  return program;
}

AttachRequest OpenRequest(const Endpoint& endpoint, const ProcessInfo& process) {
  AttachRequest request = MakeAttachRequest(AttachKind::kOpen);
  request.pid = static_cast<uint32_t>(::getpid());
  request.token = endpoint.token;
  CopyText(request.name, ProgramName());
  CopyText(request.torch_version, process.torch_version);
  return request;
}

// Maps what flagosd passed; CheckAttachReply() has seen the sizes it tells of a session.
Error MapRegions(const AttachReply& reply, std::vector<UniqueFd>& fds, Connection& connection) {
  if (reply.session == 0 || fds.size() != kAttachFdCount) {
    return MakeError(ErrorCode::kMalformed, "flagosd answered session " + std::to_string(reply.session) + " with " +
                                                std::to_string(fds.size()) +
                                                " descriptors instead of 4; client and flagosd are not of one version");
  }
  const auto map = [&](AttachDescriptor which, Access access, uint64_t bytes, Mapping& to) {
    auto mapped = Mapping::Map(fds[which].get(), access, bytes);
    if (!mapped.ok()) return mapped.error();
    to = std::move(mapped).value();
    return Error::Ok();
  };
  if (Error error = map(kRingFd, Access::kReadWrite, RingRegionBytes(reply.ring_bytes), connection.ring); !error.ok())
    return error;
  if (Error error = map(kExecutorFd, Access::kReadOnly, kExecutorRegionBytes, connection.executor); !error.ok())
    return error;
  if (Error error = map(kArenaFd, Access::kReadWrite, reply.arena_bytes, connection.arena); !error.ok()) return error;
  connection.arena_fd = std::move(fds[kArenaFd]);
  connection.liveness = std::move(fds[kLivenessFd]);
  return Error::Ok();
}

}  // namespace

Result<Connection> Open(const Endpoint& endpoint, const ProcessInfo& process) {
  Connection connection;
  connection.endpoint = endpoint;
  pid_t daemon = -1;
  if (endpoint.kind == Endpoint::Kind::kEmbedded) {
    auto started = StartEmbedded(endpoint, process);
    if (!started.ok()) return started.error();
    connection.attach = std::move(started.value().attach);
    daemon = started.value().pid;
  } else {
    auto connected = ConnectUnix(endpoint.path);
    if (!connected.ok()) return connected.error();
    connection.attach = std::move(connected).value();
  }

  AttachAnswer answer;
  if (Error error = Exchange(connection.attach.get(), OpenRequest(endpoint, process), kAttachTimeout, answer);
      !error.ok()) {
    if (daemon <= 0) return MakeError(error.code, "flagosd at " + endpoint.text() + ": " + error.message);
    connection.attach.reset();
    const std::string end = DescribeEnd(daemon, 2000);
    return MakeError(error.code, "a private flagosd: " + error.message + (end.empty() ? "" : " (it " + end + ")"));
  }
  if (Error error = MapRegions(answer.reply, answer.fds, connection); !error.ok()) return error;
  connection.ring_bytes = answer.reply.ring_bytes;
  connection.session = answer.reply.session;
  connection.features = answer.reply.features & kFeatures;
  connection.generation = answer.reply.generation;
  connection.executor_pid = answer.reply.executor_pid;
  connection.name = ReadText(answer.reply.session_name);
  connection.vendor = ReadText(answer.reply.vendor);
  connection.executor_torch = ReadText(answer.reply.executor_torch);
  connection.devices = std::move(answer.devices);
  return connection;
}

}  // namespace flagos::client
