// An event as the column family "events" holds it, under EventKey().
//
//   varint task + 1, or 0 for none · varint attempt · string host · byte 1 and zig-zag varint step,
//   or byte 0 · string kind · string message · varint fields · each as string name, string value
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/model/event.h"

namespace tacho::storage {

std::string EncodeEvent(const Event& event);

// Everything but the job and the time, which are in the key. nullopt if the bytes are no event.
std::optional<Event> DecodeEvent(absl::string_view bytes);

}  // namespace tacho::storage
