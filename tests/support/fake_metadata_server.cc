#include "tests/support/fake_metadata_server.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace tacho::testing {
namespace {

constexpr char kFlavor[] = "Metadata-Flavor: Google\r\nServer: Metadata Server for VM\r\n";

std::string Response(absl::string_view status, absl::string_view headers, absl::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\n", headers, "Content-Length: ", body.size(),
                      "\r\n\r\n", body);
}

}  // namespace

FakeMetadataServer::FakeMetadataServer() {
  server_.AnswerEach([this](const std::string& request) { return Answer(request); });
}

void FakeMetadataServer::Behave(Manner manner) {
  absl::MutexLock lock(&mutex_);
  manner_ = manner;
}

void FakeMetadataServer::Set(const std::string& path, const std::string& value) {
  absl::MutexLock lock(&mutex_);
  values_[path] = value;
}

void FakeMetadataServer::Remove(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  values_.erase(path);
}

void FakeMetadataServer::SetTpuVm() {
  Set("instance/id", "4520031799277581759");
  Set("instance/name", "t1v-n-3a2b-w-3");
  Set("instance/zone", "projects/123456/zones/europe-west4-b");
  Set("instance/machine-type", "projects/123456/machineTypes/ct4p-hightpu-4t");
  Set("project/project-id", "research");
  Set("instance/scheduling/preemptible", "TRUE");
  Set("instance/attributes/accelerator-type", "v4-256");
  Set("instance/attributes/agent-worker-number", "3");
  Set("instance/attributes/instance-id", "big-pod");
  Set("instance/attributes/tpu-env",
      "ACCELERATOR_TYPE: 'v4-256'\nTOPOLOGY: '4x4x8'\nNODE_ID: 'big-pod'\nWORKER_ID: '3'\n"
      "TPU_RUNTIME_METRICS_PORTS: '8431,8432,8433,8434'\nMEGASCALE_SLICE_ID: '1'\n");
  Set("instance/maintenance-event", "NONE");
  Set("instance/preempted", "FALSE");
  Set("instance/upcoming-maintenance?alt=json",
      "{ \"error\": \"no notifications have been received yet, try again later\" }");
}

std::vector<std::string> FakeMetadataServer::TakePaths() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(paths_, {});
}

std::string FakeMetadataServer::Answer(const std::string& request) {
  absl::string_view path = absl::string_view(request).substr(0, request.find(" HTTP/"));
  absl::ConsumePrefix(&path, "GET ");
  absl::MutexLock lock(&mutex_);
  if (!absl::ConsumePrefix(&path, "/computeMetadata/v1/")) return Response("404 Not Found", "", "");
  paths_.emplace_back(path);
  switch (manner_) {
    case Manner::kSilent:
      return "";
    case Manner::kRedirects:
      return Response("302 Found",
                      absl::StrCat(kFlavor, "Location: http://", authority(), "/", path, "\r\n"),
                      "");
    case Manner::kOverloaded:
      return Response("503 Service Unavailable", kFlavor, "");
    case Manner::kConceals:
      return Response("403 Forbidden", kFlavor, "This metadata endpoint is concealed.\n");
    case Manner::kEndless:
      return Response("200 OK", kFlavor, std::string(size_t{1} << 20, 'x'));
    default:
      break;
  }
  if (!absl::StrContains(request, "\r\nMetadata-Flavor: Google\r\n")) {
    return Response("403 Forbidden", kFlavor, "Missing Metadata-Flavor:Google header.");
  }
  const auto value = values_.find(std::string(path));
  if (value == values_.end()) {
    return Response("404 Not Found", absl::StrCat(kFlavor, "Content-Type: text/html\r\n"),
                    "<!DOCTYPE html>\n<title>Error 404 (Not Found)!!1</title>\n");
  }
  return Response("200 OK",
                  absl::StrCat(manner_ == Manner::kOther ? "" : kFlavor,
                               "ETag: 1a2b3c4d5e6f7a8b\r\n", "Content-Type: application/text\r\n"),
                  value->second);
}

}  // namespace tacho::testing
