// Entries of a spool, read from disk: the scan of a batch finds what protobuf finds, and a batch
// under another layout is otherwise the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "agent/spool/spooled_message.h"
#include "google/protobuf/stubs/logging.h"

namespace {

using tacho::agent::SpooledMessage;
using tacho::v1::ClientMessage;

void Expect(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer no_lines_about_what_is_no_utf8;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto spooled = SpooledMessage::Of(bytes);
  if (!spooled.has_value()) return 0;
  ClientMessage parsed;
  Expect(parsed.ParseFromString(bytes));
  Expect(spooled->kind() == parsed.message_case());
  if (!spooled->is_batch()) return 0;
  Expect(spooled->layout() == parsed.batch().layout());
  Expect(spooled->rows() == static_cast<uint64_t>(parsed.batch().times_unix_ns_size()));
  for (const uint32_t layout : {1u, 300u, UINT32_MAX}) {
    const SpooledMessage::Parts parts = spooled->WithLayout(layout);
    ClientMessage other;
    Expect(other.ParseFromString(absl::StrCat(parts.head, parts.tail)));
    parsed.mutable_batch()->set_layout(layout);
    Expect(other.SerializeAsString() == parsed.SerializeAsString());
  }
  return 0;
}
