// Reads heads of requests and writes answers. A request comes whole, from anybody who reaches the
// port, so that the parser is one pass over memory and refuses whatever two readers could read in
// different ways: it never repairs.
#include "server/http/http_message.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/base/check.h"
#include "proto/base/status_macros.h"
#include "server/errors/error_table.h"

namespace tacho::server::http {
namespace {

constexpr absl::string_view kLineEnd = "\r\n";
constexpr absl::string_view kEmptyLine = "\r\n\r\n";
constexpr char kDateFormat[] = "%a, %d %b %Y %H:%M:%S GMT";  // RFC 9110, 5.6.7.

absl::Status Malformed(absl::string_view text) {
  return errors::ErrorOf(errors::Failure::kMalformed, text);
}

// RFC 9110, 5.6.2: methods and names of headers.
bool IsToken(absl::string_view text) {
  const auto fits = [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("!#$%&'*+-.^_`|~", static_cast<char>(c));
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

bool IsDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

// A value must have none: a lone CR or LF in it would be the end of a line to other readers.
bool HasControlCharacters(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; });
}

absl::string_view WithoutBlanks(absl::string_view text) {
  constexpr char kBlanks[] = " \t";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// RFC 3986, 3.2, without a user before the host: "h:7412", "[::1]". No comma, which would let two
// hosts look like one.
bool IsHost(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("-._~%!$&'()*+;=:[]", static_cast<char>(c));
  });
}

// The path and the query of a target. That of a URL may be empty, which means "/". nullopt if it is
// neither a path nor a URL of this port.
std::optional<absl::string_view> PathAndQueryOf(absl::string_view target) {
  const bool is_url = absl::StartsWithIgnoreCase(target, "http://") ||
                      absl::StartsWithIgnoreCase(target, "https://");
  if (is_url) {
    target.remove_prefix(target.find("//") + 2);
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    if (end == 0 || !IsHost(target.substr(0, end))) return std::nullopt;
    target.remove_prefix(end);
  }
  const bool has_path = !target.empty() && target.front() == '/';
  if (!has_path && !is_url) return std::nullopt;
  const auto is_visible = [](unsigned char c) { return absl::ascii_isgraph(c); };
  if (!std::all_of(target.begin(), target.end(), is_visible)) return std::nullopt;
  return target;
}

absl::Status ReadTarget(absl::string_view sent, HttpRequest* request) {
  const auto found = PathAndQueryOf(sent);
  if (!found.has_value()) return Malformed("the request's target is neither a path nor a URL");
  const absl::string_view target = *found;
  request->target_bytes = sent.size();
  const size_t mark = std::min(target.find('?'), target.size());
  auto path = PercentDecode(target.substr(0, mark), /*in_query=*/false);
  if (!path.has_value()) return Malformed("a '%' in the path without two hexadecimal digits");
  request->path = path->empty() ? "/" : *std::move(path);
  if (mark == target.size()) return absl::OkStatus();
  for (const absl::string_view pair :
       absl::StrSplit(target.substr(mark + 1), '&', absl::SkipEmpty())) {
    const size_t equals = std::min(pair.find('='), pair.size());
    auto name = PercentDecode(pair.substr(0, equals), /*in_query=*/true);
    auto value = PercentDecode(pair.substr(std::min(equals + 1, pair.size())), /*in_query=*/true);
    if (!name.has_value() || !value.has_value()) {
      return Malformed("a '%' in the query without two hexadecimal digits");
    }
    request->query.emplace_back(*std::move(name), *std::move(value));
  }
  return absl::OkStatus();
}

// "GET /metrics?a=b HTTP/1.1"
absl::Status ReadRequestLine(absl::string_view line, HttpRequest* request) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, ' ');
  if (parts.size() != 3 || !IsToken(parts[0])) {
    return Malformed("the first line is not METHOD TARGET HTTP/1.1");
  }
  if (parts[2] != "HTTP/1.1" && parts[2] != "HTTP/1.0") {
    return Malformed("the version is neither HTTP/1.1 nor HTTP/1.0");
  }
  request->method = std::string(parts[0]);
  request->minor_version = parts[2] == "HTTP/1.0" ? 0 : 1;
  return ReadTarget(parts[1], request);
}

// "Accept: text/plain"
absl::Status ReadHeader(absl::string_view line, HttpRequest* request) {
  const size_t colon = std::min(line.find(':'), line.size());
  if (colon == line.size() || !IsToken(line.substr(0, colon))) {
    return Malformed("a header is not NAME: VALUE");
  }
  const absl::string_view value = WithoutBlanks(line.substr(colon + 1));
  if (HasControlCharacters(value)) return Malformed("a header has a control character");
  request->headers.emplace_back(absl::AsciiStrToLower(line.substr(0, colon)), std::string(value));
  return absl::OkStatus();
}

// Two hosts are how a request passes a proxy as one for another server.
absl::Status CheckHost(const HttpRequest& request) {
  if (request.CountOf("host") > 1) return Malformed("there is more than one Host");
  if (!IsHost(request.Header("host"))) return Malformed("Host is not HOST or HOST:PORT");
  return absl::OkStatus();
}

// Two lengths, or a length beside an encoding, are how one request hides in another.
absl::Status ReadBodyLength(HttpRequest* request) {
  const size_t lengths = request->CountOf("content-length");
  const bool encoded = request->CountOf("transfer-encoding") > 0;
  if (lengths > 1 || (lengths == 1 && encoded)) {
    return Malformed("the body has more than one length");
  }
  if (lengths == 1) {
    const absl::string_view length = request->Header("content-length");
    if (!IsDigits(length) || !absl::SimpleAtoi(length, &request->content_length)) {
      return Malformed("Content-Length is no number");
    }
  }
  request->has_body = encoded || request->content_length > 0;
  return absl::OkStatus();
}

absl::string_view PhraseOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 303:
      return "See Other";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 414:
      return "URI Too Long";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "";  // RFC 9112 allows an empty phrase.
  }
}

// The answer's first lines. `framing` are the lines that say where its body ends.
std::string WriteHead(const HttpResponse& response, absl::Time now, bool keep_open,
                      absl::string_view framing) {
  TACHO_CHECK(response.status >= 200 && response.status <= 999);
  std::string text =
      absl::StrCat("HTTP/1.1 ", response.status, " ", PhraseOf(response.status),
                   "\r\nDate: ", absl::FormatTime(kDateFormat, now, absl::UTCTimeZone()),
                   "\r\nConnection: ", keep_open ? "keep-alive" : "close", "\r\n", framing);
  for (const auto& [name, value] : response.headers) {
    absl::StrAppend(&text, name, ": ", value, "\r\n");
  }
  absl::StrAppend(&text, "\r\n");
  return text;
}

std::string TypeLine(const HttpResponse& response) {
  return absl::StrCat("Content-Type: ", response.content_type, "\r\n");
}

// These have no body, and a length would be that of another answer (RFC 9110, 8.6).
bool HasNoBody(int status) { return status == 204 || status == 304; }

}  // namespace

absl::string_view HttpRequest::Header(absl::string_view name) const {
  for (const auto& [known, value] : headers) {
    if (known == name) return value;
  }
  return "";
}

size_t HttpRequest::CountOf(absl::string_view name) const {
  return static_cast<size_t>(std::count_if(
      headers.begin(), headers.end(), [name](const auto& header) { return header.first == name; }));
}

bool HttpRequest::KeepsOpen() const {
  if (minor_version == 0) return false;
  for (const auto& [name, value] : headers) {
    if (name != "connection") continue;
    for (const absl::string_view word : absl::StrSplit(value, ',')) {
      if (absl::EqualsIgnoreCase(WithoutBlanks(word), "close")) return false;
    }
  }
  return true;
}

std::optional<std::string> PercentDecode(absl::string_view text, bool in_query) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(in_query && text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    const absl::string_view digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit)) {
      return std::nullopt;
    }
    decoded += absl::HexStringToBytes(digits);
    i += digits.size();
  }
  return decoded;
}

absl::StatusOr<HttpRequest> ParseRequest(absl::string_view bytes) {
  const size_t end = bytes.find(kEmptyLine);
  if (end == absl::string_view::npos) return Malformed("the head of the request does not end");
  HttpRequest request;
  const std::vector<absl::string_view> lines = absl::StrSplit(bytes.substr(0, end), kLineEnd);
  TACHO_RETURN_IF_ERROR(ReadRequestLine(lines.front(), &request));
  for (size_t i = 1; i < lines.size(); ++i) TACHO_RETURN_IF_ERROR(ReadHeader(lines[i], &request));
  TACHO_RETURN_IF_ERROR(CheckHost(request));
  TACHO_RETURN_IF_ERROR(ReadBodyLength(&request));
  return request;
}

bool HttpResponse::HasHeader(absl::string_view name) const {
  return std::any_of(headers.begin(), headers.end(), [name](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, name);
  });
}

HttpResponse ErrorResponse(const absl::Status& status, uint64_t spread) {
  HttpResponse response;
  response.status = errors::RowOf(status).http_status;
  response.body = absl::StrCat(status.message(), "\n");
  if (const auto delay = errors::RetryAfter(status, spread); delay.has_value()) {
    const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(*delay, absl::Seconds(1)));
    response.headers.emplace_back("Retry-After", absl::StrCat(seconds));
  }
  return response;
}

std::string WriteResponse(const HttpResponse& response, absl::Time now, bool with_body,
                          bool keep_open) {
  if (HasNoBody(response.status)) return WriteHead(response, now, keep_open, "");
  const std::string length = absl::StrCat("Content-Length: ", response.body.size(), "\r\n");
  std::string text =
      WriteHead(response, now, keep_open,
                response.body.empty() ? length : absl::StrCat(length, TypeLine(response)));
  if (with_body) text += response.body;
  return text;
}

std::string WriteStreamHead(const HttpResponse& head, absl::Time now, bool chunked,
                            bool keep_open) {
  return WriteHead(head, now, keep_open,
                   absl::StrCat(TypeLine(head), chunked ? "Transfer-Encoding: chunked\r\n" : ""));
}

std::string WriteChunk(absl::string_view bytes) {
  if (bytes.empty()) return "";
  return absl::StrCat(absl::Hex(bytes.size()), "\r\n", bytes, "\r\n");
}

}  // namespace tacho::server::http
