// A thread a connection: clients of tests are few, and a stalled one must not hold up the others.
#include "tests/support/fake_object_store.h"

#include <netinet/in.h>
#include <openssl/evp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

namespace tacho::testing {
namespace {

std::string Digest(absl::string_view text, const EVP_MD* kind) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), hash, &size, kind, nullptr);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(hash), size));
}

std::string Unescape(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += absl::HexStringToBytes(text.substr(i + 1, 2));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::string Header(const FakeObjectStore::Request& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

std::string Bare(absl::string_view tag) {
  absl::ConsumePrefix(&tag, "\"");
  absl::ConsumeSuffix(&tag, "\"");
  return std::string(tag);
}

bool SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

// Appends what comes; false at the end.
bool Receive(int fd, std::string* bytes) {
  char buffer[64 << 10];
  const ssize_t got = ::recv(fd, buffer, sizeof(buffer), 0);
  if (got <= 0) return false;
  bytes->append(buffer, static_cast<size_t>(got));
  return true;
}

void AwaitEnd(int fd) {
  std::string ignored;
  while (Receive(fd, &ignored)) ignored.clear();
}

FakeObjectStore::Request ParseHead(absl::string_view head) {
  FakeObjectStore::Request request;
  std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
  request.method = words[0];
  const std::vector<std::string> target = absl::StrSplit(words[1], absl::MaxSplits('?', 1));
  request.path = target[0];
  if (target.size() > 1) request.query = target[1];
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    request.headers[absl::AsciiStrToLower(lines[i].substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(lines[i].substr(colon + 1)));
  }
  return request;
}

}  // namespace

FakeObjectStore::FakeObjectStore(Manner manner) : manner_(manner) {
  listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

FakeObjectStore::~FakeObjectStore() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  ::close(listener_);
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void FakeObjectStore::OnRequest(std::function<Fault(const Request&)> fault) {
  absl::MutexLock lock(&mutex_);
  fault_ = std::move(fault);
}

void FakeObjectStore::SetPage(size_t objects) {
  absl::MutexLock lock(&mutex_);
  page_ = objects;
}

void FakeObjectStore::Plant(const std::string& key, const std::string& body) {
  absl::MutexLock lock(&mutex_);
  objects_[key] = {body, Digest(body, EVP_md5()), ++generation_};
}

void FakeObjectStore::Accept() {
  for (;;) {
    const int fd = ::accept(listener_, nullptr, nullptr);
    if (fd < 0) return;
    ++connections_;
    absl::MutexLock lock(&mutex_);
    open_.insert(fd);
    threads_.emplace_back([this, fd] { Serve(fd); });
  }
}

void FakeObjectStore::Serve(int fd) {
  std::string bytes;
  while (ServeOne(fd, &bytes)) {
  }
  absl::MutexLock lock(&mutex_);
  open_.erase(fd);
  ::close(fd);
}

bool FakeObjectStore::ServeOne(int fd, std::string* bytes) {
  while (!absl::StrContains(*bytes, "\r\n\r\n")) {
    if (!Receive(fd, bytes)) return false;
  }
  const size_t head = bytes->find("\r\n\r\n");
  Request request = ParseHead(absl::string_view(*bytes).substr(0, head));
  bytes->erase(0, head + 4);
  if (Header(request, "expect") == "100-continue") SendAll(fd, "HTTP/1.1 100 Continue\r\n\r\n");
  size_t length = 0;
  (void)absl::SimpleAtoi(Header(request, "content-length"), &length);
  while (bytes->size() < length) {
    if (!Receive(fd, bytes)) return false;
  }
  request.body = bytes->substr(0, length);
  bytes->erase(0, length);
  ++requests_;
  const Answer answer = Do(request);
  switch (answer.fault) {
    case Fault::kDrop:
    case Fault::kDropAnswer:
      return false;
    case Fault::kStall:
    case Fault::kStallAnswer:
      AwaitEnd(fd);
      return false;
    default:
      break;
  }
  const bool has_body = answer.status != 304 && answer.status != 204;
  const std::string text =
      absl::StrCat("HTTP/1.1 ", answer.status, " Status\r\n", answer.headers,
                   has_body ? absl::StrCat("Content-Length: ", answer.body.size(), "\r\n") : "",
                   "\r\n", has_body ? answer.body : "");
  if (answer.fault == Fault::kHalf) {
    SendAll(fd, absl::string_view(text).substr(0, text.size() - answer.body.size() / 2 - 1));
    return false;
  }
  return SendAll(fd, text);
}

FakeObjectStore::Answer FakeObjectStore::Error(int status, const std::string& code,
                                               const std::string& more) {
  return {.status = status,
          .headers = "Content-Type: application/xml\r\n",
          .body = absl::StrCat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>", code,
                               "</Code><Message>as the test wants</Message>", more,
                               "<RequestId>1</RequestId></Error>")};
}

std::string FakeObjectStore::TagHeaders(const Object& object) const {
  std::string headers = absl::StrCat("ETag: \"", object.etag, "\"\r\n");
  if (manner_ == Manner::kGcs) {
    absl::StrAppend(&headers, "x-goog-generation: ", object.generation, "\r\n");
  }
  return headers;
}

// Whether the request may be served at all: 200, or the refusal.
FakeObjectStore::Answer FakeObjectStore::Judge(const Request& request) const {
  const std::string authorization = Header(request, "authorization");
  const std::string vendor = manner_ == Manner::kGcs ? "goog" : "amz";
  if (manner_ == Manner::kGcs) {
    for (const auto& [name, value] : request.headers) {
      if (absl::StartsWith(name, "x-amz-")) return Error(400, "ExcessHeaderValues");
    }
    if (authorization == absl::StrCat("Bearer ", kBearer)) return {};
  }
  const std::string fault = SignatureFault(request, kKeyId, kSecret);
  if (!fault.empty()) {
    return Error(403, "SignatureDoesNotMatch", absl::StrCat("<Fault>", fault, "</Fault>"));
  }
  const std::string hash = Header(request, absl::StrCat("x-", vendor, "-content-sha256"));
  if (hash != Digest(request.body, EVP_sha256())) return Error(400, "XAmzContentSHA256Mismatch");
  return {};
}

FakeObjectStore::Answer FakeObjectStore::Do(const Request& request) {
  std::function<Fault(const Request&)> ask;
  {
    absl::MutexLock lock(&mutex_);
    ask = fault_;
  }
  const Fault fault = ask ? ask(request) : Fault::kNone;
  switch (fault) {
    case Fault::kDrop:
    case Fault::kStall:
      return {.fault = fault};
    case Fault::kBusy:
      return Error(503, "SlowDown");
    case Fault::kConflict:
      return Error(409, "ConditionalRequestConflict");
    case Fault::kError:
      return Error(500, "InternalError");
    case Fault::kExpired:
      return Error(400, "ExpiredToken");
    case Fault::kForbidden:
      return Error(403, "AccessDenied");
    case Fault::kSkewed:
      return Error(403, "RequestTimeTooSkewed");
    case Fault::kElsewhere:
      return Error(301, "PermanentRedirect", "<Region>eu-west-1</Region>");
    case Fault::kPage:
      return {.status = 502, .body = "<html><body>Bad gateway</body>"};
    default:
      break;
  }
  if (Answer refusal = Judge(request); refusal.status != 200) return refusal;
  absl::string_view path = request.path;
  absl::ConsumePrefix(&path, "/");
  if (!absl::ConsumePrefix(&path, absl::StrCat(kBucket, "/"))) return Error(404, "NoSuchBucket");
  const std::string key = Unescape(path);
  Answer answer;
  if (request.method == "PUT") {
    answer = Put(request, key);
  } else if (request.method == "DELETE") {
    absl::MutexLock lock(&mutex_);
    objects_.erase(key);
    answer.status = 204;
  } else {
    answer = key.empty() ? List(request) : Get(request, key);
  }
  if (fault == Fault::kErrorButDone) return Error(500, "InternalError");
  if (fault == Fault::kWrongRange) answer.headers = "Content-Range: bytes 0-0/1\r\n";
  answer.fault = fault;
  return answer;
}

// The conditions of a PUT: 200 if they hold.
FakeObjectStore::Answer FakeObjectStore::Refusal(const Request& request, const std::string& key) {
  const auto found = objects_.find(key);
  const bool exists = found != objects_.end();
  if (manner_ == Manner::kIgnorant) return {};
  if (manner_ == Manner::kGcs) {
    const std::string wanted = Header(request, "x-goog-if-generation-match");
    if (wanted.empty()) return {};
    uint64_t number = 0;
    if (!absl::SimpleAtoi(wanted, &number)) return Error(400, "InvalidArgument");
    return (exists ? found->second.generation : 0) == number ? Answer{}
                                                             : Error(412, "PreconditionFailed");
  }
  const bool ceph = manner_ == Manner::kCeph16 || manner_ == Manner::kCeph16Versioned;
  if (Header(request, "if-none-match") == "*" && exists && manner_ != Manner::kCeph16Versioned) {
    // Who loses while others write is told something else now and then.
    const bool odd = manner_ == Manner::kCeph16 && writing_ > 1 && ++losers_ % 4 == 0;
    return odd ? Error(500, "InternalError") : Error(412, "PreconditionFailed");
  }
  const std::string tag = Header(request, "if-match");
  if (tag.empty()) return {};
  if (manner_ == Manner::kCeph16Versioned) return Error(412, "PreconditionFailed");
  if (!exists) return ceph ? Error(412, "PreconditionFailed") : Error(404, "NoSuchKey");
  const bool same = (ceph ? tag : Bare(tag)) == found->second.etag;
  return same ? Answer{} : Error(412, "PreconditionFailed");
}

FakeObjectStore::Answer FakeObjectStore::Put(const Request& request, const std::string& key) {
  ++writing_;
  // Others come in between, so that races are races.
  absl::SleepFor(absl::Microseconds(200));
  Answer answer;
  if (manner_ == Manner::kRacing) {
    {
      absl::MutexLock lock(&mutex_);
      answer = Refusal(request, key);
    }
    absl::SleepFor(absl::Milliseconds(5));
    absl::MutexLock lock(&mutex_);
    if (answer.status == 200) objects_[key] = {request.body, Digest(request.body, EVP_md5()), 0};
  } else {
    absl::MutexLock lock(&mutex_);
    answer = Refusal(request, key);
    if (answer.status == 200) {
      objects_[key] = {request.body, Digest(request.body, EVP_md5()), ++generation_};
    }
  }
  --writing_;
  if (answer.status == 200) {
    absl::MutexLock lock(&mutex_);
    answer.headers = TagHeaders(objects_[key]);
  }
  return answer;
}

FakeObjectStore::Answer FakeObjectStore::Get(const Request& request, const std::string& key) {
  absl::MutexLock lock(&mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) return Error(404, "NoSuchKey");
  const Object& object = found->second;
  Answer answer{.headers = TagHeaders(object), .body = object.body};
  if (Bare(Header(request, "if-none-match")) == object.etag) {
    answer.status = 304;
    return answer;
  }
  std::string range = Header(request, "range");
  if (range.empty()) return answer;
  const std::vector<std::string> ends = absl::StrSplit(range.substr(range.find('=') + 1), '-');
  uint64_t first = 0;
  uint64_t last = 0;
  if (!absl::SimpleAtoi(ends[0], &first) || !absl::SimpleAtoi(ends[1], &last)) return answer;
  if (first >= object.body.size()) return Error(416, "InvalidRange");
  last = std::min<uint64_t>(last, object.body.size() - 1);
  answer.status = 206;
  answer.body = object.body.substr(first, last - first + 1);
  absl::StrAppend(&answer.headers, "Content-Range: bytes ", first, "-", last, "/",
                  object.body.size(), "\r\n");
  return answer;
}

FakeObjectStore::Answer FakeObjectStore::List(const Request& request) {
  std::map<std::string, std::string> asked;
  for (const absl::string_view part : absl::StrSplit(request.query, '&')) {
    const std::vector<std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    asked[pair[0]] = Unescape(pair[1]);
  }
  absl::MutexLock lock(&mutex_);
  std::string items;
  std::string last;
  size_t listed = 0;
  bool more = false;
  // Real tokens have characters of base64.
  const std::string from = Bare(absl::StripPrefix(asked["continuation-token"], "+/="));
  for (auto at = objects_.upper_bound(from); at != objects_.end(); ++at) {
    if (!absl::StartsWith(at->first, asked["prefix"])) continue;
    if (listed == page_) {
      more = true;
      break;
    }
    ++listed;
    last = at->first;
    absl::StrAppend(&items, "<Contents><Key>",
                    absl::StrReplaceAll(last, {{"&", "&amp;"}, {"<", "&lt;"}}), "</Key><Size>",
                    at->second.body.size(), "</Size></Contents>");
  }
  return {
      .headers = "Content-Type: application/xml\r\n",
      .body = absl::StrCat(
          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult "
          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>tests</Name><IsTruncated>",
          more ? "true" : "false", "</IsTruncated>",
          more ? absl::StrCat("<NextContinuationToken>+/=", last, "</NextContinuationToken>") : "",
          items, "</ListBucketResult>")};
}

}  // namespace tacho::testing
