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
class RemoteReadDoor::Call {
 public:
  Call(RemoteReadDoor* door, security::RightsPtr rights, http::HttpRequest request,
       http::ResponderPtr responder)
      : door_(door),
        limits_(door->queries_->limits()),
        rights_(std::move(rights)),
        request_(std::move(request)),
        responder_(std::move(responder)),
        control_(absl::Nanoseconds(limits_.timeout()), MonotonicNow, &door->queries_->draining()) {}

  query::QueryService::Asked asked() const {
    return {.method = kReadMethod,
            .rights = rights_.get(),
            .control = &control_,
            .peer = request_.credentials.peer};
  }
  void Cancel() { control_.Cancel(); }

  // On a worker.
  absl::Status Work() {
    TACHO_RETURN_IF_ERROR(control_.Check());  // It may have waited for long.
    TACHO_ASSIGN_OR_RETURN(const ReadRequest request, UnpackReadRequest(request_.body));
    TACHO_RETURN_IF_ERROR(CheckKept(door_->membership_, request_, request.queries));
    const ReadWorld world = {
        .selection = {*door_->queries_->options().store, *rights_, control_,
                      std::min<uint64_t>(limits_.max_series(), kMaxReadSeries)},
        .max_samples = limits_.max_samples(),
        .held = &door_->held_};
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

  // Ends the answer.
  void Finish(const absl::Status& status) {
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

RemoteReadDoor::RemoteReadDoor(query::QueryService* queries, http::HttpGuard guard,
                               const cluster::Membership* membership)
    : queries_(queries),
      guard_(guard),
      membership_(membership),
      registry_(queries->options().registry != nullptr ? queries->options().registry
                                                       : std::make_shared<prometheus::Registry>()),
      samples_answers_(metrics::NewCounter(registry_.get(), kReadsMetric, {{"form", "samples"}})),
      chunks_answers_(metrics::NewCounter(registry_.get(), kReadsMetric, {{"form", "chunks"}})) {}

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
  bool full = false;
  {
    absl::MutexLock lock(&mutex_);
    full = waiting_.size() == kMaxWaitingReads;
    if (!full) waiting_.push_back(call);
  }
  if (full) {
    const absl::Status status = errors::ErrorOf(
        errors::Failure::kOverloaded,
        absl::StrCat(kMaxWaitingReads, " requests of remote read wait already: try again"));
    queries_->CountAnswer(kReadMethod, status);
    return call->Finish(status);
  }
  responder->OnGone([weak = std::weak_ptr<Call>(call)] {
    if (const auto alive = weak.lock(); alive != nullptr) alive->Cancel();
  });
  StartWaiting();
}

RemoteReadDoor::CallPtr RemoteReadDoor::TakeWaiting() {
  const uint32_t most = std::max(queries_->limits().max_concurrent() / 2, 1u);
  absl::MutexLock lock(&mutex_);
  if (waiting_.empty() || running_ >= most) return nullptr;
  CallPtr call = std::move(waiting_.front());
  waiting_.pop_front();
  ++running_;
  return call;
}

absl::Status RemoteReadDoor::Start(const CallPtr& call) {
  return queries_->RunOnWorker(
      call->asked(), [call](const auto&) { return call->Work(); },
      [this, call](const absl::Status& status) {
        {
          absl::MutexLock lock(&mutex_);
          --running_;
        }
        call->Finish(status);
        StartWaiting();
      });
}

void RemoteReadDoor::StartWaiting() {
  while (CallPtr call = TakeWaiting()) {
    const absl::Status taken = Start(call);
    if (taken.ok()) continue;
    {
      absl::MutexLock lock(&mutex_);
      --running_;
      // Other queries have all workers: the end of a read that runs is the next chance.
      if (running_ > 0 && !queries_->draining()) {
        waiting_.push_front(std::move(call));
        return;
      }
    }
    call->Finish(taken);
  }
}

}  // namespace tacho::server::promread
