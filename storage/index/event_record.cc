#include "storage/index/event_record.h"

#include "storage/codec/bytes.h"

namespace tacho::storage {

std::string EncodeEvent(const Event& event) {
  std::string out;
  PutVarint(event.source.task ? uint64_t{*event.source.task} + 1 : 0, &out);
  PutVarint(event.source.attempt, &out);
  PutString(event.source.host, &out);
  out.push_back(event.step ? 1 : 0);
  if (event.step) PutVarint(ZigZag(*event.step), &out);
  PutString(event.kind, &out);
  PutString(event.message, &out);
  PutVarint(event.fields.size(), &out);
  for (const auto& [name, value] : event.fields) {
    PutString(name, &out);
    PutString(value, &out);
  }
  return out;
}

std::optional<Event> DecodeEvent(absl::string_view bytes) {
  ByteReader in(bytes);
  Event event;
  if (const uint64_t task = in.Varint(); task != 0) {
    event.source.task = static_cast<uint32_t>(task - 1);
  }
  event.source.attempt = static_cast<uint32_t>(in.Varint());
  event.source.host = std::string(in.String());
  if (in.Byte() != 0) event.step = UnZigZag(in.Varint());
  event.kind = std::string(in.String());
  event.message = std::string(in.String());
  const uint64_t fields = in.Varint();
  for (uint64_t i = 0; i < fields && in.ok(); ++i) {
    const absl::string_view name = in.String();
    event.fields[std::string(name)] = std::string(in.String());
  }
  if (!in.AtEnd()) return std::nullopt;
  return event;
}

}  // namespace tacho::storage
