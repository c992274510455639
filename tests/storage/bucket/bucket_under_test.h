// The services at which the same tests of Bucket are run.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/bucket/bucket.h"
#include "storage/bucket/bucket_options.h"
#include "tests/support/fake_object_store.h"

namespace tacho::storage {

// One service. Buckets that it opens must not outlive it.
class BucketService {
 public:
  virtual ~BucketService() = default;
  // A bucket whose keys begin behind `prefix`, which no other test uses.
  virtual std::unique_ptr<Bucket> Open(const std::string& prefix) = 0;
  // Lists at most so many objects a page; false if it cannot.
  virtual bool SetPage(size_t /*objects*/) { return false; }
};

struct ServiceKind {
  std::string name;
  std::unique_ptr<BucketService> (*make)();
  bool keeps_promises;  // False: conditions are not honoured there.
  bool real = false;    // A Ceph that ceph.py has started; TACHO_TEST_CEPH has its endpoint.
};
inline void PrintTo(const ServiceKind& kind, std::ostream* out) { *out << kind.name; }

// Those that are there. keeps_promises as given, or both.
std::vector<ServiceKind> ServicesThat(std::optional<bool> keep_promises);

// Options for the fake, with times that suit tests.
BucketOptions OptionsFor(const testing::FakeObjectStore& store, const std::string& url);

// OpenBucket(), or the test's end.
std::unique_ptr<Bucket> MustOpen(BucketOptions options);

}  // namespace tacho::storage
