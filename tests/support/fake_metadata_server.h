// The metadata server of Google Compute Engine, as its documentation has it on the wire.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/canned_http_server.h"

namespace tacho::testing {

class FakeMetadataServer {
 public:
  FakeMetadataServer();

  enum class Manner {
    kProper,  // 403 without the request's Metadata-Flavor, a page with 404 for what is not there.
    kSilent,  // Takes requests and says nothing.
    kOther,   // 200 with the value, and without Metadata-Flavor: some other HTTP server.
    kRedirects,   // To where the value would be.
    kOverloaded,  // 503.
    kEndless,     // A megabyte.
    kConceals,    // 403, as GKE's does for what pods must not see.
  };
  void Behave(Manner manner) ABSL_LOCKS_EXCLUDED(mutex_);

  // `path` below /computeMetadata/v1/, with its query.
  void Set(const std::string& path, const std::string& value) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // A v4-256's worker 3 in europe-west4-b.
  void SetTpuVm();

  // Returns the paths of all requests so far, or since the last call.
  std::vector<std::string> TakePaths() ABSL_LOCKS_EXCLUDED(mutex_);
  std::string last_request() { return server_.last_request(); }
  std::string authority() const { return server_.authority(); }

 private:
  std::string Answer(const std::string& request) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  Manner manner_ ABSL_GUARDED_BY(mutex_) = Manner::kProper;
  std::map<std::string, std::string> values_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> paths_ ABSL_GUARDED_BY(mutex_);
  CannedHttpServer server_;  // Last: its thread uses the others.
};

}  // namespace tacho::testing
