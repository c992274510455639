// Takes pushes. A push is one write: its lines, and the ends of what they replace. The book of
// groups changes only when that write is stored, so a push that fails can simply come again.
#include "server/interop/push_door.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "proto/exposition/exposition.h"
#include "server/errors/error_table.h"
#include "server/interop/formats/label_mapping.h"
#include "server/interop/formats/packed_body.h"
#include "server/metrics/metric_families.h"

namespace tacho::server::interop {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);

PushChange ChangeOf(absl::string_view method) {
  if (method == "PUT") return PushChange::kGroup;
  return method == "DELETE" ? PushChange::kEnd : PushChange::kNames;
}

// A page of another site can make a browser send such a POST without asking.
bool IsOfOtherSite(const http::HttpRequest& request) {
  const absl::string_view site = request.Header("sec-fetch-site");
  return !site.empty() && site != "same-origin" && site != "none";
}

absl::Status WrongPushForm(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kUnsupported, text);
}

// By the Content-Type. Protobuf comes as messages with their lengths, or as text, which nobody
// sends.
absl::StatusOr<PushForm> PushFormOf(absl::string_view type) {
  if (IsOpenMetricsType(type)) return PushForm::kOpenMetrics;
  const std::string lower = absl::AsciiStrToLower(type);
  if (!absl::StrContains(lower, "protobuf")) return PushForm::kText;
  const bool other =
      absl::StrContains(lower, "encoding=") && !absl::StrContains(lower, "encoding=delimited");
  if (!other) return PushForm::kProtobuf;
  return WrongPushForm("Content-Type: protobuf is taken with encoding=delimited");
}

http::HttpResponse PushRefusal(const absl::Status& status) {
  if (errors::RowOf(status).failure != errors::Failure::kUnsupported) {
    return http::ErrorResponse(status);
  }
  return {.status = 415, .body = absl::StrCat(status.message(), "\n")};
}

v1::PushRequest PassedPush(const PushedRequest& push) {
  v1::PushRequest passed;
  passed.set_method(std::string(push.method));
  passed.set_path(std::string(push.path));
  passed.set_content_type(std::string(push.content_type));
  passed.set_content_encoding(std::string(push.content_encoding));
  passed.set_body(std::string(push.body));
  return passed;
}

http::HttpResponse AnswerOf(const v1::PushResponse& told) {
  http::HttpResponse response = {.status = static_cast<int>(told.status()), .body = told.body()};
  if (told.retry_after_seconds() > 0) {
    response.headers.emplace_back("Retry-After", absl::StrCat(told.retry_after_seconds()));
  }
  return response;
}

http::HttpResponse PushAnswer(PushChange change, const WriteOutcome& outcome) {
  if (!outcome.status.ok()) return http::ErrorResponse(outcome.status);
  if (outcome.refused == 0) return {.status = change == PushChange::kEnd ? 202 : 200};
  return {.status = 400,
          .body = absl::StrCat(outcome.refused, " samples were refused, and all others stored. ",
                               outcome.refusal, "\n")};
}

}  // namespace

PushDoor::PushDoor(PushDoorOptions options)
    : options_(std::move(options)),
      groups_(options_.groups),
      samples_(metrics::NewCounter(options_.registry, "tacho_interop_samples_total",
                                   {{"protocol", "push"}})),
      known_groups_(metrics::NewGauge(options_.registry, "tacho_interop_push_groups")) {
  TACHO_CHECK(options_.intake != nullptr);
}

void PushDoor::Start() {
  thread_.Start("push-expiry", RepeatingThread::Priority::kBackground, kLookEvery,
                [this] { EndDue(); });
}

void PushDoor::Stop() { thread_.Stop(); }

std::vector<http::Route> PushDoor::Routes() {
  std::vector<http::Route> routes;
  for (const absl::string_view form : {"/", "@base64/"}) {
    http::Route& route = routes.emplace_back();
    route.path = absl::StrCat(kPushPath, form);
    route.prefix = true;
    route.methods = http::Methods::kPostPutDelete;
    route.max_body = options_.max_request_bytes;
    route.later = [this](http::HttpRequest request, http::ResponderPtr responder) {
      Handle(request, responder);
    };
  }
  return routes;
}

absl::StatusOr<PushedLines> PushDoor::ReadLines(const PushedRequest& request,
                                                const storage::Labels& group,
                                                int64_t time_ns) const {
  TACHO_ASSIGN_OR_RETURN(const PushForm form, PushFormOf(request.content_type));
  const absl::string_view encoding = request.content_encoding;
  if (encoding.empty() || absl::EqualsIgnoreCase(encoding, "identity")) {
    return ReadPushedLines(request.body, form, group, time_ns);
  }
  if (!absl::EqualsIgnoreCase(encoding, "gzip")) {
    return WrongPushForm("Content-Encoding: gzip, or none, is taken here");
  }
  TACHO_ASSIGN_OR_RETURN(const std::string body,
                         UnpackGzip(request.body, options_.max_request_bytes));
  return ReadPushedLines(body, form, group, time_ns);
}

void PushDoor::Handle(const http::HttpRequest& request, const http::ResponderPtr& responder) {
  const auto caller = http::AdmitRequest(options_.guard, request, security::Role::kWrite);
  if (!caller.ok()) return responder->Answer(http::CallerRefusal(caller.status()));
  const auto refuse = [&](const absl::Status& status) { responder->Answer(PushRefusal(status)); };
  if (IsOfOtherSite(request)) {
    return refuse(
        errors::ErrorOf(errors::Failure::kForbidden, "pages of other sites may not push"));
  }
  if (const auto open = options_.intake->CheckOpen(); !open.ok()) return refuse(open);
  const PushedRequest push = {.method = request.method,
                              .path = request.path,
                              .content_type = request.Header("content-type"),
                              .content_encoding = request.Header("content-encoding"),
                              .body = request.body};
  const Sender sender = {"push", request.credentials, caller->rights_ptr()};
  const auto answer = [responder](http::HttpResponse response) {
    responder->Answer(std::move(response));
  };
  const auto shard = ShardElsewhere(push, sender);
  if (!shard.has_value()) return Store(push, sender, answer);
  options_.intake->elsewhere()->Push(
      *shard, sender, PassedPush(push), [answer](const absl::StatusOr<v1::PushResponse>& told) {
        answer(told.ok() ? AnswerOf(*told) : http::ErrorResponse(told.status()));
      });
}

std::optional<uint32_t> PushDoor::ShardElsewhere(const PushedRequest& request,
                                                 const Sender& sender) const {
  auto labels = ReadPushPath(request.path);
  if (!labels.ok()) return std::nullopt;
  labels->emplace_back(std::string(kNameLabel), std::string(kPushTime));
  return options_.intake->PassesTo(*labels, sender);
}

void PushDoor::Store(const PushedRequest& request, const Sender& sender, Answer answer) {
  const auto refuse = [&answer](const absl::Status& status) { answer(PushRefusal(status)); };
  const auto group = ReadPushPath(request.path);
  if (!group.ok()) return refuse(group.status());
  const PushChange change = ChangeOf(request.method);
  const int64_t now_ns = absl::ToUnixNanos(options_.now());
  auto lines = std::make_shared<PushedLines>();
  if (change != PushChange::kEnd) {
    auto read = ReadLines(request, *group, now_ns);
    if (!read.ok()) return refuse(read.status());
    *lines = *std::move(read);
  }
  auto plan_or = groups_.Begin(*group, change, lines->series, now_ns);
  if (!plan_or.ok()) return refuse(plan_or.status());
  const auto plan = std::make_shared<const PushPlan>(*std::move(plan_or));
  for (ForeignSample& sample : lines->write.samples) sample.time_ns = plan->time_ns;
  lines->write.ends_at_once = true;
  // Before this push, because a label without a value makes another key of the same series.
  if (auto added = AddEnds(plan->ended, plan->time_ns - 1, &lines->write); !added.ok()) {
    return refuse(added);
  }
  options_.intake->Write(lines->write, sender,
                         [this, plan, lines, answer](const WriteOutcome& outcome) {
                           samples_.Increment(static_cast<double>(outcome.stored));
                           if (outcome.status.ok())
                             groups_.Settled(*plan, lines->series, options_.monotonic());
                           known_groups_.Set(static_cast<double>(groups_.size()));
                           answer(PushAnswer(plan->change, outcome));
                         });
}

void PushDoor::EndDue() {
  if (!options_.intake->CheckOpen().ok()) return;  // It looks again soon.
  const absl::Time now = options_.monotonic();
  for (PushPlan& due : groups_.Due(now, absl::ToUnixNanos(options_.now()))) {
    ForeignWrite write;
    write.ends_at_once = true;
    // What is too much for one write ends by its silence.
    AddEnds(due.ended, due.time_ns - 1, &write).IgnoreError();
    const auto plan = std::make_shared<const PushPlan>(std::move(due));
    options_.intake->Write(write, {"push", {.peer = "expiry"}, security::Rights::Everything()},
                           [this, plan](const WriteOutcome& outcome) {
                             samples_.Increment(static_cast<double>(outcome.stored));
                             if (!outcome.status.ok()) return;
                             groups_.Settled(*plan, {}, options_.monotonic());
                             known_groups_.Set(static_cast<double>(groups_.size()));
                           });
  }
}

}  // namespace tacho::server::interop
