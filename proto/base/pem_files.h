// Certificates and keys in PEM, with checks whose errors say which of them somebody mixed up, and
// why. Texts name the path, not the key of the configuration.
#pragma once

#include <openssl/ossl_typ.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tacho::config {

template <typename T>
using OpenSslPtr = std::unique_ptr<T, void (*)(T*)>;
using Certificates = std::vector<OpenSslPtr<X509>>;

// The certificates of `pem`, at least one. INVALID_ARGUMENT if one is damaged or none is there.
absl::StatusOr<Certificates> ParseCertificates(const std::string& path, const std::string& pem);

// INVALID_ARGUMENT if it is no private key, or has a passphrase.
absl::StatusOr<OpenSslPtr<EVP_PKEY>> ParsePrivateKey(const std::string& path,
                                                     const std::string& pem);

// INVALID_ARGUMENT if the key is not the certificate's.
absl::Status CheckPair(const std::string& certificate_path, const X509& certificate,
                       const std::string& key_path, const EVP_PKEY& key);

// INVALID_ARGUMENT if the certificate has expired or is not valid yet.
absl::Status CheckTimes(const std::string& path, const X509& certificate, absl::Time now);

// "CN=host-7,O=Example".
std::string SubjectOf(const X509& certificate);

// absl::InfinitePast() if it is no time.
absl::Time ToAbslTime(const ASN1_TIME* time);

}  // namespace tacho::config
