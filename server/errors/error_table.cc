#include "server/errors/error_table.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/cord.h"
#include "interop/google_rpc.pb.h"
#include "proto/base/check.h"

namespace tacho::server::errors {
namespace {

constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kDomain[] = "tacho";

// Absl's durations are no constants in a table.
struct Delay {
  int after_s;
  int spread_s;
};
constexpr Delay kNever = {0, 0};
constexpr Delay kSoon = {1, 2};
// About what a restart takes.
constexpr Delay kRestart = {2, 3};
constexpr Delay kLater = {5, 5};

ErrorRow Row(Failure failure, absl::string_view name, absl::StatusCode code, int http_status,
             Delay delay, absl::string_view what, absl::string_view remedy) {
  return {failure,
          name,
          code,
          http_status,
          absl::Seconds(delay.after_s),
          absl::Seconds(delay.spread_s),
          what,
          remedy};
}

using enum Failure;
using Code = absl::StatusCode;

const ErrorRow kTable[] = {
    Row(kOverloaded, "OVERLOADED", Code::kUnavailable, 503, kSoon,
        "the collector receives more than its disk, memory, connections or workers can take",
        "the sender waits; the operator compares tacho_quota_used with tacho_quota_limit"),
    Row(kDraining, "DRAINING", Code::kUnavailable, 503, kRestart, "the collector is draining",
        "the sender waits, or goes to the next collector"),
    Row(kDiskRefuses, "DISK_REFUSES", Code::kUnavailable, 503, kLater,
        "the disk is full or has failed",
        "the sender waits; the operator frees space, see operations.md"),
    Row(kClockDoubted, "CLOCK_DOUBTED", Code::kUnavailable, 503, kLater,
        "the collector's clock has jumped, or at least half of the agents disagree with it",
        "the sender waits; the operator sets the clock, see operations.md"),
    Row(kSuperseded, "SUPERSEDED", Code::kUnavailable, 503, kSoon,
        "a newer stream of the same agent took over",
        "nothing, unless two agents run on copies of one spool"),
    Row(kMalformed, "MALFORMED", Code::kInvalidArgument, 400, kNever,
        "a message or request breaks its rules; the text and BadRequest name the field",
        "the sender's author fixes it; the agent drops the message and reports a gap"),
    Row(kTooLarge, "TOO_LARGE", Code::kResourceExhausted, 413, kNever,
        "a message, answer or request exceeds a limit, which the text names",
        "the sender splits it; the caller asks for less"),
    Row(kOutOfOrder, "OUT_OF_ORDER", Code::kFailedPrecondition, 409, kNever,
        "something must come first: Hello, or the layout of a batch",
        "the sender reconnects and starts over"),
    Row(kMisdirected, "MISDIRECTED", Code::kFailedPrecondition, 421, kNever,
        "another collector of the cluster keeps the job; the text names it",
        "the sender's operator sends it there, see cluster.md"),
    Row(kUnauthenticated, "UNAUTHENTICATED", Code::kUnauthenticated, 401, kNever,
        "there are no credentials, or they are unknown", "the operator gives the sender a token"),
    Row(kForbidden, "FORBIDDEN", Code::kPermissionDenied, 403, kNever,
        "the credentials do not allow this", "the operator widens the role or the pattern of jobs"),
    Row(kNameTaken, "NAME_TAKEN", Code::kAlreadyExists, 409, kNever,
        "another live stream uses this agent_id with another spool",
        "the operator gives each agent its own id"),
    Row(kNotFound, "NOT_FOUND", Code::kNotFound, 404, kNever,
        "there is no such job, metric or page",
        "the caller picks one of the names that the text offers"),
    Row(kUnsupported, "UNSUPPORTED", Code::kUnimplemented, 415, kNever,
        "the collector does not support this method or compression", "the caller uses another one"),
    Row(kNotAcceptable, "NOT_ACCEPTABLE", Code::kUnimplemented, 406, kNever,
        "the client accepts none of the formats that the page has (HTTP)",
        "the caller sends another Accept header"),
    Row(kTooSlow, "TOO_SLOW", Code::kDeadlineExceeded, 408, kNever,
        "Hello, or the rest of a request, did not come in time", "the sender reconnects"),
    Row(kCancelled, "CANCELLED", Code::kCancelled, 499, kNever,
        "the other side has disconnected or cancelled", "nothing"),
    Row(kDamaged, "DAMAGED", Code::kDataLoss, 500, kNever,
        "stored bytes do not match their checksum; the text names them",
        "the operator restores a copy, see operations.md"),
    Row(kInternal, "INTERNAL", Code::kInternal, 500, kNever, "a defect of the collector",
        "the operator reports it"),
};

}  // namespace

std::span<const ErrorRow> ErrorTable() { return kTable; }

absl::Status ErrorOf(Failure failure, absl::string_view text) {
  TACHO_CHECK(static_cast<size_t>(failure) < std::size(kTable));
  const ErrorRow& row = kTable[static_cast<size_t>(failure)];
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(row.name));
  info.set_domain(kDomain);
  absl::Status status(row.code, text);
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  return status;
}

absl::Status Draining() { return ErrorOf(Failure::kDraining, "the collector is draining"); }

const ErrorRow& RowOf(const absl::Status& status) {
  TACHO_CHECK(!status.ok());
  google::rpc::ErrorInfo info;
  if (const auto payload = status.GetPayload(kErrorInfoUrl); payload.has_value()) {
    info.ParseFromString(std::string(*payload));
  }
  const auto named = std::find_if(std::begin(kTable), std::end(kTable), [&](const ErrorRow& row) {
    return row.code == status.code() && row.name == info.reason();
  });
  if (named != std::end(kTable)) return *named;
  const auto first = std::find_if(std::begin(kTable), std::end(kTable),
                                  [&](const ErrorRow& row) { return row.code == status.code(); });
  return first == std::end(kTable) ? kTable[static_cast<int>(kInternal)] : *first;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status, uint64_t spread) {
  const ErrorRow& row = RowOf(status);
  if (row.retry_after == absl::ZeroDuration()) return std::nullopt;
  // A prime stride visits every thousandth of the spread before it repeats one.
  const double share = static_cast<double>(spread * 977 % 1000) / 1000;
  return row.retry_after + row.retry_spread * share;
}

}  // namespace tacho::server::errors
