// How a client secures its way to a collector: TLS, a certificate of its own, a token.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace grpc {
class ChannelArguments;
class ChannelCredentials;
}  // namespace grpc

namespace tacho::client {

// Paths of files; empty: none.
struct ChannelSecurity {
  bool tls = false;
  std::string ca;           // Authorities for the server's certificate; empty: the system's.
  std::string certificate;  // The client's own, and its key: both or neither.
  std::string key;
  std::string server_name;  // The server's certificate must have it; empty: the address' host.
  std::string token_file;
  bool allow_plaintext_token = false;
};

// The names of the settings in the texts of errors: flags, or keys of a configuration.
struct ChannelSecurityNames {
  absl::string_view tls;
  absl::string_view ca;
  absl::string_view certificate;
  absl::string_view key;
  absl::string_view server_name;
  absl::string_view token_file;
  absl::string_view allow_plaintext_token;
};

// The credentials and the token of one connection.
struct SecuredChannel {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  // Value of each call's metadata "authorization"; empty: none. Never for a log.
  std::string authorization;
};

// Checks what can be checked without reading the files.
//   INVALID_ARGUMENT     settings that need or exclude each other.
//   FAILED_PRECONDITION  a token would go without TLS to `address`, which is another machine, and
//                        that is not allowed explicitly.
absl::Status CheckChannelSecurity(const ChannelSecurity& security, absl::string_view address,
                                  const ChannelSecurityNames& names);

// Reads the files, which may have changed since the last connection, and sets what a channel to
// `address` needs on `arguments`. Statuses as CheckChannelSecurity(), and
//   INVALID_ARGUMENT     a file does not hold what it should: the text says which and why.
//   others               as config::ReadCheckedFile(); key and token must be secrets.
absl::StatusOr<SecuredChannel> SecureChannel(const ChannelSecurity& security,
                                             absl::string_view address,
                                             const ChannelSecurityNames& names,
                                             grpc::ChannelArguments* arguments);

}  // namespace tacho::client
