// An object store behind HTTP, in memory, with the rules of one service or another. It checks
// signatures as they do (SigV4, also in Google's variant), so that a client that passes here has
// signed what it sent.
//
// The rules are those that were measured at Ceph 16.2.15 and that the documentation of AWS and
// Google gives; tests/storage/bucket runs the same tests against a real Ceph.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace tacho::testing {

// Serves the bucket `kBucket` by paths, on 127.0.0.1.
class FakeObjectStore {
 public:
  static constexpr char kBucket[] = "tests";
  static constexpr char kKeyId[] = "GOOGTESTKEY";  // AWS takes any name.
  static constexpr char kSecret[] = "secret/of+tests";
  static constexpr char kBearer[] = "token-of-tests";  // Google's other way in.

  enum class Manner {
    kAws,
    kGcs,
    kCeph16,           // Tags without quotes; some losers of a race get a 500.
    kCeph16Versioned,  // Ignores "create only", refuses each replacement.
    kIgnorant,         // Knows no condition, as s3rver.
    kRacing,           // Looks first and writes later, as some young services do.
  };

  struct Request {
    std::string method;
    std::string path;                            // Without the query.
    std::string query;                           // As it came.
    std::map<std::string, std::string> headers;  // Names in lower case.
    std::string body;
  };
  enum class Fault {
    kNone,
    kDrop,         // Closes the connection; nothing has happened.
    kDropAnswer,   // Does it, and closes the connection.
    kStall,        // Does nothing, and says nothing until the client goes.
    kStallAnswer,  // Does it, and says nothing.
    kBusy,         // 503 SlowDown.
    kConflict,     // 409 ConditionalRequestConflict.
    kError,        // 500, nothing has happened.
    kErrorButDone,
    kExpired,     // 400 ExpiredToken.
    kForbidden,   // 403 AccessDenied.
    kSkewed,      // 403 RequestTimeTooSkewed.
    kElsewhere,   // 301 PermanentRedirect, with the region.
    kHalf,        // The head, and half of the body.
    kPage,        // 502 with HTML, as a proxy has it.
    kWrongRange,  // 206 of other bytes.
  };

  explicit FakeObjectStore(Manner manner);
  ~FakeObjectStore();
  FakeObjectStore(const FakeObjectStore&) = delete;
  FakeObjectStore& operator=(const FakeObjectStore&) = delete;

  std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Asked for each request; called on the thread of its connection.
  void OnRequest(std::function<Fault(const Request&)> fault) ABSL_LOCKS_EXCLUDED(mutex_);
  // Lists at most so many objects a page.
  void SetPage(size_t objects) ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts an object there that no client of ours would.
  void Plant(const std::string& key, const std::string& body) ABSL_LOCKS_EXCLUDED(mutex_);
  int requests() const { return requests_; }
  int connections() const { return connections_; }

 private:
  struct Object {
    std::string body;
    std::string etag;
    uint64_t generation = 0;
  };
  struct Answer {
    int status = 200;
    std::string headers;
    std::string body;
    Fault fault = Fault::kNone;
  };

  void Accept() ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve(int fd) ABSL_LOCKS_EXCLUDED(mutex_);
  bool ServeOne(int fd, std::string* bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  Answer Do(const Request& request) ABSL_LOCKS_EXCLUDED(mutex_);
  Answer Judge(const Request& request) const;
  Answer Put(const Request& request, const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  Answer Refusal(const Request& request, const std::string& key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Answer Get(const Request& request, const std::string& key) ABSL_LOCKS_EXCLUDED(mutex_);
  Answer List(const Request& request) ABSL_LOCKS_EXCLUDED(mutex_);
  static Answer Error(int status, const std::string& code, const std::string& more = "");
  std::string TagHeaders(const Object& object) const;

  const Manner manner_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> requests_ = 0;
  std::atomic<int> connections_ = 0;
  std::atomic<int> writing_ = 0;
  absl::Mutex mutex_;
  std::function<Fault(const Request&)> fault_ ABSL_GUARDED_BY(mutex_);
  size_t page_ ABSL_GUARDED_BY(mutex_) = 1000;
  std::map<std::string, Object> objects_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 1'700'000'000'000'000;
  int losers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<int> open_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

// Whether the Authorization header of `request` is what AWS4-HMAC-SHA256, or GOOG4-HMAC-SHA256,
// wants for this secret: "" or what is wrong. As AWS' reference gives it, "Create a signed AWS API
// request".
std::string SignatureFault(const FakeObjectStore::Request& request, absl::string_view key_id,
                           absl::string_view secret);

}  // namespace tacho::testing
