// What a client takes, by its Accept and Accept-Encoding headers (RFC 9110, 12.5).
#pragma once

#include "absl/strings/string_view.h"

namespace tacho::server::http {

// The one format of /metrics: what Prometheus 2.x and 3.x both take, and the fallback of both. 3.x
// fails a scrape without a content type that it knows.
inline constexpr char kPrometheusText[] = "text/plain; version=0.0.4; charset=utf-8";

// Whether an Accept header takes text/plain in version 0.0.4. An absent or empty header takes
// everything; so does one without any part that can be read. The most specific range that fits
// decides, and q=0 is a refusal:
//   text/plain;version=0.0.4 > text/plain > text/* > */*
// A range with another version does not fit; parameters that say nothing about the bytes we send
// (charset, escaping, format) are ignored.
bool AcceptsPrometheusText(absl::string_view accept);

// Whether an Accept-Encoding header takes gzip. An absent header does not.
bool AcceptsGzip(absl::string_view accept_encoding);

}  // namespace tacho::server::http
