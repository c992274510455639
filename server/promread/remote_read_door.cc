#include "server/promread/remote_read_door.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/status_macros.h"
#include "proto/base/timed_wait.h"
#include "server/errors/error_table.h"
#include "server/metrics/metric_families.h"
#include "server/promread/kept_jobs.h"
#include "server/promread/member_messages.h"
#include "server/promread/read_request.h"

namespace tacho::server::promread {
namespace {

constexpr char kReadPath[] = "/api/v1/read";
constexpr char kReadMethod[] = "prometheus.Read";
constexpr char kReadsMetric[] = "tacho_query_remote_reads_total";
constexpr char kProtobuf[] = "application/x-protobuf";
// storage/remote/read_handler.go and codec.go: what readers look for.
constexpr char kStreamType[] =
    "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
// The part of query.max_concurrent that reads may take: a half.
constexpr uint32_t kShareOfReads = 2;
// How often a worker that waits for its client looks whether it may go on.
constexpr absl::Duration kLookAgain = absl::Milliseconds(200);

// 415, unless the headers say what remote read always sends.
absl::Status CheckForm(const http::HttpRequest& request) {
  if (!absl::EqualsIgnoreCase(request.Header("content-encoding"), "snappy")) {
    return errors::ErrorOf(errors::Failure::kUnsupported,
                           "Content-Encoding: remote read takes snappy, in its block format");
  }
  const absl::string_view type = request.Header("content-type");
  if (!absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(type.substr(0, type.find(';'))),
                              kProtobuf)) {
    return errors::ErrorOf(errors::Failure::kUnsupported,
                           absl::StrCat("Content-Type: remote read takes ", kProtobuf));
  }
  return absl::OkStatus();
}

}  // namespace

// One request, from its worker to the end of its answer.
class RemoteReadDoor::Call final : public ReadQueue::Call {
 public:
  Call(RemoteReadDoor* door, security::RightsPtr rights, http::HttpRequest request,
       http::ResponderPtr responder)
      : door_(door),
        limits_(door->queries_->limits()),
        rights_(std::move(rights)),
        request_(std::move(request)),
        responder_(std::move(responder)),
        control_(absl::Nanoseconds(limits_.timeout()), MonotonicNow, &door->queries_->draining()) {}

  query::QueryService::Asked asked() const override {
    return {.method = kReadMethod,
            .rights = rights_.get(),
            .control = &control_,
            .peer = request_.credentials.peer};
  }
  void Cancel() { control_.Cancel(); }

  absl::Status Work(const query::WorkerPool::Leave&) override {
    TACHO_RETURN_IF_ERROR(control_.Check());  // It may have waited for long.
    TACHO_ASSIGN_OR_RETURN(const ReadRequest request, UnpackReadRequest(request_.body));
    ReadWorld world = {.selection = {*door_->queries_->options().store, *rights_, control_,
                                     std::min<uint64_t>(limits_.max_series(), kMaxReadSeries),
                                     door_->members_.membership},
                       .max_samples = limits_.max_samples(),
                       .held = &door_->held_};
    if (AsksOthers(door_->members_.membership, request_)) {
      world.elsewhere = [this](const ReadQuery& query) { return AskMembers(query); };
    }
    streams_ = request.form == AnswerForm::kChunks;
    auto samples =
        streams_ ? MakeChunksAnswer(world, request,
                                    [this](std::string frame) { return Send(std::move(frame)); })
                 : MakeSamplesAnswer(world, request, &packed_);
    if (!samples.ok()) return samples.status();
    door_->queries_->CountSamples(*samples);
    (streams_ ? door_->chunks_answers_ : door_->samples_answers_).Increment();
    return absl::OkStatus();
  }

  void Finish(const absl::Status& status) override {
    if (!status.ok()) {
      // Without an end the body is cut.
      if (!begun_) {
        responder_->Answer(http::ErrorResponse(status, door_->queries_->NextSpread()));
      }
      return;
    }
    if (!streams_) {
      return responder_->Answer({.content_type = kProtobuf,
                                 .body = std::move(packed_),
                                 .headers = {{"Content-Encoding", "snappy"}}});
    }
    if (!begun_) responder_->Begin({.content_type = kStreamType});
    responder_->Finish();
  }

 private:
  absl::StatusOr<MemberAnswers<v1::MemberReadResponse>> AskMembers(const ReadQuery& query) const {
    const Members& members = door_->members_;
    const std::vector<uint32_t> shards = OtherShardsOf(*members.membership, {query});
    if (shards.empty()) return MemberAnswers<v1::MemberReadResponse>();
    v1::MemberReadRequest asked;
    TACHO_ASSIGN_OR_RETURN(*asked.mutable_selection(), ToSelection(query));
    return members.elsewhere->Read({request_.credentials, control_.deadline()}, asked, shards);
  }
  absl::Status Send(std::string frame) {
    if (std::exchange(begun_, true)) {
      responder_->Write(std::move(frame));
    } else {
      responder_->Begin({.content_type = kStreamType, .body = std::move(frame)});
    }
    while (responder_->unsent() > http::Responder::kHighWater) {
      const auto room = std::make_shared<absl::Notification>();
      responder_->OnRoom([room] { room->Notify(); });
      do {
        TACHO_RETURN_IF_ERROR(control_.Check());
      } while (!WaitFor(*room, kLookAgain));
    }
    return control_.Check();
  }

  RemoteReadDoor* const door_;
  const config::v1::Collector::Query limits_;
  const security::RightsPtr rights_;
  const http::HttpRequest request_;
  const http::ResponderPtr responder_;
  query::QueryControl control_;
  bool streams_ = false;
  bool begun_ = false;  // The head of a stream is out.
  std::string packed_;  // The answer SAMPLES.
};

RemoteReadDoor::RemoteReadDoor(query::QueryService* queries, http::HttpGuard guard, Members members)
    : queries_(queries),
      guard_(guard),
      members_(members),
      registry_(queries->options().registry != nullptr ? queries->options().registry
                                                       : std::make_shared<prometheus::Registry>()),
      samples_answers_(metrics::NewCounter(registry_.get(), kReadsMetric, {{"form", "samples"}})),
      chunks_answers_(metrics::NewCounter(registry_.get(), kReadsMetric, {{"form", "chunks"}})),
      waiting_(queries, kShareOfReads) {}

std::vector<http::Route> RemoteReadDoor::Routes() {
  http::Route route;
  route.path = kReadPath;
  route.methods = http::Methods::kPost;
  // Snappy adds a sixth at most to what it cannot pack.
  route.max_body = kMaxRequestBytes + kMaxRequestBytes / 6 + 32;
  route.later = [this](http::HttpRequest request, http::ResponderPtr responder) {
    Handle(std::move(request), responder);
  };
  return {std::move(route)};
}

void RemoteReadDoor::Handle(http::HttpRequest request, const http::ResponderPtr& responder) {
  const auto caller = http::AdmitRequest(guard_, request, security::Role::kRead);
  if (!caller.ok()) {
    queries_->CountAnswer(kReadMethod, caller.status());
    return responder->Answer(http::CallerRefusal(caller.status()));
  }
  if (const absl::Status form = CheckForm(request); !form.ok()) {
    queries_->CountAnswer(kReadMethod, form);
    return responder->Answer(http::ErrorResponse(form));
  }
  const auto call =
      std::make_shared<Call>(this, caller->rights_ptr(), std::move(request), responder);
  responder->OnGone([weak = std::weak_ptr<Call>(call)] {
    if (const auto alive = weak.lock(); alive != nullptr) alive->Cancel();
  });
  waiting_.Add(call);
}

}  // namespace tacho::server::promread
