#include "server/process/reloader.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/status_macros.h"
#include "proto/config/config_diff.h"

namespace tacho::server::process {

Reloader::Reloader(ReloaderOptions options)
    : options_(std::move(options)), metrics_(options_.registry) {}

absl::Status Reloader::Reload(absl::string_view asked_by, const std::function<void()>& applied) {
  absl::MutexLock lock(&mutex_);
  const auto read = options_.read
                        ? options_.read()
                        : absl::FailedPreconditionError("there is no configuration to read again");
  last_ = read.ok() ? Apply(*read) : read.status();
  if (last_.ok()) applied();
  metrics_.Reloaded(last_.ok(), options_.now());
  if (last_.ok()) {
    options_.log.Info("the configuration was read again", {{"asked_by", asked_by}});
  } else {
    options_.log.Error("reload refused: nothing was changed",
                       {{"asked_by", asked_by}, {"reason", last_.message()}});
  }
  return last_;
}

absl::Status Reloader::Apply(const config::v1::Collector& config) {
  const std::vector<std::string> fixed = config::KeysThatNeedRestart(options_.started_with, config);
  if (!fixed.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(absl::StrJoin(fixed, ", "), ": changed, which needs a restart"));
  }
  std::vector<std::function<void()>> changes;
  for (Reloadable* const part : parts_) {
    TACHO_ASSIGN_OR_RETURN(auto change, part->Prepare(config));
    changes.push_back(std::move(change));
  }
  for (const auto& change : changes) change();
  options_.log.SetLevel(log::LevelNamed(config.log().level()).value_or(log::Level::kInfo));
  return absl::OkStatus();
}

void Reloader::Fill(v1::GetStatsResponse::ReloadStats* stats) {
  absl::MutexLock lock(&mutex_);
  metrics_.Fill(stats);
  stats->set_last_refusal(std::string(last_.message()));
}

}  // namespace tacho::server::process
