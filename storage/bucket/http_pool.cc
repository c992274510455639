// A pool of libcurl's easy handles. A handle keeps its connections, so taking the one that was used
// last mostly means an open connection. The multi interface would want a thread of its own; callers
// block anyway.
#include "storage/bucket/http_pool.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"

namespace tacho::storage {
namespace {

constexpr size_t kMaxHeadBytes = size_t{64} << 10;

struct Transfer {
  const HttpCall& call;
  HttpReply reply;
  size_t head_bytes = 0;
  curl_off_t moved = 0;  // Both ways.
  absl::Time began = MonotonicNow();
  absl::Time moved_at = began;
  bool slow = false;
  bool too_large = false;
};

size_t TakeHeader(char* data, size_t size, size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const absl::string_view line(data, size * count);
  transfer.head_bytes += line.size();
  if (transfer.head_bytes > kMaxHeadBytes) {
    transfer.too_large = true;
    return 0;
  }
  // A 100 comes before the answer, with a head of its own.
  if (absl::StartsWith(line, "HTTP/")) {
    transfer.reply.headers.clear();
    return size * count;
  }
  AddHeaderLine(line, &transfer.reply.headers);
  return size * count;
}

size_t TakeBody(char* data, size_t size, size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  if (bytes > transfer.call.max_answer_bytes - transfer.reply.body.size()) {
    transfer.too_large = true;
    return 0;
  }
  transfer.reply.body.append(data, bytes);
  return bytes;
}

// libcurl calls this at least once a second. 1 ends the transfer.
int Watch(void* user, curl_off_t to_receive, curl_off_t received, curl_off_t to_send,
          curl_off_t sent) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const absl::Time now = MonotonicNow();
  if (received + sent != transfer.moved) {
    transfer.moved = received + sent;
    transfer.moved_at = now;
  }
  const double seconds = static_cast<double>(std::max(to_receive, to_send)) / kSlowestBytes;
  transfer.slow = now - transfer.moved_at > transfer.call.patience ||
                  now - transfer.began > 2 * transfer.call.patience + absl::Seconds(seconds);
  return transfer.slow ? 1 : 0;
}

template <typename Value>
void Set(CURL* curl, CURLoption option, Value value) {
  TACHO_CHECK(curl_easy_setopt(curl, option, value) == CURLE_OK);
}

using HeaderList = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

HeaderList HeadersOf(const HttpCall& call) {
  HeaderList list(nullptr, curl_slist_free_all);
  for (const std::string& header : call.headers) {
    curl_slist* longer = curl_slist_append(list.get(), header.c_str());
    TACHO_CHECK(longer != nullptr);
    list.release();  // NOLINT(bugprone-unused-return-value): `longer` begins with it.
    list.reset(longer);
  }
  return list;
}

void SetConnection(CURL* curl, const HttpCall& call, const std::string& ca_file) {
  Set(curl, CURLOPT_NOSIGNAL, 1L);
  Set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  // One request a connection at a time: HTTP/2 would gain nothing.
  Set(curl, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  Set(curl, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
  Set(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  Set(curl, CURLOPT_BUFFERSIZE, 256L << 10);
  Set(curl, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  if (!ca_file.empty()) Set(curl, CURLOPT_CAINFO, ca_file.c_str());
  if (call.direct) Set(curl, CURLOPT_NOPROXY, "*");
  Set(curl, CURLOPT_FRESH_CONNECT, long{call.fresh});
  Set(curl, CURLOPT_DNS_CACHE_TIMEOUT, call.fresh ? 0L : 60L);
  const long patience_ms = std::max<long>(1, absl::ToInt64Milliseconds(call.patience));
  Set(curl, CURLOPT_CONNECTTIMEOUT_MS, patience_ms);
  Set(curl, CURLOPT_TIMEOUT_MS, call.quick ? patience_ms : 0L);
}

void SetRequest(CURL* curl, const HttpCall& call) {
  Set(curl, CURLOPT_URL, call.url.c_str());
  Set(curl, CURLOPT_PATH_AS_IS, 1L);
  if (call.method == "PUT" || call.method == "POST") {
    // libcurl asks before it sends more than a megabyte (Expect: 100-continue).
    Set(curl, CURLOPT_POST, 1L);
    Set(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    Set(curl, CURLOPT_POSTFIELDS, call.body.empty() ? "" : call.body.data());
  }
  Set(curl, CURLOPT_CUSTOMREQUEST, call.method.c_str());
  if (!call.signing.empty()) {
    Set(curl, CURLOPT_AWS_SIGV4, call.signing.c_str());
    Set(curl, CURLOPT_USERNAME, call.key_id.c_str());
    Set(curl, CURLOPT_PASSWORD, call.secret.c_str());
  }
}

HttpFailure FailureOf(CURLcode code, const Transfer& transfer) {
  if (transfer.too_large) return HttpFailure::kTooLarge;
  if (transfer.slow) return HttpFailure::kSlow;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::kNotSent;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CONNECT_ERROR:
      return HttpFailure::kUntrusted;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::kSlow;
    default:
      return HttpFailure::kBroken;
  }
}

std::string Sentence(HttpFailure failure, CURLcode code, const char* detail, const HttpCall& call) {
  switch (failure) {
    case HttpFailure::kTooLarge:
      return absl::StrCat("the answer has more than ", call.max_answer_bytes, " bytes");
    case HttpFailure::kSlow:
      return absl::StrCat("no answer within ", absl::FormatDuration(call.patience));
    default:
      return *detail != '\0' ? detail : curl_easy_strerror(code);
  }
}

}  // namespace

absl::string_view HttpReply::Header(const std::string& lower_case_name) const {
  const auto found = headers.find(lower_case_name);
  return found == headers.end() ? absl::string_view() : found->second;
}

void AddHeaderLine(absl::string_view line, std::map<std::string, std::string>* headers) {
  const size_t colon = line.find(':');
  if (colon == absl::string_view::npos || colon == 0) return;
  std::string name = absl::AsciiStrToLower(line.substr(0, colon));
  if (headers->size() >= kMaxHeaders && headers->count(name) == 0) return;
  (*headers)[std::move(name)] = std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
}

HttpPool::HttpPool(std::string ca_file) : ca_file_(std::move(ca_file)) {}

HttpPool::~HttpPool() {
  absl::MutexLock lock(&mutex_);
  for (void* handle : idle_) curl_easy_cleanup(handle);
}

void* HttpPool::Take() {
  {
    absl::MutexLock lock(&mutex_);
    if (!idle_.empty()) {
      void* handle = idle_.back();
      idle_.pop_back();
      return handle;
    }
  }
  static absl::once_flag once;
  absl::call_once(once, [] { TACHO_CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); });
  void* handle = curl_easy_init();
  TACHO_CHECK(handle != nullptr);
  return handle;
}

void HttpPool::Return(void* handle) {
  curl_easy_reset(handle);  // Forgets the options, keeps the connections.
  {
    absl::MutexLock lock(&mutex_);
    if (idle_.size() < kMaxIdle) {
      idle_.push_back(handle);
      return;
    }
  }
  curl_easy_cleanup(handle);
}

HttpReply HttpPool::Send(const HttpCall& call) {
  CURL* const curl = Take();
  Transfer transfer{.call = call};
  char detail[CURL_ERROR_SIZE] = "";
  const HeaderList headers = HeadersOf(call);
  SetConnection(curl, call, ca_file_);
  SetRequest(curl, call);
  Set(curl, CURLOPT_HTTPHEADER, headers.get());
  Set(curl, CURLOPT_ERRORBUFFER, &detail[0]);
  Set(curl, CURLOPT_HEADERFUNCTION, &TakeHeader);
  Set(curl, CURLOPT_HEADERDATA, &transfer);
  Set(curl, CURLOPT_WRITEFUNCTION, &TakeBody);
  Set(curl, CURLOPT_WRITEDATA, &transfer);
  Set(curl, CURLOPT_NOPROGRESS, 0L);
  Set(curl, CURLOPT_XFERINFOFUNCTION, &Watch);
  Set(curl, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  if (code == CURLE_OK) {
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    transfer.reply.status = static_cast<int>(status);
  } else {
    transfer.reply.failure = FailureOf(code, transfer);
    transfer.reply.error = Sentence(transfer.reply.failure, code, detail, call);
  }
  Return(curl);
  return std::move(transfer.reply);
}

}  // namespace tacho::storage
