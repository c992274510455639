// Assets are kept packed, and unpacked for the rare client that does not take gzip.
#include "server/web/web_routes.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/base/address.h"
#include "server/http/browser_guard.h"
#include "server/http/content.h"
#include "server/http/http_message.h"
#include "server/web/file_types.h"
#include "server/web/web_assets.h"

namespace tacho::server::web {
namespace {

using http::HttpRequest;
using http::HttpResponse;

constexpr char kPrefix[] = "/ui/";
constexpr char kIndexFile[] = "index.html";
constexpr size_t kLongestFile = size_t{16} << 20;
// For files that change with the next version: a browser keeps them, and asks each time whether
// they have changed.
constexpr char kAskAgain[] = "no-cache";
constexpr char kForEver[] = "public, max-age=31536000, immutable";

HttpResponse NoFile(absl::string_view path) {
  if (WebAssets().empty()) {
    return {.status = 404,
            .body =
                "this collector was built without its page (TACHO_WEB=OFF); tachoctl shows the "
                "same in a terminal\n"};
  }
  return {.status = 404,
          .body = absl::StrCat("the page has no file '", path.substr(0, 200), "'; it begins at ",
                               kPrefix, "\n")};
}

const WebAsset* FindAsset(absl::string_view path) {
  const auto assets = WebAssets();
  const auto* const found =
      std::lower_bound(assets.begin(), assets.end(), path,
                       [](const WebAsset& asset, absl::string_view p) { return asset.path < p; });
  return found != assets.end() && found->path == path ? found : nullptr;
}

std::string Unpack(const WebAsset& asset) {
  constexpr int kGzip = 16;
  std::string bytes(asset.size, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, MAX_WBITS + kGzip) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(asset.gzip.data()));
  stream.avail_in = static_cast<uInt>(asset.gzip.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  inflate(&stream, Z_FINISH);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

// If-None-Match names the state that we have (RFC 9110, 13.1.2).
bool HasNewest(absl::string_view if_none_match, absl::string_view etag) {
  for (absl::string_view one : absl::StrSplit(if_none_match, ',')) {
    one = absl::StripAsciiWhitespace(one);
    if (one == "*" || absl::StripPrefix(one, "W/") == etag) return true;
  }
  return false;
}

HttpResponse AssetAnswer(const WebAsset& asset, const HttpRequest& request) {
  HttpResponse response;
  response.headers = {{"ETag", std::string(asset.etag)},
                      {"Cache-Control", asset.immutable ? kForEver : kAskAgain}};
  response.content_type = std::string(asset.content_type);
  if (HasNewest(request.Header("if-none-match"), asset.etag)) {
    response.status = 304;
    return response;
  }
  if (http::AcceptsGzip(request.Header("accept-encoding"))) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = std::string(asset.gzip);
  } else {
    response.body = Unpack(asset);
  }
  return response;
}

// A name in the directory itself: no path leads out of it, and nothing hidden is shown.
bool IsPlainName(absl::string_view path) {
  return !path.empty() && path.front() != '.' && !absl::StrContains(path, '/') &&
         !absl::StrContains(path, absl::string_view("\0", 1));
}

std::optional<std::string> ReadFile(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  if (const auto size = std::filesystem::file_size(file, error); error || size > kLongestFile) {
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in) return std::nullopt;
  return bytes;
}

HttpResponse FileAnswer(const WebOptions& options, absl::string_view path) {
  if (!IsPlainName(path)) return NoFile(path);
  auto bytes = ReadFile(std::filesystem::path(options.directory) / std::string(path));
  if (!bytes) return NoFile(path);
  const char* const type = FileTypeOf(std::string(path));
  return {.content_type = type == nullptr ? "text/plain; charset=utf-8" : type,
          .body = *std::move(bytes),
          .headers = {{"Cache-Control", kAskAgain}}};
}

HttpResponse Page(const WebOptions& options, const HttpRequest& request) {
  absl::string_view path = absl::StripPrefix(request.path, kPrefix);
  if (path.empty()) path = kIndexFile;
  const bool from_directory = !options.directory.empty() && !absl::StartsWith(path, "runbooks/");
  if (from_directory) return FileAnswer(options, path);
  const WebAsset* asset = FindAsset(path);
  return asset == nullptr ? NoFile(path) : AssetAnswer(*asset, request);
}

}  // namespace

bool HasPage(const WebOptions& options) {
  return !options.directory.empty() || !WebAssets().empty();
}

absl::Status CheckWebDirectory(const WebOptions& options, absl::string_view listen_http) {
  if (options.directory.empty()) return absl::OkStatus();
  if (!config::IsLoopback(config::HostOf(listen_http))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--web-directory is for the development of the page, and needs a loopback "
                     "address in listen.http, not '",
                     listen_http, "'"));
  }
  if (!ReadFile(std::filesystem::path(options.directory) / kIndexFile)) {
    return absl::InvalidArgumentError(absl::StrCat("--web-directory: there is no readable ",
                                                   kIndexFile, " in '", options.directory,
                                                   "'; client/web/build.sh makes it"));
  }
  return absl::OkStatus();
}

std::vector<http::Route> WebRoutes(const WebOptions& options) {
  http::Route files;
  files.path = kPrefix;
  files.prefix = true;
  files.audience = http::Audience::kPage;
  files.handler = [options](const HttpRequest& request) { return Page(options, request); };
  http::Route without_slash;
  without_slash.path = "/ui";
  without_slash.audience = http::Audience::kPage;
  // Relative, for a collector behind a proxy that gives it a folder.
  without_slash.handler = [options](const HttpRequest&) {
    if (!HasPage(options)) return NoFile("");
    return HttpResponse{.status = 303, .body = "see /ui/\n", .headers = {{"Location", "ui/"}}};
  };
  return {std::move(files), std::move(without_slash)};
}

}  // namespace tacho::server::web
