// gRPC creates a Unix socket with the mode that the umask allows. So it listens in a private
// directory beside the final place, the mode is set there, and the socket is moved: nobody else can
// connect at any moment.
#include "server/admin/admin_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/server_interceptor.h"
#include "proto/config/config_value.h"
#include "server/errors/unparsed_requests.h"

namespace tacho::server::admin {
namespace {

// The socket is made in a directory of this form beside its place, and moved there.
constexpr char kStaging[] = ".admin-XXXXXX";
constexpr char kStaged[] = "/s";
// A socket's path may have so many bytes, less what the directory beside it needs more than its
// name.
constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1 - sizeof(kStaging) - sizeof(kStaged);
// Requests are small.
constexpr int kMaxMessageBytes = 64 << 10;

bool IsLoopback(absl::string_view host) {
  return host == "localhost" || host == "[::1]" || host == "::1" || absl::StartsWith(host, "127.");
}

std::string ErrorText() { return std::generic_category().message(errno); }

// Somebody accepts connections there.
bool IsServed(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return false;
  const bool served =
      ::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno == EAGAIN || errno == EACCES || errno == EPERM;
  ::close(descriptor);
  return served;
}

// Something that is no socket is not ours to replace.
bool MayReplace(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT;
  return S_ISSOCK(status.st_mode);
}

std::unique_ptr<grpc::Server> Serve(const std::string& address, grpc::Service* service, int* port) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), port);
  builder.RegisterService(service);
  std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<errors::UnparsedRequests>());
  builder.experimental().SetInterceptorCreators(std::move(interceptors));
  return builder.BuildAndStart();
}

absl::Status Unavailable(absl::string_view address, absl::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("admin.listen: cannot listen on ", address, ": ", why));
}

}  // namespace

absl::StatusOr<AdminAddress> ParseAdminAddress(absl::string_view text, absl::string_view base) {
  AdminAddress address;
  absl::string_view path = text;
  if (absl::ConsumePrefix(&path, "unix:")) {
    address.socket = std::string(path);
    if (path.empty() || absl::EndsWith(path, "/")) {
      return absl::InvalidArgumentError(absl::StrCat("admin.listen: '", text, "' names no socket"));
    }
    if (path[0] != '/') address.socket = absl::StrCat(base, "/", path);
    if (address.socket.size() <= kMaxPath) return address;
    return absl::InvalidArgumentError(
        absl::StrCat("admin.listen: the path ", address.socket, " is longer than ", kMaxPath,
                     " bytes, the limit for a socket: choose a shorter one"));
  }
  if (absl::Status valid = config::CheckAddress(text); !valid.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("admin.listen: ", valid.message(), "; or unix:PATH, or off"));
  }
  if (!IsLoopback(text.substr(0, text.rfind(':')))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "admin.listen: '", text,
        "' can be reached from other machines, which could then do everything; expected "
        "unix:PATH or a loopback address"));
  }
  address.host_port = std::string(text);
  return address;
}

absl::StatusOr<std::unique_ptr<AdminListener>> AdminListener::Start(const AdminAddress& address,
                                                                    grpc::Service* service) {
  std::unique_ptr<AdminListener> listener(new AdminListener);
  const absl::Status started = address.socket.empty()
                                   ? listener->StartOnPort(address.host_port, service)
                                   : listener->StartOnSocket(address.socket, service);
  if (!started.ok()) return started;
  return listener;
}

AdminListener::~AdminListener() { Stop(absl::ZeroDuration()); }

absl::Status AdminListener::StartOnPort(const std::string& address, grpc::Service* service) {
  server_ = Serve(address, service, &port_);
  if (server_ != nullptr && port_ != 0) return absl::OkStatus();
  return Unavailable(address, "is another process using the port?");
}

absl::Status AdminListener::StartOnSocket(const std::string& path, grpc::Service* service) {
  if (!MayReplace(path)) return Unavailable(path, "the file there is not a socket");
  if (IsServed(path)) return Unavailable(path, "another process uses it");
  // gRPC makes the socket with the mode that the umask leaves. Until it has the right one it is
  // where nobody else can go.
  const size_t slash = path.rfind('/');
  std::string staging =
      absl::StrCat(slash == std::string::npos ? "" : path.substr(0, slash + 1), kStaging);
  if (::mkdtemp(staging.data()) == nullptr) {
    return Unavailable(path, absl::StrCat("make a directory beside it: ", ErrorText()));
  }
  const auto remove = absl::MakeCleanup([&staging] { ::rmdir(staging.c_str()); });
  const std::string staged = absl::StrCat(staging, kStaged);
  int bound = 0;
  server_ = Serve(absl::StrCat("unix:", staged), service, &bound);
  if (server_ == nullptr || bound == 0) return Unavailable(path, "gRPC cannot listen there");
  if (::chmod(staged.c_str(), 0600) != 0 || ::rename(staged.c_str(), path.c_str()) != 0) {
    const std::string why = ErrorText();
    ::unlink(staged.c_str());
    return Unavailable(path, why);
  }
  socket_ = path;
  return absl::OkStatus();
}

void AdminListener::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  if (!socket_.empty()) ::unlink(socket_.c_str());
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_.reset();
}

}  // namespace tacho::server::admin
