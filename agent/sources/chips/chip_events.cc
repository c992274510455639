#include "agent/sources/chips/chip_events.h"

#include <utility>

namespace tacho::agent {
namespace {

// A collector takes so many (proto/tacho/v1/ingest.proto); texts of drivers and runtimes may be
// longer.
constexpr size_t kMaxText = 1024;

// Without half a character at the end: a text that is no UTF-8 is refused whole.
std::string Cut(absl::string_view text) {
  if (text.size() <= kMaxText) return std::string(text);
  constexpr unsigned kLeadMask = 0xc0;
  constexpr unsigned kContinues = 0x80;
  size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & kLeadMask) == kContinues) --end;
  return std::string(text.substr(0, end));
}

}  // namespace

ChipEvents::ChipEvents(std::string job, std::string host)
    : job_(std::move(job)), host_(std::move(host)) {}

void ChipEvents::Add(absl::Time time, absl::string_view kind, absl::string_view message,
                     const std::map<std::string, std::string>& fields) {
  v1::Event event;
  event.mutable_source()->set_job(job_);
  event.mutable_source()->set_host(host_);
  event.set_time_unix_ns(absl::ToUnixNanos(time));
  event.set_kind(std::string(kind));
  event.set_message(Cut(message));
  for (const auto& [key, value] : fields) {
    if (!value.empty()) (*event.mutable_fields())[key] = Cut(value);
  }
  waiting_.push_back(std::move(event));
  if (waiting_.size() <= kMaxWaiting) return;
  waiting_.pop_front();
  ++dropped_;
}

void ChipEvents::Flush(RowSink* sink) {
  while (!waiting_.empty() && sink->AppendEvent(waiting_.front(), {}).ok()) waiting_.pop_front();
}

}  // namespace tacho::agent
