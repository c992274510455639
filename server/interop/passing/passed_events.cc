#include "server/interop/passing/passed_events.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status_macros.h"
#include "server/errors/grpc_status.h"
#include "server/interop/passing/passed_series.h"

namespace tacho::server::interop {

std::vector<v1::StoreEventsRequest> PassedEvents(const ForeignEvents& write,
                                                 std::span<const uint32_t> events) {
  std::vector<v1::StoreEventsRequest> messages(1);
  absl::flat_hash_map<size_t, uint32_t> sources;  // Their places in the current message.
  size_t bytes = 0;
  for (const uint32_t index : events) {
    if (bytes >= kPassedBytes) {
      messages.emplace_back();
      sources.clear();
      bytes = 0;
    }
    v1::StoreEventsRequest& message = messages.back();
    const ForeignEvent& from = write.events[index];
    const auto [source, is_new] =
        sources.try_emplace(from.source, static_cast<uint32_t>(message.sources_size()));
    if (is_new) {
      auto* const to = message.add_sources();
      for (const auto& [name, value] : write.sources[from.source]) {
        v1::Label* const label = to->add_labels();
        label->set_name(name);
        label->set_value(value);
        bytes += name.size() + value.size();
      }
    }
    v1::PassedEvent* const to = message.add_events();
    to->set_source(source->second);
    to->set_name(from.name);
    *to->mutable_event() = from.event;
    bytes += to->ByteSizeLong();
  }
  return messages;
}

absl::StatusOr<ForeignEvents> ReadPassedEvents(const v1::StoreEventsRequest& request) {
  ForeignEvents write;
  std::vector<size_t> source_bytes;
  for (const auto& from : request.sources()) {
    storage::Labels& labels = write.sources.emplace_back();
    size_t& bytes = source_bytes.emplace_back(0);
    for (const v1::Label& label : from.labels()) {
      labels.emplace_back(label.name(), label.value());
      bytes += label.name().size() + label.value().size();
    }
  }
  for (const v1::PassedEvent& from : request.events()) {
    if (from.source() >= write.sources.size()) {
      return errors::InvalidFieldError("events.source",
                                       absl::StrCat(from.source(), " is no index into sources"));
    }
    write.text_bytes += source_bytes[from.source()] + from.ByteSizeLong();
    write.events.push_back({.source = from.source(), .name = from.name(), .event = from.event()});
    TACHO_RETURN_IF_ERROR(write.CheckSize());
  }
  return write;
}

}  // namespace tacho::server::interop
