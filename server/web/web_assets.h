// The files of the page, as they are in the program (embed.cc writes their source).
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tacho::server::web {

struct WebAsset {
  absl::string_view path;  // Below /ui/: "index.html", "runbooks/TachoNoAgents.md".
  absl::string_view content_type;
  absl::string_view etag;  // With its quotes.
  absl::string_view gzip;  // Its bytes, packed.
  size_t size = 0;         // Their number before they were packed.
  bool immutable = false;  // Its name has a hash of what is in it.
};

// By path. Empty if the collector is built without its page (TACHO_WEB=OFF).
absl::Span<const WebAsset> WebAssets();

}  // namespace tacho::server::web
