// The names in a client certificate. Only for certificates that the TLS handshake has verified.
#pragma once

#include <openssl/ossl_typ.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tacho::server::security {

struct PeerCertificate {
  // "CN:host-7", "DNS:host-7.example", "URI:spiffe://example/agent": the kind is part of each, so
  // that an authority that lets clients choose one kind cannot be used to forge another. Names with
  // a NUL byte are left out.
  std::vector<std::string> names;
  absl::Time not_after = absl::InfinitePast();
};

PeerCertificate DescribeCertificate(const X509& certificate);

// The first certificate of a PEM text. INVALID_ARGUMENT if there is none.
absl::StatusOr<PeerCertificate> DescribePemCertificate(const std::string& pem);

}  // namespace tacho::server::security
