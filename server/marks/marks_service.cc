#include "server/marks/marks_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/errors/error_table.h"
#include "server/errors/grpc_status.h"
#include "server/marks/mark_change.h"
#include "server/security/grpc_caller.h"

namespace tacho::server::marks {
namespace {

// Changes wait for the disk and are few: people and scripts make them.
constexpr uint32_t kThreads = 4;

absl::Status RefusalOf(query::WorkerPool::Admission admission) {
  if (admission == query::WorkerPool::Admission::kClosed) return errors::Draining();
  return errors::ErrorOf(errors::Failure::kOverloaded,
                         absl::StrCat(kThreads, " changes of marks are at work: try again"));
}

bool MayReadMarks(const security::Rights& rights) { return rights.Has(security::Role::kRead); }

// The request in words, for the log.
std::string WordsOf(const v1::ChangeMarksRequest& request) {
  std::vector<std::string> words;
  for (const std::string& tag : request.add_tags()) words.push_back(absl::StrCat("+", tag));
  for (const std::string& tag : request.remove_tags()) words.push_back(absl::StrCat("-", tag));
  if (request.has_group()) words.push_back(absl::StrCat("group=", request.group()));
  if (request.has_note()) {
    words.push_back(absl::StrCat("note of ", request.note().size(), " bytes"));
  }
  return absl::StrJoin(words, " ");
}

}  // namespace

MarksService::MarksService(MarksServiceOptions options)
    : options_(std::move(options)), workers_(kThreads) {}

absl::Status MarksService::Change(const security::Rights& rights,
                                  const v1::ChangeMarksRequest& request,
                                  v1::ChangeMarksResponse* response) const {
  auto marks = marks::ChangeMarks(*options_.store, request);
  const bool hide_names = !rights.SeesEveryJob() || !MayReadMarks(rights);
  if (absl::IsNotFound(marks.status()) && hide_names) {
    return absl::NotFoundError(absl::StrCat("no job \"", request.job(), "\""));
  }
  if (!marks.ok()) return marks.status();
  if (MayReadMarks(rights)) *response->mutable_marks() = *std::move(marks);
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* MarksService::ChangeMarks(grpc::CallbackServerContext* context,
                                                    const v1::ChangeMarksRequest* request,
                                                    v1::ChangeMarksResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto caller = security::AdmitCall(options_.access, *context, security::Role::kWrite);
  absl::Status allowed = caller.status();
  if (allowed.ok() && !request->job().empty()) {
    allowed = caller->rights().CheckJob(request->job(), "job");
  }
  if (!allowed.ok()) {
    options_.log.Limited(log::Level::kWarn, "change of marks refused",
                         {{"peer", context->peer()}, {"reason", allowed.message()}});
    reactor->Finish(errors::ToGrpcStatus(allowed));
    return reactor;
  }
  const auto run = [this, reactor, request, response, rights = caller->rights_ptr(),
                    peer = context->peer()] {
    const absl::Status status = Change(*rights, *request, response);
    if (status.ok()) {
      options_.log.Info("marks changed", {{"job", request->job()},
                                          {"change", WordsOf(*request)},
                                          {"by", rights->name()},
                                          {"peer", peer},
                                          {"code", absl::StatusCodeToString(status.code())}});
    } else {
      options_.log.Limited(log::Level::kWarn, "a change of marks failed",
                           {{"job", request->job()},
                            {"by", rights->name()},
                            {"peer", peer},
                            {"code", absl::StatusCodeToString(status.code())},
                            {"reason", status.message()}});
    }
    reactor->Finish(errors::ToGrpcStatus(status));
  };
  if (const auto admission = workers_.Run(run);
      admission != query::WorkerPool::Admission::kAccepted) {
    reactor->Finish(errors::ToGrpcStatus(RefusalOf(admission)));
  }
  return reactor;
}

}  // namespace tacho::server::marks
