#include "client/channel/channel_security.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/base/address.h"
#include "proto/base/checked_file.h"
#include "proto/base/pem_files.h"
#include "proto/base/status_macros.h"

namespace tacho::client {
namespace {

using config::FileTrust;

constexpr size_t kMaxTokenFileBytes = 4096;

absl::Status Under(absl::string_view name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

bool IsThisMachine(absl::string_view address) {
  return config::IsLoopback(address) || absl::StartsWith(address, "unix:");
}

absl::Status CheckTlsSettings(const ChannelSecurity& security, const ChannelSecurityNames& names) {
  const std::pair<absl::string_view, const std::string&> settings[] = {
      {names.ca, security.ca},
      {names.certificate, security.certificate},
      {names.key, security.key},
      {names.server_name, security.server_name}};
  for (const auto& [name, value] : settings) {
    if (security.tls || value.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": has no effect without TLS; set ", names.tls));
  }
  if (security.certificate.empty() == security.key.empty()) return absl::OkStatus();
  const bool key_missing = security.key.empty();
  return absl::InvalidArgumentError(absl::StrCat(key_missing ? names.key : names.certificate,
                                                 ": is missing beside ",
                                                 key_missing ? names.certificate : names.key));
}

absl::StatusOr<std::string> ReadCertificates(const std::string& path, bool own) {
  auto pem = config::ReadCheckedFile(path, FileTrust::kTrusted);
  if (!pem.ok()) return pem.status();
  TACHO_ASSIGN_OR_RETURN(const auto parsed, config::ParseCertificates(path, *pem));
  // Some of the authorities may have expired: only those that sign matter.
  if (!own) return pem;
  TACHO_RETURN_IF_ERROR(config::CheckTimes(path, *parsed.front(), absl::Now()));
  return pem;
}

absl::StatusOr<std::string> ReadKey(const ChannelSecurity& security, const std::string& own_pem) {
  auto pem = config::ReadCheckedFile(security.key, FileTrust::kSecret);
  if (!pem.ok()) return pem.status();
  const auto key = config::ParsePrivateKey(security.key, *pem);
  if (!key.ok()) return key.status();
  TACHO_ASSIGN_OR_RETURN(const auto own, config::ParseCertificates(security.certificate, own_pem));
  auto fits = config::CheckPair(security.certificate, *own.front(), security.key, **key);
  if (!fits.ok()) return fits;
  return pem;
}

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  TACHO_ASSIGN_OR_RETURN(const auto text,
                         config::ReadCheckedFile(path, FileTrust::kSecret, kMaxTokenFileBytes));
  const absl::string_view token = absl::StripAsciiWhitespace(text);
  const bool is_one_word = !token.empty() && std::all_of(token.begin(), token.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  if (is_one_word) return std::string(token);
  return absl::InvalidArgumentError(absl::StrCat(path, " must hold exactly one token on one line"));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> TlsCredentials(
    const ChannelSecurity& security, const ChannelSecurityNames& names) {
  grpc::SslCredentialsOptions options;
  if (!security.ca.empty()) {
    auto pem = ReadCertificates(security.ca, /*own=*/false);
    if (!pem.ok()) return Under(names.ca, pem.status());
    options.pem_root_certs = *std::move(pem);
  }
  if (!security.certificate.empty()) {
    auto own = ReadCertificates(security.certificate, /*own=*/true);
    if (!own.ok()) return Under(names.certificate, own.status());
    auto key = ReadKey(security, *own);
    if (!key.ok()) return Under(names.key, key.status());
    options.pem_cert_chain = *std::move(own);
    options.pem_private_key = *std::move(key);
  }
  return grpc::SslCredentials(options);
}

}  // namespace

absl::Status CheckChannelSecurity(const ChannelSecurity& security, absl::string_view address,
                                  const ChannelSecurityNames& names) {
  TACHO_RETURN_IF_ERROR(CheckTlsSettings(security, names));
  if (security.token_file.empty() || security.tls || security.allow_plaintext_token ||
      IsThisMachine(address)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(names.token_file, ": the token would go to ", address,
                   " without TLS, so others on the network could read it. Set ", names.tls,
                   ", or allow it with ", names.allow_plaintext_token));
}

absl::StatusOr<SecuredChannel> SecureChannel(const ChannelSecurity& security,
                                             absl::string_view address,
                                             const ChannelSecurityNames& names,
                                             grpc::ChannelArguments* arguments) {
  TACHO_RETURN_IF_ERROR(CheckChannelSecurity(security, address, names));
  SecuredChannel secured;
  if (!security.token_file.empty()) {
    const auto token = ReadToken(security.token_file);
    if (!token.ok()) return Under(names.token_file, token.status());
    secured.authorization = absl::StrCat("Bearer ", *token);
  }
  // http_proxy is set on many machines; no proxy can reach our own loopback, and none is to see a
  // token.
  if (config::IsLoopback(address)) arguments->SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!security.tls) {
    secured.credentials = grpc::InsecureChannelCredentials();
    return secured;
  }
  auto credentials = TlsCredentials(security, names);
  if (!credentials.ok()) return credentials.status();
  secured.credentials = *std::move(credentials);
  if (!security.server_name.empty()) arguments->SetSslTargetNameOverride(security.server_name);
  return secured;
}

}  // namespace tacho::client
