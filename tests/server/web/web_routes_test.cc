#include "server/web/web_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "server/web/web_assets.h"
#include "tests/server/web/ask_route.h"

namespace tacho::server::web {
namespace {

using ::testing::HasSubstr;

using http::HttpResponse;

std::string HeaderOf(const HttpResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

std::string Inflated(const std::string& packed, size_t size) {
  std::string bytes(size + 1, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

class WebDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(::testing::TempDir()) /
                 ("tacho_web_directory_" + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_ / "below");
    Write("secret.txt", "outside");
    std::filesystem::rename(directory_ / "secret.txt", directory_ / "below" / "secret.txt");
    Write("index.html", "<p>mine");
    Write(".hidden", "hidden");
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
  }
  WebOptions options() const { return {.directory = directory_.string()}; }

  std::filesystem::path directory_;
};

TEST(WebRoutesTest, EveryAssetComesPackedAndPlainWithTheSameBytes) {
  ASSERT_FALSE(WebAssets().empty());
  for (const WebAsset& asset : WebAssets()) {
    const std::string path = "/ui/" + std::string(asset.path);
    const HttpResponse packed = Ask(path, {{"accept-encoding", "gzip, br"}});
    const HttpResponse plain = Ask(path);
    EXPECT_EQ(packed.status, 200) << path;
    EXPECT_EQ(HeaderOf(packed, "Content-Encoding"), "gzip") << path;
    EXPECT_EQ(HeaderOf(plain, "Content-Encoding"), "") << path;
    EXPECT_EQ(plain.body.size(), asset.size) << path;
    EXPECT_EQ(Inflated(packed.body, asset.size), plain.body) << path;
  }
}

TEST(WebRoutesTest, TheStateThatABrowserHasIsNotSentAgain) {
  const HttpResponse first = Ask("/ui/");
  const std::string etag = HeaderOf(first, "ETag");
  ASSERT_EQ(first.status, 200);
  ASSERT_NE(etag, "");
  for (const std::string& asked : {etag, "W/" + etag, "\"other\", " + etag, std::string("*")}) {
    const HttpResponse again = Ask("/ui/", {{"if-none-match", asked}});
    EXPECT_EQ(again.status, 304) << asked;
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(HeaderOf(again, "ETag"), etag);
  }
  EXPECT_EQ(Ask("/ui/", {{"if-none-match", "\"other\""}}).status, 200);
}

TEST(WebRoutesTest, OnlyNamesWithAHashAreKeptForEver) {
  EXPECT_EQ(HeaderOf(Ask("/ui/"), "Cache-Control"), "no-cache");
  EXPECT_EQ(HeaderOf(Ask("/ui/runbooks/TachoJobStraggling.md"), "Cache-Control"), "no-cache");
  const std::string page = Ask("/ui/index.html").body;
  int named = 0;
  for (const WebAsset& asset : WebAssets()) {
    if (!absl::EndsWith(asset.path, ".js")) continue;
    EXPECT_THAT(HeaderOf(Ask("/ui/" + std::string(asset.path)), "Cache-Control"),
                HasSubstr("immutable"));
    if (absl::StrContains(page, asset.path)) ++named;
  }
  // The page names a script that is there; else a browser would show nothing.
  EXPECT_GE(named, 1);
}

TEST(WebRoutesTest, WhatIsNotThereIs404AndNamesTheBeginning) {
  for (const char* path :
       {"/ui/nothing.js", "/ui/../etc/passwd", "/ui/runbooks/", "/ui/runbooks"}) {
    const HttpResponse response = Ask(path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_THAT(response.body, HasSubstr("/ui/"));
  }
}

TEST(WebRoutesTest, TheAddressWithoutItsSlashLeadsToThePage) {
  const HttpResponse response = Ask("/ui");
  EXPECT_EQ(response.status, 303);
  EXPECT_EQ(HeaderOf(response, "Location"), "ui/");
}

TEST_F(WebDirectoryTest, FilesComeFromTheDirectoryAndRunbooksFromTheProgram) {
  EXPECT_EQ(Ask("/ui/", {}, options()).body, "<p>mine");
  Write("index.html", "<p>changed");
  EXPECT_EQ(Ask("/ui/", {}, options()).body, "<p>changed");
  EXPECT_EQ(Ask("/ui/runbooks/TachoJobStraggling.md", {}, options()).status, 200);
}

TEST_F(WebDirectoryTest, NothingOutsideAndNothingHiddenIsServed) {
  for (const char* path : {"/ui/below/secret.txt", "/ui/../tacho_web_directory/index.html",
                           "/ui/.hidden", "/ui/..", "/ui/below"}) {
    EXPECT_EQ(Ask(path, {}, options()).status, 404) << path;
  }
}

TEST_F(WebDirectoryTest, ItIsRefusedBeyondLoopbackAndWithoutAPage) {
  EXPECT_TRUE(CheckWebDirectory(options(), "127.0.0.1:7412").ok());
  EXPECT_TRUE(CheckWebDirectory(options(), "[::1]:0").ok());
  EXPECT_THAT(CheckWebDirectory(options(), "0.0.0.0:7412").message(), HasSubstr("loopback"));
  std::filesystem::remove(directory_ / "index.html");
  EXPECT_THAT(CheckWebDirectory(options(), "localhost:1").message(), HasSubstr("build.sh"));
  EXPECT_TRUE(CheckWebDirectory({}, "0.0.0.0:7412").ok());
}

}  // namespace
}  // namespace tacho::server::web
