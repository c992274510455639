// HTTP requests over connections that stay open, by libcurl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace tacho::storage {

struct HttpCall {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};  // "Name: value".
  absl::string_view body = {};            // Sent if the method is PUT or POST.
  // How libcurl signs the request, like aws:amz:us-east-1:s3; empty: not at all. The caller adds
  // the header with the hash of the body, which this libcurl leaves out.
  std::string signing = {};
  std::string key_id = {};
  std::string secret = {};
  size_t max_answer_bytes = size_t{1} << 20;
  // Ends the request if no byte moves for this long. While bytes move, it may take as long again,
  // and a second more for each kSlowestBytes.
  absl::Duration patience = absl::Seconds(10);
  bool quick = false;   // It is small: ends after `patience`, whether bytes move or not.
  bool fresh = false;   // On a new connection, with a new look at the name.
  bool direct = false;  // By no proxy: to this machine, or to its cloud's own addresses.
};

enum class HttpFailure {
  kNone,
  kNotSent,    // There was no connection: the server knows nothing of the request.
  kUntrusted,  // The same, because of the server's certificate.
  kSlow,
  kBroken,    // The connection ended, or what came was no HTTP.
  kTooLarge,  // The answer has more than max_answer_bytes.
};

struct HttpReply {
  HttpFailure failure = HttpFailure::kNone;
  std::string error;                           // A sentence about the failure.
  int status = 0;                              // 0 if there is a failure.
  std::map<std::string, std::string> headers;  // Names in lower case; the last of equal ones.
  std::string body;

  // Empty if there is none.
  absl::string_view Header(const std::string& lower_case_name) const;
};

inline constexpr uint64_t kSlowestBytes = 256 << 10;  // A second.

// Adds a line of an answer's head to `headers`. Lines without a colon are left out, and what goes
// beyond kMaxHeaders.
inline constexpr size_t kMaxHeaders = 100;
void AddHeaderLine(absl::string_view line, std::map<std::string, std::string>* headers);

// Thread-safe. A thread that sends takes an idle connection, or opens another.
class HttpPool {
 public:
  static constexpr size_t kMaxIdle = 16;  // More connections than that are closed after their use.

  // `ca_file` as in BucketOptions. The first request of all sets up libcurl, for good.
  explicit HttpPool(std::string ca_file);
  ~HttpPool();
  HttpPool(const HttpPool&) = delete;
  HttpPool& operator=(const HttpPool&) = delete;

  // Redirects are not followed. Blocks.
  HttpReply Send(const HttpCall& call) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void* Take() ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(void* handle) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string ca_file_;
  absl::Mutex mutex_;
  std::vector<void*> idle_ ABSL_GUARDED_BY(mutex_);  // CURL*: no header of libcurl reaches users.
};

}  // namespace tacho::storage
