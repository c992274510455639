#include "server/history/bucket_config.h"

#include "absl/time/time.h"

namespace tacho::server::history {

storage::BucketOptions BucketOptionsOf(const config::v1::Collector::Bucket& config) {
  storage::BucketOptions options;
  options.url = config.url();
  options.endpoint = config.endpoint();
  options.region = config.region();
  options.path_style = config.path_style();
  options.credentials = config.credentials();
  options.ca_file = config.ca_file();
  options.timeout = absl::Nanoseconds(config.timeout());
  return options;
}

}  // namespace tacho::server::history
