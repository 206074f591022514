// SPDX-License-Identifier: Apache-2.0
#include "server/daemon/metrics/exporter.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "server/common/status.h"
#include "server/common/strings.h"
#include "server/daemon/metrics/address.h"

namespace flagos::daemon {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

constexpr auto kPatience = std::chrono::seconds(10);
constexpr int kMostConnections = 32;
constexpr size_t kMostRequest = 8192;

using Page = std::shared_ptr<const std::string>;

// What all connections share.
struct Shared {
  std::mutex mutex;
  Page page;            // GUARDED_BY(mutex)
  int connections = 0;  // of the server's thread

  Page latest() {
    const std::lock_guard lock(mutex);
    return page;
  }
};

using Response = http::response<http::string_body>;

Response Answer(const http::request<http::empty_body>& request, Shared& shared) {
  Response response;
  response.version(request.version());
  response.keep_alive(request.keep_alive());
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  const auto refuse = [&](http::status status, const char* text) {
    response.result(status);
    response.body() = text;
  };
  const Page page = shared.latest();
  const beast::string_view target = request.target().substr(0, request.target().find('?'));
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    response.set(http::field::allow, "GET, HEAD");
    refuse(http::status::method_not_allowed, "only GET and HEAD are answered here\n");
  } else if (target != "/metrics") {
    refuse(http::status::not_found, "the metrics of flagosd are at /metrics\n");
  } else if (page == nullptr) {
    refuse(http::status::service_unavailable, "flagosd has only just started; ask again\n");
  } else {
    response.result(http::status::ok);
    response.set(http::field::content_type, "text/plain; version=0.0.4; charset=utf-8");
    response.body() = *page;
  }
  response.prepare_payload();
  if (request.method() == http::verb::head) response.body().clear();
  return response;
}

template <class Protocol>
class Connection : public std::enable_shared_from_this<Connection<Protocol>> {
 public:
  Connection(typename Protocol::socket socket, Shared& shared) : stream_(std::move(socket)), shared_(shared) {
    ++shared_.connections;
  }
  ~Connection() { --shared_.connections; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(kMostRequest);
    parser_->body_limit(0);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_,
                     [self = this->shared_from_this()](error_code error, size_t) { self->answer(error); });
  }

 private:
  // A request that is none ends the connection.
  void answer(error_code error) {
    if (error) return;
    response_ = Answer(parser_->get(), shared_);
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_, [self = this->shared_from_this()](error_code failed, size_t) {
      if (!failed && self->response_.keep_alive()) self->read();
    });
  }

  beast::basic_stream<Protocol> stream_;
  Shared& shared_;
  beast::flat_buffer buffer_{kMostRequest};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Response response_;
};

template <class Protocol>
void Accept(typename Protocol::acceptor& acceptor, Shared& shared) {
  acceptor.async_accept([&acceptor, &shared](error_code error, typename Protocol::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error && shared.connections < kMostConnections) {
      std::make_shared<Connection<Protocol>>(std::move(socket), shared)->read();
    }
    Accept<Protocol>(acceptor, shared);
  });
}

}  // namespace

struct MetricsExporter::Server {
  Shared shared;
  asio::io_context context{1};  // with its connections, which refer to `shared`
  std::optional<asio::ip::tcp::acceptor> tcp;
  std::optional<asio::local::stream_protocol::acceptor> local;
  std::thread thread;

  absl::Status listen(const std::string& address);
  absl::Status listen(int unix_socket);
};

absl::Status MetricsExporter::Server::listen(const std::string& address) {
  const auto parsed = ParseMetricsAddress(address);
  if (!parsed) {
    return absl::InvalidArgumentError(Cat("[metrics] listen = \"", address,
                                          "\" is no address with a port; say, for one, "
                                          "127.0.0.1:9466"));
  }
  try {
    tcp.emplace(context, asio::ip::tcp::endpoint(asio::ip::make_address(parsed->host), parsed->port));
  } catch (const boost::system::system_error& error) {
    return SystemError(error.code().value(), Cat("cannot serve metrics at ", address),
                       "stop what has that port, or choose another with [metrics] listen");
  }
  Accept<asio::ip::tcp>(*tcp, shared);
  return absl::OkStatus();
}

absl::Status MetricsExporter::Server::listen(int unix_socket) {
  const int own = ::dup(unix_socket);
  if (own < 0) return SystemError(errno, "cannot serve metrics at a unix socket", "raise the limit of open files");
  local.emplace(context);
  local->assign(asio::local::stream_protocol(), own);
  Accept<asio::local::stream_protocol>(*local, shared);
  return absl::OkStatus();
}

MetricsExporter::MetricsExporter(std::unique_ptr<Server> server) : server_(std::move(server)) {}

absl::StatusOr<std::unique_ptr<MetricsExporter>> MetricsExporter::Start(const std::string& address, int unix_socket) {
  auto server = std::make_unique<Server>();
  if (!address.empty()) FLAGOS_RETURN_IF_ERROR(server->listen(address));
  if (unix_socket >= 0) FLAGOS_RETURN_IF_ERROR(server->listen(unix_socket));
  server->thread = std::thread([context = &server->context] { context->run(); });
  ::pthread_setname_np(server->thread.native_handle(), "flagosd-metrics");
  return std::unique_ptr<MetricsExporter>(new MetricsExporter(std::move(server)));
}

MetricsExporter::~MetricsExporter() {
  server_->context.stop();
  server_->thread.join();
}

void MetricsExporter::publish(std::string page) {
  auto fresh = std::make_shared<const std::string>(std::move(page));
  const std::lock_guard lock(server_->shared.mutex);
  server_->shared.page = std::move(fresh);
}
}  // namespace flagos::daemon
