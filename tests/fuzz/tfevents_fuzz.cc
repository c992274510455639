// Event files: framing, events and tensors, from bytes that nobody vouches for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "client/tfevents/position.h"
#include "client/tfevents/record.h"
#include "client/tfevents/rows.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);

  // As a file. Few inputs get past the checksums, so also as a payload.
  absl::string_view rest = bytes;
  while (true) {
    const tacho::client::RecordView record = tacho::client::ReadRecord(rest, 1 << 16);
    if (record.kind != tacho::client::RecordView::Kind::kRecord) break;
    if (record.bytes > rest.size()) std::abort();
    rest.remove_prefix(record.bytes);
  }

  tacho::client::TfeventsOtherTags other_tags;
  tacho::client::TfeventsRowBuilder builder({}, {}, &other_tags);
  builder.Add(bytes);
  for (const auto& [attempt, tags] : builder.rows()) {
    for (const auto& [tag, rows] : tags) {
      if (tag.empty() || rows.times_unix_ns.size() != rows.values.size() ||
          rows.steps.size() != rows.values.size()) {
        std::abort();
      }
    }
  }

  const auto position = tacho::client::TfeventsPosition::Decode(bytes);
  if (position.has_value() &&
      tacho::client::TfeventsPosition::Decode(position->Encode()) != position) {
    std::abort();
  }
  return 0;
}
