#include "server/promread/explore_door.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"
#include "server/promread/explore_answer.h"
#include "server/promread/explore_request.h"
#include "server/promread/kept_jobs.h"
#include "server/promread/member_messages.h"

namespace tacho::server::promread {
namespace {

constexpr char kExploreMethod[] = "prometheus.Explore";
constexpr absl::string_view kApi = "/api/v1/";
constexpr absl::string_view kLabel = "label/";
constexpr char kBuildInfo[] = "status/buildinfo";
constexpr absl::string_view kValues = "/values";
constexpr char kJson[] = "application/json";
constexpr absl::string_view kNoPromql =
    "the collector computes no PromQL: ask a Prometheus that reads from here by remote read, see "
    "docs/interop.md#prometheus-reads-history";

bool NeedsPromql(absl::string_view path) {
  return path == "/api/v1/query" || path == "/api/v1/query_range" ||
         path == "/api/v1/query_exemplars";
}

struct Kind {
  int status;
  absl::string_view name;  // errorType.
};

// web/api/v1/api.go: respondError().
Kind KindOf(const absl::Status& status, bool timed_out) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return {400, "bad_data"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "unauthorized"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "forbidden"};
    case absl::StatusCode::kNotFound:
      return {404, "not_found"};
    case absl::StatusCode::kResourceExhausted:
      return timed_out ? Kind{503, "timeout"} : Kind{422, "execution"};
    case absl::StatusCode::kUnimplemented:
      return {422, "execution"};
    case absl::StatusCode::kCancelled:
      return {499, "canceled"};
    case absl::StatusCode::kUnavailable:
      return {503, "unavailable"};
    default:
      return {500, "internal"};
  }
}

// `response` has the headers of the refusal: challenges, Retry-After.
http::HttpResponse Refusal(http::HttpResponse response, const absl::Status& status,
                           bool timed_out = false) {
  const Kind kind = KindOf(status, timed_out);
  response.status = kind.status;
  response.content_type = kJson;
  response.body = absl::StrCat("{\"status\":\"error\",\"errorType\":\"", kind.name,
                               "\",\"error\":", JsonString(status.message()), "}");
  return response;
}

http::HttpResponse Success(const ExploreAnswer& answer) {
  std::string body = absl::StrCat("{\"status\":\"success\",\"data\":", answer.data);
  if (!answer.warnings.empty()) {
    absl::StrAppend(&body, ",\"warnings\":[",
                    absl::StrJoin(answer.warnings, ",",
                                  [](std::string* out, const std::string& warning) {
                                    out->append(JsonString(warning));
                                  }),
                    "]");
  }
  body.push_back('}');
  return {.content_type = kJson, .body = std::move(body)};
}

ExploreAnswer BuildInfo(absl::string_view version) {
  return {.data = absl::StrCat("{\"version\":", JsonString(version),
                               ",\"revision\":\"\",\"branch\":\"\",\"buildUser\":\"\","
                               "\"buildDate\":\"\",\"goVersion\":\"\"}")};
}

}  // namespace

// One request, from its worker to its answer.
class ExploreDoor::Call {
 public:
  Call(ExploreDoor* door, security::RightsPtr rights, http::HttpRequest request,
       http::ResponderPtr responder)
      : door_(door),
        limits_(door->queries_->limits()),
        rights_(std::move(rights)),
        request_(std::move(request)),
        responder_(std::move(responder)),
        control_(absl::Nanoseconds(limits_.timeout()), MonotonicNow, &door->queries_->draining()) {}

  query::QueryService::Asked asked() const {
    return {.method = kExploreMethod,
            .rights = rights_.get(),
            .control = &control_,
            .peer = request_.credentials.peer};
  }
  void Cancel() { control_.Cancel(); }

  // On a worker.
  absl::Status Work() {
    TACHO_ASSIGN_OR_RETURN(answer_, Answer());
    return absl::OkStatus();
  }

  void Finish(const absl::Status& status) {
    if (status.ok()) return responder_->Answer(Success(answer_));
    const bool timed_out = MonotonicNow() >= control_.deadline();
    responder_->Answer(
        Refusal(http::ErrorResponse(status, door_->queries_->NextSpread()), status, timed_out));
  }

 private:
  absl::StatusOr<ExploreAnswer> Answer() const {
    absl::string_view what = request_.path;
    what.remove_prefix(std::min(what.size(), kApi.size()));
    TACHO_ASSIGN_OR_RETURN(const ExploreRequest asked, ReadExploreRequest(request_));
    const SelectionWorld world = {*door_->queries_->options().store, *rights_, control_,
                                  std::min<uint64_t>(limits_.max_series(), kMaxReadSeries),
                                  door_->members_.membership};
    if (what == "labels") return List(world, {ListKind::kLabelNames, "", asked});
    if (what == "series") return List(world, {ListKind::kSeries, "", asked});
    if (what == "metadata") return List(world, {ListKind::kMetadata, "", asked});
    if (what == kBuildInfo) return BuildInfo(door_->version_);
    if (what == "status/tsdb") return Describe(world, asked);
    if (absl::StartsWith(what, kLabel) && absl::EndsWith(what, kValues) &&
        what.size() > kLabel.size() + kValues.size()) {
      what.remove_prefix(kLabel.size());
      what.remove_suffix(kValues.size());
      return List(world, {ListKind::kLabelValues, std::string(what), asked});
    }
    return errors::ErrorOf(errors::Failure::kNotFound,
                           "there is no such page: the values of a label are at "
                           "/api/v1/label/NAME/values");
  }

  absl::StatusOr<ExploreAnswer> Describe(const SelectionWorld& world,
                                         const ExploreRequest& asked) const {
    TACHO_ASSIGN_OR_RETURN(ExploreAnswer answer, DescribeStore(world, asked));
    std::string left_out = LeftOutByCluster(door_->members_.membership, request_);
    if (!left_out.empty()) answer.warnings.push_back(std::move(left_out));
    return answer;
  }

  // The list of all members; without a cluster, of this collector.
  absl::StatusOr<ExploreAnswer> List(const SelectionWorld& world,
                                     const ListQuestion& question) const {
    TACHO_ASSIGN_OR_RETURN(const auto answers, AskMembers(question));
    TACHO_ASSIGN_OR_RETURN(EntryList found, FindEntries(world, question));
    for (const auto& answer : answers) {
      for (v1::MemberListResponse message;; message.Clear()) {
        TACHO_ASSIGN_OR_RETURN(const bool more, answer->Next(&message));
        if (!more) break;
        for (const auto& entry : message.entries()) found.Add(entry.key(), entry.json());
        if (message.more()) found.AddMore();
        TACHO_RETURN_IF_ERROR(CheckEntries(world, question, found));
        TACHO_RETURN_IF_ERROR(control_.Check());
      }
    }
    return AnswerOf(question, found);
  }
  absl::StatusOr<MemberAnswers<v1::MemberListResponse>> AskMembers(
      const ListQuestion& question) const {
    const Members& members = door_->members_;
    if (!AsksOthers(members.membership, request_)) return MemberAnswers<v1::MemberListResponse>();
    const auto& selectors = question.request.selectors;
    const std::vector<uint32_t> shards = OtherShardsOf(
        *members.membership,
        selectors.empty() ? std::vector<ReadQuery>{question.request.everything} : selectors);
    if (shards.empty()) return MemberAnswers<v1::MemberListResponse>();
    TACHO_ASSIGN_OR_RETURN(const auto asked, ToListRequest(question));
    return members.elsewhere->List({request_.credentials, control_.deadline()}, asked, shards);
  }

  ExploreDoor* const door_;
  const config::v1::Collector::Query limits_;
  const security::RightsPtr rights_;
  const http::HttpRequest request_;
  const http::ResponderPtr responder_;
  query::QueryControl control_;
  ExploreAnswer answer_;
};

ExploreDoor::ExploreDoor(query::QueryService* queries, http::HttpGuard guard, std::string version,
                         Members members)
    : queries_(queries), guard_(guard), version_(std::move(version)), members_(members) {}

std::vector<http::Route> ExploreDoor::Routes() {
  std::vector<http::Route> routes;
  for (const absl::string_view what : {"labels", "label/", "series", "metadata", kBuildInfo,
                                       "status/tsdb", "query", "query_range", "query_exemplars"}) {
    http::Route route;
    route.path = absl::StrCat(kApi, what);
    route.prefix = what == kLabel;
    route.methods = http::Methods::kGetAndPost;
    route.max_body = kMaxFormBytes;
    route.later = [this](http::HttpRequest request, http::ResponderPtr responder) {
      Handle(std::move(request), responder);
    };
    routes.push_back(std::move(route));
  }
  return routes;
}

void ExploreDoor::Handle(http::HttpRequest request, const http::ResponderPtr& responder) {
  const auto caller = http::AdmitRequest(guard_, request, security::Role::kRead);
  if (!caller.ok()) {
    queries_->CountAnswer(kExploreMethod, caller.status());
    return responder->Answer(Refusal(http::CallerRefusal(caller.status()), caller.status()));
  }
  if (NeedsPromql(request.path)) {
    // A dashboard that asks for this asks often, so that it takes no worker.
    const absl::Status status = errors::ErrorOf(errors::Failure::kUnsupported, kNoPromql);
    queries_->CountAnswer(kExploreMethod, status);
    return responder->Answer(Refusal({}, status));
  }
  const auto call =
      std::make_shared<Call>(this, caller->rights_ptr(), std::move(request), responder);
  responder->OnGone([weak = std::weak_ptr<Call>(call)] {
    if (const auto alive = weak.lock(); alive != nullptr) alive->Cancel();
  });
  const absl::Status taken = queries_->RunOnWorker(
      call->asked(), [call](const auto&) { return call->Work(); },
      [call](const absl::Status& status) { call->Finish(status); });
  if (!taken.ok()) call->Finish(taken);
}

}  // namespace tacho::server::promread
