// Records about attempts that are not samples.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "storage/model/series.h"

namespace tacho::storage {

// Something that happened at a time and, where it makes sense, a step.
struct Event {
  Source source;
  int64_t time_ns = 0;
  std::optional<int64_t> step;
  std::string kind;
  std::string message;
  std::map<std::string, std::string> fields;

  friend bool operator==(const Event&, const Event&) = default;
};

// Facts about an attempt. Merged key by key into what is known; an empty value removes its key.
struct Attributes {
  std::string job;
  uint32_t attempt = 0;
  std::map<std::string, std::string> values;
};

}  // namespace tacho::storage
