#include "client/import/stream_digest.h"

#include <openssl/evp.h>

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace tacho::importer {
namespace {

constexpr size_t kIdBytes = 16;

}  // namespace

StreamDigest::StreamDigest(const std::string& job) : context_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(context_, EVP_sha256(), nullptr);
  EVP_DigestUpdate(context_, job.data(), job.size());
}

StreamDigest::~StreamDigest() { EVP_MD_CTX_free(context_); }

void StreamDigest::Add(const v1::Layout* layout, const v1::ClientMessage& message) {
  if (layout != nullptr) {
    const auto [found, added] = layouts_.emplace(layout, layouts_.size());
    if (added) AddBytes(*layout);
    // A batch does not name its layout.
    EVP_DigestUpdate(context_, &found->second, sizeof(found->second));
  }
  AddBytes(message);
}

// Maps have no order of their own.
void StreamDigest::AddBytes(const google::protobuf::MessageLite& message) {
  bytes_.clear();
  {
    google::protobuf::io::StringOutputStream stream(&bytes_);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&coded);
  }
  const uint64_t size = bytes_.size();
  EVP_DigestUpdate(context_, &size, sizeof(size));
  EVP_DigestUpdate(context_, bytes_.data(), bytes_.size());
}

std::string StreamDigest::Finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(context_, digest, &size);
  return {reinterpret_cast<const char*>(digest), size};
}

std::string AgentIdOf(const std::string& digest) {
  return absl::StrCat("import-", absl::BytesToHexString(digest.substr(0, kIdBytes)));
}

uint64_t GenerationOf(const std::string& digest) {
  uint64_t generation = 0;
  std::memcpy(&generation, digest.data() + kIdBytes, sizeof(generation));
  return generation == 0 ? 1 : generation;
}

}  // namespace tacho::importer
