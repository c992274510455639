// The same as HttpGet() over TLS, to a server whose certificate a given authority has signed.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "agent/sources/fetch/http_get.h"
#include "agent/sources/fetch/http_response.h"

namespace tacho::agent {

// The authorities that may sign a server's certificate. The system's are not trusted beside them.
struct TlsAuthorities {
  std::string path;  // Where `pem` is from, for the texts of errors.
  std::string pem;
};

// The server's certificate must be for url.host: a name, or an address among its addresses. TLS 1.2
// or later. An answer that says neither its length nor sends chunks must end with TLS's own end, so
// that nobody on the way can cut it.
//   INVALID_ARGUMENT     `pem` has no certificate, or as HttpResponseReader.
//   UNAUTHENTICATED      the server's certificate is none of theirs, not for this host, or expired;
//                        the text says which.
//   UNAVAILABLE          no connection, no TLS, or it broke.
//   others               as HttpGet().
absl::StatusOr<HttpResponse> HttpsGet(const HttpUrl& url, const TlsAuthorities& authorities,
                                      const HttpGetOptions& options);

}  // namespace tacho::agent
