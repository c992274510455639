// Every check refuses before it allocates: an agent that sends what it may not costs a few
// comparisons and a counter. Each refusal names the field, so that the agent's log says what to
// change.
#include "server/ingest/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/ingest/text_rules.h"

namespace tacho::server::ingest {
namespace {

// Stated in proto/tacho/v1/ingest.proto: enough for any honest agent, little enough that a hostile
// one cannot fill memory with what is kept per stream or job.
constexpr size_t kMaxAgentIdBytes = 128;
constexpr size_t kMaxVersionBytes = 64;
constexpr int kMaxIdentityLabels = 32;
constexpr int kMaxAnswers = 16;
constexpr size_t kMaxAnswerBytes = 32;
constexpr size_t kMaxAttributes = 256;
constexpr size_t kMaxKeyBytes = 128;
constexpr size_t kMaxAttributeBytes = 4096;
constexpr size_t kMaxKindBytes = 128;
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxEventFields = 32;
constexpr size_t kMaxFieldBytes = 1024;
constexpr size_t kMaxReasonBytes = 1024;
// A counter never gets there; above it the arithmetic of ranges would overflow.
constexpr uint64_t kMaxSequence = uint64_t{1} << 62;

storage::Source ToSource(const v1::Source& source) {
  storage::Source result;
  result.job = source.job();
  if (source.has_task()) result.task = source.task();
  result.attempt = source.attempt();
  result.host = source.host();
  return result;
}

template <typename T>
std::span<const T> SpanOf(const google::protobuf::RepeatedField<T>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

std::string Indexed(absl::string_view list, int index, absl::string_view field) {
  return absl::StrCat(list, "[", index, "].", field);
}

}  // namespace

Admission::Admission(AdmissionOptions options) : options_(std::move(options)) {
  TACHO_CHECK(options_.limits != nullptr && options_.metrics != nullptr);
}

absl::Status Admission::Refuse(Refusal reason, absl::Status status) const {
  options_.metrics->MessageRefused(reason);
  return status;
}

absl::Status Admission::RefuseField(Refusal reason, absl::string_view field,
                                    absl::string_view problem) const {
  return Refuse(reason, errors::InvalidFieldError(field, problem));
}

absl::Status Admission::RefuseEncoding() const {
  return RefuseField(Refusal::kEncoding, "message",
                     "not a tacho.v1.ClientMessage: damaged, or a string that is not UTF-8");
}

absl::Status Admission::RefuseSize(uint64_t bytes) const {
  return Refuse(Refusal::kTooLarge,
                absl::ResourceExhaustedError(absl::StrCat(
                    "message: has ", bytes, " bytes; at most ", limits().max_message_bytes(),
                    " (ingest.max_message_bytes) are allowed: split it")));
}

absl::Status Admission::RefuseParts() const {
  return Refuse(
      Refusal::kTooLarge,
      absl::ResourceExhaustedError(absl::StrCat(
          "message: more series than a layout may have, ", limits().max_series_per_layout(),
          ", or more labels and unknown fields than its bytes can hold: "
          "split the layout")));
}

absl::Status Admission::CheckDraining() const {
  if (!draining_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return Refuse(Refusal::kDraining, errors::Draining());
}

absl::Status Admission::CheckStream(const v1::ClientMessage& untrusted, bool hello_seen) const {
  TACHO_RETURN_IF_ERROR(CheckDraining());
  const auto kind = untrusted.message_case();
  if (kind == v1::ClientMessage::MESSAGE_NOT_SET) {
    return RefuseField(Refusal::kUnknown, "message",
                       "none that this version of the collector knows");
  }
  if (kind == v1::ClientMessage::kHello && hello_seen) {
    return Refuse(Refusal::kRepeated,
                  absl::FailedPreconditionError("hello: already received on this stream"));
  }
  if (kind != v1::ClientMessage::kHello && !hello_seen) {
    return Refuse(Refusal::kNoHello,
                  absl::FailedPreconditionError("hello: must be the first message of a stream"));
  }
  return absl::OkStatus();
}

absl::Status Admission::CheckRights(absl::Status checked) const {
  return checked.ok() ? checked : Refuse(Refusal::kRights, std::move(checked));
}

absl::Status Admission::CheckShard(const v1::Hello& untrusted) const {
  const auto refuse = [this](absl::string_view problem, absl::string_view remedy) {
    return Refuse(Refusal::kShard, errors::ErrorOf(errors::Failure::kMisdirected,
                                                   absl::StrCat(problem, ": ", remedy)));
  };
  const cluster::Membership* const membership = options_.membership;
  const uint32_t told = std::max<uint32_t>(untrusted.shards(), 1);
  if (membership == nullptr || !membership->is_cluster()) {
    if (told == 1) return absl::OkStatus();
    return refuse(absl::StrCat("hello.shards: the sender knows a cluster of ", told,
                               " collectors, and this collector is in none"),
                  "give this collector the sender's list as cluster.members, or remove that list "
                  "at the sender");
  }
  const std::string own = membership->NameOf(membership->own());
  if (told == 1) {
    return refuse(
        absl::StrCat("hello.shards: this collector is ", own, ", and the sender knows no cluster"),
        "give the sender all members: collector.members of an agent is "
        "cluster.members of the collectors");
  }
  if (told != membership->shards()) {
    return refuse(absl::StrCat("hello.shards: this collector is ", own,
                               ", and the sender knows a cluster of ", told, " collectors"),
                  "give both the same list of members");
  }
  if (untrusted.shard() != membership->own()) {
    return refuse(absl::StrCat("hello.shard: this collector is ", own,
                               ", and the sender takes it for shard ", untrusted.shard()),
                  membership->moves() ? "another collector of the cluster owns that shard now"
                                      : "give both the same list of members, in the same order");
  }
  return absl::OkStatus();
}

absl::Status Admission::CheckShard(const std::string& job, absl::string_view field) const {
  if (options_.membership == nullptr) return absl::OkStatus();
  return Kept(options_.membership->CheckKeeps(job), field);
}

absl::Status Admission::CheckShard(const v1::Source& source, absl::string_view field) const {
  if (options_.membership == nullptr) return absl::OkStatus();
  return Kept(options_.membership->CheckKeeps(source.job(), source.host()), field);
}

absl::Status Admission::Kept(const absl::Status& keeps, absl::string_view field) const {
  if (keeps.ok()) return keeps;
  return Refuse(Refusal::kShard, errors::ErrorOf(errors::Failure::kMisdirected,
                                                 absl::StrCat(field, ": ", keeps.message())));
}

absl::Status Admission::CheckSequence(absl::string_view field, uint64_t sequence) const {
  if (sequence >= 1 && sequence <= kMaxSequence) return absl::OkStatus();
  return RefuseField(Refusal::kSequence, field,
                     absl::StrCat(sequence, " is not between 1 and ", kMaxSequence));
}

absl::Status Admission::CheckText(absl::string_view field, absl::string_view problem) const {
  return problem.empty() ? absl::OkStatus() : RefuseField(Refusal::kText, field, problem);
}

absl::Status Admission::CheckHello(const v1::Hello& untrusted) const {
  if (untrusted.spool_generation() == 0) {
    return RefuseField(Refusal::kSequence, "hello.spool_generation", "must not be 0");
  }
  TACHO_RETURN_IF_ERROR(CheckSequence("hello.first_sequence", untrusted.first_sequence()));
  if (untrusted.acknowledged_sequence() != 0) {
    TACHO_RETURN_IF_ERROR(
        CheckSequence("hello.acknowledged_sequence", untrusted.acknowledged_sequence()));
  }
  if (untrusted.identity_size() > kMaxIdentityLabels) {
    return RefuseField(Refusal::kTooLarge, "hello.identity",
                       absl::StrCat("has ", untrusted.identity_size(), " labels; at most ",
                                    kMaxIdentityLabels, " are allowed"));
  }
  if (untrusted.answers_size() > kMaxAnswers) {
    return RefuseField(Refusal::kTooLarge, "hello.answers",
                       absl::StrCat("has ", untrusted.answers_size(), " kinds; at most ",
                                    kMaxAnswers, " are allowed"));
  }
  for (int i = 0; i < untrusted.answers_size(); ++i) {
    TACHO_RETURN_IF_ERROR(
        CheckText("hello.answers", TextProblem(untrusted.answers(i), 1, kMaxAnswerBytes)));
  }
  TACHO_RETURN_IF_ERROR(
      CheckText("hello.agent_id", TextProblem(untrusted.agent_id(), 1, kMaxAgentIdBytes)));
  TACHO_RETURN_IF_ERROR(
      CheckText("hello.version", TextProblem(untrusted.version(), 0, kMaxVersionBytes)));
  for (int i = 0; i < untrusted.identity_size(); ++i) {
    const v1::Label& label = untrusted.identity(i);
    std::string problem = LabelNameProblem(label.name());
    if (problem.empty()) problem = LabelValueProblem(label.value());
    if (problem.empty()) continue;
    return CheckText(Indexed("hello.identity", i, "name or value"), problem);
  }
  return absl::OkStatus();
}

absl::Status Admission::CheckSource(absl::string_view field, const v1::Source& source) const {
  TACHO_RETURN_IF_ERROR(
      CheckText(absl::StrCat(field, ".job"), TextProblem(source.job(), 1, kMaxJobBytes)));
  return CheckText(absl::StrCat(field, ".host"), TextProblem(source.host(), 1, kMaxHostBytes));
}

absl::StatusOr<AdmittedLayout> Admission::AdmitLayout(const v1::Layout& untrusted,
                                                      uint64_t others) const {
  if (untrusted.id() >= limits().max_layouts_per_stream()) {
    return RefuseField(Refusal::kTooLarge, "layout.id",
                       absl::StrCat(untrusted.id(), " is not below Welcome.limits.max_layouts, ",
                                    limits().max_layouts_per_stream()));
  }
  const auto series = static_cast<uint32_t>(untrusted.series_size());
  if (series == 0) return RefuseField(Refusal::kShape, "layout.series", "must not be empty");
  if (series > limits().max_series_per_layout()) {
    return Refuse(Refusal::kTooLarge,
                  absl::ResourceExhaustedError(absl::StrCat(
                      "layout.series: has ", series, "; at most ", limits().max_series_per_layout(),
                      " are allowed: split the layout")));
  }
  if (others + series > limits().max_columns_per_stream()) {
    return Refuse(
        Refusal::kTooLarge,
        absl::ResourceExhaustedError(absl::StrCat(
            "layout.series: has ", series, " beside ", others,
            " of other layouts of this stream; at most ", limits().max_columns_per_stream(),
            " (ingest.max_columns_per_stream) are allowed in all: define layouts again under the "
            "same id, or connect again")));
  }
  TACHO_RETURN_IF_ERROR(CheckSource("layout.source", untrusted.source()));
  AdmittedLayout admitted;
  admitted.width = series;
  admitted.definition.source = ToSource(untrusted.source());
  admitted.definition.has_steps = untrusted.has_steps();
  admitted.definition.series.reserve(series);
  for (uint32_t column = 0; column < series; ++column) {
    admitted.Add(column, untrusted.series(static_cast<int>(column)));
  }
  return admitted;
}

absl::StatusOr<storage::RowsView> Admission::AdmitBatch(const v1::Batch& untrusted,
                                                        const StreamLayout* layout) const {
  TACHO_RETURN_IF_ERROR(CheckSequence("batch.sequence", untrusted.sequence()));
  const auto rows = static_cast<uint32_t>(untrusted.times_unix_ns_size());
  if (rows > limits().max_rows_per_batch()) {
    return Refuse(Refusal::kTooLarge,
                  absl::ResourceExhaustedError(absl::StrCat(
                      "batch.times_unix_ns: has ", rows, " rows; at most ",
                      limits().max_rows_per_batch(), " are allowed: split the batch")));
  }
  if (layout == nullptr) {
    return Refuse(Refusal::kLayout,
                  absl::FailedPreconditionError(absl::StrCat("batch.layout: ", untrusted.layout(),
                                                             " is not defined on this stream")));
  }
  TACHO_RETURN_IF_ERROR(CheckShape(untrusted, *layout));
  const storage::RowsView view{SpanOf(untrusted.times_unix_ns()), SpanOf(untrusted.steps()),
                               SpanOf(untrusted.values())};
  TACHO_CHECK(view.values.size() == view.times.size() * layout->width);
  for (const int64_t time : view.times) {
    if (time < 0) {
      return RefuseField(Refusal::kTime, "batch.times_unix_ns",
                         absl::StrCat(time, " is before 1970; expected ns since the Unix epoch"));
    }
  }
  return view;
}

absl::Status Admission::CheckShape(const v1::Batch& batch, const StreamLayout& layout) const {
  const uint64_t rows = static_cast<uint64_t>(batch.times_unix_ns_size());
  if (rows == 0) return RefuseField(Refusal::kShape, "batch.times_unix_ns", "must not be empty");
  const uint64_t steps = static_cast<uint64_t>(batch.steps_size());
  if (steps != (layout.has_steps ? rows : 0)) {
    return RefuseField(Refusal::kShape, "batch.steps",
                       absl::StrCat("has ", steps, " entries for ", rows, " rows of a layout ",
                                    layout.has_steps ? "with steps" : "without steps"));
  }
  const uint64_t values = static_cast<uint64_t>(batch.values_size());
  if (values == rows * layout.width) return absl::OkStatus();
  return RefuseField(Refusal::kShape, "batch.values",
                     absl::StrCat("has ", values, " entries; ", rows, " rows × ", layout.width,
                                  " series are ", rows * layout.width));
}

absl::Status Admission::CheckEntries(absl::string_view field,
                                     const google::protobuf::Map<std::string, std::string>& entries,
                                     size_t max_entries, size_t max_value_bytes) const {
  if (entries.size() > max_entries) {
    return RefuseField(
        Refusal::kTooLarge, field,
        absl::StrCat("has ", entries.size(), " entries; at most ", max_entries, " are allowed"));
  }
  for (const auto& [key, value] : entries) {
    if (auto problem = TextProblem(key, 1, kMaxKeyBytes); !problem.empty()) {
      return CheckText(field, absl::StrCat("a key ", problem));
    }
    if (auto problem = TextProblem(value, 0, max_value_bytes); !problem.empty()) {
      return CheckText(absl::StrCat(field, ".", key), problem);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<storage::Event> Admission::AdmitEvent(const v1::Event& untrusted) const {
  TACHO_RETURN_IF_ERROR(CheckSequence("event.sequence", untrusted.sequence()));
  TACHO_RETURN_IF_ERROR(
      CheckEntries("event.fields", untrusted.fields(), kMaxEventFields, kMaxFieldBytes));
  TACHO_RETURN_IF_ERROR(CheckSource("event.source", untrusted.source()));
  TACHO_RETURN_IF_ERROR(CheckText("event.kind", TextProblem(untrusted.kind(), 1, kMaxKindBytes)));
  TACHO_RETURN_IF_ERROR(
      CheckText("event.message", TextProblem(untrusted.message(), 0, kMaxMessageBytes)));
  if (untrusted.time_unix_ns() < 0) {
    return RefuseField(Refusal::kTime, "event.time_unix_ns",
                       absl::StrCat(untrusted.time_unix_ns(), " is before 1970"));
  }
  storage::Event event;
  event.source = ToSource(untrusted.source());
  event.time_ns = untrusted.time_unix_ns();
  if (untrusted.has_step()) event.step = untrusted.step();
  event.kind = untrusted.kind();
  event.message = untrusted.message();
  event.fields.insert(untrusted.fields().begin(), untrusted.fields().end());
  return event;
}

absl::StatusOr<storage::Attributes> Admission::AdmitAttributes(
    const v1::Attributes& untrusted) const {
  TACHO_RETURN_IF_ERROR(CheckSequence("attributes.sequence", untrusted.sequence()));
  TACHO_RETURN_IF_ERROR(
      CheckEntries("attributes.values", untrusted.values(), kMaxAttributes, kMaxAttributeBytes));
  TACHO_RETURN_IF_ERROR(CheckText("attributes.job", TextProblem(untrusted.job(), 1, kMaxJobBytes)));
  storage::Attributes attributes;
  attributes.job = untrusted.job();
  attributes.attempt = untrusted.attempt();
  attributes.values.insert(untrusted.values().begin(), untrusted.values().end());
  return attributes;
}

absl::StatusOr<storage::SequenceRange> Admission::AdmitGap(const v1::Gap& untrusted) const {
  TACHO_RETURN_IF_ERROR(CheckSequence("gap.sequence", untrusted.sequence()));
  const storage::SequenceRange lost{untrusted.lost().first(), untrusted.lost().last()};
  TACHO_RETURN_IF_ERROR(CheckSequence("gap.lost.first", lost.first));
  TACHO_RETURN_IF_ERROR(CheckSequence("gap.lost.last", lost.last));
  if (lost.first > lost.last) {
    return RefuseField(Refusal::kSequence, "gap.lost",
                       absl::StrCat("first ", lost.first, " is after last ", lost.last));
  }
  const uint64_t own = untrusted.sequence();
  const bool stands_in = lost.first == own && lost.last == own;
  if (lost.first <= own && own <= lost.last && !stands_in) {
    return RefuseField(Refusal::kSequence, "gap.sequence",
                       "must lie outside gap.lost, or be all of it");
  }
  TACHO_RETURN_IF_ERROR(
      CheckText("gap.reason", TextProblem(untrusted.reason(), 0, kMaxReasonBytes)));
  return lost;
}

TimeWindow Admission::Window() const {
  const absl::Time now = options_.now();
  const bool keeps_all = options_.retention <= absl::ZeroDuration();
  return {.oldest_ns = keeps_all ? 0 : absl::ToUnixNanos(now - options_.retention),
          .newest_ns = absl::ToUnixNanos(now + absl::Nanoseconds(limits().max_future()))};
}

}  // namespace tacho::server::ingest
