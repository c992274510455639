#include "agent/delivery.h"

#include <utility>

#include "proto/base/check.h"
#include "proto/base/status_macros.h"

namespace tacho::agent {

Delivery::Delivery(DeliveryOptions options) : options_(std::move(options)) {}

Delivery::~Delivery() { Stop(absl::ZeroDuration()); }

absl::StatusOr<std::unique_ptr<Delivery>> Delivery::Open(DeliveryOptions options) {
  auto delivery = std::unique_ptr<Delivery>(new Delivery(std::move(options)));
  Delivery* const self = delivery.get();
  const DeliveryOptions& with = self->options_;
  if (!with.cluster) {
    TACHO_ASSIGN_OR_RETURN(self->spool_, OpenUndivided(with.spool));
    self->AddSender(0, self->spool_.get());
    return delivery;
  }
  TACHO_ASSIGN_OR_RETURN(
      self->sharded_, ShardedSpool::Open({.spool = with.spool,
                                          .division = {static_cast<uint32_t>(with.addresses.size()),
                                                       with.split_jobs},
                                          .home_job = with.home_job,
                                          .home_host = with.home_host,
                                          .host_jobs = with.host_jobs}));
  for (const auto& [shard, spool] : self->sharded_->spools()) self->AddSender(shard, spool);
  self->sharded_->SetOpened(
      [self](uint32_t shard, Spool* spool) { self->AddSender(shard, spool); });
  return delivery;
}

RowSink* Delivery::sink() {
  if (sharded_ != nullptr) return sharded_.get();
  return spool_.get();
}

// Where the owner of the shard is likely first, if it is not at its place in the list.
void Delivery::AddOthers(uint32_t shard, std::vector<std::string>* addresses) const {
  addresses->insert(addresses->end(), options_.spares.begin(), options_.spares.end());
  for (size_t i = 0; i < options_.addresses.size(); ++i) {
    if (i != shard) addresses->push_back(options_.addresses[i]);
  }
}

void Delivery::AddSender(uint32_t shard, Spool* spool) {
  StreamOptions stream = options_.stream();
  if (options_.cluster) {
    TACHO_CHECK(shard < options_.addresses.size());
    stream.addresses = {options_.addresses[shard]};
    if (!options_.spares.empty()) AddOthers(shard, &stream.addresses);
    stream.shards = static_cast<uint32_t>(options_.addresses.size());
    stream.shard = shard;
  } else {
    stream.addresses = options_.addresses;
    stream.addresses.insert(stream.addresses.end(), options_.spares.begin(), options_.spares.end());
  }
  stream.one_store = !options_.spares.empty();
  // Members' clocks differ: the figures of this host are by the one that gets them.
  if (sharded_ == nullptr || shard == sharded_->home()) stream.clock = home_clock_;
  auto sender = std::make_unique<Sender>(std::move(stream), spool);
  absl::MutexLock lock(&mutex_);
  if (started_) sender->Start();
  senders_[shard] = std::move(sender);
}

void Delivery::Start() {
  absl::MutexLock lock(&mutex_);
  started_ = true;
  for (const auto& [shard, sender] : senders_) sender->Start();
}

void Delivery::Stop(absl::Duration flush) {
  std::map<uint32_t, std::unique_ptr<Sender>> senders;
  {
    absl::MutexLock lock(&mutex_);
    senders = std::exchange(senders_, {});
  }
  for (const auto& [shard, sender] : senders) sender->BeginStop(flush);
  for (const auto& [shard, sender] : senders) sender->Stop(flush);
}

SpoolStats Delivery::Stats() const {
  return sharded_ != nullptr ? sharded_->Stats() : spool_->Stats();
}

}  // namespace tacho::agent
