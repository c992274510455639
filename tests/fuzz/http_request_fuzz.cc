// Heads of requests come from whoever reaches the HTTP port. What is accepted holds no character
// with which a header could end early, and reads the same when it is written out again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/check.h"
#include "server/http/http_message.h"

namespace http = tacho::server::http;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto request = http::ParseRequest(bytes);
  if (!request.ok()) return 0;
  const absl::string_view line = bytes.substr(0, bytes.find("\r\n"));
  std::string again = absl::StrCat(line, "\r\n");
  for (const auto& [name, value] : request->headers) {
    TACHO_CHECK(!name.empty() && value.find_first_of("\r\n") == std::string::npos);
    TACHO_CHECK(value.find('\0') == std::string::npos);
    absl::StrAppend(&again, name, ": ", value, "\r\n");
  }
  const auto second = http::ParseRequest(absl::StrCat(again, "\r\n"));
  TACHO_CHECK(second.ok());
  TACHO_CHECK(second->method == request->method && second->path == request->path);
  TACHO_CHECK(second->query == request->query && second->headers == request->headers);
  TACHO_CHECK(second->content_length == request->content_length);
  TACHO_CHECK(second->has_body == request->has_body);
  return 0;
}
