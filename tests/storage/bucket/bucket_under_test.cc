#include "tests/storage/bucket/bucket_under_test.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tacho::storage {
namespace {

using testing::FakeObjectStore;
using Manner = FakeObjectStore::Manner;

class FakeService : public BucketService {
 public:
  FakeService(Manner manner, std::string scheme) : store_(manner), scheme_(std::move(scheme)) {}

  std::unique_ptr<Bucket> Open(const std::string& prefix) override {
    return MustOpen(
        OptionsFor(store_, absl::StrCat(scheme_, FakeObjectStore::kBucket, "/", prefix)));
  }
  bool SetPage(size_t objects) override {
    store_.SetPage(objects);
    return true;
  }

 private:
  FakeObjectStore store_;
  const std::string scheme_;
};

template <Manner manner>
std::unique_ptr<BucketService> MakeFake() {
  return std::make_unique<FakeService>(manner, manner == Manner::kGcs ? "gs://" : "s3://");
}

// A Ceph that ceph.py has started; credentials are in the environment.
class CephService : public BucketService {
 public:
  explicit CephService(const char* bucket) : bucket_(bucket) {}

  std::unique_ptr<Bucket> Open(const std::string& prefix) override {
    return MustOpen({.url = absl::StrCat("s3://", bucket_, "/", prefix),
                     .endpoint = std::getenv("TACHO_TEST_CEPH"),
                     .path_style = true,
                     .credentials = "environment",
                     .timeout = absl::Seconds(30),
                     .slow_after = absl::Seconds(10)});
  }

 private:
  const char* const bucket_;
};

std::unique_ptr<BucketService> MakePlainCeph() { return std::make_unique<CephService>("plain"); }
std::unique_ptr<BucketService> MakeVersionedCeph() {
  return std::make_unique<CephService>("versioned");
}

}  // namespace

std::vector<ServiceKind> ServicesThat(std::optional<bool> keep_promises) {
  const std::vector<ServiceKind> all = {
      {"Aws", MakeFake<Manner::kAws>, true},
      {"Gcs", MakeFake<Manner::kGcs>, true},
      {"Ceph16", MakeFake<Manner::kCeph16>, true},
      {"Ceph16Versioned", MakeFake<Manner::kCeph16Versioned>, false},
      {"RealCeph", MakePlainCeph, true, true},
      {"RealCephVersioned", MakeVersionedCeph, false, true},
  };
  std::vector<ServiceKind> services;
  for (const ServiceKind& kind : all) {
    if (kind.real && std::getenv("TACHO_TEST_CEPH") == nullptr) continue;
    if (!keep_promises || kind.keeps_promises == *keep_promises) services.push_back(kind);
  }
  return services;
}

BucketOptions OptionsFor(const FakeObjectStore& store, const std::string& url) {
  return {.url = url,
          .endpoint = store.endpoint(),
          .path_style = true,
          .credentials = "environment",
          .timeout = absl::Seconds(20),
          .slow_after = absl::Seconds(5),
          .environment = [](const char* name) -> const char* {
            if (absl::string_view(name) == "AWS_ACCESS_KEY_ID") return FakeObjectStore::kKeyId;
            if (absl::string_view(name) == "AWS_SECRET_ACCESS_KEY") return FakeObjectStore::kSecret;
            return nullptr;
          }};
}

std::unique_ptr<Bucket> MustOpen(BucketOptions options) {
  auto bucket = OpenBucket(std::move(options));
  if (!bucket.ok()) {
    std::fprintf(stderr, "%s\n", bucket.status().ToString().c_str());
    std::abort();
  }
  return *std::move(bucket);
}

}  // namespace tacho::storage
