// The form in which a client takes an answer, by its Accept and Accept-Encoding headers (RFC 9110,
// 12.5), and gzip.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tacho::server::http {

// The only format of /metrics: Prometheus 2.x and 3.x both take it, and both fall back to it. 3.x
// fails a scrape whose content type it does not know.
inline constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

// Whether an Accept header takes text/plain in version 0.0.4. An absent or empty header takes
// everything, and so does a header without any readable part. The most specific range that fits
// decides; q=0 refuses:
//   text/plain;version=0.0.4 > text/plain > text/* > */*
// A range with another version does not fit. Parameters that do not concern the bytes that we send
// (charset, escaping, format) are ignored.
bool AcceptsPrometheusText(absl::string_view accept);

// Whether an Accept-Encoding header takes gzip. An absent header does not.
bool AcceptsGzip(absl::string_view accept_encoding);

// Packs at zlib's fastest level: text metrics shrink tenfold at any level, and a scrape is waiting.
// Packs large bodies on several cores, as pieces of one stream.
// nullopt if zlib has no memory or the input is 4 GiB or more: send the plain bytes then.
std::optional<std::string> Gzip(absl::string_view bytes);

}  // namespace tacho::server::http
