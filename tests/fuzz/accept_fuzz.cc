// Accept and Accept-Encoding come from whoever reaches the HTTP port.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/http/content.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view header(reinterpret_cast<const char*>(data), size);
  tacho::server::http::AcceptsPrometheusText(header);
  tacho::server::http::AcceptsGzip(header);
  return 0;
}
