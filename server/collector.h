// The collector as a whole: builds its parts in order and drains them in reverse.
//
//   security -> store -> conditions -> ingest service, query service -> gRPC server -> HTTP server
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/log.h"
#include "storage/bucket/bucket_options.h"
#include "tacho/config/v1/collector.pb.h"

namespace rocksdb {
class Env;
}
namespace tacho::server::takeover {
class Ownership;
}

namespace tacho::server {

// The world around the collector.
struct CollectorWorld {
  std::function<absl::Time()> now = absl::Now;
  std::function<absl::Time()> monotonic = MonotonicNow;
  absl::Duration clock_round = absl::Seconds(1);  // How often the two are compared.
  log::Log log;
  // Reads the configuration again, for Reload(). Called from any thread, once at a time.
  std::function<absl::StatusOr<config::v1::Collector>()> read_config;
  // Files of the page, for those who work on it (server/web/web_routes.h). Empty: those in the
  // program.
  std::string web_directory;
  // In a cluster with spares: what this collector owns, which is a shard now. Not owned; must
  // outlive the collector. Null: there are no spares.
  takeover::Ownership* ownership = nullptr;
  // With it: Standby::SetRequestListener(), so that the requests of the ownership count. May be
  // null.
  std::function<void(std::function<void(const storage::FinishedRequest&)>)> hear_ownership;
  // With it: the shard belongs to another collector now. The collector is to be drained. May be
  // null. Called from any thread: return at once.
  std::function<void()> on_shard_lost;
  rocksdb::Env* env = nullptr;  // Not owned. nullptr is the real file system.
  // The disk has failed: the collector is to be drained and the process to end, for its supervisor
  // to start it again. May be null. Called from any thread: return at once.
  std::function<void()> on_disk_failed;
  // How long Drain() waits for streams and calls before it cuts them off.
  absl::Duration drain_timeout = absl::Seconds(15);
};

// Start(), Drain() and destruction are for one thread; Reload() is for any.
class Collector {
 public:
  // `config` is as ParseYaml() leaves it: complete and within bounds.
  //   UNAVAILABLE  an address cannot be listened on, or the disk refused; the text says which.
  //   others       as Security::Create() and storage::Store::Open().
  static absl::StatusOr<std::unique_ptr<Collector>> Start(const config::v1::Collector& config,
                                                          CollectorWorld world = {});
  ~Collector();  // Drains if Drain() was not called, and loses its status.

  int grpc_port() const;
  int http_port() const;
  int admin_port() const;  // 0 if Admin is not served on a port.
  // The page as users reach it, with a slash at its end; empty: there is none, or its address is
  // not known (ui.url).
  std::string page_url() const;

  // Reads the configuration again and puts its reloadable keys in force, all of them or none; says
  // so in the log and in metrics. `asked_by` is for the log.
  //   FAILED_PRECONDITION  keys that need a restart differ; the text names them.
  //   others               why it could not be read, or as the part that could not take its keys.
  absl::Status Reload(absl::string_view asked_by);

  // Not ready any more -> no new streams or queries -> each stream ends once what it sent is
  // durable and acknowledged -> gRPC and HTTP stop -> the store seals and closes, whose status is
  // returned.
  absl::Status Drain();

 private:
  class Parts;  // Their headers stay out of this one.

  explicit Collector(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace tacho::server
