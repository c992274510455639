#include "server/interop/otlp_logs.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status_macros.h"
#include "server/interop/otlp_attributes.h"

namespace tacho::server::interop {
namespace {

namespace common = opentelemetry::proto::common::v1;
namespace otlp_logs = opentelemetry::proto::logs::v1;

constexpr char kEventPrefix[] = "tacho.";
constexpr char kEventNameAttribute[] = "event.name";
constexpr char kStepAttribute[] = "step";
constexpr absl::string_view kNoEvent =
    "only events are taken here: give a record an event name of docs/notation.md, for example "
    "\"checkpoint_saved\", or one that begins with \"tacho.\"";

// The kinds of attempts in docs/notation.md. A name without a prefix has to be one of them, because
// other programs' event names mean something else.
constexpr std::array<absl::string_view, 15> kAttemptKinds = {"attempt_started",
                                                             "ended",
                                                             "exited",
                                                             "init_started",
                                                             "initialized",
                                                             "compile_started",
                                                             "compiled",
                                                             "restore_started",
                                                             "checkpoint_restored",
                                                             "checkpoint_started",
                                                             "checkpoint_saved",
                                                             "eval_started",
                                                             "eval_ended",
                                                             "preempted",
                                                             "text"};
// The collector reads its own verdicts and losses back from these.
constexpr std::array<absl::string_view, 3> kCollectorKinds = {"condition_raised",
                                                              "condition_cleared", "data_lost"};

// The limits of tacho.v1.Event on a message and on the value of a field.
constexpr size_t kMaxEventText = 1024;

template <size_t N>
bool IsIn(const std::array<absl::string_view, N>& kinds, absl::string_view kind) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

// `text`, which is UTF-8, with "…" for what is too long.
std::string Shortened(std::string text) {
  constexpr absl::string_view kDots = "…";
  if (text.size() <= kMaxEventText) return text;
  size_t end = kMaxEventText - kDots.size();
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return absl::StrCat(text, kDots);
}

// One request.
class LogsReader {
 public:
  LogsReader(const std::vector<std::string>& wanted, int64_t now_ns)
      : wanted_(wanted), now_ns_(now_ns) {}

  absl::Status Read(const otlp_logs::ResourceLogs& resource) {
    storage::Labels& labels =
        result_.events.sources.emplace_back(WantedLabels(resource.resource(), wanted_));
    source_bytes_ = 0;
    for (const auto& [name, value] : labels) source_bytes_ += name.size() + value.size();
    for (const auto& scope : resource.scope_logs()) {
      for (const auto& record : scope.log_records()) {
        Read(record);
        TACHO_RETURN_IF_ERROR(result_.events.CheckSize());
      }
    }
    return absl::OkStatus();
  }
  OtlpLogs Take() && { return std::move(result_); }

 private:
  void Reject(absl::string_view problem) {
    if (result_.rejected++ == 0) result_.problem = std::string(problem);
  }

  // Empty if the record is no event. Event names were an attribute before they were a field.
  static absl::string_view NameOf(const otlp_logs::LogRecord& record) {
    if (!record.event_name().empty()) return record.event_name();
    for (const common::KeyValue& attribute : record.attributes()) {
      if (attribute.key() == kEventNameAttribute) return attribute.value().string_value();
    }
    return "";
  }

  void Read(const otlp_logs::LogRecord& record) {
    const absl::string_view name = NameOf(record);
    auto kind = EventKindOf(name);
    if (!kind.has_value()) return Reject(kNoEvent);
    uint64_t time_ns = record.time_unix_nano();
    if (time_ns == 0) time_ns = record.observed_time_unix_nano();
    if (time_ns > INT64_MAX) return Reject(absl::StrCat("an event ", *kind, " is after 2262"));
    ForeignEvent event{.source = result_.events.sources.size() - 1, .name = std::string(name)};
    event.event.set_kind(*std::move(kind));
    event.event.set_time_unix_ns(time_ns == 0 ? now_ns_ : static_cast<int64_t>(time_ns));
    event.event.set_message(Shortened(AttributeText(record.body())));
    for (const common::KeyValue& attribute : record.attributes()) {
      AddField(attribute, record.event_name().empty(), &event.event);
    }
    result_.events.text_bytes += source_bytes_ + event.name.size() + event.event.ByteSizeLong();
    result_.events.events.push_back(std::move(event));
  }

  static void AddField(const common::KeyValue& attribute, bool names_event, v1::Event* event) {
    const auto& value = attribute.value();
    if (names_event && attribute.key() == kEventNameAttribute) return;
    if (attribute.key() == kStepAttribute && !event->has_step() &&
        value.value_case() == common::AnyValue::kIntValue && value.int_value() >= 0) {
      event->set_step(value.int_value());
      return;
    }
    (*event->mutable_fields())[attribute.key()] = Shortened(AttributeText(value));
  }

  const std::vector<std::string>& wanted_;
  const int64_t now_ns_;
  OtlpLogs result_;
  size_t source_bytes_ = 0;  // Of the labels of the resource at hand.
};

}  // namespace

std::optional<std::string> EventKindOf(absl::string_view event_name) {
  const bool ours = absl::ConsumePrefix(&event_name, kEventPrefix);
  if (event_name.empty() || IsIn(kCollectorKinds, event_name)) return std::nullopt;
  if (!ours && !IsIn(kAttemptKinds, event_name)) return std::nullopt;
  return std::string(event_name);
}

absl::StatusOr<OtlpLogs> ReadOtlpLogs(
    const opentelemetry::proto::collector::logs::v1::ExportLogsServiceRequest& request,
    const std::vector<std::string>& resource_attributes, int64_t now_ns) {
  LogsReader reader(resource_attributes, now_ns);
  for (const auto& resource : request.resource_logs()) {
    TACHO_RETURN_IF_ERROR(reader.Read(resource));
  }
  return std::move(reader).Take();
}

}  // namespace tacho::server::interop
